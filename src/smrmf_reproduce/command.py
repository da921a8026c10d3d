"""The whole of ``smrmf reproduce``: plan, data, runs, page."""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from smrmf.datasets import DatasetError, DatasetInfo, list_datasets
from smrmf_reproduce.report.claims import check_claims
from smrmf_reproduce.report.paper import Paper
from smrmf_reproduce.report.provenance import Provenance
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.run.environment import machine, versions
from smrmf_reproduce.run.measure import MEASUREMENTS, SIMULATED, load_points
from smrmf_reproduce.run.methods import find_estimator, starts_from_svd
from smrmf_reproduce.run.plan import Plan, PlanError, Run
from smrmf_reproduce.run.progress import Forecast, RunProgress, clock
from smrmf_reproduce.run.repeats import expected_repeats, known_repeats
from smrmf_reproduce.run.runner import execute
from smrmf_reproduce.run.session import Session
from smrmf_reproduce.run.store import DONE, Record, Store, busy_seconds, count_failed


@dataclass(frozen=True)
class Request:
    """Which part of the plan to run, and where to keep the results."""

    methods: Sequence[str] = ()
    data: Sequence[str] = ()
    quick: bool = False
    jobs: int = 1
    output: Path = Path("reproduction")
    data_home: str | None = None
    plan: Path | None = None

    @property
    def command(self) -> str:
        """Return the command that asks for the same, without the folders of this machine."""
        words = ["smrmf", "reproduce", *(["--quick"] if self.quick else [])]
        # The name alone: the command is printed on a page that others read. As UTF-8, whatever the locale.
        words += ["--plan", os.fsencode(self.plan.name).decode("utf-8", "replace")] if self.plan else []
        for option, names in (("--only", self.methods), ("--data", self.data)):
            words += [option, ",".join(names)] if names else []
        return shlex.join(words)


def requested_runs(plan: Plan, request: Request) -> list[Run]:
    """Return the runs that are asked for; refuse names that the plan does not have."""
    for what, wanted, known in (
        ("method", request.methods, plan.method_names()),
        ("data set", request.data, plan.data_names()),
    ):
        for name in plan.names(wanted):
            if name not in known:
                raise PlanError(f"There is no {what} {name!r} here; choose among {', '.join(known)}.")
    return plan.select(request.methods, request.data)


def check_data_sets(runs: Sequence[Run], catalogue: Sequence[DatasetInfo]) -> None:
    """Refuse a plan with a data set that does not exist."""
    known = [*SIMULATED, *(info.name for info in catalogue)]
    for name in dict.fromkeys(run.data for run in runs):
        if name not in known:
            raise PlanError(f"The plan has a data set {name!r}; there are {', '.join(known)}.")


def not_loadable(runs: Sequence[Run], data_home: str | None) -> dict[str, str]:
    """Return, for every data set of these runs that cannot be loaded, a sentence that says why."""
    absent: dict[str, str] = {}
    for name in dict.fromkeys(run.data for run in runs if run.data not in SIMULATED):
        try:
            # Once, before there are workers: they would download the same file at the same time, and a set
            # that is not there would fail in every run instead of being left out.
            load_points(name, data_home)
        except DatasetError as error:
            absent[name] = str(error)
    return absent


def reproduce(request: Request, console: Console, *, page_only: bool = False) -> bool:
    """Do the runs without a result and write the page; tell whether no run failed."""
    # All that can be refused is refused before the first of many hours of runs.
    check_extras()
    plan = Plan.read(request.plan, quick=request.quick)
    paper = Paper.of(plan)
    check_claims(paper)
    wanted = requested_runs(plan, request)
    check_estimators(wanted)
    check_measurements(wanted)
    # Raises for a data folder that does not exist; ``not_loadable`` would only leave out all its sets.
    catalogue = list_datasets(request.data_home)
    check_data_sets(wanted, catalogue)
    check_starts(plan, wanted)
    session = Session.open(wanted, Store(request.output))
    session = session.with_runs(known_repeats(plan, session.runs, session.known))
    tell_damage(session.store, console)
    # A set without anything to do is not loaded: its records are all that the page needs of it.
    absent = not_loadable(session.pending(), request.data_home)
    session = session.without(absent)
    for sentence in absent.values():
        console.print(f"Left out: {sentence}", style="yellow", soft_wrap=True, markup=False, highlight=False)
    n_done = len(session.runs) - len(session.pending())
    console.print(f"{len(session.runs)} runs, {n_done} of them done before.", highlight=False)
    if not page_only:
        n_points = {info.name: info.n or info.raw_n for info in catalogue}
        session = carry_out(session, plan, n_points, request, console)
    records = session.records()
    page = write_page(records, paper, plan, session.runs, absent, request)
    failed = count_failed(records)
    said = f"{len(records)} of {len(session.runs)} runs have a record, {failed} failed. The page: {page}"
    console.print(said, soft_wrap=True, markup=False, highlight=False)
    return failed == 0


def tell_damage(store: Store, console: Console) -> None:
    """Name the files that should be records and are not, each in a line and once."""
    while store.damaged:
        path, reason = store.damaged.popitem()
        said = f"Left out: {path} is no record ({reason}); its run counts as not done."
        console.print(said, style="yellow", soft_wrap=True, markup=False, highlight=False)


