"""Tables of scores and run times: every method on every data set, and without labels."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

from smrmf_reproduce.report.paper import METHODS, PAPER_NAMES, REAL_SETS, Printed
from smrmf_reproduce.report.results import Results, Score
from smrmf_reproduce.report.table import Cell, Row, Table, count, mean_cell

SYMBOLS = {
    "manifold_weight": "λ",
    "selection_weight": "β",
    "smoothness": "δ",
    "projection_weight": "ω",
    "n_components": "p/m",
    "n_neighbors": "k",
}


def acc_table(results: Results, printed: Printed) -> Table:
    """Return clustering accuracy, best over the grid, of all methods on all sets."""
    return _scores(results, printed, "acc", "accuracy", "Clustering accuracy (ACC)")


def nmi_table(results: Results, printed: Printed) -> Table:
    """Return normalised mutual information (larger entropy), best over the grid."""
    return _scores(results, printed, "nmi", "nmi_max", "Normalised mutual information (NMI)")


def run_time_table(results: Results, printed: Printed) -> Table:
    """Return the mean seconds of one run, over grid points and seeds."""
    rows = _rows(
        results,
        printed,
        "run-time",
        lambda d, m: results.average("comparison", d, m, "seconds"),
        spread=False,
    )
    note = (
        "Seconds of one run, averaged over grid points and seeds. The paper's seconds are MATLAB 2019b on a "
        "2.3 GHz Intel Core i5 with 16 GB; ours are from the machine named at the end of this page, each run "
        "as if it were alone. Compare methods within a column of hardware, not seconds across. The paper's "
        "average for SMRMF-NS is printed 148.45 while its own column averages 145.22; the printed value is "
        "kept."
    )
    return Table("run_time", "Seconds a run", note, METHODS, rows, tint=False)


def best_settings_table(results: Results, printed: Printed) -> Table:
    """Return the grid point at which each accuracy was reached."""
    rows = []
    for data in _in_order(results, printed=False):
        cells = tuple(_setting(results.best("comparison", data, method)) for method in METHODS)
        rows.append(Row(PAPER_NAMES.get(data, data), cells, kind="data" if data in REAL_SETS else "apart"))
    note = (
        "The grid point that gave the best accuracy, known only because the labels were looked at: λ weight "
        "of the manifold term, β of the selection term, δ of f-SMRMF's closed form; for APMF ω weight of the "
        "projection term and p/m share of the dimensions kept."
    )
    return Table(
        "best_settings", "Where the best accuracy was reached", note, METHODS, tuple(rows), tint=False
    )


def _setting(score: Score) -> Cell:
    if score.value is None:
        return Cell(note=score.note)
    return Cell(text=written(score.params) or "one setting")


def written(params: dict[str, Any]) -> str:
    """Return parameters as a short text: ``λ=0.1, β=1``."""
    return ", ".join(f"{SYMBOLS.get(name, name)}={_short(value)}" for name, value in sorted(params.items()))


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _scores(results: Results, printed: Printed, name: str, measure: str, title: str) -> Table:
    rows = _rows(results, printed, name, lambda d, m: results.best("comparison", d, m, measure), spread=True)
    note = (
        "Best over the grid, chosen with the labels (the paper's protocol): mean over the seeds at each grid "
        "point, then the highest; ± is the standard deviation over the seeds at that point, given where a "
        "method is random. Averages: as printed; over the sets both we and the paper have; over the sets "
        "that every method has in both (the printed ones cover 11 sets for DPP, 12 for APMF and 13 for the "
        "others). Our 20-news is not the paper's matrix: its vocabulary could not be identified."
    )
    return Table(name, title, note, METHODS, rows, best=True)


def _rows(
    results: Results, printed: Printed, table: str, score: Callable[[str, str], Score], spread: bool
) -> tuple[Row, ...]:
    rows = [_row(results, printed, table, data, score, spread) for data in _in_order(results)]
    data_rows = [row for row in rows if row.kind == "data"]
    apart = [row for row in rows if row.kind == "apart"]
    return (*data_rows, *_averages(printed, table, data_rows), *apart)


def _in_order(results: Results, printed: bool = True) -> list[str]:
    """Return every set of the paper, run or not, then our own; or only the sets that were run."""
    touched = results.data_sets("comparison")
    if not printed:
        return touched
    return list(REAL_SETS) + [data for data in touched if data not in REAL_SETS]


def _row(
    results: Results,
    printed: Printed,
    table: str,
    data: str,
    score: Callable[[str, str], Score],
    spread: bool,
) -> Row:
    kind = "data" if data in REAL_SETS else "apart"
    absent = data not in results.data_sets("comparison")
    cells = []
    for method in METHODS:
        paper = printed.cell(table, data, method)
        ours = score(data, method)
        note = "" if absent else ours.note
        cells.append(
            Cell(ours.value, paper.value, ours.std if spread else None, paper.std, note=note),
        )
    return Row(PAPER_NAMES.get(data, data), tuple(cells), kind, results.about(data, not absent))


def _averages(printed: Printed, table: str, rows: list[Row]) -> list[Row]:
    columns = list(zip(*(row.cells for row in rows), strict=True))
    as_printed = tuple(Cell(paper=printed.average(table, method)) for method in METHODS)
    in_both = tuple(mean_cell(list(column)) for column in columns)
    result = [
        Row("average as printed", as_printed, "average"),
        Row("average, sets in both", in_both, "average"),
    ]
    common = common_rows(rows)
    if common:
        cells = tuple(
            mean_cell([row.cells[i] for row in common])
            if any(cell.ours is not None for cell in column)
            else Cell()
            for i, column in enumerate(columns)
        )
        left_out = [row.name for row in rows if row not in common]
        few = len(left_out) < len(common)
        names = "all but " * few + ", ".join(left_out if few else [row.name for row in common])
        result.append(Row(f"average, {count(len(common), 'common set')}", cells, "average", names))
    return result


def common_rows(rows: list[Row]) -> list[Row]:
    """Return the rows where every column that was run at all has our figure and the paper's."""
    columns = range(len(rows[0].cells)) if rows else range(0)
    present = [i for i in columns if any(row.cells[i].ours is not None for row in rows)]
    return [row for row in rows if present and all(row.cells[i].difference is not None for i in present)]


