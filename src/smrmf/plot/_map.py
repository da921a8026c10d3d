"""All points of a model on a map, with its clusters and exemplars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smrmf._validation import ParameterError, shown
from smrmf.plot._layout import layout
from smrmf.plot._model import best_exemplars, check_coordinates, check_model, count_clusters
from smrmf.plot._style import (
    COLORS,
    NAME_LOOK,
    SCALE,
    cluster_names,
    color_of,
    drawing,
    halo,
    make_room,
    marker_of,
    own_axes,
    without_ticks,
)
from smrmf.plot._thumbnails import check_images, draw_thumbnails

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_EXEMPLARS = 5  # of each cluster, unless told otherwise


def map(  # noqa: A001 - the word for it
    model: Any,
    coordinates: Any = None,
    *,
    color: Any = "cluster",
    exemplars: bool | int = True,
    images: Any = None,
    names: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw every point as a dot, near those it is like, in the colour of its cluster.

    Parameters
    ----------
    model : estimator
        A fitted model with ``labels_``.
    coordinates : array of shape (n_samples, 2) or None, default=None
        Where the points go; None takes :func:`smrmf.plot.layout` of the model.
    color : {"cluster", "confidence"} or array of shape (n_samples,), default="cluster"
        What the colours show: the clusters, ``confidence_``, your own numbers on a scale, or your own words,
        each with a colour.
    exemplars : bool or int, default=True
        How many exemplars of each cluster have a ring; True is five.
    images : array of shape (n_samples, height, width) or (n_samples, height, width, 3) or None, default=None
        Pictures of the points: exemplars are shown by theirs, as far as there is room, instead of a ring.
    names : list of n_clusters words or None, default=None
        What to call the clusters instead of by their numbers.
    ax : Axes or None, default=None
        Where to draw; None takes pyplot's current Axes.

    Returns
    -------
    ax : Axes
        The map.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> import smrmf
    >>> model = smrmf.FastSMRMF(n_clusters=3, random_state=0).fit(load_iris().data)
    >>> ax = smrmf.plot.map(model, ax=Figure().subplots())
    >>> [text.get_text() for text in ax.texts]
    ['0', '1', '2']
    """
    check_model(model, "labels_")
    labels = np.asarray(model.labels_)
    called = cluster_names(names, count_clusters(labels))
    n_shown = _count_shown(model, exemplars)
    colors = _colors(model, color, len(labels))
    pictures = None if images is None else check_images(images, len(labels))
    places = layout(model) if coordinates is None else check_coordinates(coordinates, len(labels))
    with drawing() as pyplot:
        ax = own_axes(pyplot, ax)
        without_ticks(ax)
        ax.set_aspect("equal", adjustable="datalim")
        if colors is None:
            draw_groups(ax, places, labels, called)
        elif colors.dtype.kind in "biuf":
            _draw_scale(ax, places, colors, "confidence" if isinstance(color, str) else "")
        else:
            words, codes = np.unique(colors.astype(str), return_inverse=True)
            draw_groups(ax, places, codes, list(words))
        named: set[int] = set()
        if n_shown and pictures is not None:
            # Of all exemplars: those that there is room for.
            ranked = [best_exemplars(model, cluster, len(labels)) for cluster in range(len(called))]
            named = draw_thumbnails(ax, places, labels, ranked, n_shown, pictures, called)
        elif n_shown:
            best = [best_exemplars(model, cluster, n_shown) for cluster in range(len(called))]
            draw_rings(ax, places[np.concatenate(best)])
        draw_names(ax, places, labels, {k: name for k, name in enumerate(called) if k not in named})
    return ax


def _count_shown(model: Any, exemplars: bool | int) -> int:
    """Return how many exemplars of each cluster to mark."""
    if isinstance(exemplars, bool | np.bool_):
        # The default asks for what there is.
        return N_EXEMPLARS if exemplars and hasattr(model, "exemplar_indices_") else 0
    if not isinstance(exemplars, int | np.integer) or exemplars < 0:
        raise ParameterError(
            f"exemplars={shown(exemplars)} is not valid for map: it must be True, False or an "
            "integer of at least 0."
        )
    check_model(model, "exemplar_indices_")
    return int(exemplars)


