"""What speaks for each number of clusters."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from smrmf._validation import ParameterError, shown
from smrmf.plot._style import COLORS, GREY, drawing, own_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EVIDENCE = ("eigengap", "stability", "silhouette", "weakest")
LINE = 75  # letters of the sentence in one line
MOST_TICKS = 20


def suggestion(suggestion: Any, figure: Figure | None = None) -> np.ndarray:
    """Draw the evidence for each number of clusters, and the number that it suggests.

    Parameters
    ----------
    suggestion : object
        Has ``table``, with the columns "n_clusters", "eigengap", "stability", "silhouette" and "weakest",
        ``n_clusters``, the number suggested or None, and ``reason``, a sentence.
    figure : Figure or None, default=None
        Where to draw; None makes a new one with pyplot.

    Returns
    -------
    axes : array of Axes of shape (4,)
        One panel for each kind of evidence, over the numbers of clusters.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from matplotlib.figure import Figure
    >>> import smrmf
    >>> table = {"n_clusters": [2, 3, 4], "eigengap": [0.1, 0.4, 0.1], "stability": [0.9, 1.0, 0.7]}
    >>> table |= {"silhouette": [0.3, 0.5, 0.4], "weakest": [0.9, 0.95, 0.8]}
    >>> found = SimpleNamespace(table=table, n_clusters=3, reason="Three groups are firm.")
    >>> [ax.get_ylabel() for ax in smrmf.plot.suggestion(found, figure=Figure())]
    ['eigengap', 'stability', 'silhouette', 'weakest']
    """
    numbers, columns = _table(suggestion)
    with drawing() as pyplot:
        from matplotlib.ticker import FixedLocator, MaxNLocator

        figure = own_figure(pyplot, figure, 6, 6)
        axes = figure.subplots(len(EVIDENCE), 1, sharex=True)
        for ax, name in zip(axes, EVIDENCE, strict=True):
            _draw_evidence(ax, numbers, columns[name], suggestion.n_clusters)
            ax.set_ylabel(name)
        axes[-1].set_xlabel("number of clusters")
        few = len(numbers) <= MOST_TICKS
        axes[-1].xaxis.set_major_locator(FixedLocator(list(numbers)) if few else MaxNLocator(integer=True))
        figure.align_ylabels(axes)
        figure.suptitle(textwrap.fill(str(suggestion.reason), LINE), size=10)
    return axes


def _table(suggestion: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the numbers of clusters, and the columns of evidence; refuse what is no suggestion."""
    try:
        table = suggestion.table
        columns = {name: np.asarray(table[name], dtype=float) for name in ("n_clusters", *EVIDENCE)}
        _ = suggestion.n_clusters, suggestion.reason
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ParameterError(
            f"suggestion={shown(suggestion)} cannot be drawn: it must have n_clusters, reason, and a table "
            f"with the columns n_clusters, {', '.join(EVIDENCE)}."
        ) from error
    return columns.pop("n_clusters"), columns


def _draw_evidence(ax: Axes, numbers: np.ndarray, values: np.ndarray, suggested: int | None) -> None:
    """Draw one kind of evidence, and mark the suggested number."""
    if suggested is not None:
        ax.axvspan(suggested - 0.3, suggested + 0.3, color=COLORS[0], alpha=0.15, linewidth=0)
    ax.margins(y=0.15)
    ax.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    if not np.isfinite(values).any():
        ax.text(0.5, 0.5, "not measured", ha="center", va="center", color=GREY, transform=ax.transAxes)
        ax.set_yticks([])
        return
    ax.plot(numbers, values, color=COLORS[0], marker="o", markersize=4, linewidth=1.2)
    chosen = numbers == suggested
    ax.plot(numbers[chosen], values[chosen], "o", color=COLORS[1], markersize=8)
