"""How well clusters and neighbourhoods match known classes."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_array, check_consistent_length

from smrmf.graph.neighbors import find_neighbors


def clustering_accuracy(labels_true: np.ndarray, labels_pred: np.ndarray) -> float:
    """Return the share of points that are right under the best match of clusters to classes.

    Examples
    --------
    >>> clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 2])
    0.75
    """
    check_consistent_length(labels_true, labels_pred)
    # Classes x clusters; the assignment need not be square, and clusters without a class are all wrong.
    counts = contingency_matrix(labels_true, labels_pred)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    return float(counts[rows, columns].sum() / counts.sum())


def bad_neighbor_share(X: np.ndarray, labels_true: np.ndarray, n_neighbors: int | None = None) -> np.ndarray:
    """Return, for every point, the share of its nearest neighbours that have another label.

    ``n_neighbors`` defaults to the square root of the number of points, rounded down.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [9.0]])
    >>> bad_neighbor_share(X, np.array([0, 0, 1, 1]), n_neighbors=1)
    array([0., 0., 1., 0.])
    """
    X = check_array(X, dtype=np.float64, ensure_min_samples=2)
    labels = np.asarray(labels_true)
    check_consistent_length(X, labels)
    # Rounded down, which reproduces the paper's figures (paper note 32).
    k = int(np.sqrt(len(X))) if n_neighbors is None else n_neighbors
    if not 1 <= k < len(X):
        raise ValueError(f"n_neighbors={k} must be at least 1 and less than n_samples={len(X)}.")
    indices = find_neighbors(X, k).indices
    return (labels[indices] != labels[:, None]).mean(axis=1)