def _colors(model: Any, color: Any, n_samples: int) -> np.ndarray | None:
    """Return what the colours show, or None for the clusters."""
    if isinstance(color, str):
        if color == "cluster":
            return None
        if color != "confidence":
            raise ParameterError(
                f"color={color!r} is not valid for map: it must be 'cluster', 'confidence' or one value "
                "for each point."
            )
        check_model(model, "confidence_")
        return np.asarray(model.confidence_)
    values = np.asarray(color)
    if values.shape != (n_samples,):
        raise ParameterError(
            f"color has shape {values.shape}, but must have one value for each of the {n_samples} "
            "points, or be 'cluster' or 'confidence'."
        )
    return values


def dot_look(n_samples: int) -> dict[str, Any]:
    """Return size and look of dots: many must be small and let others show through."""
    return {
        "s": float(np.clip(20_000 / n_samples, 1, 30)),
        "alpha": float(np.clip(30 / np.sqrt(n_samples), 0.25, 0.9)),
        "linewidths": 0,
        # Dots as one image in files of curves, which stay small with any number of points.
        "rasterized": True,
    }


def draw_groups(ax: Axes, places: np.ndarray, groups: np.ndarray, called: list[str]) -> None:
    """Draw the points of each group in its colour, and a legend where colours are told apart by it."""
    look = dot_look(len(places))
    for group, name in enumerate(called):
        members = places[groups == group]
        label = f"{name} ({len(members)})"
        ax.scatter(*members.T, color=color_of(group), marker=marker_of(group), label=label, **look)
    if len(called) <= len(COLORS):
        legend = ax.legend(loc="upper left", bbox_to_anchor=(1, 1), borderaxespad=0, handletextpad=0.2)
        for handle in legend.legend_handles:
            assert handle is not None
            handle.set(alpha=1, sizes=[30])
        make_room(ax, legend)


def _draw_scale(ax: Axes, places: np.ndarray, values: np.ndarray, name: str) -> None:
    """Draw the points in the colours of a scale, and the scale beside them."""
    values = values.astype(float)
    # A confidence is a share, whatever the values at hand.
    limits: dict[str, Any] = {"vmin": 0, "vmax": 1} if name else {}
    order = np.argsort(-values, kind="stable")  # the lowest, which are few, on top
    dots = ax.scatter(
        places[order, 0], places[order, 1], c=values[order], cmap=SCALE, **limits, **dot_look(len(places))
    )
    bar = ax.figure.colorbar(dots, ax=ax, shrink=0.6, aspect=25, label=name)
    if bar.solids is not None:
        bar.solids.set_alpha(1)
    bar.outline.set_visible(False)


def draw_names(ax: Axes, places: np.ndarray, labels: np.ndarray, called: dict[int, str]) -> None:
    """Write each name on the point of its cluster that is nearest to the middle."""
    for cluster, name in called.items():
        members = places[labels == cluster]
        # A point, not the median itself, which may lie among other clusters if this one is in two parts.
        middle = members[np.argmin(np.linalg.norm(members - np.median(members, axis=0), axis=1))]
        ax.text(float(middle[0]), float(middle[1]), name, path_effects=halo(ax, 3), **NAME_LOOK)


def draw_rings(ax: Axes, places: np.ndarray) -> None:
    """Mark points by rings."""
    from matplotlib import rcParams

    look: dict[str, Any] = {
        "s": float(np.clip(3000 / len(places), 12, 45)),
        "linewidths": 0.9,
        "zorder": 3,
        "label": "_exemplars",
    }
    ax.scatter(places[:, 0], places[:, 1], facecolors="none", edgecolors=rcParams["text.color"], **look)
