"""New points: each is represented by its nearest training points, and inherits from them.

The rule is the model's own column problem on squared distances (5.18, each point with k neighbours),
with its weights divided by the squared distance. The division makes it interpolate: a training point
is represented by itself and its duplicates alone, so ``transform`` of distinct training points is the
embedding and ``predict`` of them the labels, and the answer changes continuously as a point moves away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf._parallel import Pool
from smrmf.factorization._start import simplex_graph
from smrmf.graph.neighbors import Neighbors, nearest_neighbors, neighbor_graph


def neighbor_weights(X_train: Any, X_new: Any, n_neighbors: int, pool: Pool) -> sp.csr_array:
    """Return the weight of every training point for every new one; rows sum to one."""
    n = X_train.shape[0]
    k = min(n_neighbors, n)
    near = nearest_neighbors(X_train, min(k + 1, n), X_new, pool)
    z = simplex_graph(near, k, n).data.reshape(near.squared.shape)
    weights = inverse_distance_weights(near, z)
    return neighbor_graph(near.indices, weights, n)


def inverse_distance_weights(near: Neighbors, z: np.ndarray) -> np.ndarray:
    """Divide each representation by the squared distance; points at distance zero take all of it."""
    same = near.squared == 0
    # Ratios to the nearest keep the division away from overflow.
    nearest = near.squared[:, :1]
    ratio = np.divide(nearest, near.squared, out=np.zeros_like(near.squared), where=~same)
    weights = np.where(same.any(axis=1, keepdims=True), same.astype(z.dtype), z * ratio)
    return weights / weights.sum(axis=1, keepdims=True)
