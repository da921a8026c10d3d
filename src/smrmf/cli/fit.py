"""``smrmf fit``: from a table to clusters."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from smrmf.cli import _options
from smrmf.cli._shared import in_order, say, say_indented, say_notes, stage

SHOWN_EXEMPLARS, SHOWN_FEATURES = 5, 3


@click.command(
    epilog="""\b
Examples
  smrmf fit penguins.csv --clusters 3 --id name --drop year --report
  smrmf fit pixels.npy --scale none --set n_neighbors=20 -o found
  cat words.csv | smrmf fit - --clusters 8 --json > found.json
"""
)
@click.argument("table")
@click.option("-k", "--clusters", type=click.IntRange(1), help="How many (default: as many as are clear).")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Folder to write (default: by the table)."
)
@click.option("--report", is_flag=True, help="Write a page about the result, too.")
@_options.label_column
@_options.table_options
@click.option(
    "--exemplars", callback=_options.share_or_count, metavar="N|SHARE", help="How many, or which share."
)
@click.option("--method", default="FastSMRMF", show_default=True, help="Any estimator by its name.")
@_options.settings
@_options.seed
@_options.force
@_options.as_json
def fit(
    table: str,
    clusters: int | None,
    output: Path | None,
    report: bool,
    method: str,
    exemplars: int | float | None,
    settings: tuple[str, ...],
    seed: int | None,
    force: bool,
    as_json: bool,
    **choice: Any,
) -> None:
    """Cluster the rows of TABLE, and write clusters, exemplars, profiles and a model.

    TABLE is .csv, .tsv, .parquet, .npy or .npz; - reads CSV from a pipe. Words, gaps, units and ids are seen
    to, and said. Rows are called by --id, or by their number, from 1. Large tables of numbers stay on disk.
    """
    with in_order():
        # Imported here, so that ``--help`` does not wait for scikit-learn and numba.
        from smrmf.tasks._fit import FitRequest, fit_table
        from smrmf.tasks._plain import as_json as written
        from smrmf.tasks._results import check_output, summary, write_fit
        from smrmf.tasks._tables import TableChoice

        request = FitRequest(
            TableChoice(table, **choice), clusters, method, exemplars, settings, seed, report
        )
        folder = output or default_folder(table)
        check_output(folder, request, force, report)
        fitted = fit_table(request, stage)
        command = shlex.join(["smrmf", *sys.argv[1:]])
        paths = write_fit(fitted, request, folder, force=force, report=report, command=command, stages=stage)
        if as_json:
            click.echo(written(summary(fitted, request) | {"output": str(folder)}))
            return
        say_notes(fitted.notes)
        show(fitted)
        say(f"Wrote {folder}: {', '.join(path.name for path in paths)}.")


def default_folder(table: str) -> Path:
    """Return where results of a table go, unless told otherwise: beside where one is."""
    stem = "table" if table == "-" else Path(table).name.split(".")[0]
    return Path(f"{stem}_clusters")


def show(fitted: Any) -> None:
    """Print what was found: a few lines for every cluster, and how firm they are."""
    import numpy as np

    from smrmf.report._words import score
    from smrmf.tasks._sentences import cluster_sentences

    model = fitted.model
    if fitted.suggestion is not None:
        say(f"How many clusters? {fitted.suggestion.reason}")
    say("")
    for first, *more in cluster_sentences(fitted, SHOWN_EXEMPLARS, SHOWN_FEATURES):
        say(first, style="bold")
        for line in more:
            say_indented(line)
    say("")
    if hasattr(model, "stability_") and model.labels_.max() > 0:
        doubtful = int(np.count_nonzero(model.confidence_ < 0.5))
        firm = f"Agreement {score(model.stability_)} of 1 (of clusterings of this table made in other ways)"
        say(f"{firm}; {doubtful} of {len(model.labels_)} rows have a confidence below 0.5.")
    if fitted.scores is not None:
        names = list(fitted.scores)[:3]
        said = ", ".join(f"{name.replace('_', ' ')} {fitted.scores[name]:.3f}" for name in names)
        say(f"Compared with the known classes, which were used for this alone: {said}.")