def check_extras() -> None:
    """Refuse to begin without what the page needs, which is more than the runs need."""
    if missing := [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]:
        raise PlanError(f"The page needs {' and '.join(missing)}: pip install 'smrmf[reproduce]'.")


def check_estimators(runs: Sequence[Run]) -> None:
    """Refuse a plan with a method, or with a selector of one, that names no estimator."""
    fits = [run for run in runs if not run.is_measurement]
    selectors = [run.settings["selector"] for run in fits if "selector" in run.settings]
    # As text: a plan may have a number there, which is no name either.
    for name in dict.fromkeys(map(str, [*(run.estimator for run in fits), *selectors])):
        find_estimator(name)


def check_starts(plan: Plan, runs: Sequence[Run]) -> None:
    """Refuse a plan that changes the start of a method which does not begin with the non-negative SVD."""
    for run in runs:
        changed = run.settings.get("fill") or plan.method(run.method, run.data).repeats
        if not run.is_measurement and changed and not starts_from_svd(run):
            raise PlanError(
                f"The plan fills or repeats the start of {run.method!r}, which has no init='nndsvd': take "
                "'repeats' and 'fill' away from it."
            )


def check_measurements(runs: Sequence[Run]) -> None:
    """Refuse a plan with a measurement that does not exist, or lacks an argument on a data set."""
    for run in runs:
        try:
            if run.is_measurement:
                inspect.signature(MEASUREMENTS[run.estimator]).bind(None, None, **run.arguments)
        except (KeyError, TypeError) as error:
            raise PlanError(
                f"The plan has a measurement {run.method!r} that {run.data} cannot have: {error}."
            ) from error


def carry_out(
    session: Session, plan: Plan, n_points: dict[str, int], request: Request, console: Console
) -> Session:
    """Do the pending runs of a session, then the repeats that follow from them, and show how far they are."""
    pending = session.pending()
    to_do = {run.key for run in pending}
    # Without failed runs, which run again.
    done = [record for key, record in session.known.items() if key not in to_do]
    progress = RunProgress(
        [*pending, *expected_repeats(plan, session.runs, session.known)],
        len(done),
        Forecast(done, n_points),
        store=session.store,
        jobs=request.jobs,
        console=console,
    )
    with progress:
        _do_pending(session, progress, request)
        session = session.with_runs(known_repeats(plan, session.runs, session.known))
        tell_damage(session.store, console)
        progress.expect(repeats := [run for run in session.pending() if run.key not in to_do])
        _do_pending(replace(session, runs=repeats), progress, request)
    return session


def _do_pending(session: Session, progress: RunProgress, request: Request) -> None:
    work = execute(session.pending(), session.store, jobs=request.jobs, data_home=request.data_home)
    with closing(work):  # closed, so that Ctrl-C at any moment ends the workers
        for record in work:
            session.take(record)
            progress.finished(record)


def write_page(
    records: Sequence[Record],
    paper: Paper,
    plan: Plan,
    runs: Sequence[Run],
    absent: Collection[str],
    request: Request,
) -> Path:
    """Write tables, figures and the page from these records."""
    from smrmf_reproduce.report.page import write_report  # draws, and so takes its time to import

    provenance = Provenance(
        command=request.command,
        # From the records, as they may come from another machine than the one that writes the page.
        versions=records[0]["versions"] if records else versions(),
        machine=(records[0]["machine"] if records else machine()) | {"jobs": request.jobs},
        total_seconds=busy_seconds(records),
        started=min((record["started"] for record in records), default=None),
        n_runs=len(records),
        n_failed=count_failed(records),
        notes=page_notes(request, plan, records, absent),
        exceptions=plan.exceptions(runs),
    )
    return write_report(Results(records, paper, runs, absent), provenance, request.output)


def page_notes(request: Request, plan: Plan, records: Sequence[Record], absent: Collection[str]) -> list[str]:
    """Return sentences on what a reader must know before anything else."""
    notes = [f"{name} could not be loaded and was left out." for name in absent]
    if request.quick:
        notes.append("A quick run: small sets, the ends of each grid, few repetitions.")
    differing = [w for w in ("versions", "machine") if len({str(record[w]) for record in records}) > 1]
    notes += [f"Runs differ in their {what}: shown is that of the first run." for what in differing]
    if reading := plan.main_reading():
        notes.append(f"The published reading of what the paper leaves open, main: {reading}.")
    return notes


def describe(request: Request, console: Console) -> list[tuple[str, str, int, int, str]]:
    """Return, for every data set and method, how many runs there are, how many are done, and how long.

    The time is that of the results so far, if there are any.
    """
    plan = Plan.read(request.plan, quick=request.quick)
    runs: Sequence[Run] = requested_runs(plan, request)
    # A Store makes its folders, and a listing must not leave any behind.
    known: dict[str, Record] = {}
    if (request.output / "runs").is_dir():
        session = Session.open(runs, Store(request.output))
        session = session.with_runs(known_repeats(plan, runs, session.known))
        tell_damage(session.store, console)
        runs, known = session.runs, session.known
    cells: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        cells.setdefault((run.data, run.method), []).append(run)
    rows = []
    for (data, method), group in cells.items():
        records = [known[run.key] for run in group if run.key in known]
        done = [record["spent"] for record in records if record["status"] == DONE]
        rows.append((data, method, len(group), len(done), clock(sum(done)) if done else ""))
    return rows
