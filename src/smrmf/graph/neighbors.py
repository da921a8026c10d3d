"""Exact nearest neighbours, and the Laplacian of a sparse graph as an operator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from smrmf._numba import kernel
from smrmf._parallel import SERIAL, Pool, row_blocks
from smrmf.kernels.distances import pair_squared_distances, squared_norms

# A tile of products should stay in the second-level cache while it is searched.
TILE_COLUMNS = 1024
# Rounding in the product form may swap near ties: a few more candidates, then exact distances.
SPARE_CANDIDATES = 8
CENTER_SAMPLE = 1024
# Sparse points with more entries than this are searched as dense ones, which is exact far from the origin.
DENSE_SHARE = 0.25


class Neighbors(NamedTuple):
    """The nearest points of every row, nearest first, ties by lower index; never the row itself."""

    indices: np.ndarray
    squared: np.ndarray


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
def _keep_smallest(products, norms, first_column, own, best, best_index):
    """Merge a tile of ``|y|^2 - 2 x'y`` into the sorted lists of the smallest ones seen so far.

    Leaving out ``|x|^2``, the same for a whole row, orders the candidates just as well. Row i never
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
def _search_directly(X, queries, own, best, best_index):
    """Find the nearest rows of X by sums of squared differences: slow, and never cancelling."""
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


def typical_point(X):
    """Return a point in the middle of the data that a few far ones cannot pull away.

    The median of whole numbers is a whole or half number, which leaves their ties exact.
    """
    rows = np.linspace(0, len(X) - 1, min(len(X), CENTER_SAMPLE)).astype(int)
    return np.median(X[rows], axis=0).astype(X.dtype)


def nearest_neighbors(X, n_neighbors, queries=None, pool: Pool = SERIAL) -> Neighbors:
    """Find the ``n_neighbors`` nearest rows of ``X`` to every query (by default to every row but itself).

    Exact, by tiles of matrix products, so no n x n array exists. The distances returned are
    recomputed as sums of squared differences: a duplicate is at distance exactly zero. Queries for
    which the product form loses the distances (far from the middle, close to each other) are
    searched directly. Sparse points are searched by scikit-learn.
    """
    if sp.issparse(X) and X.nnz < DENSE_SHARE * X.shape[0] * X.shape[1]:
        return _sparse_neighbors(X, n_neighbors, queries)
    X, queries = (part.toarray() if sp.issparse(part) else part for part in (X, queries))
    center = typical_point(X)
    points = X - center
    searched = X if queries is None else queries
    norms = squared_norms(points)
    own = np.arange(len(X)) if queries is None else np.full(len(queries), -1)
    size = min(n_neighbors + SPARE_CANDIDATES, len(X) - (queries is None))
    tiles = [slice(t, t + TILE_COLUMNS) for t in range(0, len(points), TILE_COLUMNS)]

    def one(block):
        rows = searched[block] - center
        best = np.full((len(rows), size), np.inf, X.dtype)
        index = np.zeros((len(rows), size), np.intp)
        for tile in tiles:
            products = rows @ points[tile].T
            _keep_smallest(products, norms[tile], tile.start, own[block], best, index)
        exact = np.empty_like(best)
        pair_squared_distances(searched[block], X, index, exact)
        order = np.lexsort((index, exact))
        exact, index = np.take_along_axis(exact, order, 1), np.take_along_axis(index, order, 1)
        lost = _lost_in_rounding(squared_norms(rows), best[:, -1], exact[:, n_neighbors - 1])
        if lost.any():
            found, found_index = exact[lost], index[lost]
            _search_directly(X, searched[block][lost], own[block][lost], found, found_index)
            exact[lost], index[lost] = found, found_index
        return index[:, :n_neighbors].copy(), exact[:, :n_neighbors].copy()

    parts = pool.map(one, row_blocks(len(searched), TILE_COLUMNS))
    return Neighbors(np.concatenate([i for i, _ in parts]), np.concatenate([d for _, d in parts]))


def _sparse_neighbors(X, n_neighbors, queries):
    """Find neighbours among sparse rows; distances are recomputed from differences here too."""
    from sklearn.neighbors import NearestNeighbors  # slow to import, and needed here only

    searched = X if queries is None else sp.csr_array(queries)
    own = np.arange(X.shape[0]) if queries is None else np.full(searched.shape[0], -1)
    size = min(n_neighbors + SPARE_CANDIDATES, X.shape[0])
    index = NearestNeighbors(algorithm="brute").fit(X).kneighbors(searched, size, return_distance=False)
    parts = []
    for block in row_blocks(searched.shape[0], 64 * size):
        rows = np.repeat(np.arange(block.start, block.stop), size)
        difference = searched[rows] - X[index[block].ravel()]
        exact = np.asarray(difference.multiply(difference).sum(axis=1)).reshape(-1, size)
        # Oneself comes last, whatever the rounding of the search made of it.
        exact[index[block] == own[block][:, None]] = np.inf
        order = np.lexsort((index[block], exact))[:, :n_neighbors]
        parts.append((np.take_along_axis(index[block], order, 1), np.take_along_axis(exact, order, 1)))
    return Neighbors(np.concatenate([i for i, _ in parts]), np.concatenate([d for _, d in parts]))


def _lost_in_rounding(own_norms, worst, kth):
    """Tell for which rows points outside the candidate list might be nearer than the k-th one.

    Nothing outside the list is nearer than its worst product form less the rounding of that form.
    A doubt far below the distances themselves is only a tie.
    """
    eps = float(np.finfo(kth.dtype).eps)
    worst = own_norms + worst
    doubt = 64 * eps * (own_norms + np.abs(worst))
    return (kth > worst - doubt) & (doubt > np.sqrt(eps) * kth)


def latent_kth_squared(G, H, k, pool: Pool = SERIAL):
    """Find, for every ``g_i``, the squared distance to its k-th nearest ``h_j`` with j != i."""
    g_norms, h_norms = squared_norms(G), squared_norms(H)

    def one(block):
        # Leaving out |g|^2, the same for a whole row, orders the distances just as well.
        values = G[block] @ H.T
        values *= -2
        values += h_norms
        values[np.arange(len(values)), np.arange(block.start, block.stop)] = np.inf
        values.partition(k - 1, axis=1)
        return np.maximum(g_norms[block] + values[:, k - 1], 0)

    return np.concatenate(pool.map(one, row_blocks(len(G), len(H))))


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
    """Multiply by ``L = Deg - W`` for a symmetric ``W``, sparse or dense, never forming L."""

    def __init__(self, W, pool: Pool = SERIAL):
        self.W = W
        self.degrees = np.asarray(W.sum(axis=1)).ravel()
        self._pool = pool

    def __matmul__(self, G):
        """Return ``L G`` for a dense ``G``."""
        out = np.empty_like(G)
        W = self.W
        if not sp.issparse(W):
            self._pool.map(
                lambda b: np.subtract(self.degrees[b, None] * G[b], W[b] @ G, out=out[b]),
                row_blocks(*W.shape),
            )
            return out
        self._pool.map(
            lambda b: _laplacian_rows(W.indptr, W.indices, W.data, self.degrees, b.start, G, out[b]),
            row_blocks(len(G), 8 * G.shape[1]),
        )
        return out
