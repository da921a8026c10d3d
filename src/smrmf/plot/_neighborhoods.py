"""Which neighbourhoods a model has listened to, and which it has dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from smrmf import inspection
from smrmf.plot._layout import layout
from smrmf.plot._map import dot_look, draw_names, draw_rings
from smrmf.plot._model import check_coordinates, check_model, count_clusters
from smrmf.plot._style import COLORS, GREY, color_of, drawing, own_figure, without_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_EDGES = 20_000
N_BINS = 40


def neighborhoods(model: Any, coordinates: Any = None, *, figure: Figure | None = None) -> np.ndarray:
    """Draw how much each point represents, where the line between kept and dropped is, and the graph left.

    Parameters
    ----------
    model : estimator
        A fitted model of the loop, such as FastSMRMF; its numbers are those of
        :func:`smrmf.inspection.neighborhoods`.
    coordinates : array of shape (n_samples, 2) or None, default=None
        Where the points go; None takes :func:`smrmf.plot.layout` of the model.
    figure : Figure or None, default=None
        Where to draw; None makes a new one with pyplot.

    Returns
    -------
    axes : array of Axes of shape (2,)
        The distribution of the mass, and the map with the edges of the graph: those inside a cluster in its
        colour, those between clusters dark.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> import smrmf
    >>> model = smrmf.FastSMRMF(n_clusters=3, random_state=0).fit(load_iris().data)
    >>> smrmf.plot.neighborhoods(model, figure=Figure()).shape
    (2,)
    """
    check_model(model, "labels_", "affinity_")
    table = inspection.neighborhoods(model)
    mass, kept, agreement = (table[name] for name in ("mass", "kept", "agreement"))
    places = layout(model) if coordinates is None else check_coordinates(coordinates, len(kept))
    with drawing() as pyplot:
        figure = own_figure(pyplot, figure, 10, 4.6)
        axes = figure.subplots(1, 2, width_ratios=[1, 1.4])
        _draw_mass(axes[0], mass, kept, agreement)
        _draw_graph(axes[1], model, places, kept)
    return axes


def _draw_mass(ax: Axes, mass: np.ndarray, kept: np.ndarray, agreement: np.ndarray) -> None:
    """Draw the distribution of the mass, and where neighbourhoods begin to be kept."""
    groups = [(~kept, "dropped", GREY), (kept, "kept", COLORS[0])]
    groups = [group for group in groups if group[0].any()]
    ax.hist(
        [mass[chosen] for chosen, _, _ in groups],
        bins=N_BINS,
        stacked=True,
        color=[color for _, _, color in groups],
        label=[
            f"{chosen.sum()} {name}, {np.nanmean(agreement[chosen]):.0%} of their mass inside the cluster"
            for chosen, name, _ in groups
        ],
    )
    if kept.any():
        ax.axvline(
            float(mass[kept].min()),
            color=COLORS[1],
            linestyle="--",
            linewidth=1.2,
            label="least that is kept",
        )
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0)
    ax.set(xlabel="mass that a point represents", ylabel="points")


def _draw_graph(ax: Axes, model: Any, places: np.ndarray, kept: np.ndarray) -> None:
    """Draw the graph of the model on its map."""
    from matplotlib import rcParams
    from matplotlib.collections import LineCollection

    labels = np.asarray(model.labels_)
    heads, tails = heaviest_edges(sp.csr_array(model.affinity_))
    across = labels[heads] != labels[tails]
    without_ticks(ax)
    ax.set_aspect("equal", adjustable="datalim")
    ink = rcParams["text.color"]
    # Those between clusters are few, and what one looks for: on top.
    for chosen, width, above in ((~across, 0.5, 1), (across, 0.9, 2)):
        ends = heads[chosen], tails[chosen]
        colors = [ink] if above == 2 else [color_of(cluster) for cluster in labels[ends[0]]]
        lines = np.stack([places[ends[0]], places[ends[1]]], axis=1)
        edges = LineCollection(list(lines), colors=colors, linewidths=width, alpha=0.7, zorder=above)
        edges.set_rasterized(True)
        ax.add_collection(edges)
    dots = dot_look(len(places)) | {"s": 4, "zorder": 2}
    ax.scatter(places[:, 0], places[:, 1], c=[color_of(cluster) for cluster in labels], **dots)
    if kept.any():
        draw_rings(ax, places[kept])
    draw_names(ax, places, labels, {k: str(k) for k in range(count_clusters(labels))})
    ax.set_title(f"{across.sum()} of {len(heads)} edges join different clusters")


def heaviest_edges(W: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of every edge of a symmetric graph, or of the heaviest ones if there are too many."""
    upper = sp.coo_array(sp.triu(W, 1))
    heavy = np.argsort(-upper.data, kind="stable")[:MOST_EDGES]
    return upper.row[heavy], upper.col[heavy]
