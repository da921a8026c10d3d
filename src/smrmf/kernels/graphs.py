"""Exact nearest neighbours, and the Laplacian of a sparse graph as an operator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from smrmf._compile import kernel
from smrmf._parallel import SERIAL, Pool, row_blocks
from smrmf.kernels.distances import pair_squared_distances, squared_norms

# A tile of distances should stay in the second-level cache while it is searched.
TILE_COLUMNS = 1024
# Rounding in the product form may swap near ties: a few more candidates, then exact distances.
SPARE_CANDIDATES = 8


class Neighbors(NamedTuple):
    """The nearest points of every row, nearest first, ties by lower index; never the row itself."""

    indices: np.ndarray
    squared: np.ndarray


@kernel
def _keep_smallest(products, norms, first_column, own, best, best_index):
    """Merge a tile of ``|y|^2 - 2 x'y`` into the sorted lists of the smallest ones seen so far.

    Leaving out ``|x|^2``, the same for a whole row, orders the candidates just as well.
    """
    size = best.shape[1]
    for i in range(products.shape[0]):
        worst = best[i, size - 1]
        for t in range(products.shape[1]):
            value = norms[t] - 2 * products[i, t]
            if value < worst:
                j = first_column + t
                if j == own + i:
                    continue
                slot = size - 1
                while slot > 0 and best[i, slot - 1] > value:
                    best[i, slot] = best[i, slot - 1]
                    best_index[i, slot] = best_index[i, slot - 1]
                    slot -= 1
                best[i, slot] = value
                best_index[i, slot] = j
                worst = best[i, size - 1]


def nearest_neighbors(X, n_neighbors, queries=None, pool: Pool = SERIAL) -> Neighbors:
    """Find the ``n_neighbors`` nearest rows of ``X`` to every query (by default to every row but itself).

    Exact, by tiles of matrix products, so no n x n array exists. The distances returned are
    recomputed as sums of squared differences: a duplicate is at distance exactly zero.
    """
    center = X.mean(axis=0)
    points = X - center
    searched = points if queries is None else queries - center
    norms = squared_norms(points)
    own = -len(X) if queries is not None else 0
    available = len(X) - (queries is None)
    size = min(n_neighbors + SPARE_CANDIDATES, available)

    tiles = [slice(t, t + TILE_COLUMNS) for t in range(0, len(points), TILE_COLUMNS)]

    def one(block):
        rows = searched[block]
        best = np.full((len(rows), size), np.inf, X.dtype)
        index = np.zeros((len(rows), size), np.intp)
        for tile in tiles:
            products = rows @ points[tile].T
            _keep_smallest(products, norms[tile], tile.start, own + block.start, best, index)
        exact = np.empty_like(best)
        queried = X[block] if queries is None else queries[block]
        pair_squared_distances(queried, X, index, exact)
        order = np.lexsort((index, exact))[:, :n_neighbors]
        return np.take_along_axis(index, order, 1), np.take_along_axis(exact, order, 1)

    parts = pool.map(one, row_blocks(len(searched), TILE_COLUMNS))
    return Neighbors(np.concatenate([i for i, _ in parts]), np.concatenate([d for _, d in parts]))


def neighbor_graph(indices, weights, n_columns=None):
    """Put lists of neighbours and their weights into a CSR matrix, one row per list."""
    n, k = indices.shape
    indptr = np.arange(0, n * k + 1, k)
    shape = (n, n if n_columns is None else n_columns)
    return sp.csr_array((np.ascontiguousarray(weights).ravel(), indices.ravel(), indptr), shape=shape)


def symmetrize(W):
    """Return ``(W + W') / 2`` without its diagonal, which cancels in every Laplacian."""
    W = ((W + W.T) * W.dtype.type(0.5)).tocsr()
    W.setdiag(0)
    W.eliminate_zeros()
    return W


@kernel
def _laplacian_rows(indptr, indices, weights, degrees, start, G, out):
    """Compute rows of ``(Deg - W) G``."""
    for r in range(out.shape[0]):
        i = start + r
        for q in range(G.shape[1]):
            out[r, q] = degrees[i] * G[i, q]
        for p in range(indptr[i], indptr[i + 1]):
            w = weights[p]
            j = indices[p]
            for q in range(G.shape[1]):
                out[r, q] -= w * G[j, q]


class Laplacian:
    """Multiply by ``L = Deg - W`` for a symmetric sparse ``W``, never forming L."""

    def __init__(self, W, pool: Pool = SERIAL):
        self.W = W
        self.degrees = np.asarray(W.sum(axis=1)).ravel()
        self._pool = pool

    def __matmul__(self, G):
        """Return ``L G`` for a dense ``G``."""
        out = np.empty_like(G)
        W = self.W
        self._pool.map(
            lambda b: _laplacian_rows(W.indptr, W.indices, W.data, self.degrees, b.start, G, out[b]),
            row_blocks(len(G), 8 * G.shape[1]),
        )
        return out
