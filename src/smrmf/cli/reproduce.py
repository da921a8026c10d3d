"""``smrmf reproduce``: the paper's evaluation, run again."""

from __future__ import annotations

import os
from pathlib import Path

import click

from smrmf.cli import _options
from smrmf.cli._output import show_table
from smrmf.cli._shared import console, in_order, refuse


@click.command(
    epilog="""\b
Examples
  smrmf reproduce --quick
  smrmf reproduce --only SMRMF,f-SMRMF --data sonar --output found
"""
)
@click.option("--only", default="", help="Only these methods, separated by commas.")
@click.option("--data", default="", help="Only these data sets, separated by commas.")
@click.option("--quick", is_flag=True, help="Small sets and short grids, some minutes.")
@click.option("--list", "list_only", is_flag=True, help="Show what would run, and what is done.")
@click.option("--page-only", is_flag=True, help="Only write the page so far.")
@click.option("--jobs", type=click.IntRange(-1), default=-1, help="Processes; -1 is one per core.")
@click.option("--output", type=click.Path(path_type=Path), default="reproduction", show_default=True,
              help="Where results and the page go.")  # fmt: skip
@_options.data_home
@click.option("--plan", type=click.Path(path_type=Path), help="Another plan than the paper's.")
def reproduce(
    only: str,
    data: str,
    quick: bool,
    list_only: bool,
    page_only: bool,
    jobs: int,
    output: Path,
    data_home: Path | None,
    plan: Path | None,
) -> None:
    """Run the paper's whole evaluation and write a page with our numbers beside the paper's.

    Stop it at any moment; started again with the same --output it continues from there.
    """
    # Imported here, so that ``--help`` does not wait for scikit-learn and numba.
    from joblib import cpu_count

    from smrmf.datasets import DatasetError
    from smrmf_reproduce import command
    from smrmf_reproduce.run.plan import PlanError

    if jobs == 0:
        refuse("--jobs=0 does nothing: give a number of processes, or -1 for all cores.")

    request = command.Request(
        methods=names(only),
        data=names(data),
        quick=quick,
        # joblib's count respects the limits of a container, which os.cpu_count does not.
        jobs=cpu_count() if jobs < 1 else jobs,
        output=output,
        data_home=str(data_home) if data_home else None,
        plan=plan,
    )
    kept = "what is done is kept, and the same command goes on from here."
    with in_order((PlanError, DatasetError, OSError), kept):
        if list_only:
            titles = ("data", "method", "runs", "done", "took")
            rows = list(command.describe(request, console()))
            show_table(dict(zip(titles, zip(*rows, strict=True) if rows else ((),) * 5, strict=True)))
            return
        complete = command.reproduce(request, console(), page_only=page_only)
    # Failed runs are named on the page; the exit code tells a script.
    if not complete:
        raise click.exceptions.Exit(1)


def names(listed: str) -> list[str]:
    """Return names that are separated by commas."""
    # Plans are UTF-8; Python reads a command line as the locale says, which may know ASCII alone.
    listed = os.fsencode(listed).decode("utf-8", "replace")
    return [name.strip() for name in listed.split(",") if name.strip()]
