"""``smrmf reproduce``: the paper's evaluation, run again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from smrmf.cli._shared import DataHome, Stopped, console, errors, refuse, stopped_by_signals


def reproduce(
    only: Annotated[str, typer.Option(help="Only these methods, separated by commas.")] = "",
    data: Annotated[str, typer.Option(help="Only these data sets, separated by commas.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Small sets and short grids, some minutes.")] = False,
    list_only: Annotated[bool, typer.Option("--list", help="Show what would run, and what is done.")] = False,
    page_only: Annotated[bool, typer.Option("--page-only", help="Only write the page so far.")] = False,
    jobs: Annotated[int, typer.Option(min=-1, help="Processes; -1 is one per core.")] = -1,
    output: Annotated[Path, typer.Option(help="Where results and the page go.")] = Path("reproduction"),
    data_home: DataHome = None,
    plan: Annotated[Path | None, typer.Option(help="Another plan than the paper's.")] = None,
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
        refuse(
            "reproduce", ValueError("--jobs=0 does nothing: give a number of processes, or -1 for all cores.")
        )

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
    try:
        with stopped_by_signals():
            if list_only:
                table = Table("data", "method", "runs", "done", "took", box=None)
                for *pair, total, done, spent in command.describe(request, console):
                    table.add_row(*pair, str(total), str(done), spent)
                console.print(table)
                return
            complete = command.reproduce(request, console, page_only=page_only)
    except (PlanError, DatasetError, OSError) as error:
        refuse("reproduce", error)
    except Stopped as stop:
        errors.print("Stopped. What is done is kept: the same command goes on from here.")
        # As shells expect it.
        raise typer.Exit(128 + stop.number) from None
    # Failed runs are named on the page; the exit code tells a script.
    if not complete:
        raise typer.Exit(1)


def names(listed: str) -> list[str]:
    """Return names that are separated by commas."""
    # Plans are UTF-8; Python reads a command line as the locale says, which may know ASCII alone.
    listed = os.fsencode(listed).decode("utf-8", "replace")
    return [name.strip() for name in listed.split(",") if name.strip()]
