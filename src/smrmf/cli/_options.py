"""Options that several commands have."""

from __future__ import annotations

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
seed = click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Seed of all chance."
)
settings = click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter of the method; repeat it."
)
force = click.option("--force", is_flag=True, help="Replace an earlier result.")
id_column = click.option("--id", "id_column", metavar="COLUMN", help="Column that names the rows.")


def names(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of columns, which may also be separated by commas."""
    return tuple(name.strip() for listed in given for name in listed.split(",") if name.strip())


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
        return float(given) if "." in given else int(given)
    except ValueError:
        return refuse(f"--exemplars {given} is no number: give a count, such as 20, or a share, such as 0.1.")
