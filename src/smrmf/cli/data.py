"""``smrmf data``: which data sets there are."""

from __future__ import annotations

from rich.table import Table

from smrmf.cli._shared import DataHome, console, refuse


def data(data_home: DataHome = None) -> None:
    """List the data sets of the paper, and which of them are at hand."""
    # Imported here, so that ``--help`` does not wait for SciPy.
    from smrmf.datasets import DatasetError, list_datasets

    try:
        rows = list_datasets(data_home)
    except DatasetError as error:
        refuse("data", error)
    table = Table("name", "paper", "points", "features", "classes", "at hand", "source", box=None)
    for row in rows:
        # Sizes after cleaning (paper note 35); where these are not known, those of the source.
        size = (str(row.n or row.raw_n), str(row.m or row.raw_m), str(row.classes))
        table.add_row(row.name, row.paper_name or "", *size, "yes" if row.present else "no", row.source)
    console.print(table)
