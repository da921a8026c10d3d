"""Tables that show how far the figures move under other readings of what the paper leaves open."""

from __future__ import annotations

from statistics import fmean

from smrmf_reproduce.report.paper import REAL_SETS
from smrmf_reproduce.report.results import READINGS, Results
from smrmf_reproduce.report.score import Score
from smrmf_reproduce.report.table import Cell, Table, count, data_row, insert_average
from smrmf_reproduce.report.verdicts import MARGIN
from smrmf_reproduce.run.plan import MAIN


def readings_acc_table(results: Results) -> Table:
    """Return accuracy under the published reading with the range over all readings."""
    return _readings(results, "acc", "accuracy", "ACC")


def readings_nmi_table(results: Results) -> Table:
    """Return NMI under the published reading with the range over all readings."""
    return _readings(results, "nmi", "nmi_max", "NMI")


def _readings(results: Results, name: str, measure: str, title: str) -> Table:
    sets, methods = results.other_readings()
    rows = [
        data_row(data, (_reading_cell(results, name, measure, data, method) for method in methods))
        for data in sets
    ]
    means = tuple(readings_mean(results, name, measure, method) for method in methods)
    if rows:
        insert_average(rows, "average", means)
    inside = [cell for row in rows if row.kind == "data" for cell in row.cells if cell.paper is not None]
    hits = sum(_inside(cell) for cell in inside)
    others = [reading for reading in results.readings() if reading != MAIN]
    note = (
        "All on a short grid, the manifold weights alone, so that every reading has the same chances, and by "
        "single runs where a method draws no random numbers: the published reading with, in brackets, the "
        "lowest and highest best value over "
        f"{count(len(others) + 1, 'reading')} of what the paper leaves open (published one included): "
        f"{'; '.join([MAIN, *others])}. The paper's value lies inside the range in {hits} of "
        f"{count(len(inside), 'cell')}. Where a range is wide, no single cell can be called reproduced."
    )
    title = f"Spread over readings, {title}"
    files = ("readings_values",)
    return Table(f"readings_{name}", title, note, tuple(methods), tuple(rows), files=files)


def _inside(cell: Cell) -> bool:
    """Tell whether the paper's figure, known to half its last digit, lies between lowest and highest."""
    if cell.paper is None or cell.low is None or cell.high is None:
        return False
    # Two digits are printed, so the figure behind 0.85 lies anywhere in [0.845, 0.855].
    return cell.low - MARGIN <= cell.paper <= cell.high + MARGIN


def by_reading(results: Results, data: str, method: str, measure: str) -> dict[str, Score]:
    """Return the best over the grid under every reading that has runs."""
    readings = results.readings(method)
    scores = {name: results.best(READINGS, data, method, measure, name) for name in readings}
    return {reading: score for reading, score in scores.items() if score.n_runs}


def _reading_cell(results: Results, name: str, measure: str, data: str, method: str) -> Cell:
    scores = by_reading(results, data, method, measure)
    values = [score.value for score in scores.values() if score.value is not None]
    main = scores.get(MAIN, Score())
    failed = sum(score.n_failed for score in scores.values())
    note = f"{failed} of {sum(s.n_runs for s in scores.values())} runs failed" if failed else ""
    return Cell(
        main.value,
        results.paper.value(name, data, method),
        low=min(values, default=None),
        high=max(values, default=None),
        note=note or ("" if values else "missing"),
    )


def readings_mean(
    results: Results,
    name: str,
    measure: str,
    method: str,
) -> Cell:
    """Return the mean over the data sets under each reading: the published one, lowest, highest.

    Only sets that every reading of the method finished count, so that all means are over the same sets.
    """
    values: dict[str, list[float]] = {}
    papers = []
    needed = set(results.readings(method))
    for data in results.other_readings()[0]:
        scores = by_reading(results, data, method, measure)
        found = {reading: score.value for reading, score in scores.items() if score.value is not None}
        paper = results.paper.value(name, data, method)
        if data not in REAL_SETS or paper is None or not needed <= set(found):
            continue
        # The paper's mean is over the same sets, not its printed average (paper note 59).
        papers.append(paper)
        for reading, value in found.items():
            values.setdefault(reading, []).append(value)
    means = {reading: fmean(column) for reading, column in values.items()}
    if MAIN not in means:
        return Cell(note="no common set")
    # One reading for all sets: this range is at most as wide as the mean of the ranges of single sets.
    low, high = min(means.values()), max(means.values())
    return Cell(means[MAIN], fmean(papers), low=low, high=high, note=count(len(papers), "set"))
