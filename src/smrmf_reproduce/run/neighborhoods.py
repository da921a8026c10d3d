"""How far neighbourhoods agree with the classes: those in the data, and those that a model has learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf.graph.neighbors import find_neighbors
from smrmf.kernels.distances import neighbor_bandwidth, squared_distances, symmetric_kernel_dissimilarity


def kernel_neighborhoods(X: Any, y: np.ndarray, bandwidth: str) -> dict[str, float | None]:
    """Describe the neighbourhoods that the adaptive kernel (4.9) gives every point, as paper note 29 settles.

    The neighbours of a point are the k = floor(sqrt(n)) largest entries of its row of (K + K')/2, itself
    left out. A neighbourhood is bad if strictly more than half of it has another class.

    Returns
    -------
    dict
        ``bad_nn``, the share of neighbours with another class; ``bad_nbh``, the share of bad neighbourhoods;
        ``sim_good`` and ``sim_bad``, the mean kernel in good and bad ones, None where there are none.
    """
    X = np.ascontiguousarray(X.toarray() if sp.issparse(X) else X)
    n, k = len(X), int(np.sqrt(len(X)))
    # Per point, so K is not symmetric before (4.10) symmetrises it: outliers have wide kernels.
    widths = neighbor_bandwidth(find_neighbors(X, k).squared[:, -1], bandwidth)
    mismatch, similarity = np.empty(n), np.empty(n)
    # Blocks of 512 x n, because rows are independent and argsort needs an index array as large as K.
    for rows in (slice(start, min(start + 512, n)) for start in range(0, n, 512)):
        K = -symmetric_kernel_dissimilarity(squared_distances(X[rows], X), widths[rows], widths)
        own = np.arange(rows.start, rows.stop)
        # By index and not by value, because duplicates have the kernel value of the point itself.
        K[np.arange(len(K)), own] = -np.inf
        # Stable, so that ties go to the lower index on every machine.
        nearest = np.argsort(-K, axis=1, kind="stable")[:, :k]
        mismatch[rows] = (y[nearest] != y[own, None]).mean(axis=1)
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


def learned_neighborhoods(model: Any, y: np.ndarray) -> dict[str, float | None]:
    """Describe the neighbourhoods that a fitted model has learned, selected and other (paper notes 8 and 63).

    The neighbours of a point are the k = floor(sqrt(n)) largest positive entries of its row of Z, itself left
    out; a point whose row has none has no neighbourhood.

    Returns
    -------
    dict
        ``selected`` and ``other``, the mean share of neighbours with another class for exemplars and for all
        other points; ``bad_nbh``, the share of exemplars for which it is more than half.
    """
    Z = model.representation_
    n, k = len(y), int(np.sqrt(len(y)))
    mismatch = np.full(n, np.nan)
    Z = Z.tocsr() if sp.issparse(Z) else Z
    for i in range(n):
        # A copy in both cases: Z belongs to the model.
        row = Z[[i]].toarray().ravel() if sp.issparse(Z) else np.array(Z[i])
        row[i] = 0
        # Ties go to the lower index; the graph of a fit may use dissimilarities first (paper note 8).
        nearest = np.argsort(-row, kind="stable")[:k]
        # Fewer than k where Z has fewer: a zero entry is no neighbour (paper note 8).
        nearest = nearest[row[nearest] > 0]
        if len(nearest):
            mismatch[i] = (y[nearest] != y[i]).mean()
    chosen = np.zeros(n, dtype=bool)
    chosen[model.exemplar_indices_] = True
    return {
        "selected": _mean(mismatch[chosen]),
        "other": _mean(mismatch[~chosen]),
        # NaN > 0.5 is False: without np.where an empty neighbourhood would count as a good one.
        "bad_nbh": _mean(np.where(np.isnan(mismatch), np.nan, mismatch > 0.5)[chosen]),
    }


def _mean(values: np.ndarray) -> float | None:
    """Return the mean of the values that are not NaN, None if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
