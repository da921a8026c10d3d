"""The figures of a table from single runs: best over a grid, mean over seeds, and what failed."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from smrmf_reproduce.report.paper import PAPER_NAMES, Paper
from smrmf_reproduce.report.table import count
from smrmf_reproduce.run.plan import MAIN, Run
from smrmf_reproduce.run.store import DONE, Record, count_failed


@dataclass(frozen=True)
class Score:
    """One figure, the runs behind it, and how many runs of its cell are unusable.

    ``runs`` are the finished runs behind ``value``. The counts are over the whole cell, every grid point: its
    planned runs, those that failed, those still to do. While there are any to do there is no value: the
    best of a part of a grid is not the best of the grid.
    """

    value: float | None = None
    std: float | None = None
    runs: tuple[Record, ...] = ()
    n_runs: int = 0
    n_failed: int = 0
    n_to_do: int = 0

    @property
    def note(self) -> str:
        """Say in words what is missing from this figure; empty when nothing is."""
        if self.n_to_do == self.n_runs:
            return "missing"
        counts = ((self.n_failed, "failed"), (self.n_to_do, "to do"))
        return ", ".join(
            f"{number} of {count(self.n_runs, 'run')} {word}" for number, word in counts if number
        )

    @property
    def params(self) -> dict[str, Any]:
        """The grid point behind ``value``."""
        return dict(self.runs[0]["params"]) if self.runs else {}

    @property
    def run(self) -> Record | None:
        """The run that stands for the grid point where one is needed: that of the lowest seed."""
        return self.runs[0] if self.runs else None


def _instances(experiments: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """List the experiments that a run belongs to, with every reading that it is an instance of."""
    return ((name, reading) for name, readings in experiments.items() for reading in readings)


class Results:
    """Runs of all experiments, found by experiment, reading, data set and method.

    ``paper`` has what they are compared with; ``planned`` are the runs that there should be, so that what is
    still to do is known; ``absent`` names the data sets that could not be loaded.
    """

    def __init__(
        self,
        records: Iterable[Record],
        paper: Paper,
        planned: Iterable[Run] = (),
        absent: Collection[str] = (),
    ) -> None:
        self.paper = paper
        # Sorted, so that the order in which runs finish changes no digit and no file.
        self.records = sorted(records, key=lambda r: (r["data"], r["method"], r["seed"], r["key"]))
        self._cells: dict[tuple[str, str, str, str], list[Record]] = defaultdict(list)
        for record in self.records:
            # A run that serves several experiments stands in a cell of each.
            for experiment, reading in _instances(record["experiments"]):
                self._cells[experiment, reading, record["data"], record["method"]].append(record)
        planned = list(planned)
        # Not below zero: without a plan nothing is missing.
        self.n_to_do = max(0, len(planned) - len(self.records))
        self._planned = Counter(
            (experiment, reading, run.data, run.method)
            for run in planned
            for experiment, reading in _instances(run.experiments)
        )
        self._absent = set(absent)

    def note(self, data: str, has_runs: bool) -> str:
        """Return what a table says of a data set beside its name: why it has no runs, or that it is ours."""
        if not has_runs:
            return "file not present" if data in self._absent else "not run"
        return "" if data in PAPER_NAMES else "not in the paper"

    def runs(self, experiment: str, data: str, method: str, reading: str = MAIN) -> list[Record]:
        """Return every run of one cell, failed ones too."""
        return self._cells.get((experiment, reading, data, method), [])

    def data_sets(self, experiment: str) -> list[str]:
        """Return the data sets an experiment touched, the paper's first and in its order."""
        return _ordered({key[2] for key in self._cells if key[0] == experiment}, list(PAPER_NAMES))

    def shown_sets(self, experiment: str, always: Collection[str]) -> list[str]:
        """Return the data sets that a table shows in any case, run or not, then the others with a run."""
        return [*always, *(data for data in self.data_sets(experiment) if data not in always)]

    def methods(self, experiment: str) -> list[str]:
        """Return the methods an experiment touched, in the order of the plan."""
        return _ordered({key[3] for key in self._cells if key[0] == experiment}, self.paper.order)

    def readings(self, method: str | None = None, experiment: str = "readings") -> list[str]:
        """Return the readings measured, of one method or of any, the published one first."""
        found = {key[1] for key in self._cells if key[0] == experiment and method in (None, key[3])}
        return _ordered(found | {MAIN}, [MAIN])

    def other_readings(self) -> tuple[list[str], list[str]]:
        """Return the data sets and the methods measured under a reading that is not the published one."""
        keys = [key for key in self._cells if key[0] == "readings" and key[1] != MAIN]
        sets = _ordered({key[2] for key in keys}, list(PAPER_NAMES))
        return sets, _ordered({key[3] for key in keys}, self.paper.order)

    def best(
        self, experiment: str, data: str, method: str, measure: str = "accuracy", reading: str = MAIN
    ) -> Score:
        """Return the best mean over seeds among the grid points, chosen with the labels."""
        runs = self.runs(experiment, data, method, reading)
        return self._complete(best_over_grid(runs, measure), experiment, reading, data, method)

    def average(self, experiment: str, data: str, method: str, measure: str) -> Score:
        """Return the mean over every finished run of a cell: run times, and scores at one fixed setting."""
        runs = self.runs(experiment, data, method)
        done = tuple(finished(runs, measure))
        score = Score(*_mean_std(done, measure), done, len(runs), count_failed(runs))
        return self._complete(score, experiment, MAIN, data, method)

    def _complete(self, score: Score, *cell: str) -> Score:
        """Return the score if all planned runs of its cell are there, else one that says what is to do."""
        # A Counter: zero for a cell that is not planned, whose runs are then complete as they are.
        to_do = self._planned[cell] - score.n_runs  # type: ignore[index]
        if to_do <= 0:
            return score
        return Score(n_runs=score.n_runs + to_do, n_failed=score.n_failed, n_to_do=to_do)


