"""How all pictures look, and where they are drawn."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from smrmf._validation import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

# Found by a search for twelve colours that are far apart for every kind of colour vision: 17 or more in
# CAM02-UCS between any two, with deuteranopia, protanopia and tritanopia, too. Their lightness goes from 31
# to 80 of 100, so that they show on white and on black; some are equally light, and in grey look the same.
# The first ones are those farthest from each other.
COLORS = ["#0096a5", "#a50000", "#b4d200", "#7800e1", "#87d2c3", "#968700"]
COLORS += ["#e1a5ff", "#00694b", "#870f78", "#e11e78", "#f08778", "#9678ff"]
# Colours repeat from the thirteenth cluster on, with the next shape.
MARKERS = ["o", "^", "s", "D", "v", "P", "X", "*"]
# For values on a scale, and for those of both signs: even in lightness, and safe for all colour vision.
SCALE, SIGNED_SCALE = "viridis", "RdBu_r"
GREY = "#8c8c8c"
# Legends may take so much of their Axes; beside smaller ones they stick out.
MOST_OF_AXES = 0.6

# Of the name of a cluster on a map.
NAME_LOOK: dict[str, Any] = {"ha": "center", "va": "center", "weight": "bold", "size": 11, "zorder": 5}

# No colour of text or background: those are the user's, light or dark.
STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "image.interpolation": "nearest",
    "savefig.dpi": 150,
}


@contextmanager
def drawing() -> Iterator[Any]:
    """Give pyplot, and the style of the library inside; settings of the user stay as they are."""
    try:
        matplotlib = importlib.import_module("matplotlib")
    except ImportError as error:
        raise ImportError("Pictures need matplotlib: pip install 'smrmf[plot]'.") from error
    with matplotlib.rc_context(STYLE):
        yield importlib.import_module("matplotlib.pyplot")


def own_axes(pyplot: Any, ax: Axes | None) -> Axes:
    """Return the Axes to draw on: those given, else pyplot's current ones."""
    if ax is not None:
        return ax
    figure = pyplot.gcf()
    if not figure.axes:
        # Room for legends and labels, where nothing has been drawn yet.
        figure.set_layout_engine("constrained")
    return figure.gca()


def own_figure(pyplot: Any, figure: Figure | None, width: float, height: float) -> Any:
    """Return the figure to draw panels on: the one given, else a new one of pyplot's."""
    return pyplot.figure(figsize=(width, height), layout="constrained") if figure is None else figure


def make_room(ax: Axes, legend: Legend) -> None:
    """Narrow Axes for a legend to their right, as colour bars do; a layout engine does it by itself."""
    spec = ax.get_subplotspec()
    if spec is None or ax.figure.get_layout_engine() is not None:
        return
    share = legend.get_window_extent().width / ax.get_window_extent().width
    if share < MOST_OF_AXES:
        ax.set_subplotspec(spec.subgridspec(1, 2, width_ratios=[1 - share, share], wspace=0)[0])


def color_of(cluster: int) -> str:
    """Return the colour of a cluster."""
    return COLORS[cluster % len(COLORS)]


def marker_of(cluster: int) -> str:
    """Return the shape of the points of a cluster."""
    return MARKERS[cluster // len(COLORS) % len(MARKERS)]


def without_ticks(ax: Axes) -> None:
    """Leave a picture alone: no ticks, no frame."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def halo(ax: Axes, width: float = 2.5) -> list[Any]:
    """Return an outline in the colour of the background, which keeps text readable on dots and lines."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground=ax.get_facecolor()[:3])]


def cluster_names(names: Any, n_clusters: int) -> list[str]:
    """Return what clusters are called: their numbers, or the names given."""
    if names is None:
        return [str(cluster) for cluster in range(n_clusters)]
    found = [str(name) for name in np.asarray(names, dtype=object).ravel()]
    if len(found) != n_clusters:
        raise ValueError(
            f"names={shown(names)} has {len(found)} entries, but the model has {n_clusters} clusters: give "
            "one name for each, in the order of labels_."
        )
    return found
