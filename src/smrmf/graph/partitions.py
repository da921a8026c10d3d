"""Partitions of a graph: how much of its weight they keep together, and how cells become fewer clusters.

All is read off J, the share of the weight between any two clusters. Its row sums are the shares of the
clusters, its diagonal is what stays inside.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from smrmf._numba import kernel

# A cluster's share times its logarithm is close to nothing below this.
NOTHING = 1e-300


def shares_between(W: sp.csr_array, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return J of a partition: the share of the graph's weight between any two clusters."""
    J = np.zeros((n_clusters, n_clusters))
    _add_weights(W.indptr, W.indices, W.data, labels, J)
    return J / J.sum()


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


def merge_cells(J: np.ndarray, n_clusters: int, size_power: float) -> np.ndarray:
    """Merge cells until ``n_clusters`` are left, and return the cluster of every cell.

    Next are always the two with the most weight between them, over the product of their shares to a power: 1
    compares with what chance would put there, and a smaller power lets large clusters grow.
    """
    owner = np.arange(len(J))
    _merge_pairs(J.copy(), J.sum(axis=1), n_clusters, size_power, owner)
    return np.unique(owner, return_inverse=True)[1]


def adjusted_rand(first: np.ndarray, second: np.ndarray, n_clusters: int) -> float:
    """Return how well two partitions agree about pairs of points: 1 for the same, 0 on average by chance.

    The score of scikit-learn, for labels known to be valid: its checks take longer than the counting.
    """
    counts = np.bincount(first * n_clusters + second, minlength=n_clusters**2).reshape(n_clusters, n_clusters)
    both, one, other = (
        float(np.sum(sizes * (sizes - 1.0))) for sizes in (counts, counts.sum(axis=0), counts.sum(axis=1))
    )
    n = float(len(first))
    chance = one * other / max(n * (n - 1), 1)
    most = (one + other) / 2
    return (both - chance) / (most - chance) if most > chance else 1.0


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


@kernel
def _best_partner(
    J: np.ndarray,  # IN
    shares: np.ndarray,  # IN
    alive: np.ndarray,  # IN
    a: int,  # IN
    size_power: float,  # IN
) -> tuple[int, float]:
    """Return the cell that is tied most closely to cell a, and how closely."""
    partner, closest = -1, -1.0
    for b in range(J.shape[0]):
        if alive[b] and b != a:
            tie = J[a, b] / (shares[a] * shares[b]) ** size_power
            if tie > closest:
                partner, closest = b, tie
    return partner, closest


@kernel
def _merge_pairs(
    J: np.ndarray,  # IN, OUT
    shares: np.ndarray,  # IN, OUT
    n_clusters: int,  # IN
    size_power: float,  # IN
    owner: np.ndarray,  # OUT
) -> None:
    """Merge the closest two cells again and again; every cell remembers the one it now belongs to."""
    m = J.shape[0]
    alive = np.ones(m, np.bool_)
    partner = np.empty(m, np.intp)
    closest = np.empty(m)
    for a in range(m):
        partner[a], closest[a] = _best_partner(J, shares, alive, a, size_power)
    for _ in range(m - n_clusters):
        a = int(np.argmax(closest))
        b = partner[a]
        for x in range(m):
            J[a, x] += J[b, x]
        for x in range(m):
            J[x, a] += J[x, b]
        shares[a] += shares[b]
        alive[b] = False
        closest[b] = -2.0
        for x in range(m):
            if owner[x] == b:
                owner[x] = a
        partner[a], closest[a] = _best_partner(J, shares, alive, a, size_power)
        for x in range(m):
            if alive[x] and x != a:
                # Only ties with the merged cell have changed.
                if partner[x] == a or partner[x] == b:
                    partner[x], closest[x] = _best_partner(J, shares, alive, x, size_power)
                else:
                    tie = J[x, a] / (shares[x] * shares[a]) ** size_power
                    if tie > closest[x]:
                        partner[x], closest[x] = a, tie
