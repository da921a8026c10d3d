"""From a non-negative embedding to clusters: its largest column, or k-means."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from smrmf._validation import Word
from smrmf.graph.spectral import kmeans_labels

LABEL_RULES = Word(("argmax", "kmeans"))


def consecutive_labels(G: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Return the largest column of every row; an empty cluster gets the point nearest to it.

    The second result lists the points so moved.
    """
    labels = G.argmax(axis=1)
    sizes = np.bincount(labels, minlength=G.shape[1])
    moved = []
    for empty in np.flatnonzero(sizes == 0):
        point = int(np.argmax(np.where(sizes[labels] > 1, G[:, empty], -np.inf)))
        sizes[labels[point]] -= 1
        sizes[empty] = 1
        labels[point] = empty
        moved.append(point)
    return labels, moved


def label_rows(
    G: np.ndarray, rule: str, n_clusters: int, random_state: np.random.RandomState
) -> tuple[np.ndarray, list[int]]:
    """Label the rows of an embedding by the named rule; also list the points moved to empty clusters."""
    if rule == "argmax":
        return consecutive_labels(G)
    return kmeans_labels(G, n_clusters, random_state), []


def warn_of_empty_clusters(labels: np.ndarray, moved: list[int], n_clusters: int, stacklevel: int) -> None:
    """Say that clusters came out empty, if any did."""
    found = int(labels.max()) + 1
    if moved:
        what = f"{len(moved)} of {n_clusters} clusters came out empty and were given one point each "
        what += f"(points {moved})"
    elif found < n_clusters:
        what = f"Only {found} of {n_clusters} clusters were found, the others have no points"
    else:
        return
    warnings.warn(
        f"{what}: the data may have fewer clusters, lower n_clusters.",
        ConvergenceWarning,
        stacklevel=stacklevel + 1,
    )


def check_nonnegative(name: str, smallest: float) -> None:
    """Refuse negative data."""
    if smallest < 0:
        raise ValueError(
            f"Negative values in data passed to {name}: the smallest is {smallest:g}, but it must be at "
            "least 0; scale the features to [0, 1], or use FastSMRMF, which takes any sign."
        )
