"""What all commands share: where they print, how they refuse, and the options they have in common."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer
from rich.console import Console

console = Console()
errors = Console(stderr=True)
DataHome = Annotated[Path | None, typer.Option(help="Folder of data sets (default: $SMRMF_DATA).")]
# What asks a command to end, each with how Python treats it unless told otherwise: Ctrl-C, kill, and a
# terminal that is closed.
STOPPING = {"SIGINT": signal.default_int_handler, "SIGTERM": signal.SIG_DFL, "SIGHUP": signal.SIG_DFL}


class Stopped(KeyboardInterrupt):
    """A signal has asked this command to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Let every signal that asks for an end do what Ctrl-C does: raise, so that all is left in order."""
    usual = {getattr(signal, name): how for name, how in STOPPING.items() if hasattr(signal, name)}
    # Not what somebody else has set: nohup ignores a closed terminal, a shell Ctrl-C in its background.
    heeded = {number: how for number, how in usual.items() if signal.getsignal(number) is how}

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        for each in heeded:  # the next one ends the command at once
            signal.signal(each, signal.SIG_DFL)
        raise Stopped(number)

    for number in heeded:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, how in heeded.items():
            signal.signal(number, how)


def refuse(command: str, error: Exception) -> NoReturn:
    """Say in one sentence what is wrong, and end."""
    # No markup, because messages quote paths and names, in which brackets are brackets.
    errors.print(f"smrmf {command}: {error}", style="red", soft_wrap=True, markup=False, highlight=False)
    # 2 is what shells and click use for a wrong call; 1 is left for runs that failed.
    raise typer.Exit(2)
