"""How firmly the points of each cluster are tied to their neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smrmf.plot._model import check_model, count_clusters
from smrmf.plot._style import GREY, color_of, drawing, halo, own_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def confidence(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the sorted confidence of every cluster's points, one cluster above the other.

    A cluster whose curve falls off early has many points that clusterings do not agree on.

    Parameters
    ----------
    model : estimator
        A fitted factorisation.
    ax : Axes or None, default=None
        Where to draw; None takes pyplot's current Axes.

    Returns
    -------
    ax : Axes
        One filled curve for each cluster, and a line at the mean of all points.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> import smrmf
    >>> model = smrmf.FastSMRMF(n_clusters=3, random_state=0).fit(load_iris().data)
    >>> ax = smrmf.plot.confidence(model, ax=Figure().subplots())
    >>> ax.get_xlabel()
    'confidence'
    """
    check_model(model, "labels_", "confidence_")
    labels, firm = np.asarray(model.labels_), np.asarray(model.confidence_)
    n, n_clusters = len(labels), count_clusters(labels)
    gap = max(1.0, 0.02 * n)
    with drawing() as pyplot:
        ax = own_axes(pyplot, ax)
        bottom, middles = 0.0, []
        for cluster in range(n_clusters):
            curve = np.sort(firm[labels == cluster])
            # A step for each point: a cluster of one has a height, too.
            heights = bottom + np.arange(len(curve) + 1)
            steps = np.append(curve, curve[-1:])
            ax.fill_betweenx(heights, 0, steps, step="post", color=color_of(cluster), linewidth=0)
            middles.append(bottom + len(curve) / 2)
            bottom += len(curve) + gap
        mean = float(firm.mean())
        ax.axvline(mean, color=GREY, linestyle="--", linewidth=1.2)
        note: dict[str, Any] = {"ha": "right", "va": "bottom", "size": 8, "path_effects": halo(ax)}
        ax.text(mean - 0.01, bottom, f"mean {mean:.2f}", **note)
        ax.set(xlim=(0, 1), ylim=(-gap, bottom + 2 * gap), xlabel="confidence", ylabel="cluster")
        # Names of clusters so thin that their names would touch are left out, but for every second or third.
        every = -(-n_clusters // 30)
        ax.set_yticks(middles[::every], [str(cluster) for cluster in range(n_clusters)][::every])
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
    return ax
