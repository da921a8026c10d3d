"""What all commands share: where they print, how they refuse, and how they end."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from rich.console import Console

# What asks a command to end, each with how Python treats it unless told otherwise: Ctrl-C, kill, and a
# terminal that is closed.
STOPPING = {"SIGINT": signal.default_int_handler, "SIGTERM": signal.SIG_DFL, "SIGHUP": signal.SIG_DFL}
# What a wrong table, file, word or machine leads to; all else is a mistake of ours, with its whole story.
WRONG_INPUT = (ValueError, OSError, MemoryError, ImportError)
# Of a file or a pipe, which has no width: tables are not folded there.
UNLIMITED = 10_000
# What a terminal would obey rather than print, or let run the other way: of names and cells of a table.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


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


@contextmanager
def in_order(
    refused: tuple[type[Exception], ...] = WRONG_INPUT, left: str = "nothing was written."
) -> Iterator[None]:
    """Let a command end in order: wrong input in one sentence, a signal after telling what is ``left``."""
    try:
        with stopped_by_signals():
            yield
    except BrokenPipeError:
        raise  # nobody reads on: there is nobody to tell
    except refused as error:
        from smrmf.tasks._wording import for_a_terminal

        refuse(for_a_terminal(str(error)) or f"{type(error).__name__}, without a reason.")
    except Stopped as stop:
        click.echo(f"Stopped: {left}", err=True)
        # As shells expect it.
        raise click.exceptions.Exit(128 + stop.number) from None


def refuse(reason: str) -> NoReturn:
    """Say in one sentence what is wrong, and end."""
    context = click.get_current_context(silent=True)
    # On one line, whatever a path or a name has in it.
    said = f"{context.command_path if context else 'smrmf'}: {harmless(' '.join(reason.split()))}"
    colored = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    click.echo(click.style(said, fg="red") if colored else said, err=True)
    # 2 is what shells and click use for a wrong call; 1 is left for runs that failed.
    raise click.exceptions.Exit(2)


def harmless(text: str) -> str:
    """Return a text without characters that steer a terminal, but for ends of lines."""
    return OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)


# Rich is imported when something is printed, so that ``--help`` does not wait for it.


@cache
def console() -> Console:
    """Return where results are printed."""
    return _console(stderr=False)


@cache
def errors() -> Console:
    """Return where all else is printed: what is being done, notes, and what is wrong."""
    return _console(stderr=True)


def _console(stderr: bool) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    on_terminal = stream.isatty()
    return Console(
        stderr=stderr,
        highlight=False,
        emoji=False,  # a column may be called a:x:b
        # Whatever FORCE_COLOR says: a file would have a picture of a table instead of the table.
        force_terminal=on_terminal,
        width=None if on_terminal else UNLIMITED,
    )


def say(text: str, style: str | None = None, to: Console | None = None) -> None:
    """Print a sentence; no markup, because sentences quote names, in which brackets are brackets."""
    (to or console()).print(harmless(text), style=style, markup=False)


def say_indented(text: str) -> None:
    """Print a sentence that belongs to the one before, all of its lines indented."""
    from rich.padding import Padding
    from rich.text import Text

    console().print(Padding(Text(harmless(text)), (0, 0, 0, 2), expand=False))


def say_notes(notes: list[str]) -> None:
    """Print what a user must know, beside the results."""
    for note in notes:
        say(f"- {note}", style="dim", to=errors())


@contextmanager
def stage(doing: str) -> Iterator[Any]:
    """Show on a terminal what is being done, and how far it is, for as long as it is."""
    if not errors().is_terminal:
        yield lambda said: None
        return
    from rich.text import Text  # not a str, in which there may be markup and emoji

    doing = harmless(doing)
    with errors().status(Text(f"{doing} ...")) as status:
        yield lambda said: status.update(Text(f"{doing}, {said} ..."))
