"""The command line: it parses and calls, nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

try:
    import typer
    from rich.console import Console
    from rich.table import Table
except ImportError as error:  # pragma: no cover - depends on the installation
    raise SystemExit(f"The command line needs {error.name}: pip install 'smrmf[cli]'") from None

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
console = Console()
errors = Console(stderr=True)
DATA_HOME = typer.Option(help="Folder of data sets (default: $SMRMF_DATA).")


@app.callback()
def smrmf() -> None:
    """Cluster by matrix factorisation that listens only to the neighbourhoods worth listening to."""


@app.command()
def data(
    data_home: Annotated[Path | None, DATA_HOME] = None,
) -> None:
    """List the data sets of the paper, and which of them are at hand."""
    from smrmf.datasets import DatasetError, list_datasets

    try:
        rows = list_datasets(data_home)
    except DatasetError as error:
        refuse("data", error)
    table = Table("name", "paper", "points", "features", "classes", "at hand", "source", box=None)
    for row in rows:
        size = (str(row.n or row.raw_n), str(row.m or row.raw_m), str(row.classes))
        table.add_row(row.name, row.paper_name or "", *size, "yes" if row.present else "no", row.source)
    console.print(table)


@app.command()
def reproduce(
    only: Annotated[str, typer.Option(help="Only these methods, separated by commas.")] = "",
    data: Annotated[str, typer.Option(help="Only these data sets, separated by commas.")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Small sets and short grids, some minutes.")] = False,
    list_only: Annotated[bool, typer.Option("--list", help="Show what would run, and what is done.")] = False,
    page_only: Annotated[bool, typer.Option("--page-only", help="Only write the page so far.")] = False,
    jobs: Annotated[int, typer.Option(min=-1, help="Processes; -1 is one per core.")] = -1,
    output: Annotated[Path, typer.Option(help="Where results and the page go.")] = Path("reproduction"),
    data_home: Annotated[Path | None, DATA_HOME] = None,
    plan: Annotated[Path | None, typer.Option(help="Another plan than the paper's.")] = None,
) -> None:
    """Run the paper's whole evaluation and write a page with our numbers beside the paper's.

    Stop it at any moment; started again with the same --output it goes on where it was.
    """
    from joblib import cpu_count

    from smrmf.datasets import DatasetError
    from smrmf_reproduce.run.command import Choice, describe
    from smrmf_reproduce.run.command import reproduce as run
    from smrmf_reproduce.run.plan import PlanError

    if jobs == 0:
        refuse(
            "reproduce", ValueError("--jobs=0 does nothing: give a number of processes, or -1 for all cores.")
        )

    choice = Choice(
        methods=names(only),
        data=names(data),
        quick=quick,
        jobs=cpu_count() if jobs < 1 else jobs,
        output=output,
        data_home=str(data_home) if data_home else None,
        plan=plan,
    )
    try:
        if list_only:
            table = Table("data", "method", "runs", "done", "took", box=None)
            for *pair, total, done, spent in describe(choice):
                table.add_row(*pair, str(total), str(done), spent)
            console.print(table)
            return
        complete = run(choice, console, page_only=page_only)
    except (PlanError, DatasetError, OSError) as error:
        refuse("reproduce", error)
    except KeyboardInterrupt:
        errors.print("Stopped. What is done is kept: the same command goes on from here.")
        raise typer.Exit(130) from None
    if not complete:
        raise typer.Exit(1)


def names(listed: str) -> list[str]:
    """Return names that are separated by commas."""
    return [name.strip() for name in listed.split(",") if name.strip()]


def refuse(command: str, error: Exception) -> NoReturn:
    """Say in one sentence what is wrong, and end."""
    errors.print(f"smrmf {command}: {error}", style="red", soft_wrap=True, markup=False, highlight=False)
    raise typer.Exit(2)


def main() -> None:
    """Run the command line."""
    app()
