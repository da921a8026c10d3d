"""The whole of ``smrmf reproduce``: plan, data, runs, page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smrmf.datasets import DatasetError
from smrmf.reproduce.measure import MOONS, load_points, machine, versions
from smrmf.reproduce.plan import Plan, Run
from smrmf.reproduce.progress import Display, clock
from smrmf.reproduce.runner import execute
from smrmf.reproduce.store import DONE, Store, busy_seconds


class PlanError(ValueError):
    """A choice of methods or data sets that the plan does not have."""


@dataclass(frozen=True)
class Choice:
    """What of the plan to do, and where."""

    methods: Sequence[str] = ()
    data: Sequence[str] = ()
    quick: bool = False
    jobs: int = 1
    output: Path = Path("reproduction")
    data_home: str | None = None
    plan: Path | None = None
    command: str = "smrmf reproduce"


def chosen_runs(choice: Choice) -> list[Run]:
    """Return the runs of a choice; refuse names that the plan does not have."""
    plan = Plan.read(choice.plan, quick=choice.quick)
    for what, wanted, known in (
        ("method", choice.methods, plan.method_names()),
        ("data set", choice.data, plan.data_names()),
    ):
        for name in plan.names(wanted):
            if name not in known:
                raise PlanError(f"There is no {what} {name!r} here; choose among {', '.join(known)}.")
    return plan.runs(choice.methods, choice.data)


def present(runs: Sequence[Run], data_home: str | None) -> tuple[list[Run], list[str]]:
    """Return the runs whose data can be had, and a sentence for every data set that cannot."""
    absent, notes = set(), []
    for name in dict.fromkeys(run.data for run in runs if run.data not in MOONS):
        try:
            load_points(name, data_home)
        except DatasetError as error:
            absent.add(name)
            notes.append(str(error))
    return [run for run in runs if run.data not in absent], notes


def reproduce(choice: Choice, console: Any) -> bool:
    """Do what is still to be done and write the page; tell whether every run has a result."""
    runs = chosen_runs(choice)
    store = Store(choice.output)
    runs, notes = present(runs, choice.data_home)
    for note in notes:
        console.print(f"Left out: {note}", style="yellow", soft_wrap=True, highlight=False)
    todo = len(store.pending(runs))
    console.print(f"{len(runs)} runs, {len(runs) - todo} of them done before.", highlight=False)
    display = Display(runs, store, choice.jobs, console)
    outcome = execute(runs, store, jobs=choice.jobs, data_home=choice.data_home, display=display)
    page = write_page(choice, runs, store, notes)
    console.print(f"{outcome.done} runs, {outcome.failed} failed. The page: {page}", highlight=False)
    return outcome.failed == 0


def write_page(choice: Choice, runs: Sequence[Run], store: Store, notes: Sequence[str]) -> Path:
    """Write tables, figures and the page from what is in the store."""
    from smrmf.reproduce.page import write_report

    records = store.records(runs)
    about = {
        "command": choice.command,
        "versions": records[0]["versions"] if records else versions(),
        "machine": machine() | {"jobs": choice.jobs},
        "total_seconds": busy_seconds(records),
        "started": min((record["started"] for record in records), default=None),
        "n_runs": len(records),
        "n_planned": len(runs),
        "n_failed": sum(record["status"] != DONE for record in records),
        "notes": list(notes),
    }
    return write_report(records, choice.output, about)


def describe(choice: Choice) -> list[tuple[str, str, int, int, str]]:
    """Return, for every data set and method, how many runs there are, how many are done, and how long.

    The time is that of the results so far, if there are any.
    """
    runs = chosen_runs(choice)
    store = Store(choice.output) if (choice.output / "runs").is_dir() else None
    records = {record["key"]: record for record in (store.records(runs) if store else [])}
    rows = []
    for data, method in dict.fromkeys((run.data, run.method) for run in runs):
        keys = [run.key for run in runs if (run.data, run.method) == (data, method)]
        done = [records[key] for key in keys if key in records and records[key]["status"] == DONE]
        spent = clock(sum(record["spent"] for record in done)) if done else ""
        rows.append((data, method, len(keys), len(done), spent))
    return rows
