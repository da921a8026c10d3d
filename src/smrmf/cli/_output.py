"""Small tables, as people or programs read them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from smrmf.cli._shared import console, harmless, refuse, say

MOST_ROWS = 40  # of a table on a terminal


def show_table(columns: Mapping[str, Sequence[Any]]) -> None:
    """Print a table."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD if console().is_terminal else None, pad_edge=False)
    for name, column in columns.items():
        is_number = all(isinstance(value, int | float | None) for value in column)
        table.add_column(Text(in_a_cell(name)), justify="right" if is_number else "left", overflow="fold")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(Text(in_a_cell(written(value))) for value in row))
    console().print(table)


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
    with handing_over(output, force, as_json) as add:
        add(columns)


@contextmanager
def handing_over(
    output: Path | None, force: bool, as_json: bool
) -> Iterator[Callable[[Mapping[str, Sequence[Any]]], None]]:
    """Do the same with a table that comes block by block: all of it in the end, or nothing if that fails."""
    from smrmf.tasks._growing import FirstRows, growing_table

    if output is None and not as_json and console().is_terminal:
        first = FirstRows(MOST_ROWS)
        yield first.add
        show_table(first.columns)
        if first.n_rows > MOST_ROWS:
            way_out = "use --output, or send them to a file."
            say(f"... and {first.n_rows - MOST_ROWS} more rows: {way_out}", style="dim")
        return
    with growing_table("json" if as_json else "csv") as table:
        yield table.add
        if output is None:
            table.send(sys.stdout)
        else:
            table.save(output, force)
            say(f"Wrote {output}.")
