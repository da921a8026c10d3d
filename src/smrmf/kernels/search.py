"""Lists of the nearest candidates seen so far, for the exact neighbour search."""

from __future__ import annotations

import numpy as np

from smrmf._numba import kernel


@kernel
def _insert(value, j, best, best_index):
    """Put a candidate into a sorted list, after its equals; return the new worst value."""
    slot = best.shape[0] - 1
    while slot > 0 and best[slot - 1] > value:
        best[slot] = best[slot - 1]
        best_index[slot] = best_index[slot - 1]
        slot -= 1
    best[slot] = value
    best_index[slot] = j
    return best[best.shape[0] - 1]


@kernel
def keep_smallest(
    products,  # IN
    norms,  # IN
    first_column,  # IN
    own,  # IN
    best,  # IN, OUT
    best_index,  # IN, OUT
):
    """Merge a tile of ``|y|^2 - 2 x'y`` into the sorted lists of the smallest ones seen so far.

    ``|x|^2`` is the same for a whole row, so the order of the candidates does not need it. Row i never
    takes column ``own[i]``.
    """
    size = best.shape[1]
    for i in range(products.shape[0]):
        worst = best[i, size - 1]
        for t in range(products.shape[1]):
            value = norms[t] - 2 * products[i, t]
            if value < worst and first_column + t != own[i]:
                worst = _insert(value, first_column + t, best[i], best_index[i])


@kernel
def search_directly(X, queries, own, best, best_index):
    """Find the nearest rows of X by sums of squared differences, which never cancel, but take longer."""
    size = best.shape[1]
    for i in range(queries.shape[0]):
        worst = np.inf
        for q in range(size):
            best[i, q] = np.inf
        for j in range(X.shape[0]):
            if j == own[i]:
                continue
            total = 0.0
            for f in range(X.shape[1]):
                difference = X[j, f] - queries[i, f]
                total += difference * difference
            if total < worst:
                worst = _insert(total, j, best[i], best_index[i])
