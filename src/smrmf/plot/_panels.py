"""Points that stand for their cluster, and components, as what they are: images, words, profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.sparsefuncs import mean_variance_axis

from smrmf._validation import COUNT, ParameterError, shown
from smrmf.plot._cells import (
    FEW_FEATURES,
    Drawer,
    check_feature_names,
    check_image_shape,
    image_drawer,
    profile_drawer,
    word_drawer,
)
from smrmf.plot._model import best_exemplars, check_model, count_clusters
from smrmf.plot._style import color_of, drawing, own_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS_IN_A_ROW = 5
# Inches of a panel, wide and high.
SQUARE, WORDS, PROFILE = (1.1, 1.15), (1.5, 1.1), (1.7, 0.95)
MARGIN = 0.8  # for names of clusters and features


def exemplars(
    model: Any,
    X: Any,
    *,
    n: int = 5,
    image_shape: tuple[int, ...] | None = None,
    feature_names: Any = None,
    figure: Figure | None = None,
) -> np.ndarray:
    """Draw the best exemplars of every cluster, one row of panels for each: what its points are like.

    Parameters
    ----------
    model : estimator
        A fitted model with ``exemplar_indices_`` and ``labels_``.
    X : array-like or CSR matrix of shape (n_samples, n_features)
        The points of the fit, or the same points by other features.
    n : int, default=5
        How many exemplars of each cluster.
    image_shape : (height, width), (height, width, 3) or None, default=None
        Rows are images of this shape. Otherwise the words with the largest entries are written if X is
        sparse and features have names, and else the features are drawn as bars, or as a line if there are
        more than 30, each minus its mean over X and divided by its standard deviation.
    feature_names : list of n_features words or None, default=None
        Names of the features; None takes those of the fit, if it had any.
    figure : Figure or None, default=None
        Where to draw; None makes a new one with pyplot.

    Returns
    -------
    axes : array of Axes of shape (n_clusters, n)
        The panels; those of a cluster with fewer exemplars are empty.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> import smrmf
    >>> X = load_iris().data
    >>> model = smrmf.FastSMRMF(n_clusters=3, random_state=0).fit(X)
    >>> smrmf.plot.exemplars(model, X, n=4, figure=Figure()).shape
    (3, 4)
    """
    check_model(model, "labels_", "exemplar_indices_")
    _check_count("n", n)
    X = check_array(X, accept_sparse="csr")
    if X.shape[0] != len(model.labels_):
        raise ParameterError(
            f"X has {X.shape[0]} rows, but the model was fitted to {len(model.labels_)} points: give "
            "the same points."
        )
    n_clusters = count_clusters(model.labels_)
    best = [best_exemplars(model, cluster, n) for cluster in range(n_clusters)]
    shown_rows = np.concatenate(best)
    names = check_feature_names(model, feature_names, X.shape[1])
    rows, draw, size = X[shown_rows], None, PROFILE
    if image_shape is not None:
        draw, size = image_drawer(rows, check_image_shape(image_shape, X.shape[1])), SQUARE
    elif sp.issparse(X) and names is not None:
        draw, size = word_drawer(names), WORDS
    else:
        rows = _standardised(X, shown_rows)
        draw = profile_drawer(rows, names)
    with drawing() as pyplot:
        figure = own_figure(pyplot, figure, n * size[0] + MARGIN, n_clusters * size[1] + MARGIN)
        axes = figure.subplots(n_clusters, n, squeeze=False)
        following = iter(rows)
        for cluster, indices in enumerate(best):
            for place, ax in enumerate(axes[cluster]):
                if place >= len(indices):
                    ax.set_axis_off()
                    continue
                draw(ax, next(following), color_of(cluster))
                ax.set_title(f"{indices[place]}", size=7, pad=2)
            axes[cluster, 0].set_ylabel(
                f"{cluster}", rotation=0, ha="right", va="center", weight="bold", size=10
            )
            # Scales and names stand once: at the left, and below.
            _keep_outer_labels(axes[cluster], last=cluster == n_clusters - 1)
        figure.supylabel("cluster", size=9)
    return axes


def components(
    model: Any,
    *,
    n: int | None = None,
    image_shape: tuple[int, ...] | None = None,
    feature_names: Any = None,
    figure: Figure | None = None,
) -> np.ndarray:
    """Draw the components of a model, one panel for each: what its clusters are made of.

    Parameters
    ----------
    model : estimator
        A fitted model with ``components_``.
    n : int or None, default=None
        How many of them, the first ones; None draws all.
    image_shape : (height, width), (height, width, 3) or None, default=None
        Components are images of this shape. Otherwise they are drawn as bars, or if there are more than 30
        features by the names of the largest ones, or as a line if features have no names.
    feature_names : list of n_features words or None, default=None
        Names of the features; None takes those of the fit, if it had any.
    figure : Figure or None, default=None
        Where to draw; None makes a new one with pyplot.

    Returns
    -------
    axes : array of Axes of shape (n,)
        The panels, all on one scale, and that one symmetric about zero for images of both signs.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> import smrmf
    >>> model = smrmf.FastSMRMF(n_clusters=3, random_state=0).fit(load_iris().data)
    >>> smrmf.plot.components(model, figure=Figure()).shape
    (3,)
    """
    check_model(model, "components_")
    if n is not None:
        _check_count("n", n)
    rows = np.asarray(model.components_)[:n]
    names = check_feature_names(model, feature_names, rows.shape[1])
    per_row, draw, size = PANELS_IN_A_ROW, None, PROFILE
    if image_shape is not None:
        draw, size = image_drawer(rows, check_image_shape(image_shape, rows.shape[1])), SQUARE
    elif names is not None and rows.shape[1] > FEW_FEATURES:
        draw, size = word_drawer(names), WORDS
    else:
        draw, per_row = profile_drawer(rows, names), 1 if len(rows) <= PANELS_IN_A_ROW else 2
        size = (6 / per_row, size[1])
    with drawing() as pyplot:
        per_row = min(per_row, len(rows))
        high = -(-len(rows) // per_row)
        figure = own_figure(pyplot, figure, per_row * size[0] + 0.3, high * size[1] + MARGIN)
        grid = figure.subplots(high, per_row, squeeze=False)
        _fill(grid.ravel(), rows, draw)
        for place, line in enumerate(grid):
            _keep_outer_labels(line, last=place == high - 1)
        for ax in grid.ravel()[len(rows) :]:
            ax.set_axis_off()
    return grid.ravel()[: len(rows)]


def _fill(axes: np.ndarray, rows: np.ndarray, draw: Drawer) -> None:
    """Draw each component on its panel, with its number."""
    for component, row in enumerate(rows):
        draw(axes[component], row, color_of(component))
        axes[component].set_title(f"{component}", weight="bold", size=9, pad=3)


def _keep_outer_labels(line: np.ndarray, last: bool) -> None:
    """Remove numbers and names that the panels at the left and below have already."""
    for ax in line[1:]:
        ax.tick_params(labelleft=False)
    if not last:
        for ax in line:
            ax.tick_params(labelbottom=False)


def _standardised(X: Any, rows: np.ndarray) -> np.ndarray:
    """Return rows of X, each feature minus its mean and over its standard deviation."""
    mean, variance = mean_variance_axis(X, axis=0) if sp.issparse(X) else (X.mean(axis=0), X.var(axis=0))
    chosen = X[rows].toarray() if sp.issparse(X) else X[rows]
    return (chosen - mean) / np.where(variance > 0, np.sqrt(variance), 1)


def _check_count(name: str, value: Any) -> None:
    """Refuse what is not a number of panels."""
    if not COUNT.accepts(value):
        raise ParameterError(f"{name}={shown(value)} is not valid: it must be {COUNT}.")
