"""How well clusters and neighbourhoods match known classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_array, check_consistent_length

from smrmf._arrays import as_dense
from smrmf._validation import COUNT, NONE, check_parameters
from smrmf.graph.neighbors import find_neighbors
from smrmf.kernels.distances import neighbor_bandwidth, squared_distances, symmetric_kernel_dissimilarity

__all__ = ["bad_neighbor_share", "clustering_accuracy", "kernel_neighborhoods"]

# Rows of the kernel that are sorted at a time: argsort needs an index array as large as its block.
BLOCK_ROWS = 512


def clustering_accuracy(labels_true: np.ndarray, labels_pred: np.ndarray) -> float:
    """Return the share of points that are right under the best match of clusters to classes.

    Examples
    --------
    >>> clustering_accuracy([0, 0, 1, 1], [1, 1, 0, 2])
    0.75
    """
    true, pred = _class_numbers("labels_true", labels_true), _class_numbers("labels_pred", labels_pred)
    check_consistent_length(true, pred)
    # Classes x clusters; the assignment need not be square, and clusters without a class are all wrong.
    counts = contingency_matrix(true, pred)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    return float(counts[rows, columns].sum() / counts.sum())


def _class_numbers(name: str, labels: Any) -> np.ndarray:
    """Return numbers for labels of any kind; refuse what is not one label for every point."""
    values = np.asarray(labels)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"{name} has shape {values.shape}, but must be a list of at least one label.")
    # NaN is the one value that differs from itself.
    missing = [place for place, value in enumerate(values) if value is None or value != value]
    if missing:
        raise ValueError(
            f"{name} has {values[missing[0]]} at position {missing[0]}: drop points without a label, or give "
            "them one of their own."
        )
    # By a dict: words and numbers, which an array of objects may mix, have no order.
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values.tolist()])


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
    check_parameters("bad_neighbor_share", {"n_neighbors": n_neighbors}, {"n_neighbors": (NONE, COUNT)})
    X = check_array(X, dtype=np.float64, ensure_min_samples=2)
    labels = _class_numbers("labels_true", labels_true)
    check_consistent_length(X, labels)
    # Rounded down, which reproduces the paper's figures (paper note 32).
    k = int(np.sqrt(len(X))) if n_neighbors is None else n_neighbors
    if k >= len(X):
        raise ValueError(f"n_neighbors={k} must be less than n_samples={len(X)}: lower it.")
    indices = find_neighbors(X, k).indices
    return (labels[indices] != labels[:, None]).mean(axis=1)


def kernel_neighborhoods(X: Any, labels_true: np.ndarray, bandwidth: str) -> dict[str, float | None]:
    """Tell how far the neighbourhoods that the adaptive kernel (4.9) gives every point agree with classes.

    The neighbours of a point are the k = floor(sqrt(n)) largest entries of its row of (K + K')/2, itself
    left out. A neighbourhood is bad if strictly more than half of it has another class. Paper note 29 says
    how the paper's own table settles this.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The points, at least two.
    labels_true : array of shape (n_samples,)
        Their classes.
    bandwidth : {"distance", "squared-distance"}
        The width of a point's kernel: the distance to its k-th nearest neighbour, which suits data of any
        unit, or its square, the paper's for real data of unit length.

    Returns
    -------
    dict
        ``bad_nn``, the share of neighbours with another class; ``bad_nbh``, the share of bad neighbourhoods;
        ``sim_good`` and ``sim_bad``, the mean kernel in good and bad ones, None where there are none.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [10.0]])  # two neighbours each
    >>> found = kernel_neighborhoods(X, np.array([0, 0, 0, 1, 1]), "distance")
    >>> round(found["bad_nn"], 3), found["bad_nbh"], round(found["sim_bad"], 3)
    (0.4, 0.2, 0.558)
    """
    check_parameters("kernel_neighborhoods", {"bandwidth": bandwidth}, {})
    X = check_array(X, accept_sparse=True, dtype=[np.float64, np.float32], ensure_min_samples=2)
    labels = _class_numbers("labels_true", labels_true)
    check_consistent_length(X, labels)
    # Three arrays: the points, the same centred, and room for their distances.
    X = np.ascontiguousarray(as_dense("kernel_neighborhoods", X, 3))
    n, k = len(X), int(np.sqrt(len(X)))
    # Per point, so K is not symmetric before (4.10) symmetrises it: outliers have wide kernels.
    widths = neighbor_bandwidth(find_neighbors(X, k).squared[:, -1], bandwidth)
    mismatch, similarity = np.empty(n), np.empty(n)
    for rows in (slice(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS)):
        K = -symmetric_kernel_dissimilarity(squared_distances(X[rows], X), widths[rows], widths)
        own = np.arange(rows.start, rows.stop)
        # By index and not by value, because duplicates have the kernel value of the point itself.
        K[np.arange(len(K)), own] = -np.inf
        # Stable, so that ties go to the lower index on every machine.
        nearest = np.argsort(-K, axis=1, kind="stable")[:, :k]
        mismatch[rows] = (labels[nearest] != labels[own, None]).mean(axis=1)
        similarity[rows] = np.take_along_axis(K, nearest, 1).mean(axis=1)
    # Strictly: with exactly half the printed shares do not come out (paper note 29). Half of k is exact
    # in floating point, so no tolerance is needed.
    bad = mismatch > 0.5
    return {
        "bad_nn": float(mismatch.mean()),
        "bad_nbh": float(bad.mean()),
        "sim_good": float(similarity[~bad].mean()) if not bad.all() else None,
        "sim_bad": float(similarity[bad].mean()) if bad.any() else None,
    }
