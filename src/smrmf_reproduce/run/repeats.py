"""More runs at the best point of a grid, from starts that differ by next to nothing: what the point is worth.

The loop amplifies rounding: a run without chance is one draw of many that another processor could give, and
the best of a grid is the luckiest of such draws. Which point is the best is known when its cell is complete.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from smrmf_reproduce.run.best import best_point
from smrmf_reproduce.run.plan import MAIN, Plan, Run
from smrmf_reproduce.run.store import Record

# The experiments whose best points are repeated, by each of these measures, and the name of the repeats.
COMPARISON, ON_MOONS = "comparison", "moons"
REPEATED = (COMPARISON, ON_MOONS)
MEASURES = ("accuracy", "nmi_max")
REPEATS = "repeats"
# Relative to every entry of the start: far below all that a user could mean, far above rounding.
PERTURBATION = 1e-10


def known_repeats(plan: Plan, runs: Sequence[Run], known: Mapping[str, Record]) -> list[Run]:
    """Return the repeats of all cells that are complete, each once."""
    found: dict[str, Run] = {}
    for cell in _cells(runs):
        records = {run.key: known[run.key] for run in cell if run.key in known}
        # The best of a part of a grid is not the best of the grid.
        if len(records) < len(cell):
            continue
        for measure in MEASURES:
            for best in best_point(records.values(), measure)[:1]:
                (chosen,) = (run for run in cell if run.key == best["key"])
                found |= {run.key: run for run in _repeat(plan, chosen)}
    return list(found.values())


def expected_repeats(plan: Plan, runs: Sequence[Run], known: Mapping[str, Record]) -> list[Run]:
    """Return as many runs as the cells that are not complete will need, to be counted and forecast."""
    incomplete = (cell for cell in _cells(runs) if any(run.key not in known for run in cell))
    # At some point of the grid: which one, and whether both measures have the same, is not known yet.
    return [run for cell in incomplete for run in _repeat(plan, cell[0])]


def _cells(runs: Sequence[Run]) -> list[list[Run]]:
    """Return the runs of every method on every set whose best point is to be repeated."""
    cells: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
    for run, experiment in product(runs, REPEATED):
        if MAIN in run.experiments.get(experiment, ()):
            cells[experiment, run.data, run.method].append(run)
    return list(cells.values())


def _repeat(plan: Plan, run: Run) -> list[Run]:
    """Return the same run from several other starts, as many as the plan has for its method."""
    settings = dict(run.settings) | {"perturbation": PERTURBATION}
    again = replace(run, settings=settings, experiments={REPEATS: (MAIN,)}, record=frozenset())
    return [replace(again, seed=seed) for seed in range(1, plan.method(run.method, run.data).repeats + 1)]
