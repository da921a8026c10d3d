"""The runs of all experiments, and the figure of a cell under the published reading or another."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from smrmf_reproduce.report.paper import MOONS, PAPER_NAMES, Paper
from smrmf_reproduce.report.score import Score, best_over_grid, mean_std
from smrmf_reproduce.run.best import finished, point_key
from smrmf_reproduce.run.plan import MAIN, Run
from smrmf_reproduce.run.repeats import COMPARISON, ON_MOONS, REPEATED, REPEATS
from smrmf_reproduce.run.store import Record, count_failed

# The experiments of the plan that the report treats in a way of their own.
READINGS, MOONS_READINGS, VIOLATION = "readings", "moons-readings", "violation"
# Those that run under every reading on a short grid, each with the one whose place it takes there.
STANDS_FOR = {READINGS: COMPARISON, MOONS_READINGS: ON_MOONS}
# Those that run under other readings as they do under the published one.
ALSO_READ = ("sensitivity-k", "sensitivity-exemplars")


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
        self.planned = list(planned)
        # Not below zero: without a plan nothing is missing.
        self.n_to_do = max(0, len(self.planned) - len(self.records))
        self._planned = Counter(
            (experiment, reading, run.data, run.method)
            for run in self.planned
            for experiment, reading in _instances(run.experiments)
        )
        self.absent = set(absent)
        # With those that are only planned: an evaluation that was stopped before them lacks them.
        self.repeated = {key[3] for key in (*self._cells, *self._planned) if key[0] == REPEATS}
        repeats = [run for run in self.records if REPEATS in run["experiments"]]
        points = Counter((run["data"], run["method"], point_key(run["params"])) for run in repeats)
        self._planned_repeats = Counter(
            (run.data, run.method, point_key(run.params))
            for run in self.planned
            if REPEATS in run.experiments
        )
        # What the most repeated grid point has: who has fewer is told from it.
        self.usual_repeats = max([*points.values(), *self._planned_repeats.values()], default=0)

    def note(self, data: str, has_runs: bool) -> str:
        """Return what a table says of a data set beside its name: why it has no runs, or that it is ours."""
        if not has_runs:
            return "file not present" if data in self.absent else "not run"
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

    def readings(self, method: str | None = None, experiment: str = READINGS) -> list[str]:
        """Return the readings measured, of one method or of any, the published one first."""
        found = {key[1] for key in self._cells if key[0] == experiment and method in (None, key[3])}
        return _ordered(found | {MAIN}, [MAIN])

    def other_readings(self) -> tuple[list[str], list[str]]:
        """Return the data sets and the methods measured under a reading that is not the published one."""
        keys = [key for key in self._cells if key[0] == READINGS and key[1] != MAIN]
        sets = _ordered({key[2] for key in keys}, list(PAPER_NAMES))
        return sets, _ordered({key[3] for key in keys}, self.paper.order)

    def best(
        self, experiment: str, data: str, method: str, measure: str = "accuracy", reading: str = MAIN
    ) -> Score:
        """Return the score of the grid point with the best mean over seeds, chosen with the labels.

        Where the published reading has repeats of that point, the value is their mean.
        """
        runs = self.runs(experiment, data, method, reading)
        score = self._complete(best_over_grid(runs, measure), experiment, reading, data, method)
        # Only methods that have repeats somewhere lack them elsewhere: a random one has its seeds.
        if experiment not in REPEATED or reading != MAIN or method not in self.repeated:
            return score
        planned = self._planned_repeats[data, method, point_key(score.params)]
        return score.repeated(self.runs(REPEATS, data, method), measure, planned, self.usual_repeats)

    def average(self, experiment: str, data: str, method: str, measure: str) -> Score:
        """Return the mean over every finished run of a cell: run times, and scores at one fixed setting."""
        runs = self.runs(experiment, data, method)
        done = tuple(finished(runs, measure))
        score = Score(*mean_std(done, measure), done, len(runs), count_failed(runs))
        return self._complete(score, experiment, MAIN, data, method)

    def _complete(self, score: Score, *cell: str) -> Score:
        """Return the score if all planned runs of its cell are there, else one that says what is to do."""
        # A Counter: zero for a cell that is not planned, whose runs are then complete as they are.
        to_do = self._planned[cell] - score.n_runs  # type: ignore[index]
        if to_do <= 0:
            return score
        return Score(n_runs=score.n_runs + to_do, n_failed=score.n_failed, n_to_do=to_do)

    def under(self, reading: str) -> Results:
        """Return the results as if a reading were the published one, on the sets of the readings.

        Cells of the readings stand for the comparison, also under the published reading, so that all are
        judged on the same sets and the same short grid. A method without runs there keeps its comparison.
        Repeats are left out: the other readings have none, and a mean is below the best of a grid.
        """
        records = [
            run | {"experiments": self._under(reading, run["experiments"], run["data"], run["method"])}
            for run in self.records
        ]
        planned = [
            replace(run, experiments=self._under(reading, run.experiments, run.data, run.method))
            for run in self.planned
        ]
        return Results(
            [run for run in records if run["experiments"]],
            self.paper,
            [run for run in planned if run.experiments],
            self.absent,
        )

    def _under(
        self, reading: str, experiments: Mapping[str, Sequence[str]], data: str, method: str
    ) -> dict[str, tuple[str, ...]]:
        """Return the experiments that a run belongs to as if a reading were the published one."""
        # The runs of a method that has no choice belong to the published reading alone, and to any.
        wanted = reading if method in self._with_choice else MAIN
        served = [name for name, readings in experiments.items() if wanted in readings]
        # A measurement of the data is the same under any reading.
        kept = [VIOLATION] if VIOLATION in served else []
        if data in self._read_sets:
            kept += [name for name in served if name in ALSO_READ]
            for short, whole in STANDS_FOR.items():
                kept += [whole] if (short if method in self._read_methods[short] else whole) in served else []
        return dict.fromkeys(kept, (MAIN,))

    @cached_property
    def _with_choice(self) -> set[str]:
        return {key[3] for key in (*self._cells, *self._planned) if key[1] != MAIN}

    @cached_property
    def _read_sets(self) -> set[str]:
        return {*self.data_sets(READINGS), *MOONS}

    @cached_property
    def _read_methods(self) -> dict[str, set[str]]:
        return {experiment: set(self.methods(experiment)) for experiment in STANDS_FOR}


def _ordered(names: set[str], first: Sequence[str]) -> list[str]:
    return [name for name in first if name in names] + sorted(names - set(first))
