"""Which reading is published, and why: the one closest to the paper's figures of the methods compared."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.table import LOWER, Cell, Table, TableRow, count
from smrmf_reproduce.run.plan import MAIN

EXPERIMENT = "choice-of-reading"

# Distances of our ACC from the paper's, by data set and method.
Distances = Mapping[tuple[str, str], float]


def closest_reading(results: Results) -> str | None:
    """Return the reading with the smallest mean distance from the paper's cells; None while none is known.

    Of equals the published one: where another name stands for the same runs, it is that reading as well.
    """
    means = mean_distances(results)
    # The published one stands first, and min keeps the first of equals.
    return min(means, key=lambda reading: means[reading]) if means else None


def mean_distances(results: Results) -> dict[str, float]:
    """Return the mean distance of every reading that has all the cells that any reading has."""
    found = distances(results)
    cells = _all_cells(found)
    # A mean over fewer cells is another quantity: a set far from the paper's figures may be left out.
    return {name: fmean(each.values()) for name, each in found.items() if each and set(each) == cells}


def distances(results: Results) -> dict[str, Distances]:
    """Return, for every reading, how far our ACC is from each printed cell of the methods compared."""
    return {
        reading: {
            (data, method): abs(ours - printed)
            for data in results.data_sets(EXPERIMENT)
            for method in judging_methods(results)
            if (printed := results.paper.value("acc", data, method)) is not None
            and (ours := results.best(EXPERIMENT, data, method, reading=reading).value) is not None
        }
        for reading in results.readings(experiment=EXPERIMENT)
    }


def judging_methods(results: Results) -> list[str]:
    """Return the methods whose printed cells decide: none of those that the paper proposes."""
    # Whatever a plan lists: a reading chosen by the figures that it is to support would support any.
    return [method for method in results.methods(EXPERIMENT) if method not in results.paper.ours]


def choice_of_reading_table(results: Results) -> Table:
    """Return the mean distance from the paper's cells under every reading, by method and over all."""
    found, methods = distances(results), judging_methods(results)
    cells = _all_cells(found)
    rows = [_row(method, found, {cell for cell in cells if cell[1] == method}) for method in methods]
    if rows:
        rows.append(_row(f"all {len(methods)}, {count(len(cells), 'cell')}", found, cells, "average"))
    # A stranger's plan may have no such experiment, and then there are no columns either.
    columns = tuple(found) if rows else ()
    note = (
        "Mean |ours - paper| of ACC over the printed cells, each method at the best point of its own grid (a "
        "random one by the mean over its seeds, any other by one run). The rule: the published reading is "
        f"the one closest to the paper's printed cells of the methods compared ({', '.join(methods)}), never "
        f"chosen by figures of {' or '.join(results.paper.ours)}. Smallest in bold. "
        f"{describe_choice(results)}"
    )
    return Table(
        "choice_of_reading",
        "Choice of the reading",
        note,
        columns,
        tuple(rows),
        corner="method",
        best=True,
        goals=dict.fromkeys(columns, LOWER),
        colored=False,
        files=("readings_values",),
    )


def _row(
    name: str, found: Mapping[str, Distances], cells: set[tuple[str, str]], kind: str = "data"
) -> TableRow:
    made = []
    for each in found.values():
        full = bool(cells) and cells <= set(each)
        value = fmean(each[cell] for cell in sorted(cells)) if full else None
        made.append(Cell(value, note="" if full else "incomplete"))
    return TableRow(name, tuple(made), kind)


def describe_choice(results: Results) -> str:
    """Return which reading is closest and whether it is the published one, in plain words."""
    means, closest = mean_distances(results), closest_reading(results)
    if closest is None:
        return "Which reading is closest is not known yet."
    n_cells = len(_all_cells(distances(results)))
    same = _same_as_main(results)
    also = f", here the same runs as '{same[0]}'" if same else ""
    apart = [name for name in means if name not in (closest, *(same if closest == MAIN else []))]
    text = f"Closest of {count(len(means) - len(same), 'candidate')}: "
    text += f"the published one, main{also}" if closest == MAIN else f"'{closest}'"
    text += f", at a mean distance of {means[closest]:.3f} over {count(n_cells, 'cell')}"
    if closest != MAIN:
        ours = f"at {means[MAIN]:.3f}" if MAIN in means else "whose runs are not complete"
        return f"{text}. The published one is not the closest: main{also}, {ours}."
    if apart:
        second = min(apart, key=lambda name: means[name])
        text += f"; next '{second}' at {means[second]:.3f}, farthest {max(means[n] for n in apart):.3f}"
    return f"{text}."


def _same_as_main(results: Results) -> list[str]:
    """Return other names of the published reading: those with the same runs."""

    def keys(reading: str) -> set[str]:
        pairs = [(d, m) for d in results.data_sets(EXPERIMENT) for m in judging_methods(results)]
        return {run["key"] for d, m in pairs for run in results.runs(EXPERIMENT, d, m, reading)}

    main = keys(MAIN)
    others = [name for name in results.readings(experiment=EXPERIMENT) if name != MAIN]
    return [name for name in others if main and keys(name) == main]


def _all_cells(found: Mapping[str, Distances]) -> set[tuple[str, str]]:
    return {cell for each in found.values() for cell in each}
