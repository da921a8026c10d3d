"""Options that several commands have."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from smrmf.cli._shared import refuse

Command = TypeVar("Command", bound=Callable[..., Any])

SCALES = ["auto", "none", "standard", "minmax"]
data_home = click.option(
    "--data-home", type=click.Path(path_type=Path), help="Folder of data sets (default: $SMRMF_DATA)."
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
seed = click.option("--seed", type=click.IntRange(0, 2**32 - 1), show_default="0", help="Seed of all chance.")
settings = click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter of the method; repeat it."
)
force = click.option("--force", is_flag=True, help="Replace an earlier result.")


def name(context: click.Context, option: click.Parameter, given: str | None) -> str | None:
    """Return the name of a column."""
    return (
        refuse(f"{option.opts[0]} names no column: give its name, or leave it out.") if given == "" else given
    )


def names(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of columns, which may also be separated by commas; a comma in a name needs quotes."""
    rows = csv.reader((line for listed in given for line in listed.splitlines(True)), skipinitialspace=True)
    found = dict.fromkeys(cell.strip() for row in rows for cell in row if cell.strip())
    if given and not found:
        refuse(f"{option.opts[0]} names no column: give some, separated by commas, or leave it out.")
    return tuple(found)


id_column = click.option(
    "--id", "id_column", metavar="COLUMN", callback=name, help="Column that names the rows."
)
label_column = click.option(
    "--label-column", metavar="COLUMN", callback=name, help="Known classes, only to compare with."
)


def table_options(command: Command) -> Command:
    """Add what says which columns of a table are used, and how."""
    for add in (
        click.option("--scale", type=click.Choice(SCALES), default="auto", show_default=True,
                     help="How numbers are made comparable."),
        id_column,
        click.option("--drop", multiple=True, metavar="COLUMNS", callback=names,
                     help="Columns not to use, separated by commas."),
        click.option("--columns", multiple=True, metavar="COLUMNS", callback=names,
                     help="Columns to use, separated by commas (default: all that can be)."),
    ):  # fmt: skip
        command = add(command)
    return command


def share_or_count(context: click.Context, option: click.Parameter, given: str | None) -> int | float | None:
    """Return a number of exemplars, or their share of the points."""
    if given is None or given == "auto":
        return None
    try:
        return int(given) if given.strip("+-").isdigit() else float(given)
    except ValueError:
        return refuse(f"--exemplars {given} is no number: give a count, such as 20, or a share, such as 0.1.")
