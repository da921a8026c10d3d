"""Short lists of candidates for every column of Z, widened only where they prove too short."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smrmf._parallel import row_blocks
from smrmf.factorization._dissimilarity import AbstractDissimilarity


@dataclass(frozen=True)
class CandidateLists:
    """The smallest dissimilarities of every column, as rows of a ragged table.

    Lists are sorted by value as they start, and by point once they were widened or have all points.

    ``outside`` is the smallest dissimilarity that a list leaves out (infinite for a full list).
    """

    indptr: np.ndarray
    indices: np.ndarray
    D: np.ndarray
    outside: np.ndarray
    with_self: bool

    @classmethod
    def start(cls, dissimilarity: AbstractDissimilarity, size: int, *, with_self: bool) -> CandidateLists:
        """Make lists of the same size for all columns."""
        n = len(dissimilarity.points.X)
        known = dissimilarity.nearest()
        if known is None or with_self:
            indices, values, outside = _smallest(dissimilarity, np.arange(n), size, with_self)
        else:
            # Unless all others are known, the last one known bounds what a list leaves out.
            n_known = known.indices.shape[1]
            size = min(size, n_known if n_known == n - 1 else n_known - 1)
            indices, values = known.indices[:, :size], known.squared[:, :size]
            outside = known.squared[:, size] if size < n - 1 else np.full(n, np.inf, values.dtype)
        indptr = np.arange(0, indices.size + 1, indices.shape[1])
        return cls(indptr, indices.ravel(), values.ravel(), outside, with_self)

    @property
    def whole(self) -> bool:
        """Whether all lists have all points, so that D, row by row, is the whole matrix."""
        return len(self.D) == len(self.outside) ** 2

    def table(self, width: int) -> np.ndarray:
        """Return the first entries of every list; all lists still have the same size."""
        return self.D.reshape(len(self.outside), -1)[:, :width]

    def blocks(self) -> list[slice]:
        """Cut the columns into blocks for the threads, the narrower the longer the lists are."""
        return row_blocks(len(self.outside), max(512, len(self.D) // len(self.outside)))

    def widen(self, dissimilarity: AbstractDissimilarity, rows: np.ndarray) -> CandidateLists:
        """Double the lists of some columns."""
        n = len(self.outside)
        lengths = np.diff(self.indptr)
        size = min(2 * int(lengths[rows].max()), n - (not self.with_self))
        # In the order of the points, not of their values: the latent terms are read in one sweep.
        indices, values, outside = _smallest(dissimilarity, rows, size, self.with_self, by_value=False)
        lengths[rows] = size
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        kept = np.ones(n, dtype=bool)
        kept[rows] = False
        of_kept = np.repeat(kept, lengths)
        from_kept = np.repeat(kept, np.diff(self.indptr))
        wide_indices = np.empty(indptr[-1], self.indices.dtype)
        wide_values = np.empty(indptr[-1], self.D.dtype)
        wide_indices[of_kept], wide_values[of_kept] = self.indices[from_kept], self.D[from_kept]
        wide_indices[~of_kept], wide_values[~of_kept] = indices.ravel(), values.ravel()
        new_outside = self.outside.copy()
        new_outside[rows] = outside
        return CandidateLists(indptr, wide_indices, wide_values, new_outside, self.with_self)


def _smallest(
    dissimilarity: AbstractDissimilarity, rows: np.ndarray, size: int, with_self: bool, by_value: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the ``size`` smallest dissimilarities of some columns, and the smallest one left out."""
    n = len(dissimilarity.points.X)
    size = min(size, n if with_self else n - 1)

    def one(block: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mine = rows[block]
        D = dissimilarity.block(mine)
        if not with_self:
            D[np.arange(len(mine)), mine] = np.inf
        if size < n:
            nearest = np.argpartition(D, size, axis=1)
            outside = np.take_along_axis(D, nearest[:, size : size + 1], 1)[:, 0]
            nearest = nearest[:, :size]
        else:
            nearest = np.broadcast_to(np.arange(n), D.shape)
            outside = np.full(len(mine), np.inf, D.dtype)
        nearest = np.sort(nearest, axis=1)
        values = np.take_along_axis(D, nearest, 1)
        if by_value and size < n:
            order = np.argsort(values, axis=1, kind="stable")
            nearest, values = np.take_along_axis(nearest, order, 1), np.take_along_axis(values, order, 1)
        return nearest, values, outside

    parts = dissimilarity.points.pool.map(one, row_blocks(len(rows), n))
    indices, values, outside = zip(*parts, strict=True)
    return np.concatenate(indices), np.concatenate(values), np.concatenate(outside)
