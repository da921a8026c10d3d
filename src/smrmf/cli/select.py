"""``smrmf select``: few rows that stand for the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from smrmf.cli import _options
from smrmf.cli._output import check_output, hand_over
from smrmf.cli._shared import in_order, say_notes, stage


@click.command(
    epilog="""\b
Examples
  smrmf select table.csv -n 20
  smrmf select table.csv -n 20 --method ds3 > few.csv
"""
)
@click.argument("table")
@click.option("-n", "--number", type=click.IntRange(1), default=20, show_default=True, help="How many rows.")
@_options.table_options
@click.option("--method", default="FastSMRMF", show_default=True,
              help="DS3 is slower and often better; IPM, KDPP, ESC and others, too.")  # fmt: skip
@_options.settings
@_options.seed
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write (default: print).")
@_options.force
@_options.as_json
def select(
    table: str,
    number: int,
    method: str,
    settings: tuple[str, ...],
    seed: int | None,
    output: Path | None,
    force: bool,
    as_json: bool,
    **choice: Any,
) -> None:
    """Choose a few rows of TABLE that stand for the rest, best first."""
    with in_order():
        from smrmf.tasks._select import select_rows
        from smrmf.tasks._tables import TableChoice

        check_output(output, force, as_json)
        found, notes = select_rows(TableChoice(table, **choice), number, method, settings, seed, stage)
        say_notes(notes)
        hand_over(found, output, force, as_json)
