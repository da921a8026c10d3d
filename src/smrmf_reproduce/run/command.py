"""The whole of ``smrmf reproduce``: plan, data, runs, page."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from smrmf.datasets import DatasetError, list_datasets
from smrmf_reproduce.run.measure import MOONS, load_points, machine, versions
from smrmf_reproduce.run.plan import Plan, PlanError, Run
from smrmf_reproduce.run.progress import Display, clock
from smrmf_reproduce.run.runner import execute
from smrmf_reproduce.run.store import DONE, Record, Store, busy_seconds


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

    @property
    def command(self) -> str:
        """Return the command that makes the same choice, without the folders of this machine."""
        words = ["smrmf", "reproduce", *(["--quick"] if self.quick else [])]
        words += ["--plan", self.plan.name] if self.plan else []
        for option, names in (("--only", self.methods), ("--data", self.data)):
            words += [option, ",".join(names)] if names else []
        return shlex.join(words)


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


def present(runs: Sequence[Run], data_home: str | None) -> tuple[list[Run], dict[str, str]]:
    """Return the runs whose data can be had, and for every data set that cannot a sentence that says why."""
    # A folder that is none is refused here, before anything is left out for it.
    known = [info.name for info in list_datasets(data_home)]
    absent: dict[str, str] = {}
    for name in dict.fromkeys(run.data for run in runs if run.data not in MOONS):
        if name not in known:
            raise PlanError(f"The plan has a data set {name!r}; there are {', '.join([*MOONS, *known])}.")
        try:
            load_points(name, data_home)
        except DatasetError as error:
            absent[name] = str(error)
    return [run for run in runs if run.data not in absent], absent


def reproduce(choice: Choice, console: Any, *, page_only: bool = False) -> bool:
    """Do what is still to be done and write the page; tell whether no run failed."""
    check_extras()
    runs, absent = present(chosen_runs(choice), choice.data_home)
    store = Store(choice.output)
    for sentence in absent.values():
        console.print(f"Left out: {sentence}", style="yellow", soft_wrap=True, markup=False, highlight=False)
    todo = len(store.pending(runs))
    console.print(f"{len(runs)} runs, {len(runs) - todo} of them done before.", highlight=False)
    if not page_only:
        display = Display(runs, store, choice.jobs, console, choice.data_home)
        execute(runs, store, jobs=choice.jobs, data_home=choice.data_home, display=display)
    page = write_page(choice, runs, store, absent)
    status = [record["status"] for record in store.records(runs)]
    failed = len(status) - status.count(DONE)
    said = f"{len(status)} of {len(runs)} runs have a record, {failed} failed. The page: {page}"
    console.print(said, soft_wrap=True, markup=False, highlight=False)
    return failed == 0


def check_extras() -> None:
    """Refuse to begin what could not be ended: the page needs more than the runs."""
    if missing := [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]:
        raise PlanError(f"The page needs {' and '.join(missing)}: pip install 'smrmf[reproduce]'.")


def write_page(choice: Choice, runs: Sequence[Run], store: Store, absent: Collection[str]) -> Path:
    """Write tables, figures and the page from what is in the store."""
    from smrmf_reproduce.report.page import write_report

    plan = Plan.read(choice.plan, quick=choice.quick)
    records = store.records(runs)
    about = {
        "command": choice.command,
        "versions": records[0]["versions"] if records else versions(),
        "machine": (records[0]["machine"] if records else machine()) | {"jobs": choice.jobs},
        "total_seconds": busy_seconds(records),
        "started": min((record["started"] for record in records), default=None),
        "n_runs": len(records),
        "n_failed": sum(record["status"] != DONE for record in records),
        "notes": page_notes(choice, plan, records, absent),
        "exceptions": plan.exceptions(runs),
    }
    return write_report(records, choice.output, about, planned=runs, absent=absent)


def page_notes(choice: Choice, plan: Plan, records: Sequence[Record], absent: Collection[str]) -> list[str]:
    """Return sentences on what a reader must know before anything else."""
    notes = [f"{name} could not be loaded and was left out." for name in absent]
    if choice.quick:
        notes.append("A quick run: small sets, the ends of each grid, few repetitions.")
    differing = [w for w in ("versions", "machine") if len({str(record[w]) for record in records}) > 1]
    notes += [f"Runs differ in their {what}: shown is that of the first run." for what in differing]
    if reading := plan.main_reading():
        notes.append(f"The published reading of what the paper leaves open, main: {reading}.")
    return notes


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
