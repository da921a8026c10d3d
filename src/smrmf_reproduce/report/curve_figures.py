"""Figures of curves: convergence of the objective, and accuracy against one setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smrmf_reproduce.report.drawing import BLUE, GREY, VERMILION, panels
from smrmf_reproduce.report.paper import shown_name
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.table import Table, TableRow, Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_POINTS = 150


def convergence(results: Results, tables: Tables) -> Figure | None:
    """Draw the objective of the main method's best run on every set, iterations on a log scale."""
    curves = {}
    for data in results.data_sets("comparison"):
        run = results.best("comparison", data, results.paper.main).run
        if run is not None and run.get("history"):
            curves[shown_name(data)] = [float(value) for value in run["history"]]
    if not curves:
        return None
    figure, grid = panels(len(curves), 5, 1.6)
    for axes, (name, history) in zip(grid, curves.items(), strict=True):
        # Thinned evenly on the log scale, on which hundreds of late iterations would share a pixel.
        steps = _spaced(len(history))
        # 400 iterations suffice for most sets, says the paper.
        axes.axvline(400, color="#D0D0D0", lw=0.8, ls=(0, (3, 2)))
        axes.plot(steps, [history[i - 1] for i in steps], color=BLUE, lw=1.4)
        axes.plot(len(history), history[-1], "o", ms=4, color=VERMILION)
        axes.set_xscale("log")
        axes.set(xlim=(1, 1100), xticks=[1, 10, 100, 1000])
        axes.set_xticklabels(["1", "10", "100", "1000"])
        axes.minorticks_off()
        axes.locator_params(axis="y", nbins=3)
        axes.set_title(f"{name}: {len(history)}")
    figure.supxlabel("iteration (log scale)", fontsize=9)
    figure.supylabel("objective", fontsize=9)
    return figure


def _spaced(n: int) -> list[int]:
    """Return at most ``N_POINTS`` iterations from 1 to n, evenly spaced on a log scale."""
    if n <= N_POINTS:
        return list(range(1, n + 1))
    # A set, because early steps of the geometric sequence round to the same iteration; both ends are in it.
    return sorted({round(n ** (i / (N_POINTS - 1))) for i in range(N_POINTS)})


def sensitivity_k(results: Results, tables: Tables) -> Figure | None:
    """Draw the main method's accuracy against the number of neighbours, a panel for each set."""
    labels = [column.removeprefix("k = ").strip("⌊⌋") for column in tables["sensitivity_k"].columns]
    return _draw_sensitivity(tables["sensitivity_k"], labels, "neighbours k")


def sensitivity_exemplars(results: Results, tables: Tables) -> Figure | None:
    """Draw the main method's accuracy against the share of exemplars, a panel for each set."""
    labels = [column.removesuffix("%") for column in tables["sensitivity_exemplars"].columns]
    return _draw_sensitivity(tables["sensitivity_exemplars"], labels, "exemplars (% of the points)")


def _draw_sensitivity(table: Table, labels: list[str], xlabel: str) -> Figure | None:
    rows = [row for row in table.rows if row.kind != "average" and _scores_by_place(row)]
    if not rows:
        return None
    figure, grid = panels(len(rows), 5, 1.55)
    # The same span in every panel, so that slopes can be compared; at least 0.1, or noise would look steep.
    span = max(max(0.1, max(v.values()) - min(v.values())) for v in map(_scores_by_place, rows)) * 1.25
    for axes, row in zip(grid, rows, strict=True):
        values = _scores_by_place(row)
        middle = (max(values.values()) + min(values.values())) / 2
        axes.plot(list(values), list(values.values()), "-o", color=GREY, ms=4, lw=1.2)
        top = max(values.values())
        # The tolerance of best_counts, so that the figure marks what the claim counts.
        winners = [x for x, value in values.items() if value >= top - 1e-9]
        axes.plot(winners, [top] * len(winners), "o", color=VERMILION, ms=6.5)
        axes.set(xlim=(-0.4, len(labels) - 0.6), ylim=(middle - span / 2, middle + span / 2))
        axes.set_xticks(range(len(labels)), labels)
        axes.locator_params(axis="y", nbins=4)
        axes.grid(axis="y")
        axes.set_title(row.name)
    figure.supxlabel(xlabel, fontsize=9)
    figure.supylabel("ACC (fraction of points)", fontsize=9)
    return figure


def _scores_by_place(row: TableRow) -> dict[int, float]:
    return {i: cell.ours for i, cell in enumerate(row.cells) if cell.ours is not None}