def no_labels_table(results: Results, printed: Printed) -> Table:
    """Return mean scores over the data sets at one fixed setting per method."""
    methods = results.methods("no-labels")
    sets = common_no_label_sets(results)
    rows = []
    for method in methods:
        tuned = [results.best("comparison", data, method).value for data in sets]
        cells = (
            _mean_over(results, sets, method, "accuracy"),
            _mean_over(results, sets, method, "nmi_max"),
            Cell(fmean(v for v in tuned if v is not None)) if sets and None not in tuned else Cell(),
            _mean_over(results, sets, method, "seconds"),
        )
        rows.append(Row(method, cells, note=_settings_note(results, sets, method)))
    note = (
        "No labels anywhere but in the scores: each method at one setting, fixed for all data sets; the "
        f"library's defaults; three standard methods. Means over {count(len(sets), 'set')} that every method "
        f"here finished ({_named(sets)}). The third column repeats what the search with labels adds."
    )
    columns = ("mean ACC", "mean NMI", "mean ACC, best over the grid", "seconds a run")
    return Table(
        "no_labels", "Means over the data sets", note, columns, tuple(rows), corner="method", tint=False
    )


def no_labels_sets_table(results: Results, printed: Printed) -> Table:
    """Return accuracy on every data set at one fixed setting per method."""
    methods = tuple(results.methods("no-labels"))
    rows = []
    for data in results.data_sets("no-labels"):
        scores = [results.average("no-labels", data, method, "accuracy") for method in methods]
        cells = tuple(Cell(score.value, std=score.std, note=score.note) for score in scores)
        rows.append(Row(PAPER_NAMES.get(data, data), cells, "data" if data in PAPER_NAMES else "apart"))
    note = "Accuracy at the fixed settings of the table above; ± over the seeds of random methods."
    return Table(
        "no_labels_sets", "Without labels, by data set", note, methods, tuple(rows), tint=False, best=True
    )


def common_no_label_sets(results: Results) -> list[str]:
    """Return the paper's real sets that every method of the comparison without labels finished."""
    methods = results.methods("no-labels")
    return [
        data
        for data in results.data_sets("no-labels")
        if data in REAL_SETS
        and all(results.average("no-labels", data, m, "accuracy").value is not None for m in methods)
    ]


def _mean_over(results: Results, sets: list[str], method: str, measure: str) -> Cell:
    scores = [results.average("no-labels", data, method, measure) for data in sets]
    values = [score.value for score in scores if score.value is not None]
    failed = sum(score.n_failed for score in scores)
    note = f"{failed} runs failed" if failed else ""
    return Cell(fmean(values) if values else None, note=note)


def _settings_note(results: Results, sets: list[str], method: str) -> str:
    """Return the fixed setting; a method that changed it from set to set did not keep the rule."""
    settings = {
        written(dict(run["params"])) for data in sets for run in results.runs("no-labels", data, method)
    }
    return ", ".join(settings) if len(settings) < 2 else f"{len(settings)} settings"


def _named(sets: list[str]) -> str:
    return ", ".join(PAPER_NAMES[data] for data in sets) or "none"
