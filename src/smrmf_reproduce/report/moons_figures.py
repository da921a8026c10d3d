"""Figures of the moons: the learned graphs, and the clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

from smrmf_reproduce.report.drawing import BLUE, ORANGE, new_figure
from smrmf_reproduce.report.paper import MOONS
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.table import Tables
from smrmf_reproduce.run.store import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = (BLUE, ORANGE)
# Edges are drawn in four classes of weight, one path each: thousands of single lines make huge files.
CLASSES = ((0.02, 0.1, 0.3, 0.10), (0.1, 0.3, 0.5, 0.22), (0.3, 0.6, 0.8, 0.4), (0.6, 1.01, 1.2, 0.65))


def manifold(results: Results, tables: Tables) -> Figure | None:
    """Draw the graphs on 2DMoons, baseline beside main method: classes, edges by weight, exemplars."""
    pair = (results.paper.baseline, results.paper.main)
    runs = {method: _best(results, "2d-moons", method) for method in pair}
    if not all(runs.values()):
        return None
    figure = new_figure(3.0)
    for axes, (method, run) in zip(figure.subplots(1, 2).tolist(), runs.items(), strict=True):
        assert run is not None
        picture = run["picture"]
        points = np.asarray(picture["points"], dtype=float)
        # The baseline ranks its points too, but selects none: only a selection is ringed.
        exemplars = list(picture.get("exemplars") or []) if method in results.paper.ours else []
        n_edges = _draw_edges(axes, points, picture.get("edges") or [])
        _draw_points(axes, points, np.asarray(picture["classes"]), size=3.2)
        if exemplars:
            axes.plot(*points[exemplars].T, "o", ms=7, mfc="none", mec="#111111", mew=0.9, zorder=4)
        ringed = f", {len(exemplars)} exemplars ringed" if exemplars else ""
        axes.set_title(f"{method}: {n_edges} edges{ringed}")
        _plain(axes)
    return figure


def clusterings(results: Results, tables: Tables) -> Figure | None:
    """Draw the clusters both methods find on both moons sets."""
    pair = (results.paper.baseline, results.paper.main)
    runs = {(d, m): _best(results, d, m) for d in MOONS for m in pair}
    if not all(runs.values()):
        return None
    figure = new_figure(5.6)
    for axes, ((data, method), run) in zip(figure.subplots(2, 2).ravel().tolist(), runs.items(), strict=True):
        assert run is not None
        picture = run["picture"]
        points = np.asarray(picture["points"], dtype=float)
        classes = np.asarray(picture["classes"])
        labels = matched(classes, np.asarray(picture["labels"]))
        _draw_points(axes, points, labels, size=3.6)
        wrong = points[labels != np.searchsorted(np.unique(classes), classes)]
        axes.plot(*wrong.T, "x", ms=5, color="#111111", mew=0.8, zorder=4)
        axes.set_title(
            f"{MOONS[data]}, {method}: ACC {run['accuracy']:.3f}, {len(wrong)} of {len(points)} wrong"
        )
        _plain(axes)
    return figure


def matched(classes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the labels renamed to the class each is best matched with, as the accuracy does."""
    counts = contingency_matrix(classes, labels)
    # One to one, by the Hungarian method: the assignment behind clustering_accuracy.
    rows, columns = linear_sum_assignment(counts, maximize=True)
    names = dict(zip(np.unique(labels)[columns], rows, strict=True))
    # A cluster beyond the number of classes has no partner: a label of its own makes all its points wrong.
    return np.array([names.get(label, len(counts)) for label in labels])


def _best(results: Results, data: str, method: str) -> Record | None:
    run = results.best("moons", data, method).run
    return run if run is not None and run.get("picture") else None


def _draw_points(axes: Axes, points: np.ndarray, classes: np.ndarray, size: float) -> None:
    for index, value in enumerate(np.unique(classes)):
        color = COLORS[index] if index < len(COLORS) else "#888888"
        axes.plot(*points[classes == value].T, "o", ms=size, color=color, mew=0, zorder=3)


def _draw_edges(axes: Axes, points: np.ndarray, edges: list[Any]) -> int:
    """Draw each pair of points once, width and darkness by weight; return how many pairs there are."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    weights: dict[tuple[int, int], float] = {}
    for i, j, weight in edges:
        # Undirected: an edge stored in both directions is one pair, with the larger weight.
        pair = (min(i, j), max(i, j))
        weights[pair] = max(weights.get(pair, 0.0), float(weight))
    # Relative to the largest, because weights of a heat kernel and of a learned graph have no common scale.
    top = max(weights.values(), default=1.0)
    # A dense graph is drawn lighter, or its edges would hide the points' classes.
    ink = min(1.0, (1500 / max(len(weights), 1)) ** 0.5)
    for low, high, width, alpha in CLASSES:
        pairs = np.array([pair for pair, w in sorted(weights.items()) if low <= w / top < high], dtype=int)
        if not len(pairs):
            continue
        # pairs x 2 x 2 to one list of points: every even one begins a line, every odd one ends it.
        path = Path(points[pairs].reshape(-1, 2), [Path.MOVETO, Path.LINETO] * len(pairs))
        axes.add_patch(PathPatch(path, fill=False, ec="#222222", lw=width * ink, alpha=alpha * ink, zorder=2))
    return len(weights)


def _plain(axes: Axes) -> None:
    axes.set(xticks=[], yticks=[], xlabel="first coordinate", ylabel="second coordinate")
    axes.spines[["left", "bottom"]].set_visible(False)
