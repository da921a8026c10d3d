"""``smrmf explain``: why a row is in its cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from smrmf.cli import _options
from smrmf.cli._output import show_table
from smrmf.cli._shared import in_order, refuse, say, stage


@click.command(
    epilog="""\b
Examples
  smrmf explain penguins_clusters --row 17
  smrmf explain penguins_clusters --id Gentoo-3
  smrmf explain penguins_clusters --table new.csv --row 1
"""
)
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--row", type=int, help="A row of the table, the first being 1.")
@click.option("--id", "name", help="A row by its id, where the fit had --id.")
@click.option("--table", help="Another table that has the row.")
@click.option(
    "-n", "--number", type=click.IntRange(1), default=5, show_default=True, help="Lines of each list."
)
@_options.as_json
def explain(
    model: Path, row: int | None, name: str | None, table: str | None, number: int, as_json: bool
) -> None:
    """Say why a row is in its cluster of MODEL: who represents it, and which features decide."""
    if (row is None) == (name is None):
        refuse("Which row? Give either --row, such as --row 17, or --id.")
    if table is not None and row is None:
        refuse("Of another table give the number of a row by --row.")
    with in_order():
        from smrmf.tasks._ask import as_answer, explain_row, find_row, new_row, read_model
        from smrmf.tasks._plain import as_json as written
        from smrmf.tasks._tables import TableChoice

        with stage(f"Reading {model}"):
            known = read_model(model)
            point = find_row(known, row, name) if table is None else new_row(known, TableChoice(table), row)
        answer = as_answer(known, explain_row(known, point, number))
        if as_json:
            click.echo(written({"row": row, "id": name} | answer))
        else:
            show(f"Row {row}" if name is None else name, answer)


def show(what: str, answer: dict[str, Any]) -> None:
    """Print an explanation."""
    say(f"{what} is in cluster {answer['cluster']} with confidence {answer['confidence']:.2f}.")
    if answer["outlier_score"] > 0.5:
        far = "It is much farther from its neighbours than these are from theirs"
        say(f"{far} (outlier score {answer['outlier_score']:.2f} of 1).")
    say("\nIt is represented by")
    show_table(answer["representatives"])
    if answer["next_cluster"] is None:
        return
    title = next(iter(answer["representatives"]))
    say(f"Next would be cluster {answer['next_cluster']}, with {answer['next_confidence']:.2f}. What decides")
    say(f"for its cluster, of which {title} {answer['exemplar']} is the nearest exemplar (share above 0),")
    say(f"and for the next, of which {title} {answer['next_exemplar']} is (below):")
    show_table(answer["features"])
    if answer["next_confidence"] > answer["confidence"]:
        say("Its surroundings are rather for the next cluster: its label is in doubt.")
    if sum(answer["features"]["share"]) < 0:
        say("It is nearer to the exemplar of the next cluster: its neighbours put it here.")