def best_over_grid(runs: list[Record], measure: str) -> Score:
    """Return the grid point with the highest mean over its seeds.

    Only the points with the most finished seeds compete: a point that lost seeds to failures or to an
    interruption could otherwise win by the luck of the few that are left. Ties go to the first point in
    the order of its written parameters, so the answer does not depend on the order of the runs.
    """
    points: dict[str, list[Record]] = defaultdict(list)
    for run in finished(runs, measure):
        points[point_key(run)].append(run)
    if not points:
        return Score(n_runs=len(runs), n_failed=count_failed(runs))
    seeds = max(len(group) for group in points.values())
    full = {key: group for key, group in sorted(points.items()) if len(group) == seeds}
    # First the mean over seeds, then the maximum: the best single seed would reward chance. fmean sums
    # exactly, so ties do not depend on the order of the seeds, and max keeps the first of equals.
    best = max(full, key=lambda key: fmean(run[measure] for run in full[key]))
    chosen = tuple(full[best])
    return Score(*_mean_std(chosen, measure), chosen, len(runs), count_failed(runs))


def finished(runs: Iterable[Record], measure: str) -> list[Record]:
    """Return the runs that ended well and carry this measure."""
    return [run for run in runs if run["status"] == DONE and run.get(measure) is not None]


def point_key(run: Record) -> str:
    """Return a run's parameters as one stable string."""
    return json.dumps(run["params"], sort_keys=True, default=str)


def _mean_std(runs: tuple[Record, ...], measure: str) -> tuple[float | None, float | None]:
    values = [float(run[measure]) for run in runs]
    if not values:
        return None, None
    # n - 1 in the divisor; a single run has no spread rather than a spread of zero.
    return fmean(values), stdev(values) if len(values) > 1 else None


def _ordered(names: set[str], first: Sequence[str]) -> list[str]:
    return [name for name in first if name in names] + sorted(names - set(first))
