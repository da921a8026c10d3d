"""Small tables, as people or programs read them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from smrmf.cli._shared import console, harmless, refuse, say

MOST_ROWS = 40  # of a table on a terminal


def show_table(columns: Mapping[str, Sequence[Any]], whole: str | None = None) -> None:
    """Print a table; where there are more rows than one can look at, ``whole`` says how to have all."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = list(zip(*columns.values(), strict=True))
    shown = rows if whole is None else rows[:MOST_ROWS]
    table = Table(box=box.SIMPLE_HEAD if console().is_terminal else None, pad_edge=False)
    for name, column in columns.items():
        is_number = all(isinstance(value, int | float | None) for value in column)
        table.add_column(Text(in_a_cell(name)), justify="right" if is_number else "left", overflow="fold")
    for row in shown:
        table.add_row(*(Text(in_a_cell(written(value))) for value in row))
    console().print(table)
    if len(shown) < len(rows):
        say(f"... and {len(rows) - len(shown)} more rows: {whole}", style="dim")


def in_a_cell(text: str) -> str:
    """Return a text on one line that a terminal may print."""
    return harmless(text.replace("\n", " "))


def written(value: Any) -> str:
    """Return a cell as people read it."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    text = f"{value:.3g}"
    return f"{value:.0f}" if "e+0" in text else text  # 3450 rather than 3.45e+03


def check_output(output: Path | None, force: bool, as_json: bool) -> None:
    """Refuse a file before anything is computed for it."""
    from smrmf._files import check_place

    if output is None:
        return
    if as_json:
        refuse("--output writes a table, and --json prints: give one of both.")
    check_place(output, force)


def hand_over(columns: Mapping[str, Sequence[Any]], output: Path | None, force: bool, as_json: bool) -> None:
    """Give a table as it is wanted: in a file, as JSON, for the eye on a terminal, or as CSV in a pipe."""
    from smrmf.tables._results import write_csv
    from smrmf.tasks._plain import as_json as written_json
    from smrmf.tasks._plain import as_records, save_table

    if output is not None:
        save_table(output, columns, force)
        say(f"Wrote {output}.")
    elif as_json:
        click.echo(written_json(as_records(columns)))
    elif console().is_terminal:
        show_table(columns, "use --output, or send them to a file.")
    else:
        write_csv(sys.stdout, columns)
