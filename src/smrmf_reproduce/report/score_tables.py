"""Tables of scores and run times: every method on every data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from smrmf_reproduce.report.paper import REAL_SETS, Paper
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.score import Score
from smrmf_reproduce.report.table import (
    LOWER,
    Cell,
    Table,
    TableRow,
    count,
    data_row,
    format_params,
    mean_cell,
    mean_draw,
)
from smrmf_reproduce.run.repeats import COMPARISON, REPEATS


def acc_table(results: Results) -> Table:
    """Return clustering accuracy, at the best point of the grid, of all methods on all sets."""
    return _scores(results, "acc", "accuracy", "Clustering accuracy (ACC)")


def nmi_table(results: Results) -> Table:
    """Return normalised mutual information (larger entropy), at the best point of the grid."""
    return _scores(results, "nmi", "nmi_max", "Normalised mutual information (NMI)")


def run_time_table(results: Results) -> Table:
    """Return the mean seconds of one run, over grid points and seeds."""
    rows = _rows(
        results,
        "run-time",
        # Over the whole grid: the time of the best point alone would depend on the labels.
        lambda d, m: results.average(COMPARISON, d, m, "seconds"),
        spread=False,
    )
    note = (
        "Seconds of one run, averaged over grid points and seeds. The paper's seconds are MATLAB 2019b on a "
        "2.3 GHz Intel Core i5 with 16 GB; ours are from the machine named at the end of this page, each run "
        "as if it were alone. Compare methods within a column of hardware, not seconds across."
    ) + results.paper.remark("run-time")
    columns = results.paper.columns
    goals = dict.fromkeys(columns, LOWER)
    return Table("run_time", "Seconds a run", note, columns, rows, colored=False, goals=goals)


def best_settings_table(results: Results) -> Table:
    """Return the grid point behind each accuracy."""
    columns = results.paper.columns
    rows = [
        data_row(data, (_setting(results.best(COMPARISON, data, method)) for method in columns))
        for data in results.data_sets(COMPARISON)
    ]
    note = (
        "The grid point that gave the best accuracy, known only because the labels were looked at: λ weight "
        "of the manifold term, β of the selection term"
    ) + results.paper.remarks.get("settings", ".")
    title = "Where the best accuracy was reached"
    return Table("best_settings", title, note, columns, tuple(rows), colored=False)


def _setting(score: Score) -> Cell:
    if score.value is None:
        return Cell(note=score.note)
    return Cell(text=format_params(score.params) or "one setting")


def _scores(results: Results, name: str, measure: str, title: str) -> Table:
    rows = _rows(results, name, lambda d, m: results.best(COMPARISON, d, m, measure), spread=True)
    note = (
        "At the best point of the grid, chosen with the labels (the paper's protocol). A random method: mean "
        f"over the seeds at each point, then the highest. {_repeats_note(results)}± is the standard "
        "deviation at that point. Averages: as printed; over the sets both we and the paper have; over the "
        f"sets that every method has in both{results.paper.remark('averages')}. Our 20-news is not the "
        "paper's matrix: its vocabulary could not be identified."
    )
    files = ("repeats",) if results.methods(REPEATS) else ()
    return Table(name, title, note, results.paper.columns, rows, best=True, files=files)


def _repeats_note(results: Results) -> str:
    if not results.repeated:
        return "Any other: one run at each point, so its figure is one draw. "
    return (
        f"{', '.join(results.methods(REPEATS))}: one run at each point, and the highest was repeated from "
        "starts that hardly differ; the figure is the mean of the repeats without the run that won, which "
        "stands below it in small type ('best', the paper's protocol); 'one draw' marks what has no repeats. "
        "Averages, colours, bold and verdicts on scores are of the means. Any other method: one run at each "
        "point. "
    )


def _rows(
    results: Results, table: str, score: Callable[[str, str], Score], spread: bool
) -> tuple[TableRow, ...]:
    rows = [_row(results, table, data, score, spread) for data in results.shown_sets(COMPARISON, REAL_SETS)]
    data_rows = [row for row in rows if row.kind == "data"]
    apart = [row for row in rows if row.kind == "apart"]
    return (*data_rows, *_averages(results.paper, table, data_rows), *apart)


def _row(
    results: Results,
    table: str,
    data: str,
    score: Callable[[str, str], Score],
    spread: bool,
) -> TableRow:
    absent = data not in results.data_sets(COMPARISON)
    cells = []
    for method in results.paper.columns:
        paper = results.paper.cell(table, data, method)
        ours = score(data, method)
        note = "" if absent else ours.note
        cells.append(
            Cell(ours.value, paper.value, ours.std if spread else None, paper.std, note=note, draw=ours.draw),
        )
    return data_row(data, cells, results.note(data, not absent))


def _averages(paper: Paper, table: str, rows: list[TableRow]) -> list[TableRow]:
    columns = list(zip(*(row.cells for row in rows), strict=True))
    # Three rows, because the printed averages are over different sets for different methods (paper note 59):
    # only the last one compares methods with each other.
    as_printed = tuple(Cell(paper=paper.average(table, method)) for method in paper.columns)
    in_both = tuple(mean_cell(list(column)) if _in_paper(column) else Cell() for column in columns)
    result = [
        TableRow("average as printed", as_printed, "average"),
        TableRow("average, sets in both", in_both, "average"),
    ]
    common = common_rows(rows)
    if common:
        cells = tuple(
            _mean_over_common(column, [row.cells[i] for row in common]) for i, column in enumerate(columns)
        )
        left_out = [row.name for row in rows if row not in common]
        few = len(left_out) < len(common)
        # The shorter of two lists: the sets left out, or those that remain.
        names = "all but " * few + ", ".join(left_out if few else [row.name for row in common])
        result.append(TableRow(f"average, {count(len(common), 'common set')}", cells, "average", names))
    return result


def _mean_over_common(column: Sequence[Cell], common: list[Cell]) -> Cell:
    if all(cell.ours is None for cell in column):
        return Cell()
    if _in_paper(column):
        return mean_cell(common)
    ours = [cell.ours for cell in common if cell.ours is not None]
    if not ours:
        return Cell(note="no common set")
    return Cell(fmean(ours), note=count(len(ours), "set"), draw=mean_draw(common))


def _in_paper(column: Sequence[Cell]) -> bool:
    """Tell whether the paper prints this column: a method of one's own has no figure to compare with."""
    return any(cell.paper is not None for cell in column)


def common_rows(rows: list[TableRow]) -> list[TableRow]:
    """Return the rows where every column of the paper with any run of ours has both figures."""
    columns = list(zip(*(row.cells for row in rows), strict=True))
    # A method without any run must not empty the list of common sets.
    run = [i for i, c in enumerate(columns) if _in_paper(c) and any(cell.ours is not None for cell in c)]
    return [row for row in rows if run and all(row.cells[i].difference is not None for i in run)]
