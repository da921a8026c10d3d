"""From neighbour lists to weighted graphs, and the Laplacian of a graph as an operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf._parallel import SERIAL, Pool, row_blocks
from smrmf._validation import ParameterError
from smrmf.graph.neighbors import Neighbors
from smrmf.kernels.distances import adaptive_gaussian, neighbor_bandwidth
from smrmf.kernels.simplex import neighbor_smoothness, solve_columns
from smrmf.kernels.sparse_rows import laplacian_rows


def neighbor_graph(indices: np.ndarray, weights: np.ndarray, n_columns: int | None = None) -> sp.csr_array:
    """Put lists of neighbours and their weights into a CSR matrix, one row per list."""
    n, k = indices.shape
    indptr = np.arange(0, n * k + 1, k)
    shape = (n, n if n_columns is None else n_columns)
    return sp.csr_array((np.ascontiguousarray(weights).ravel(), indices.ravel(), indptr), shape=shape)


def simplex_graph(neighbors: Neighbors, n_neighbors: int, n_columns: int | None = None) -> sp.csr_array:
    """Solve (5.18) on squared distances, every point with exactly k neighbours; row j is column j of Z."""
    distances = np.ascontiguousarray(neighbors.squared[:, : n_neighbors + 1])
    n, width = distances.shape
    delta = neighbor_smoothness(distances, n_neighbors)
    z = np.empty(n * width, distances.dtype)
    indptr = np.arange(0, n * width + 1, width)
    # With k neighbours the (k+1)-th, which the list has, gets nothing: no bound is needed.
    unbounded = np.full(n, np.inf, distances.dtype)
    solve_columns(indptr, distances.ravel(), delta, unbounded, z, np.empty_like(delta))
    return neighbor_graph(neighbors.indices[:, :width], z.reshape(n, width), n_columns)


def heat_graph(neighbors: Neighbors, n_neighbors: int, bandwidth: str) -> sp.csr_array:
    """Return the adaptive heat weights (4.9) of every point's nearest neighbours, one row per point."""
    squared = neighbors.squared[:, :n_neighbors]
    width = neighbor_bandwidth(squared[:, -1], bandwidth)
    indices = np.ascontiguousarray(neighbors.indices[:, :n_neighbors])
    return neighbor_graph(indices, adaptive_gaussian(squared, width))


def either_neighbor_graph(neighbors: Neighbors) -> sp.csr_array:
    """Link two points, with weight 1, if either is among the nearest of the other."""
    W = neighbor_graph(neighbors.indices, np.ones(neighbors.indices.shape, neighbors.squared.dtype))
    return W.maximum(W.T).tocsr()


def given_graph(graph: Any, n_samples: int, dtype: np.dtype) -> sp.csr_array:
    """Return a user's weights as a symmetric CSR matrix without diagonal; refuse what are none."""
    if graph.shape != (n_samples, n_samples):
        raise ParameterError(
            f"graph has shape {graph.shape}, but must have shape (n_samples, n_samples)="
            f"({n_samples}, {n_samples}): one row and one column per point."
        )
    if graph.dtype.kind not in "biuf":
        raise ParameterError(f"graph has entries of type {graph.dtype}, but weights must be numbers.")
    W = sp.csr_array(graph, dtype=dtype, copy=True)
    if not np.isfinite(W.data).all() or (W.nnz and W.data.min() < 0):
        wrong = W.data[~(W.data >= 0) | np.isinf(W.data)][0]
        raise ParameterError(f"graph has the weight {wrong:g}, but weights must be finite and at least 0.")
    W = W.maximum(W.T).tocsr()
    W.setdiag(0)
    W.eliminate_zeros()
    return W


def rows_to_one(W: sp.csr_array) -> sp.csr_array:
    """Divide every row by its sum."""
    total = np.maximum(W.sum(axis=1), np.finfo(W.dtype).tiny)
    return (W / total[:, None]).tocsr()


def symmetrize(W: sp.csr_array) -> sp.csr_array:
    """Return ``(W + W') / 2`` without its diagonal, which cancels in every Laplacian."""
    W = ((W + W.T) * W.dtype.type(0.5)).tocsr()
    W.setdiag(0)
    W.eliminate_zeros()
    return W


class Laplacian:
    """Multiply by ``L = Deg - W`` for a symmetric ``W``, sparse or dense, never forming L."""

    def __init__(self, W: np.ndarray | sp.csr_array, pool: Pool = SERIAL) -> None:
        self.W: Any = W
        self.degrees = np.asarray(W.sum(axis=1)).ravel()
        self._pool = pool

    def __matmul__(self, G: np.ndarray) -> np.ndarray:
        """Return ``L G`` for a dense ``G``."""
        out = np.empty_like(G)
        if sp.issparse(self.W):
            self._pool.map(lambda rows: self._sparse_rows(rows, G, out), row_blocks(len(G), 8 * G.shape[1]))
        else:
            self._pool.map(lambda rows: self._dense_rows(rows, G, out), row_blocks(*self.W.shape))
        return out

    def _sparse_rows(self, rows: slice, G: np.ndarray, out: np.ndarray) -> None:
        W = self.W
        laplacian_rows(W.indptr, W.indices, W.data, self.degrees, rows.start, G, out[rows])

    def _dense_rows(self, rows: slice, G: np.ndarray, out: np.ndarray) -> None:
        np.subtract(self.degrees[rows, None] * G[rows], self.W[rows] @ G, out=out[rows])
