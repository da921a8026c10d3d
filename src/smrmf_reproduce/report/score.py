"""One figure of a table from the runs of its cell: the best over a grid, the mean over seeds or repeats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import Any

from smrmf_reproduce.report.table import count
from smrmf_reproduce.run.best import best_point, finished, point_key
from smrmf_reproduce.run.store import Record, count_failed


@dataclass(frozen=True)
class Score:
    """One figure, the runs behind it, and how many runs of its cell are unusable.

    ``runs`` are the finished runs at the best grid point. ``value`` is their mean or, where that point was
    repeated, the mean of the ``repeats``; ``draw`` is then the best over the grid. The counts are over the
    whole cell, every grid point: its planned runs, those that failed, those still to do. While there are any
    to do there is no value: the best of a part of a grid is not the best of the grid.
    """

    value: float | None = None
    std: float | None = None
    runs: tuple[Record, ...] = ()
    n_runs: int = 0
    n_failed: int = 0
    n_to_do: int = 0
    draw: float | None = None
    repeats: tuple[Record, ...] = ()
    usual_repeats: int = 0

    @property
    def note(self) -> str:
        """Say in words what is missing from this figure; empty when nothing is."""
        if self.n_to_do == self.n_runs:
            return "missing"
        counts = ((self.n_failed, "failed"), (self.n_to_do, "to do"))
        lacks = [f"{number} of {count(self.n_runs, 'run')} {word}" for number, word in counts if number]
        if self.value is not None and len(self.repeats) < self.usual_repeats:
            lacks.append(count(len(self.repeats), "repeat") if self.repeats else "one draw")
        return ", ".join(lacks)

    @property
    def params(self) -> dict[str, Any]:
        """The grid point behind ``value``."""
        return dict(self.runs[0]["params"]) if self.runs else {}

    @property
    def run(self) -> Record | None:
        """The run that stands for the grid point where one is needed: that of the lowest seed."""
        return self.runs[0] if self.runs else None

    def repeated(self, repeats: Iterable[Record], measure: str, usual: int) -> Score:
        """Return the score with the mean of repeats of its grid point in place of the best run.

        ``usual`` is how many repeats other cells have.
        """
        if self.run is None:
            return self
        point = point_key(self.run)
        done = tuple(run for run in finished(repeats, measure) if point_key(run) == point)
        known = replace(self, usual_repeats=usual)
        if not done:
            return known
        # Without the run that won: it was chosen for being the highest of the grid, so luck is part of it.
        mean, std = mean_std(done, measure)
        return replace(known, value=mean, std=std, draw=self.value, repeats=done)


def best_over_grid(runs: Sequence[Record], measure: str) -> Score:
    """Return the score of the best grid point, chosen with the labels."""
    chosen = tuple(best_point(runs, measure))
    return Score(*mean_std(chosen, measure), chosen, len(runs), count_failed(runs))


def mean_std(runs: Sequence[Record], measure: str) -> tuple[float | None, float | None]:
    """Return mean and standard deviation over some runs."""
    values = [float(run[measure]) for run in runs]
    if not values:
        return None, None
    # n - 1 in the divisor; a single run has no spread rather than a spread of zero.
    return fmean(values), stdev(values) if len(values) > 1 else None
