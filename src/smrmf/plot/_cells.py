"""One row of features in one small panel: as an image, as words, as bars, or as a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from smrmf._validation import COUNT, ParameterError, shown
from smrmf.plot._style import GREY, SIGNED_SCALE, without_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Draws a row of features on a panel, in the colour of its cluster.
Drawer: TypeAlias = Callable[["Axes", Any, str], None]

N_WORDS = 6
TRACE = 0.05
FEW_FEATURES = 30  # that a bar each can show, and a name


def check_image_shape(image_shape: Any, n_features: int) -> tuple[int, ...]:
    """Return height and width, and 3 for colours; refuse a shape that does not hold the features."""
    shape = tuple(image_shape) if isinstance(image_shape, tuple | list) else (image_shape,)
    valid = len(shape) == 2 or (len(shape) == 3 and shape[2] == 3)
    if not valid or not all(COUNT.accepts(size) for size in shape) or np.prod(shape) != n_features:
        raise ParameterError(
            f"image_shape={shown(image_shape)} does not fit n_features={n_features}: give (height, width) or "
            f"(height, width, 3) whose product is {n_features}, or None."
        )
    return shape


def check_feature_names(model: Any, feature_names: Any, n_features: int) -> np.ndarray | None:
    """Return the names given, else those of the fit; refuse another number of them than of features."""
    names = getattr(model, "feature_names_in_", None) if feature_names is None else feature_names
    if names is None:
        return None
    found = np.asarray(names, dtype=object).ravel()
    if len(found) != n_features:
        raise ParameterError(
            f"feature_names has {len(found)} entries, but there are {n_features} features: give "
            "one name for each."
        )
    return found


def image_drawer(rows: Any, shape: tuple[int, ...]) -> Drawer:
    """Return what draws rows as images, all on one scale, with white for zero where signs differ."""
    low, high = float(rows.min()), float(rows.max())
    largest = max(abs(low), abs(high)) or 1.0
    # A trace of the other sign is not worth a scale of two colours.
    signed = min(-low, high) > TRACE * largest
    limits = (-largest, largest) if signed else (0, largest) if high > -low else (low, 0)

    def draw(ax: Axes, row: Any, color: str) -> None:
        picture = _dense(row).reshape(shape)
        if len(shape) == 3:
            ax.imshow(np.clip((picture - low) / (high - low or 1.0), 0, 1))
        else:
            ax.imshow(picture, cmap=SIGNED_SCALE if signed else "gray_r", clim=limits)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(visible=True, edgecolor=color, linewidth=1.4)

    return draw


def word_drawer(names: np.ndarray) -> Drawer:
    """Return what writes the names of the largest entries, the largest first."""

    def draw(ax: Axes, row: Any, color: str) -> None:
        values = _dense(row)
        largest = [k for k in np.argsort(-values, kind="stable")[:N_WORDS] if values[k] > 0]
        words = "\n".join(_short(names[k]) for k in largest)
        without_ticks(ax)
        ax.spines["left"].set(visible=True, edgecolor=color, linewidth=3)
        # Literally: a name with dollars is no formula.
        ax.text(
            0.06, 0.5, words, va="center", size=8, linespacing=1.15, transform=ax.transAxes, parse_math=False
        )

    return draw


def profile_drawer(rows: np.ndarray, names: np.ndarray | None) -> Drawer:
    """Return what draws rows as bars, or as a line if there are many features, all on one scale."""
    low, high = min(float(rows.min()), 0.0), max(float(rows.max()), 0.0)
    margin = 0.05 * (high - low or 1.0)
    n_features = rows.shape[1]

    def draw(ax: Axes, row: Any, color: str) -> None:
        places = np.arange(n_features)
        ax.axhline(0, color=GREY, linewidth=0.6)
        if n_features > FEW_FEATURES:
            ax.plot(places, row, color=color, linewidth=0.8)
        else:
            ax.bar(places, row, color=color, width=0.8)
            named = [str(place) for place in places] if names is None else [_short(name) for name in names]
            ax.set_xticks(places, named, rotation=90)
        ax.set(xlim=(-0.7, n_features - 0.3), ylim=(low - margin, high + margin))
        ax.tick_params(length=0, labelsize=7)
        ax.spines[:].set_visible(False)

    return draw


def _short(name: Any, longest: int = 18) -> str:
    """Return a name that fits a panel."""
    text = str(name)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _dense(row: Any) -> np.ndarray:
    return (row.toarray() if sp.issparse(row) else np.asarray(row)).ravel()
