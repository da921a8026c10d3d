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
    to do, or repeats to do, there is no value: the best of a part of a grid is not the best of the grid.
    """

    value: float | None = None
    std: float | None = None
    runs: tuple[Record, ...] = ()
    n_runs: int = 0
    n_failed: int = 0
    n_to_do: int = 0
    draw: float | None = None
    repeats: tuple[Record, ...] = ()
    repeats_to_do: int = 0
    usual_repeats: int = 0

    @property
    def lacks(self) -> str:
        """Say in words which runs of the grid are missing; empty when none is."""
        if self.n_to_do == self.n_runs:
            return "missing"
        counts = ((self.n_failed, "failed"), (self.n_to_do, "to do"))
        return ", ".join(
            f"{number} of {count(self.n_runs, 'run')} {word}" for number, word in counts if number
        )

    @property
    def note(self) -> str:
        """Say in words what is missing from ``value``, its repeats included; empty when nothing is."""
        if self.repeats_to_do:
            firmness = f"{count(self.repeats_to_do, 'repeat')} to do"
        elif self.value is not None and len(self.repeats) < self.usual_repeats:
            firmness = count(len(self.repeats), "repeat") if self.repeats else "one draw"
        else:
            firmness = ""
        return ", ".join(part for part in (self.lacks, firmness) if part)

    @property
    def params(self) -> dict[str, Any]:
        """The grid point behind ``value``."""
        return dict(self.runs[0]["params"]) if self.runs else {}

    @property
    def run(self) -> Record | None:
        """The run that stands for the grid point where one is needed: that of the lowest seed."""
        return self.runs[0] if self.runs else None

    def repeated(self, repeats: Iterable[Record], measure: str, planned: int, usual: int) -> Score:
        """Return the score with the mean of repeats of its grid point in place of the best run.

        ``planned`` is how many repeats this point has in the end, ``usual`` how many those of other cells.
        """
        if self.run is None:
            return self
        point = point_key(self.params)
        here = [run for run in repeats if point_key(run["params"]) == point]
        known = replace(self, usual_repeats=usual)
        if len(here) < planned:
            to_do = planned - len(here)
            return replace(known, value=None, std=None, draw=self.value, repeats_to_do=to_do)
        done = tuple(finished(here, measure))
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
