"""Two figures that show the whole comparison at a glance."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from smrmf_reproduce.report.analysis_tables import readings_mean
from smrmf_reproduce.report.drawing import BLUE, GREY, VERMILION, new_figure, panels
from smrmf_reproduce.report.paper import shown_name
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.score_tables import common_rows
from smrmf_reproduce.report.table import NEAR, Table, TableRow, Tables, count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RANGE = "#C5DFEE"


def draw_mean_accuracy(results: Results, tables: Tables) -> Figure | None:
    """Draw each method's mean ACC: the paper's and ours; beside it the range over readings, on their sets."""
    table = tables["acc"]
    # The same sets for all methods: means over different sets cannot stand in one order (paper note 59).
    rows = common_rows([row for row in table.rows if row.kind == "data"])
    if not rows:
        return None
    # Without the paper's figure there is nothing to draw a method of one's own beside.
    drawn = [all(row.cells[i].difference is not None for row in rows) for i in range(len(table.columns))]
    methods = [method for method, both in zip(table.columns, drawn, strict=True) if both]
    found = {shown_name(data) for data in results.other_readings()[0]}
    again = [row for row in rows if row.name in found]
    figure = new_figure(1.2 + 0.25 * len(methods))
    sides = figure.subplots(1, 2 if again else 1, sharey=True, squeeze=False)[0]
    _draw_means(sides[0], table, methods, rows)
    sides[0].set_yticks(range(len(methods)), list(reversed(methods)))
    sides[0].set_xlabel(f"mean ACC over {count(len(rows), 'common set')} (fraction of points)")
    if again:
        _draw_ranges(sides[1], results, methods, {row.name for row in again})
        sides[1].set_xlabel(f"the same over {count(len(again), 'set')}, on the short grid of the readings")
        sides[1].tick_params(left=False)
    _legend(figure, bool(again))
    return figure


def _draw_means(axes: Axes, table: Table, methods: list[str], rows: list[TableRow]) -> None:
    for height, method in enumerate(reversed(methods)):
        index = table.columns.index(method)
        ours = fmean(row.cells[index].ours or 0.0 for row in rows)
        paper = fmean(row.cells[index].paper or 0.0 for row in rows)
        _draw_pair(axes, height, ours, paper)
    axes.grid(axis="x")


def _draw_pair(axes: Axes, height: float, ours: float, paper: float) -> None:
    axes.plot([paper, ours], [height, height], color="#BDBDBD", lw=1.2, zorder=2)
    axes.plot(paper, height, "D", ms=6.5, mfc="white", mec=VERMILION, mew=1.6, zorder=3)
    axes.plot(ours, height, "o", ms=6.5, color=BLUE, zorder=4)


def _draw_ranges(axes: Axes, results: Results, methods: list[str], names: set[str]) -> None:
    """Draw the lowest to the highest mean any reading gives, ours and the paper's, where all are there."""
    sets = {data for data in results.other_readings()[0] if shown_name(data) in names}
    for height, method in enumerate(reversed(methods)):
        if method not in results.other_readings()[1]:
            continue
        cell = readings_mean(results, "acc", "accuracy", method, sets)
        # Only methods with all these sets, which the note of readings_mean tells: the others would be means
        # over fewer.
        if cell.note == count(len(sets), "set") and cell.low is not None and cell.high is not None:
            axes.plot(
                [cell.low, cell.high], [height, height], color=RANGE, lw=8, zorder=1, solid_capstyle="butt"
            )
            _draw_pair(axes, height, cell.ours or 0.0, cell.paper or 0.0)
    axes.grid(axis="x")


def _legend(figure: Figure, with_range: bool) -> None:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], marker="o", ls="", ms=6.5, color=BLUE, label="ours"),
        Line2D([], [], marker="D", ls="", ms=6.5, mfc="white", mec=VERMILION, mew=1.6, label="paper"),
    ]
    if with_range:
        marks.append(Line2D([], [], lw=8, color=RANGE, label="lowest to highest mean over readings"))
    figure.legend(handles=marks, loc="outside upper left", ncols=3)


def accuracy_scatter(results: Results, tables: Tables) -> Figure | None:
    """Draw our ACC against the paper's, a panel for each method, a point for each data set."""
    table = tables["acc"]
    pairs = {
        method: [
            (c.paper, c.ours)
            for c in table.column(method).values()
            if c.paper is not None and c.ours is not None
        ]
        for method in table.columns
    }
    pairs = {method: points for method, points in pairs.items() if points}
    if not pairs:
        return None
    figure, grid = panels(len(pairs), 5, 1.95)
    for axes, (method, points) in zip(grid, pairs.items(), strict=True):
        axes.fill_between([0, 1], [-NEAR, 1 - NEAR], [NEAR, 1 + NEAR], color="#DFDFDF", lw=0)
        axes.plot([0, 1], [0, 1], color=GREY, lw=0.8)
        axes.plot(
            [p for p, _ in points], [o for _, o in points], "o", ms=5, color=BLUE, alpha=0.75, mec="white"
        )
        # The mean of differences, over this method's own sets.
        gap = fmean(ours - paper for paper, ours in points)
        axes.set_title(f"{method}  {gap:+.3f}")
        axes.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1], aspect="equal")
    figure.supxlabel("ACC in the paper", fontsize=9)
    figure.supylabel("ACC, ours", fontsize=9)
    return figure
