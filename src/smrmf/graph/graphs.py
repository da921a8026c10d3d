"""From neighbour lists to weighted graphs, and the Laplacian of a graph as an operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf._numba import kernel
from smrmf._parallel import SERIAL, Pool, row_blocks
from smrmf._validation import ParameterError
from smrmf.graph.candidates import Neighbors
from smrmf.kernels.distances import adaptive_gaussian, neighbor_bandwidth
from smrmf.kernels.simplex import neighbor_smoothness, solve_columns


def neighbor_graph(indices: np.ndarray, weights: np.ndarray, n_columns: int | None = None) -> sp.csr_array:
    """Put lists of neighbours and their weights into a CSR matrix, one row per list."""
    n, k = indices.shape
    # Of one type with the indices: SciPy would widen the narrower one.
    indptr = np.arange(
        0, n * k + 1, k, dtype=indices.dtype if n * k <= np.iinfo(indices.dtype).max else np.int64
    )
    shape = (n, n if n_columns is None else n_columns)
    return sp.csr_array((np.ascontiguousarray(weights).ravel(), indices.ravel(), indptr), shape=shape)


def simplex_graph(neighbors: Neighbors, n_neighbors: int, n_columns: int | None = None) -> sp.csr_array:
    """Solve (5.18) on squared distances, every point with exactly k neighbours; row j is column j of Z."""
    distances = np.ascontiguousarray(neighbors.squared[:, : n_neighbors + 1])
    n, width = distances.shape
    W = neighbor_graph(neighbors.indices[:, :width], np.empty_like(distances), n_columns)
    delta = neighbor_smoothness(distances, n_neighbors)
    # With k neighbours the (k+1)-th, which the list has, gets nothing: no bound is needed.
    unbounded = np.full(n, np.inf, distances.dtype)
    indptr = np.arange(0, n * width + 1, width)
    solve_columns(indptr, distances.ravel(), delta, unbounded, W.data, np.empty_like(delta))
    return W


def heat_graph(neighbors: Neighbors, n_neighbors: int, bandwidth: str) -> sp.csr_array:
    """Return the adaptive heat weights (4.9) of every point's nearest neighbours, one row per point."""
    squared = neighbors.squared[:, :n_neighbors]
    # A bandwidth per row makes the weights asymmetric; the caller symmetrises them (paper note 33).
    width = neighbor_bandwidth(squared[:, -1], bandwidth)
    indices = np.ascontiguousarray(neighbors.indices[:, :n_neighbors])
    return neighbor_graph(indices, adaptive_gaussian(squared, width))


def heat_representation(neighbors: Neighbors, n_neighbors: int, bandwidth: str) -> sp.csr_array:
    """Return the heat weights of every point's nearest neighbours as shares, which sum to one."""
    squared = neighbors.squared[:, :n_neighbors]
    width = neighbor_bandwidth(squared[:, -1], bandwidth)
    # Relative to the nearest one, a factor that the sum takes out: also where the kernel is so narrow that
    # all weights vanish, and the graph with them, each point has its shares.
    weights = adaptive_gaussian(squared - squared[:, :1], width)
    weights /= weights.sum(axis=1, keepdims=True)
    return neighbor_graph(np.ascontiguousarray(neighbors.indices[:, :n_neighbors]), weights)


def either_neighbor_graph(neighbors: Neighbors) -> sp.csr_array:
    """Return the graph that links two points, with weight 1, if either is among the nearest of the other."""
    W = neighbor_graph(neighbors.indices, np.ones(neighbors.indices.shape, neighbors.squared.dtype))
    return W.maximum(W.T).tocsr()


def given_graph(graph: Any, n_samples: int, dtype: np.dtype) -> sp.csr_array:
    """Return a user's weights as a symmetric CSR matrix without diagonal; refuse what is not a graph."""
    if graph.shape != (n_samples, n_samples):
        raise ParameterError(
            f"graph has shape {graph.shape}, but must have shape (n_samples, n_samples)="
            f"({n_samples}, {n_samples}): one row and one column per point."
        )
    if graph.dtype.kind not in "biuf":
        raise ParameterError(f"graph has entries of type {graph.dtype}, but weights must be numbers.")
    W = sp.csr_array(graph, dtype=dtype, copy=True)
    if not np.isfinite(W.data).all() or (W.nnz and W.data.min() < 0):
        # Not "W.data < 0", which a NaN would pass.
        wrong = W.data[~(W.data >= 0) | np.isinf(W.data)][0]
        raise ParameterError(f"graph has the weight {wrong:g}, but weights must be finite and at least 0.")
    return without_diagonal(W.maximum(W.T).tocsr())


