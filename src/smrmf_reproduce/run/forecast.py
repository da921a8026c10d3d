"""How long runs will take: from what they usually take, and from what they took so far on this machine."""

from __future__ import annotations

import csv
import heapq
from collections.abc import Iterable, Mapping
from math import log
from pathlib import Path
from typing import NamedTuple

from smrmf_reproduce.run.plan import PAPERS, Run
from smrmf_reproduce.run.runner import batches
from smrmf_reproduce.run.store import DONE, Record

SIMULATED_SIZE = 500
# Seconds grow about so with the number of points: between n, as fixed costs let them, and n^2.
GROWTH = 1.5
# Seconds for a run nothing is known of, per n^1.5.
USUAL_RATE = 3e-5
# Mean seconds of a run in a full reproduction; benchmarks/usual_seconds.py takes them from its records.
USUAL_SECONDS = PAPERS / "smrmf_seconds.csv"
# What is usual counts as much as this many runs: points of a grid differ, so the first few say little.
TRUST = 2.0


def read_seconds(path: Path = USUAL_SECONDS) -> dict[tuple[str, str], float]:
    """Read the usual seconds of a run by method and data set."""
    with path.open(encoding="utf8", newline="") as file:
        return {(row["method"], row["data"]): float(row["seconds"]) for row in csv.DictReader(file)}


class Tally(NamedTuple):
    """How many runs finished, the seconds they took, and those that are usual for them."""

    n_runs: int = 0
    spent: float = 0.0
    usual: float = 0.0


class Forecast:
    """Predict the seconds of a run: the usual ones, times how runs here compare with what is usual.

    The comparison begins with all runs so far, which tells the machine, and moves to those of the method and
    then to those of the method on the same data set as there are more of them. Seconds are summed before
    they are divided, so that large sets weigh most: they are most of the work that remains.

    A method of which nothing is usual is predicted from its own runs alone, on the same set where there are
    any, else scaled by the sizes of the sets.

    Parameters
    ----------
    records : iterable of Record
        Runs that finished before.
    n_points : mapping
        The sizes of the data sets.
    usual : mapping, optional
        Usual seconds by method and data set; None for those of the published reproduction.
    """

    def __init__(
        self,
        records: Iterable[Record],
        n_points: Mapping[str, int],
        usual: Mapping[tuple[str, str], float] | None = None,
    ) -> None:
        self._points = n_points
        self._usual = read_seconds() if usual is None else usual
        self._sets: dict[str, list[str]] = {}
        for method, data in self._usual:
            self._sets.setdefault(method, []).append(data)
        self._known: dict[tuple[str, ...], Tally] = {}
        for record in records:
            self.learn(record)

    def learn(self, record: Record) -> None:
        """Take in a finished run."""
        # What a failed run took says little about one that succeeds.
        if record["status"] != DONE:
            return
        # What was spent, not ``seconds``: shared work is not done again, so it takes no time here either.
        method, data = record["method"], record["data"]
        usual = self.usual(method, data)
        # A method of which nothing is usual says nothing on the machine.
        groups = ((), (method,), (method, data))[0 if method in self._sets else 1 :]
        for known in groups:
            n_runs, spent, total = self._known.get(known, Tally())
            # Replaced in one step: the display asks from another thread.
            self._known[known] = Tally(n_runs + 1, spent + record["spent"], total + usual)

    def __call__(self, run: Run) -> float:
        """Return the predicted seconds."""
        ratio = 1.0
        # Without trust in what is usual the narrowest group with any run decides alone.
        trust = TRUST if run.method in self._sets else 0.0
        for known in ((), (run.method,), (run.method, run.data)):
            if known in self._known:
                n_runs, spent, usual = self._known[known]
                ratio = (n_runs * spent / usual + trust * ratio) / (n_runs + trust)
        return ratio * self.usual(run.method, run.data)

    def usual(self, method: str, data: str) -> float:
        """Return what is usual on the set, else scaled from the set nearest in size, else for any method."""
        size = self._size(data)
        if method not in self._sets:
            return USUAL_RATE * size
        near = min(self._sets[method], key=lambda name: (name != data, abs(log(self._size(name) / size))))
        return self._usual[method, near] * size / self._size(near)

    def _size(self, data: str) -> float:
        return float(self._points.get(data, SIMULATED_SIZE) ** GROWTH)


def time_left(
    runs: Mapping[str, Run], forecast: Forecast, jobs: int, under_way: Mapping[str, float]
) -> float:
    """Return the seconds until the last of these runs ends; some have been under way for a while."""
    # Not more than predicted: what takes longer than that takes no time from other runs.
    begun = [min(under_way[key], forecast(run)) for key, run in runs.items() if key in under_way]
    ends = [-seconds for seconds in begun[:jobs]] + [0.0] * (jobs - len(begun))
    heapq.heapify(ends)
    # All runs of a batch have one prediction. Handed out as the runner does, because a long batch at the end
    # leaves the other processes idle.
    for batch in batches(list(runs.values())):
        heapq.heapreplace(ends, ends[0] + len(batch) * forecast(batch[0]))
    return max(0.0, *ends)
