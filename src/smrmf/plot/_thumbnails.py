"""Pictures of points on a map, none on another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smrmf._validation import ParameterError
from smrmf.plot._style import NAME_LOOK, color_of, halo

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDE = 0.06  # of a thumbnail, as a share of the shorter side of the map
FRAME = 3.0  # points that the frame adds on each side


def check_images(images: Any, n_samples: int) -> np.ndarray:
    """Return images as an array; refuse what is not one for each point, in grey or in three colours."""
    pictures = np.asarray(images)
    colored = pictures.ndim == 4 and pictures.shape[3] == 3
    if len(pictures) != n_samples or not (pictures.ndim == 3 or colored) or pictures.dtype.kind not in "biuf":
        raise ParameterError(
            f"images has shape {pictures.shape} and entries of type {pictures.dtype}, but must have one "
            f"image for each of the {n_samples} points, shape ({n_samples}, height, width) or "
            f"({n_samples}, height, width, 3)."
        )
    return pictures


def draw_thumbnails(
    ax: Axes,
    places: np.ndarray,
    labels: np.ndarray,
    best: list[np.ndarray],
    count: int,
    images: np.ndarray,
    called: list[str],
) -> set[int]:
    """Draw so many of the best points of each cluster by their images, and its name at the first of them.

    Returns the clusters that have found room for one.
    """
    from matplotlib.colors import Normalize
    from matplotlib.offsetbox import AnnotationBbox, OffsetImage

    # Where things are in pixels is known once the figure has its legend and its margins.
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    pixels = ax.transData.transform(places)
    side = SIDE * min(ax.bbox.width, ax.bbox.height)
    zoom = side / max(images.shape[1:3]) * 72 / figure.dpi
    frame = side + 2 * FRAME * figure.dpi / 72
    low, high = _range_of(images)
    # Of colours in a picture the scale means nothing.
    shades: dict[str, Any] = {"cmap": "gray_r", "norm": Normalize(0, 1), "interpolation": "nearest"}
    named: set[int] = set()
    for i in clear_of_each_other(_in_turns(best), pixels, frame, labels, count):
        picture = OffsetImage((images[i] - low) / (high - low), zoom=zoom, **shades)
        edge = {"edgecolor": color_of(labels[i]), "facecolor": "white", "linewidth": 1.4}
        ax.add_artist(AnnotationBbox(picture, tuple(places[i]), pad=0.15, bboxprops=edge, zorder=4))
        if labels[i] not in named:
            named.add(labels[i])
            corner = (-0.5 * frame * 72 / figure.dpi, 0.5 * frame * 72 / figure.dpi)
            look = NAME_LOOK | {"path_effects": halo(ax, 3), "textcoords": "offset points"}
            ax.annotate(called[labels[i]], tuple(places[i]), corner, **look)
    return named


def clear_of_each_other(
    wanted: np.ndarray, centers: np.ndarray, side: float, labels: np.ndarray, count: int
) -> list[int]:
    """Return the first points of each label, at most so many, whose squares of that side do not overlap."""
    chosen: list[int] = []
    for i in wanted:
        same = np.count_nonzero(labels[chosen] == labels[i])
        if same < count and (np.abs(centers[chosen] - centers[i]).max(axis=1) >= side).all():
            chosen.append(int(i))
    return chosen


def _in_turns(best: list[np.ndarray]) -> np.ndarray:
    """Return the best of every cluster, then the next ones, so that each has its share of the room."""
    rank = np.concatenate([np.arange(len(indices)) for indices in best])
    return np.concatenate(best)[np.argsort(rank, kind="stable")].astype(int)


def _range_of(images: np.ndarray) -> tuple[float, float]:
    """Return darkest and lightest, one scale for all images."""
    low, high = float(images.min()), float(images.max())
    return low, high if high > low else low + 1
