"""The best point of a grid, chosen with the labels: the highest mean over the seeds."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

from smrmf_reproduce.run.store import DONE, Record


def best_point(runs: Iterable[Record], measure: str) -> list[Record]:
    """Return the finished runs of the grid point with the highest mean over its seeds; none without any.

    Only the points with the most finished seeds compete: a point that lost seeds to failures or to an
    interruption could otherwise win by the luck of the few that are left. Ties go to the first point in
    the order of its written parameters, so the answer does not depend on the order of the runs.
    """
    points: dict[str, list[Record]] = defaultdict(list)
    for run in finished(runs, measure):
        points[point_key(run["params"])].append(run)
    seeds = max((len(group) for group in points.values()), default=0)
    full = [group for _, group in sorted(points.items()) if len(group) == seeds]
    # First the mean over seeds, then the maximum: the best single seed would reward chance. fmean sums
    # exactly, so ties do not depend on the order of the seeds, and max keeps the first of equals.
    return max(full, key=lambda group: fmean(run[measure] for run in group), default=[])


def finished(runs: Iterable[Record], measure: str) -> list[Record]:
    """Return the runs that ended well and carry this measure."""
    return [run for run in runs if run["status"] == DONE and run.get(measure) is not None]


def point_key(params: Mapping[str, Any]) -> str:
    """Return the parameters of a grid point as one stable string."""
    return json.dumps(dict(params), sort_keys=True, default=str)
