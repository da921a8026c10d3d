"""Figures that show the whole comparison at a glance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from smrmf_reproduce.report.drawing import BLUE, GREY, INK, NARROW, VERMILION, new_figure, panels
from smrmf_reproduce.report.reading_tables import readings_mean
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.score_tables import common_rows
from smrmf_reproduce.report.table import NEAR, Cell, Tables, count, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RANGE = "#C5DFEE"
# Behind the methods that stand out.
BAND = "#E8F1F8"
# How far the two marks of a method lie from its line, so that their bars do not cover each other.
APART = 0.16

OURS: dict[str, Any] = {"marker": "o", "ms": 7, "color": BLUE}
PAPER: dict[str, Any] = {
    "marker": "D",
    "ms": 6,
    "mfc": "white",
    "mec": VERMILION,
    "mew": 1.6,
    "color": VERMILION,
}


@dataclass(frozen=True)
class Mean:
    """A method's mean score, ours and the paper's, each with its spread where there is one."""

    method: str
    ours: float
    paper: float
    spread: float | None = None
    paper_spread: float | None = None
    stands_out: bool = False


def mean_accuracy(results: Results, tables: Tables) -> Figure | None:
    """Draw every method's mean ACC over the sets that all have, ours beside the paper's."""
    table = tables["acc"]
    # The same sets for all methods: means over different sets cannot stand in one order (paper note 59).
    rows = common_rows([row for row in table.rows if row.kind == "data"])
    columns = {method: [row.cells[i] for row in rows] for i, method in enumerate(table.columns)}
    means = [
        Mean(
            method,
            fmean(cell.ours or 0.0 for cell in cells),
            fmean(cell.paper or 0.0 for cell in cells),
            spread_of_mean([cell.std for cell in cells]),
            spread_of_mean([cell.paper_std for cell in cells]),
            method in results.paper.ours,
        )
        for method, cells in columns.items()
        # Without the paper's figure there is nothing to draw a method of one's own beside.
        if rows and all(cell.difference is not None for cell in cells)
    ]
    return draw_means(means, f"mean ACC over {count(len(rows), 'common set')}") if means else None


def spread_of_mean(spreads: Sequence[float | None]) -> float | None:
    """Return the standard deviation of a mean from those of its parts, None unless every part has one."""
    # Parts are drawn independently, so variances add up. One part without a spread leaves that of the mean
    # unknown, not smaller.
    known = [spread for spread in spreads if spread is not None]
    if not known or len(known) < len(spreads):
        return None
    return float(sum(spread**2 for spread in known) ** 0.5 / len(known))


def draw_means(means: Sequence[Mean], label: str) -> Figure:
    """Draw a line for every method, the highest of ours on top, with its figures at the right."""
    # Of equals the first stays above: the sort is stable and the order turned round at the end.
    ordered = sorted(means, key=lambda mean: -mean.ours)[::-1]
    figure, axes = _lines([mean.method for mean in ordered], label)
    for height, mean in enumerate(ordered):
        if mean.stands_out:
            axes.axhspan(height - 0.5, height + 0.5, color=BAND, lw=0, zorder=0)
        _draw_mark(axes, mean.ours, height + APART, mean.spread, OURS)
        _draw_mark(axes, mean.paper, height - APART, mean.paper_spread, PAPER)
        weight = "bold" if mean.stands_out else "normal"
        _write_beside(axes, height, number(mean.ours, 3), number(mean.paper, 3), weight)
    _write_beside(axes, len(ordered) - 0.2, "ours", "paper")
    for text, mean in zip(axes.get_yticklabels(), ordered, strict=True):
        text.set_fontweight("bold" if mean.stands_out else "normal")
    _legend(figure, with_bar=any((mean.spread, mean.paper_spread) != (None, None) for mean in ordered))
    return figure


def _lines(methods: list[str], label: str) -> tuple[Figure, Axes]:
    """Return a narrow figure with a line for each method, from below, and letters that a phone can show."""
    figure = new_figure(1.05 + 0.31 * len(methods), NARROW)
    axes = figure.subplots()
    axes.set_yticks(range(len(methods)), methods, fontsize=10, color=INK)
    axes.set_ylim(-0.5, len(methods) - 0.5)
    axes.set_xlabel(label, fontsize=10)
    axes.tick_params(axis="x", labelsize=9.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    return figure, axes


def _draw_mark(axes: Axes, value: float, height: float, spread: float | None, look: dict[str, Any]) -> None:
    axes.errorbar(value, height, xerr=spread, ls="", elinewidth=1.6, capsize=3, zorder=3, **look)


def _write_beside(axes: Axes, height: float, ours: str, paper: str, weight: str = "normal") -> None:
    """Write two words at the right of the axes, where a reader looks for the exact figures."""
    for points, text, color in ((24, ours, BLUE), (62, paper, VERMILION)):
        axes.annotate(
            text,
            (1, height),
            (points, 0),
            xycoords=axes.get_yaxis_transform(),
            # In points from the axes and not as a share of them, or the layout could not keep room for it.
            textcoords="offset points",
            ha="center",
            va="center",
            color=color,
            fontsize=10,
            fontweight=weight,
            annotation_clip=False,
        )


def _legend(figure: Figure, with_bar: bool = False, with_range: bool = False) -> None:
    from matplotlib.lines import Line2D

    marks = [Line2D([], [], ls="", label="ours", **OURS), Line2D([], [], ls="", label="paper", **PAPER)]
    if with_bar:
        marks.append(Line2D([], [], color=GREY, marker="|", ms=7, lw=1.6, label="± 1 standard deviation"))
    if with_range:
        marks.append(Line2D([], [], lw=8, color=RANGE, label="lowest to highest mean over readings"))
    figure.legend(
        handles=marks, loc="outside upper left", ncols=3, fontsize=9.5, columnspacing=1.2, handletextpad=0.7
    )


def readings_range(results: Results, tables: Tables) -> Figure | None:
    """Draw the lowest to the highest mean ACC any reading gives, with ours and the paper's."""
    sets, methods = results.other_readings()
    means = {method: readings_mean(results, "acc", "accuracy", method) for method in methods}
    # Only methods with all these sets, which the note of readings_mean tells: the others would be means over
    # fewer.
    full = {method: cell for method, cell in means.items() if cell.note == count(len(sets), "set")}
    if not full:
        return None
    figure, axes = _lines(list(reversed(full)), f"mean ACC over {count(len(sets), 'set')}")
    for height, cell in enumerate(reversed(full.values())):
        _draw_range(axes, height, cell)
    _legend(figure, with_range=True)
    return figure


def _draw_range(axes: Axes, height: float, cell: Cell) -> None:
    ends = [cell.low or 0.0, cell.high or 0.0]
    axes.plot(ends, [height, height], color=RANGE, lw=9, zorder=1, solid_capstyle="butt")
    _draw_mark(axes, cell.paper or 0.0, height, None, PAPER)
    _draw_mark(axes, cell.ours or 0.0, height, None, OURS)


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
