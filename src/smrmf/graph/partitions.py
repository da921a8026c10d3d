"""Partitions of a graph: how much of its weight they keep together, what they tell, and how they agree.

What they keep and tell is read off J, the share of the weight between any two clusters. Its row sums are the
shares of the clusters, its diagonal is what stays inside.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from smrmf._numba import kernel

# A cluster's share times its logarithm is close to nothing below this.
NOTHING = 1e-300


def shares_between(W: sp.csr_array, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return J of a partition: the share of the graph's weight between any two clusters."""
    J = weights_between(W, labels, n_clusters)
    return J / J.sum()


def weights_between(W: sp.csr_array, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the weight between any two clusters; rows of a graph may be fewer than its columns."""
    J = np.zeros((n_clusters, n_clusters))
    _add_weights(W.indptr, W.indices, W.data, labels, J)
    return J


def leak(J: np.ndarray) -> float:
    """Return which share of a cluster's weight leaves it, on average over the clusters."""
    shares = J.sum(axis=1)
    filled = shares > 0
    return float(np.mean(1 - J.diagonal()[filled] / shares[filled]))


def information(J: np.ndarray, entropy_power: float) -> float:
    """Return how much the cluster of a point tells of its neighbours' clusters, per entropy to a power.

    The mutual information of the labels at both ends of an edge favours clusters of equal size; divided by
    the entropy of the labels it favours one large cluster; a power between 0 and 1 lies between them.
    """
    shares = J.sum(axis=1)
    entropy = -float(np.sum(shares * np.log(np.maximum(shares, NOTHING))))
    expected = np.outer(shares, shares)
    known = J > 0
    mutual = float(np.sum(J[known] * np.log(J[known] / expected[known])))
    return mutual / entropy**entropy_power if entropy > 0 else 0.0


def adjusted_rand(first: np.ndarray, second: np.ndarray, n_clusters: int) -> float:
    """Return how well two partitions agree about pairs of points: 1 for the same, 0 on average by chance.

    The score of scikit-learn, for labels known to be valid: its checks take longer than the counting.
    """
    return adjusted_rand_of(points_in_both(first, second, n_clusters))


def points_in_both(first: np.ndarray, second: np.ndarray, n_clusters: int) -> np.ndarray:
    """Count the points in any two clusters of two partitions."""
    counts = np.bincount(first * n_clusters + second, minlength=n_clusters**2)
    return counts.reshape(n_clusters, n_clusters)


def adjusted_rand_of(counts: np.ndarray) -> float:
    """Return the adjusted Rand index of two partitions from the number of points in any two clusters."""
    both, one, other = (
        float(np.sum(sizes * (sizes - 1.0))) for sizes in (counts, counts.sum(axis=0), counts.sum(axis=1))
    )
    n = float(counts.sum())
    chance = one * other / max(n * (n - 1), 1)
    most = (one + other) / 2
    return (both - chance) / (most - chance) if most > chance else 1.0


def contingency(first: np.ndarray, second: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Count the points in any two clusters, and match each of the first to one of the second (Hungarian)."""
    pairs = points_in_both(first, second, n_clusters)
    return pairs, linear_sum_assignment(pairs, maximize=True)[1]


def joined_shares(W: sp.csr_array, partitions: np.ndarray) -> np.ndarray:
    """Return, for every edge of the graph, which share of the partitions (columns) joins its two points."""
    joined = np.empty(W.nnz, W.dtype)
    _count_joined(W.indptr, W.indices, np.ascontiguousarray(partitions), joined)
    return joined


@kernel
def _add_weights(
    indptr: np.ndarray,  # IN
    indices: np.ndarray,  # IN
    weights: np.ndarray,  # IN
    labels: np.ndarray,  # IN
    out: np.ndarray,  # IN, OUT
) -> None:
    """Add the weight of every edge to the entry of its two clusters."""
    for i in range(indptr.shape[0] - 1):
        for p in range(indptr[i], indptr[i + 1]):
            out[labels[i], labels[indices[p]]] += weights[p]


@kernel
def _count_joined(
    indptr: np.ndarray,  # IN
    indices: np.ndarray,  # IN
    partitions: np.ndarray,  # IN
    out: np.ndarray,  # OUT
) -> None:
    """Count the partitions that give both ends of an edge one label, as a share."""
    count = partitions.shape[1]
    for i in range(indptr.shape[0] - 1):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            same = 0
            for q in range(count):
                same += partitions[i, q] == partitions[j, q]
            out[p] = same / count
