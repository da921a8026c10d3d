"""What the figures lack: runs that failed, and cells without a run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from smrmf_reproduce.report.paper import REAL_SETS, shown_name
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.table import format_params
from smrmf_reproduce.run.store import DONE, Record


@dataclass(frozen=True)
class Failure:
    """Failed runs of one method on one data set with one cause."""

    data: str
    method: str
    experiments: str
    n_failed: int
    n_runs: int
    example: str
    error: str


@dataclass(frozen=True)
class Missing:
    """Cells of the comparison without any run: a whole data set, or some methods on a set with runs."""

    data: str
    methods: str
    reason: str


def failed_runs(results: Results) -> list[Failure]:
    """Return every failure, runs with the same cause on the same cell counted together."""
    cells: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for run in results.records:
        cells[run["data"], run["method"]].append(run)
    failures = []
    for (data, method), runs in cells.items():
        causes: dict[str, list[Record]] = defaultdict(list)
        for run in runs:
            if run["status"] != DONE:
                causes[_cause(run)].append(run)
        # n_runs is of the whole cell, so that a reader sees which share of a grid is lost.
        failures += [_failure(data, method, error, group, len(runs)) for error, group in causes.items()]
    return failures


def missing_cells(results: Results) -> list[Missing]:
    """Return the cells of the paper's comparison for which there is no run."""
    touched = results.data_sets("comparison")
    missing = []
    # The paper's table, not the plan's: a set nobody asked for is missing as well.
    for data, name in REAL_SETS.items():
        absent = [method for method in results.paper.methods if not results.runs("comparison", data, method)]
        if data not in touched:
            missing.append(Missing(name, "all methods", results.note(data, has_runs=False)))
        elif absent:
            missing.append(Missing(name, ", ".join(absent), "not run"))
    return missing


def _failure(data: str, method: str, error: str, runs: list[Record], n_runs: int) -> Failure:
    experiments = sorted({name for run in runs for name in run["experiments"]})
    example = format_params(dict(runs[0]["params"])) or "one setting"
    return Failure(
        shown_name(data),
        method,
        ", ".join(experiments),
        len(runs),
        n_runs,
        f"{example}, seed {runs[0]['seed']}",
        error,
    )


def _cause(run: Record) -> str:
    """Return the last line of the error, where Python puts the cause."""
    lines = str(run.get("error") or "no reason recorded").strip().splitlines()
    return lines[-1] if len(lines[-1]) <= 300 else lines[-1][:297] + "..."
