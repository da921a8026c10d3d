"""Tables that show how far the figures move under other readings of what the paper leaves open."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import fmean

from smrmf_reproduce.report.paper import REAL_SETS, shown_name
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.score import Score
from smrmf_reproduce.report.table import Cell, Table, TableRow, count, data_row, insert_average
from smrmf_reproduce.run.plan import MAIN

ALL = "both"


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
        "All on a short grid, the manifold weights alone, so that every reading has the same chances: the "
        "published reading with, in brackets, the lowest and highest best value over "
        f"{count(len(others) + 1, 'reading')} of what the paper leaves open (published one included): "
        f"{'; '.join([MAIN, *others])}. The paper's value lies inside the range in {hits} of "
        f"{count(len(inside), 'cell')}. Where a range is wide, no single cell can be called reproduced."
    )
    return Table(f"readings_{name}", f"Spread over readings, {title}", note, tuple(methods), tuple(rows))


def choice_of_reading_table(results: Results) -> Table:
    """Return the accuracy under every reading of some methods: why the published one is what it is."""
    experiment = "choice-of-reading"
    sets, methods = results.data_sets(experiment), results.methods(experiment)
    rows = []
    means: dict[str, float] = {}
    for reading in results.readings(experiment=experiment) if sets else []:
        values = [[results.best(experiment, d, m, reading=reading).value for d in sets] for m in methods]
        rows += [_with_mean(f"{m}, {reading}", column) for m, column in zip(methods, values, strict=True)]
        # The mean of both methods on each set: one reading is published for both.
        together = [mean_of_all(pair) for pair in zip(*values, strict=True)]
        rows.append(_with_mean(f"{ALL}, {reading}", together))
        if (mean := mean_of_all(together)) is not None:
            means[reading] = mean
    columns = (*(shown_name(data) for data in sets), "mean")
    papers = "; ".join(f"{method} {_printed_mean(results, sets, method)}" for method in methods)
    # Only readings whose runs are complete compete, as mean_of_all gives None for the others.
    highest = max(means, key=lambda reading: means[reading]) if means else "not known yet"
    note = (
        "ACC under every reading of the first penalty, of the start and of the neighbourhoods, best over the "
        f"manifold weights alone. Highest mean over {' and '.join(methods)} together, the last rows: "
        f"{highest}. So the labels have a say in the choice, as they have in the grids. The paper's means "
        f"over these sets: {papers}."
    )
    # Stable: within a method readings keep the order of the plan.
    rows.sort(key=lambda row: [*methods, ALL].index(row.name.split(",")[0]))
    return Table("choice_of_reading", "Choice of the reading", note, columns, tuple(rows), corner="reading")


def _with_mean(name: str, values: Sequence[float | None]) -> TableRow:
    cells = [Cell(value, note="" if value is not None else "missing") for value in values]
    mean = mean_of_all(values)
    return TableRow(name, (*cells, Cell(mean, note="" if mean is not None else "incomplete")))


def mean_of_all(values: Sequence[float | None]) -> float | None:
    """Return the mean, None unless every value is there."""
    # A mean over fewer sets is another quantity: an easy set left out would lower it.
    known = [value for value in values if value is not None]
    return fmean(known) if values and len(known) == len(values) else None


def _printed_mean(results: Results, sets: Collection[str], method: str) -> str:
    values = [value for data in sets if (value := results.paper.value("acc", data, method)) is not None]
    return f"{fmean(values):.3f}" if values else "no value"


def _inside(cell: Cell) -> bool:
    """Tell whether the paper's figure, known to half its last digit, lies between lowest and highest."""
    if cell.paper is None or cell.low is None or cell.high is None:
        return False
    # Two digits are printed, so the figure behind 0.85 lies anywhere in [0.845, 0.855].
    return cell.low - 0.005 <= cell.paper <= cell.high + 0.005


def by_reading(results: Results, data: str, method: str, measure: str) -> dict[str, Score]:
    """Return the best over the grid under every reading that has runs."""
    readings = results.readings(method)
    scores = {name: results.best("readings", data, method, measure, name) for name in readings}
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
    sets: Collection[str] = tuple(REAL_SETS),
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
        if data not in sets or paper is None or not needed <= set(found):
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
