"""How the objective of a model fell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from smrmf.plot._model import check_model
from smrmf.plot._style import COLORS, drawing, own_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Largest over smallest value above which a straight scale shows nothing of the smaller ones.
TWO_DECADES = 100


def convergence(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the objective over the iterations, and say whether it has settled.

    Parameters
    ----------
    model : estimator
        A fitted model with ``objective_history_``.
    ax : Axes or None, default=None
        Where to draw; None takes pyplot's current Axes.

    Returns
    -------
    ax : Axes
        The curve, its last value marked; on a log scale if it spans more than two decades.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from sklearn.datasets import load_iris
    >>> import smrmf
    >>> model = smrmf.FastSMRMF(n_clusters=3, random_state=0).fit(load_iris().data)
    >>> smrmf.plot.convergence(model, ax=Figure().subplots()).get_title().split(" after")[0]
    'FastSMRMF converged'
    """
    check_model(model, "objective_history_")
    history = np.asarray(model.objective_history_, dtype=float)
    turns = np.arange(1, len(history) + 1)
    settled = "converged" if getattr(model, "converged_", True) else "did not converge"
    unit = "iteration" if len(history) == 1 else "iterations"
    with drawing() as pyplot:
        from matplotlib.ticker import MaxNLocator

        ax = own_axes(pyplot, ax)
        ax.plot(turns, history, color=COLORS[0], linewidth=1.5)
        ax.plot(turns[-1:], history[-1:], "o", color=COLORS[0], clip_on=False)
        if history.min() > 0 and history.max() > TWO_DECADES * history.min():
            ax.set_yscale("log")
        ax.annotate(
            f"{history[-1]:.4g}",
            (turns[-1], history[-1]),
            (0, 9),
            textcoords="offset points",
            ha="right",
            va="bottom",
        )
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set(xlabel="iteration", ylabel="objective")
        ax.set_title(f"{type(model).__name__} {settled} after {len(history)} {unit}")
    return ax
