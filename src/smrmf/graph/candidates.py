"""Sorted lists of the nearest candidates, filled from the product form of squared distances."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smrmf._numba import kernel

# Rounding in the product form may swap near ties: a few more candidates, then exact distances.
SPARE_CANDIDATES = 8
# So many candidates are compared with the worst of a list by vector instructions, which need a fixed number.
# Few are nearer, so most groups are left behind at once (benchmarks/kernels.py, "nearest candidates").
GROUP = 64


class Neighbors(NamedTuple):
    """The nearest points of every row, nearest first, ties by lower index; a point is not its own.

    Unless ``exact``, nothing is said of points that are not listed: some of the nearest may be missing, and
    farther ones stand in their places. ``recall`` is the share that is there, as a sample tells, where every
    point has asked ``n_asked`` cells.
    """

    indices: np.ndarray
    squared: np.ndarray
    exact: bool = True
    recall: float = 1.0
    n_asked: int = 0

    def first(self, count: int) -> Neighbors:
        """Return the nearest ones only."""
        return self._replace(indices=self.indices[:, :count], squared=self.squared[:, :count])


def empty_lists(n_rows: int, size: int, dtype: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lists without candidates: infinite distances, and indices as wide as the points need."""
    narrow = n_samples <= np.iinfo(np.int32).max
    index = np.zeros((n_rows, size), np.int32 if narrow else np.int64)
    return np.full((n_rows, size), np.inf, dtype), index


def by_distance(squared: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort every list by distance, and equal distances by index."""
    order = np.lexsort((index, squared))
    return np.take_along_axis(squared, order, 1), np.take_along_axis(index, order, 1)


def lost_in_rounding(norms: np.ndarray, worst: np.ndarray, kth: np.ndarray) -> np.ndarray:
    """Tell for which rows points outside the candidate list might be nearer than the k-th one.

    Nothing outside the list is nearer than its worst product form less the rounding of that form, which is
    that of the squared length of the row, its ``norms``. A doubt far below the distances themselves is only
    a tie.
    """
    eps = float(np.finfo(worst.dtype).eps)
    doubt = 64 * eps * (norms + np.abs(worst))
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
    own_norm: float,  # IN
    first_column: int,  # IN
    own: int,  # IN
    best: np.ndarray,  # IN, OUT
    best_index: np.ndarray,  # IN, OUT
) -> None:
    """Merge ``|x|^2 + |y|^2 - 2 x'y`` of one x and consecutive y into its sorted list of the smallest ones.

    The row never takes column ``own``.
    """
    # |x|^2 is the same for a whole row: what is compared leaves it out.
    limit = best[best.shape[0] - 1] - own_norm
    n_columns = products.shape[0]
    grouped = n_columns - n_columns % GROUP
    for start in range(0, grouped, GROUP):
        nearer = np.int32(0)
        for t in range(start, start + GROUP):
            nearer += np.int32(norms[t] - (products[t] + products[t]) < limit)
        if nearer > 0:
            limit = _keep_one_by_one(
                products, norms, start, start + GROUP, own_norm, first_column, own, best, best_index
            )
    _keep_one_by_one(products, norms, grouped, n_columns, own_norm, first_column, own, best, best_index)


@kernel
def _keep_one_by_one(
    products: np.ndarray,  # IN
    norms: np.ndarray,  # IN
    start: int,  # IN
    stop: int,  # IN
    own_norm: float,  # IN
    first_column: int,  # IN
    own: int,  # IN
    best: np.ndarray,  # IN, OUT
    best_index: np.ndarray,  # IN, OUT
) -> float:
    """Merge some of the columns, and return the new limit."""
    limit = best[best.shape[0] - 1] - own_norm
    for t in range(start, stop):
        value = norms[t] - (products[t] + products[t])
        if value < limit and first_column + t != own:
            limit = insert(value + own_norm, first_column + t, best, best_index) - own_norm
    return limit
