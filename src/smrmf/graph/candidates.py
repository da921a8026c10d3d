"""Sorted lists of the nearest candidates, filled from the product form of squared distances."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smrmf._numba import kernel

# Rounding in the product form may swap near ties: a few more candidates, then exact distances.
SPARE_CANDIDATES = 8


class Neighbors(NamedTuple):
    """The nearest points of every row, nearest first, ties by lower index; a point is not its own."""

    indices: np.ndarray
    squared: np.ndarray


def lost_in_rounding(own_norms: np.ndarray, worst: np.ndarray, kth: np.ndarray) -> np.ndarray:
    """Tell for which rows points outside the candidate list might be nearer than the k-th one.

    Nothing outside the list is nearer than its worst product form less the rounding of that form.
    A doubt far below the distances themselves is only a tie.
    """
    eps = float(np.finfo(worst.dtype).eps)
    # The lists leave out |x|^2, which the comparison with true distances needs.
    worst = own_norms + worst
    doubt = 64 * eps * (own_norms + np.abs(worst))
    return (kth > worst - doubt) & (doubt > np.sqrt(eps) * kth)


@kernel
def insert(value: float, j: int, best: np.ndarray, best_index: np.ndarray) -> float:
    """Put a candidate into a sorted list, after its equals; return the new worst value.

    Candidates come in the order of their indices, so equals stay in that order.
    """
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
    products: np.ndarray,  # IN
    norms: np.ndarray,  # IN
    first_column: int,  # IN
    own: int,  # IN
    best: np.ndarray,  # IN, OUT
    best_index: np.ndarray,  # IN, OUT
) -> None:
    """Merge ``|y|^2 - 2 x'y`` of one x and consecutive y into its sorted list of the smallest ones so far.

    ``|x|^2`` is the same for a whole row, so the order of the candidates does not need it. The row never
    takes column ``own``.
    """
    # Few values get past this bound once the list is filled: the insertion is rare, and short.
    worst = best[best.shape[0] - 1]
    for t in range(products.shape[0]):
        value = norms[t] - 2 * products[t]
        if value < worst and first_column + t != own:
            worst = insert(value, first_column + t, best, best_index)
