"""From many cells of a graph to fewer clusters: two are merged, again and again.

Which two are next is read off J, the share of the graph's weight between any two cells: those most closely
tied, or those whose merging costs the least of what the clusters tell.
"""

from __future__ import annotations

import numpy as np

from smrmf._numba import kernel


def merge_tied(
    J: np.ndarray, n_clusters: int, size_power: float, shares: np.ndarray | None = None
) -> np.ndarray:
    """Merge cells until ``n_clusters`` are left, and return the cluster of every cell.

    Next are always the two with the most weight between them, over the product of their shares to a power: 1
    compares with what chance would put there, and a smaller power lets large clusters grow. The ``shares``
    of the cells are those of the weight, unless they are given.
    """
    owner = np.arange(len(J))
    shares = J.sum(axis=1) if shares is None else shares.copy()
    _merge_pairs(J.copy(), shares, n_clusters, size_power, owner)
    return np.unique(owner, return_inverse=True)[1]


def merge_by_information(J: np.ndarray, n_clusters: int, entropy_power: float) -> np.ndarray:
    """Merge cells until ``n_clusters`` are left, and return the cluster of every cell.

    Next are always the two after whose merging :func:`~smrmf.graph.partitions.information` is largest.
    """
    owner = np.arange(len(J))
    J = (J + J.T) / 2  # of single weights it is symmetric but for rounding
    _merge_informed(J, J.sum(axis=1), n_clusters, entropy_power, owner)
    return np.unique(owner, return_inverse=True)[1]


@kernel
def _join(
    J: np.ndarray,  # IN, OUT
    shares: np.ndarray,  # IN, OUT
    alive: np.ndarray,  # IN, OUT
    owner: np.ndarray,  # IN, OUT
    a: int,  # IN
    b: int,  # IN
) -> None:
    """Make cell b part of cell a."""
    for x in range(J.shape[0]):
        J[a, x] += J[b, x]
    for x in range(J.shape[0]):
        J[x, a] += J[x, b]
        if owner[x] == b:
            owner[x] = a
    shares[a] += shares[b]
    alive[b] = False


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
        _join(J, shares, alive, owner, a, b)
        closest[b] = -2.0
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


@kernel
def _x_log_x(x: float) -> float:
    """Return x times its logarithm, and 0 for 0."""
    return x * np.log(x) if x > 0 else 0.0


@kernel
def _joint_term(J: np.ndarray, terms: np.ndarray, a: int, b: int, x: int) -> float:
    """Return what cell x adds to the change of the sum of ``J log J`` when a and b are merged."""
    if J[a, x] == 0 or J[b, x] == 0:
        return 0.0  # as for most, where there are many cells
    return 2 * (_x_log_x(J[a, x] + J[b, x]) - terms[a, x] - terms[b, x])


@kernel
def _joint_change(J: np.ndarray, terms: np.ndarray, alive: np.ndarray, a: int, b: int) -> float:
    """Return by how much the sum of the terms ``J log J`` changes when a and b are merged."""
    change = _x_log_x(J[a, a] + 2 * J[a, b] + J[b, b]) - terms[a, a] - 2 * terms[a, b] - terms[b, b]
    for x in range(J.shape[0]):
        if alive[x] and x != a and x != b:
            change += _joint_term(J, terms, a, b, x)
    return change


@kernel
def _best_merger(
    shares: np.ndarray,  # IN
    alive: np.ndarray,  # IN
    change: np.ndarray,  # IN
    joint: float,  # IN
    entropy: float,  # IN
    entropy_power: float,  # IN
) -> tuple[int, int, float]:
    """Return the two cells after whose merging the information is largest, and the entropy then."""
    best, first, second, entropy_then = -np.inf, -1, -1, 0.0
    for a in range(len(shares)):
        for b in range(a):
            if alive[a] and alive[b]:
                # Of symmetric J the mutual information is the sum of J log J and twice the entropy.
                less = _x_log_x(shares[a]) + _x_log_x(shares[b]) - _x_log_x(shares[a] + shares[b])
                after = entropy + less
                told = (joint + change[a, b] + 2 * after) / after**entropy_power if after > 0 else 0.0
                if told > best:
                    best, first, second, entropy_then = told, b, a, after
    return first, second, entropy_then


@kernel
def _merge_informed(
    J: np.ndarray,  # IN, OUT
    shares: np.ndarray,  # IN, OUT
    n_clusters: int,  # IN
    entropy_power: float,  # IN
    owner: np.ndarray,  # OUT
) -> None:
    """Merge the best two cells again and again; every cell remembers the one it now belongs to."""
    m = J.shape[0]
    alive = np.ones(m, np.bool_)
    terms = np.empty((m, m))  # J log J, as logarithms take most of the time
    change = np.zeros((m, m))  # of their sum by merging two; only below the diagonal
    entropy = 0.0
    for a in range(m):
        entropy -= _x_log_x(shares[a])
        for b in range(m):
            terms[a, b] = _x_log_x(J[a, b])
    for a in range(m):
        for b in range(a):
            change[a, b] = _joint_change(J, terms, alive, a, b)
    joint = terms.sum()
    for _ in range(m - n_clusters):
        a, b, entropy_then = _best_merger(shares, alive, change, joint, entropy, entropy_power)
        joint += change[b, a]
        entropy = entropy_then
        # Two others see a and b as one now; only what these add changes.
        for x in range(m):
            for y in range(x):
                if alive[x] and alive[y] and x != a and y != a:
                    change[x, y] -= _joint_term(J, terms, x, y, a) + _joint_term(J, terms, x, y, b)
        _join(J, shares, alive, owner, a, b)
        for x in range(m):
            terms[a, x] = terms[x, a] = _x_log_x(J[a, x])
        for x in range(m):
            if alive[x] and x != a:
                change[max(a, x), min(a, x)] = _joint_change(J, terms, alive, a, x)
            for y in range(x):
                if alive[x] and alive[y] and x != a and y != a:
                    change[x, y] += _joint_term(J, terms, x, y, a)