def rows_to_one(W: sp.csr_array) -> sp.csr_array:
    """Return the graph with every row divided by its sum; a row without weights stays as it is."""
    # By the largest weight first: the sum of weights next to nothing has lost its digits.
    return divide_rows(shares := divide_rows(W, W.max(axis=1).toarray()), shares.sum(axis=1))


def divide_rows(W: sp.csr_array, sizes: np.ndarray) -> sp.csr_array:
    """Return the graph with every row divided by a number, or left as it is where that is zero."""
    # Not W / sizes: SciPy multiplies by the reciprocal, which is infinite for a size next to nothing.
    divisors = np.repeat(np.where(sizes > 0, sizes, 1).ravel(), np.diff(W.indptr))
    return sp.csr_array((W.data / divisors.astype(W.dtype, copy=False), W.indices, W.indptr), shape=W.shape)


def symmetrize(W: sp.csr_array, pool: Pool = SERIAL) -> sp.csr_array:
    """Return ``(W + W') / 2`` without its diagonal, which cancels in every Laplacian."""
    # SciPy's sum needs half as much memory again, and takes three times as long.
    n, T = W.shape[0], W.T.tocsr()
    both = (W.indptr, W.indices, W.data, T.indptr, T.indices, T.data)
    blocks = row_blocks(n, max(1, 4 * W.nnz // max(n, 1)))
    ends = np.zeros(n + 1, np.int64)
    pool.map(lambda rows: _count_either(*both, rows.start, ends[1:][rows]), blocks)
    np.cumsum(ends, out=ends)
    if ends[-1] <= np.iinfo(W.indices.dtype).max:
        ends = ends.astype(W.indices.dtype)  # of one type with the indices, or SciPy widens these
    indices, data = np.empty(ends[-1], W.indices.dtype), np.empty(ends[-1], W.dtype)
    # Every block writes to the places of its own rows.
    pool.map(lambda rows: _mean_of_both(*both, ends, rows.start, rows.stop, indices, data), blocks)
    return sp.csr_array((data, indices, ends), shape=(n, n))


def without_diagonal(W: sp.csr_array) -> sp.csr_array:
    """Return a square graph without its diagonal, and without entries that are zero."""
    # Not W.setdiag(0): for a small graph, made anew in every iteration, that takes longer than all the rest.
    rows = np.repeat(np.arange(W.shape[0], dtype=W.indices.dtype), np.diff(W.indptr))
    return keep_entries(W, (W.indices != rows) & (W.data != 0))


def keep_entries(W: sp.csr_array, kept: np.ndarray) -> sp.csr_array:
    """Return a matrix with those of its stored entries that are marked."""
    before = np.zeros(len(kept) + 1, W.indptr.dtype)
    np.cumsum(kept, out=before[1:])
    return sp.csr_array((W.data[kept], W.indices[kept], before[W.indptr]), shape=W.shape)


def positive_entries(
    indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, pool: Pool = SERIAL
) -> sp.csr_array:
    """Return the square matrix of the positive entries of lists, one row per list."""
    n = len(indptr) - 1
    blocks = row_blocks(n, max(1, len(values) // n))
    # Of one type with the indices: SciPy would widen them.
    ends = np.zeros(n + 1, indices.dtype if len(values) <= np.iinfo(indices.dtype).max else np.int64)
    pool.map(lambda rows: _count_positive(indptr, values, rows.start, ends[1:][rows]), blocks)
    np.cumsum(ends, out=ends)
    kept, data = np.empty(ends[-1], indices.dtype), np.empty(ends[-1], values.dtype)
    # Every block writes to the places of its own rows.
    pool.map(
        lambda rows: _copy_positive(
            indptr, indices, values, rows.start, rows.stop, kept[ends[rows.start] :], data[ends[rows.start] :]
        ),
        blocks,
    )
    return sp.csr_array((data, kept, ends), shape=(n, n))


class Laplacian:
    """The operator ``L = Deg - W`` of a symmetric ``W``, sparse or dense, without the matrix L."""

    def __init__(self, W: np.ndarray | sp.csr_array, pool: Pool = SERIAL) -> None:
        self.W: Any = W
        self.degrees = np.asarray(W.sum(axis=1)).ravel()
        self._pool = pool

    def __matmul__(self, G: np.ndarray) -> np.ndarray:
        """Return ``L G`` for a dense ``G``."""
        return self.times(G, np.empty_like(G))

    def times(self, G: np.ndarray, out: np.ndarray) -> np.ndarray:
        """Write ``L G`` to an array, and return it."""
        # Each block of rows reads all of G and writes its own rows of out only.
        W, degrees = self.W, self.degrees
        if sp.issparse(W):
            self._pool.map(
                lambda rows: laplacian_rows(W.indptr, W.indices, W.data, degrees, rows.start, G, out[rows]),
                row_blocks(len(G), 8 * G.shape[1]),
            )
        else:
            self._pool.map(
                lambda rows: np.subtract(degrees[rows, None] * G[rows], W[rows] @ G, out=out[rows]),
                row_blocks(*W.shape),
            )
        return out


@kernel
def laplacian_rows(
    indptr: np.ndarray,  # IN
    indices: np.ndarray,  # IN
    weights: np.ndarray,  # IN
    degrees: np.ndarray,  # IN
    start: int,  # IN
    G: np.ndarray,  # IN
    out: np.ndarray,  # OUT
) -> None:
    """Compute rows of ``(Deg - W) G``."""
    # Clusters in the inner loop: rows of G are contiguous, and a row of out stays in cache.
    for r in range(out.shape[0]):
        i = start + r
        for q in range(G.shape[1]):
            out[r, q] = degrees[i] * G[i, q]
        for p in range(indptr[i], indptr[i + 1]):
            w = weights[p]
            j = indices[p]
            for q in range(G.shape[1]):
                out[r, q] -= w * G[j, q]


@kernel
def _count_positive(indptr: np.ndarray, values: np.ndarray, first: int, counts: np.ndarray) -> None:
    """Count the positive entries of consecutive lists, from the list ``first`` on."""
    for r in range(counts.shape[0]):
        count = 0
        for p in range(indptr[first + r], indptr[first + r + 1]):
            count += values[p] > 0
        counts[r] = count


@kernel
def _copy_positive(
    indptr: np.ndarray,  # IN
    indices: np.ndarray,  # IN
    values: np.ndarray,  # IN
    first: int,  # IN
    last: int,  # IN
    kept: np.ndarray,  # OUT
    data: np.ndarray,  # OUT
) -> None:
    """Copy the positive entries of the lists from ``first`` to before ``last`` behind each other."""
    place = 0
    for p in range(indptr[first], indptr[last]):
        if values[p] > 0:
            kept[place] = indices[p]
            data[place] = values[p]
            place += 1


@kernel
def _count_either(
    indptr: np.ndarray,  # IN
    indices: np.ndarray,  # IN
    data: np.ndarray,  # IN
    other_indptr: np.ndarray,  # IN
    other_indices: np.ndarray,  # IN
    other_data: np.ndarray,  # IN
    first: int,  # IN
    counts: np.ndarray,  # OUT
) -> None:
    """Count the columns in which rows of one or the other matrix have an entry, off the diagonal."""
    for r in range(counts.shape[0]):
        i = first + r
        count = 0
        for p in range(indptr[i], indptr[i + 1]):
            count += indices[p] != i and data[p] != 0
        for q in range(other_indptr[i], other_indptr[i + 1]):
            j = other_indices[q]
            if j == i or other_data[q] == 0:
                continue
            known = False
            for p in range(indptr[i], indptr[i + 1]):
                known |= indices[p] == j and data[p] != 0
            count += not known
        counts[r] = count


@kernel
def _mean_of_both(
    indptr: np.ndarray,  # IN
    indices: np.ndarray,  # IN
    data: np.ndarray,  # IN
    other_indptr: np.ndarray,  # IN
    other_indices: np.ndarray,  # IN
    other_data: np.ndarray,  # IN
    ends: np.ndarray,  # IN
    first: int,  # IN
    last: int,  # IN
    columns: np.ndarray,  # OUT
    means: np.ndarray,  # OUT
) -> None:
    """Write the means of two matrices, off the diagonal, for the rows from ``first`` to before ``last``."""
    for i in range(first, last):
        place = ends[i]
        for p in range(indptr[i], indptr[i + 1]):
            if indices[p] != i and data[p] != 0:
                columns[place] = indices[p]
                means[place] = data[p] / 2
                place += 1
        own = place
        for q in range(other_indptr[i], other_indptr[i + 1]):
            j = other_indices[q]
            if j == i or other_data[q] == 0:
                continue
            known = -1
            for p in range(ends[i], own):
                if columns[p] == j:
                    known = p
            if known >= 0:
                means[known] += other_data[q] / 2
            else:
                columns[place] = j
                means[place] = other_data[q] / 2
                place += 1
