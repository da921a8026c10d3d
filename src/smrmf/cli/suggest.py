"""``smrmf suggest``: how many clusters a table has."""

from __future__ import annotations

from typing import Any

import click

from smrmf.cli import _options
from smrmf.cli._output import show_table
from smrmf.cli._shared import in_order, refuse, say, say_notes, stage


@click.command(
    epilog="""\b
Examples
  smrmf suggest penguins.csv --drop species,year
  smrmf suggest table.parquet --from 5 --to 30
"""
)
@click.argument("table")
@click.option(
    "--from", "least", type=click.IntRange(2), default=2, show_default=True, help="Fewest clusters."
)
@click.option("--to", "most", type=click.IntRange(2), help="Most clusters (default: 20, fewer of few rows).")
@_options.table_options
@click.option("--metric", type=click.Choice(["euclidean", "cosine"]), default="euclidean", show_default=True,
              help="How rows are compared; texts by cosine.")  # fmt: skip
@_options.seed
@_options.as_json
def suggest(
    table: str, least: int, most: int | None, metric: str, seed: int | None, as_json: bool, **choice: Any
) -> None:
    """Say how many clusters TABLE has, with the evidence, or that there is no clear answer."""
    if most is not None and least > most:
        refuse(f"--from {least} is above --to {most}: give them the other way round.")
    with in_order():
        from smrmf.tasks._plain import as_json as written
        from smrmf.tasks._plain import as_records
        from smrmf.tasks._select import evidence, suggest_number
        from smrmf.tasks._tables import TableChoice

        found, notes = suggest_number(TableChoice(table, **choice), least, most, seed, metric, stage)
        if as_json:
            answer = {"n_clusters": found.n_clusters, "ranked": found.ranked, "reason": found.reason}
            click.echo(written(answer | {"evidence": as_records(evidence(found)), "notes": notes}))
            return
        say_notes(notes)
        say(found.reason)
        show_table(evidence(found))
