"""``smrmf data``: which data sets there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from smrmf.cli import _options
from smrmf.cli._output import show_table
from smrmf.cli._shared import in_order


@click.command(
    epilog="""\b
Example
  smrmf data --data-home folder
"""
)
@_options.data_home
@_options.as_json
def data(data_home: Path | None, as_json: bool) -> None:
    """List the data sets of the paper, and which of them are at hand."""
    # Imported here, so that ``--help`` does not wait for SciPy.
    from smrmf.datasets import DatasetError, list_datasets
    from smrmf.tasks._plain import as_json as written
    from smrmf.tasks._plain import as_records

    with in_order((DatasetError,)):
        found = list_datasets(data_home)
        columns: dict[str, list[Any]] = {
            "name": [row.name for row in found],
            "paper": [row.paper_name or "" for row in found],
            # Sizes after cleaning (paper note 35); where these are not known, those of the source.
            "points": [row.n or row.raw_n for row in found],
            "features": [row.m or row.raw_m for row in found],
            "classes": [row.classes for row in found],
            "at hand": ["yes" if row.present else "no" for row in found],
            "source": [row.source for row in found],
        }
        if as_json:
            click.echo(written(as_records(columns)))
        else:
            show_table(columns)
