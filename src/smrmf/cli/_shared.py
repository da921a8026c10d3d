"""What all commands share: where they print, how they refuse, and the options they have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

console = Console()
errors = Console(stderr=True)
DataHome = Annotated[Path | None, typer.Option(help="Folder of data sets (default: $SMRMF_DATA).")]


def refuse(command: str, error: Exception) -> NoReturn:
    """Say in one sentence what is wrong, and end."""
    # No markup, because messages quote paths and names, in which brackets are brackets.
    errors.print(f"smrmf {command}: {error}", style="red", soft_wrap=True, markup=False, highlight=False)
    # 2 is what shells and click use for a wrong call; 1 is left for runs that failed.
    raise typer.Exit(2)
