"""Points as sparse rows: distances from the entries alone, so that no dense table is ever made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from smrmf._numba import kernel
from smrmf.graph.candidates import empty_lists, insert, keep_smallest

# A block of so many queries has one row of products, as long as there are points, which all of them use.
BLOCK_QUERIES_WIDTH = 1024


ALL = slice(None)


class Entries(NamedTuple):
    """The parts of a CSR matrix, as kernels take them: each entry once, in the order of the columns."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray

    @classmethod
    def of(cls, X: sp.csr_array) -> Self:
        """Return the parts of a matrix whose entries are in order."""
        return cls(X.indptr, X.indices, X.data)


@dataclass(frozen=True)
class SparsePoints:
    """Sparse points, and the same entries by feature: products need only features that two points share.

    Products and their sums are in double precision, also of single precision data. There is no middle to
    refer them to, as differences from it would not be sparse: where this loses the distances, far from the
    origin, they are summed from differences.
    """

    X: sp.csr_array
    by_feature: sp.csr_array
    norms: np.ndarray  # squared, in double precision
    block_width: int = BLOCK_QUERIES_WIDTH
    # Products are added entry by entry, the same for equal rows: their copies are listed in order.
    copies_tie: bool = True
    # What the points are measured from.
    center: float = 0.0

    @classmethod
    def of(cls, X: Any) -> Self:
        """Put the entries in order, and list them by feature."""
        X = in_order(X)
        return cls(X, X.T.tocsr(), _row_norms(X))

    @property
    def n_samples(self) -> int:
        """Return the number of points."""
        return self.X.shape[0]

    def measured(self, rows: slice | np.ndarray = ALL) -> sp.csr_array:
        """Return points as they are measured: their squared lengths are ``norms``."""
        return self.X if rows == ALL else self.X[rows]

    def lengths_of(self, queries: sp.csr_array) -> np.ndarray:
        """Return the squared lengths of points as given, in double precision."""
        return _row_norms(queries)

    def queries(self, X: Any) -> sp.csr_array:
        """Return other points in the form of these."""
        return in_order(X)

    def measure(self, queries: sp.csr_array) -> tuple[sp.csr_array, np.ndarray]:
        """Return queries as points are measured, and their squared lengths."""
        return queries, _row_norms(queries)

    def squared_block(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return squared distances of some points to all points; exactly zero to themselves."""
        some = Entries.of(self.X[rows])
        block = np.zeros((len(some.indptr) - 1, self.n_samples))
        share = float(np.finfo(block.dtype).eps) ** 0.5
        _squared_rows(
            some, Entries.of(self.X), Entries.of(self.by_feature), self.norms[rows], self.norms, share, block
        )
        return block.astype(self.X.dtype, copy=False)

    def merge_nearest(
        self, queries: sp.csr_array, own: np.ndarray, best: np.ndarray, index: np.ndarray
    ) -> np.ndarray:
        """Merge the nearest points of every query into its list; return the queries' squared lengths."""
        norms = _row_norms(queries)
        work = np.empty(self.n_samples)
        by_feature = Entries.of(self.by_feature)
        _nearest_rows(Entries.of(queries), by_feature, self.norms, norms, own, work, best, index)
        return norms

    def pair_distances(self, queries: sp.csr_array, index: np.ndarray) -> np.ndarray:
        """Return squared distances of every query to its listed points, as sums of squared differences."""
        exact = np.empty(index.shape, self.X.dtype)
        _pair_distances(Entries.of(queries), Entries.of(self.X), index, exact)
        return exact

    def search_directly(
        self, queries: sp.csr_array, own: np.ndarray, size: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and indices of the nearest points by differences, which never cancel."""
        best, index = empty_lists(queries.shape[0], size, self.X.dtype, self.n_samples)
        _search_directly(Entries.of(queries), Entries.of(self.X), own, best, index)
        return best, index


def in_order(X: Any) -> sp.csr_array:
    """Return a CSR matrix with every entry once, in the order of the columns; X itself stays as it is."""
    ordered = sp.csr_array(X)
    if not ordered.has_canonical_format:
        ordered = ordered.copy()
        ordered.sum_duplicates()
    # Kernels are compiled for every type of the indices: one, wherever it is wide enough.
    if max(*ordered.shape, ordered.nnz) <= np.iinfo(np.int32).max and ordered.indices.dtype != np.int32:
        places = ordered.indices.astype(np.int32), ordered.indptr.astype(np.int32)
        ordered = sp.csr_array((ordered.data, *places), shape=ordered.shape)
    return ordered


def _row_norms(X: sp.csr_array) -> np.ndarray:
    """Return the squared lengths of sparse rows, in double precision."""
    wide = X.data.astype(np.float64, copy=False)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    # Of no entries at all the sums would be whole numbers.
    return np.bincount(rows, wide * wide, minlength=X.shape[0]).astype(np.float64, copy=False)


@kernel
def _add_products(
    row: int,  # IN
    points: Entries,  # IN
    by_feature: Entries,  # IN
    products: np.ndarray,  # IN, OUT
) -> None:
    """Add ``x'y`` for one x and all y, feature by feature of x."""
    for p in range(points.indptr[row], points.indptr[row + 1]):
        feature = points.indices[p]
        value = np.float64(points.data[p])
        for q in range(by_feature.indptr[feature], by_feature.indptr[feature + 1]):
            products[by_feature.indices[q]] += value * by_feature.data[q]


@kernel
def _squared_distance(i: int, queries: Entries, j: int, points: Entries) -> float:
    """Return ``||x_i - y_j||^2`` by a merge of two sorted rows, without cancellation."""
    a, last_a = queries.indptr[i], queries.indptr[i + 1]
    b, last_b = points.indptr[j], points.indptr[j + 1]
    total = 0.0
    while a < last_a and b < last_b:
        # Of the same type as the data, also where one of the two has no entry.
        difference = queries.data[a] - points.data[b]
        step_a = queries.indices[a] <= points.indices[b]
        step_b = points.indices[b] <= queries.indices[a]
        if not step_b:
            difference = queries.data[a]
        elif not step_a:
            difference = points.data[b]
        total += difference * difference
        a += step_a
        b += step_b
    for p in range(a, last_a):
        total += queries.data[p] * queries.data[p]
    for p in range(b, last_b):
        total += points.data[p] * points.data[p]
    return total


@kernel
def _nearest_rows(
    queries: Entries,  # IN
    by_feature: Entries,  # IN
    norms: np.ndarray,  # IN
    query_norms: np.ndarray,  # IN
    own: np.ndarray,  # IN
    products: np.ndarray,  # OUT, of the last query
    best: np.ndarray,  # IN, OUT
    best_index: np.ndarray,  # IN, OUT
) -> None:
    """Merge the nearest points of every query into its sorted list; a query never takes its ``own``."""
    for i in range(queries.indptr.shape[0] - 1):
        products[:] = 0.0
        _add_products(i, queries, by_feature, products)
        keep_smallest(products, norms, query_norms[i], 0, own[i], best[i], best_index[i])


@kernel
def _pair_distances(queries: Entries, points: Entries, neighbors: np.ndarray, out: np.ndarray) -> None:
    """Compute ``||x_i - y_j||^2`` for the listed ``j`` of every query ``i``."""
    for i in range(neighbors.shape[0]):
        for q in range(neighbors.shape[1]):
            out[i, q] = _squared_distance(i, queries, neighbors[i, q], points)


@kernel
def _search_directly(
    queries: Entries, points: Entries, own: np.ndarray, best: np.ndarray, best_index: np.ndarray
) -> None:
    """Find the nearest points of every query by sums of squared differences."""
    for i in range(queries.indptr.shape[0] - 1):
        worst = np.inf
        for j in range(points.indptr.shape[0] - 1):
            if j != own[i]:
                value = _squared_distance(i, queries, j, points)
                if value < worst:
                    worst = insert(value, j, best[i], best_index[i])


@kernel
def _squared_rows(
    some: Entries,  # IN
    points: Entries,  # IN
    by_feature: Entries,  # IN
    some_norms: np.ndarray,  # IN
    norms: np.ndarray,  # IN
    share: float,  # IN
    block: np.ndarray,  # IN, OUT
) -> None:
    """Compute ``||x_i - y_j||^2`` of some points to all in a block of zeros.

    Below a share of the two squared lengths, where the product form has lost digits, from differences.
    """
    for i in range(block.shape[0]):
        _add_products(i, some, by_feature, block[i])
        for j in range(block.shape[1]):
            both = some_norms[i] + norms[j]
            value = both - 2 * block[i, j]
            block[i, j] = value if value >= share * both else _squared_distance(i, some, j, points)
