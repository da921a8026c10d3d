"""``smrmf predict``: new rows into clusters that are there."""

from __future__ import annotations

from pathlib import Path

import click

from smrmf.cli import _options
from smrmf.cli._output import check_output, handing_over
from smrmf.cli._shared import in_order, say_notes, stage


@click.command(
    epilog="""\b
Examples
  smrmf predict penguins_clusters new.csv --id name
  smrmf predict penguins_clusters new.csv > clusters.csv
"""
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("table")
@_options.id_column
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write (default: print).")
@_options.force
@_options.as_json
def predict(
    model: Path, table: str, id_column: str | None, output: Path | None, force: bool, as_json: bool
) -> None:
    """Find the clusters of the rows of TABLE, which MODEL has not seen.

    MODEL is a folder that smrmf fit wrote, or a model file. TABLE has the columns of the fit, in any order,
    and may be larger than memory.
    """
    with in_order():
        from smrmf.tasks._ask import read_model
        from smrmf.tasks._predict import predict_table
        from smrmf.tasks._tables import TableChoice

        check_output(output, force, as_json)
        with stage(f"Reading {model}"):
            known = read_model(model)
        with handing_over(output, force, as_json) as add:
            with stage(f"Placing the rows of {table}") as tell:
                notes = predict_table(known, TableChoice(table, id_column=id_column), add, tell)
            say_notes(notes)
