"""The nearest neighbours of every point, exact, without an n x n array."""

from __future__ import annotations

from typing import Any, NamedTuple

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
    """The nearest points of every row, nearest first, ties by lower index; a point is not its own."""

    indices: np.ndarray
    squared: np.ndarray


class Centered(NamedTuple):
    """Points relative to their middle, where the product form of distances keeps its digits."""

    center: np.ndarray
    X: np.ndarray
    norms: np.ndarray


def center_points(X: np.ndarray) -> Centered:
    """Return the points relative to their middle, with their squared lengths.

    The middle is the median of a sample, so a few far points cannot pull it away. The median of whole numbers
    is a whole or half number, which leaves their ties exact.
    """
    # Rows at equal steps: no random state, so the same points always have the same middle.
    sample = X[np.linspace(0, len(X) - 1, min(len(X), CENTER_SAMPLE)).astype(int)]
    center = np.median(sample, axis=0).astype(X.dtype)
    points = X - center
    return Centered(center, points, np.einsum("ij,ij->i", points, points))


def search(X: np.ndarray, n_neighbors: int, pool: Pool) -> tuple[Centered, Neighbors]:
    """Centre the points, and find the nearest others of every one."""
    centered = center_points(X)
    return centered, find_neighbors(X, n_neighbors, centered=centered, pool=pool)


def find_neighbors(
    X: Any, n_neighbors: int, queries: Any = None, *, centered: Centered | None = None, pool: Pool = SERIAL
) -> Neighbors:
    """Find the ``n_neighbors`` nearest rows of ``X`` to every query (by default to every row but itself).

    Exact, by tiles of matrix products, so no n x n array exists. The distances returned are
    recomputed as sums of squared differences: a duplicate is at distance exactly zero. Queries for
    which the product form loses the distances (far from the middle, close to each other) are
    searched directly. Sparse points are searched by scikit-learn. ``centered`` saves centring X again.
    """
    if sp.issparse(X) and X.nnz < DENSE_SHARE * X.shape[0] * X.shape[1]:
        return _sparse_neighbors(X, n_neighbors, queries)
    X, queries = (part.toarray() if sp.issparse(part) else part for part in (X, queries))
    center, points, norms = center_points(X) if centered is None else centered
    searched = X if queries is None else queries
    own = np.arange(len(X)) if queries is None else np.full(len(queries), -1)
    size = min(n_neighbors + SPARE_CANDIDATES, len(X) - (queries is None))
    tiles = [slice(start, start + TILE_COLUMNS) for start in range(0, len(points), TILE_COLUMNS)]

    def search_block(block: slice) -> tuple[np.ndarray, np.ndarray]:
        rows = searched[block] - center
        best = np.full((len(rows), size), np.inf, X.dtype)
        index = np.zeros((len(rows), size), np.intp)
        for tile in tiles:
            # |y|^2 - 2 x'y of a tile is merged at once, while its products are in cache.
            products = rows @ points[tile].T
            _keep_smallest(products, norms[tile], tile.start, own[block], best, index)
        exact = np.empty_like(best)
        # From the points as given: differences of centred points would be rounded twice.
        pair_squared_distances(searched[block], X, index, exact)
        order = np.lexsort((index, exact))  # by distance, then by index
        exact, index = np.take_along_axis(exact, order, 1), np.take_along_axis(index, order, 1)
        lost = _lost_in_rounding(squared_norms(rows), best[:, -1], exact[:, n_neighbors - 1])
        if lost.any():
            found, found_index = exact[lost], index[lost]
            _search_directly(X, searched[block][lost], own[block][lost], found, found_index)
            exact[lost], index[lost] = found, found_index
        return index[:, :n_neighbors].copy(), exact[:, :n_neighbors].copy()

    parts = pool.map(search_block, row_blocks(len(searched), TILE_COLUMNS))
    return Neighbors(*map(np.concatenate, zip(*parts, strict=True)))


def _sparse_neighbors(X: Any, n_neighbors: int, queries: Any) -> Neighbors:
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
        # A row itself comes last, whatever the rounding of the search made of its distance.
        exact[index[block] == own[block][:, None]] = np.inf
        order = np.lexsort((index[block], exact))[:, :n_neighbors]
        parts.append((np.take_along_axis(index[block], order, 1), np.take_along_axis(exact, order, 1)))
    return Neighbors(*map(np.concatenate, zip(*parts, strict=True)))


def _lost_in_rounding(own_norms: np.ndarray, worst: np.ndarray, kth: np.ndarray) -> np.ndarray:
    """Tell for which rows points outside the candidate list might be nearer than the k-th one.

    Nothing outside the list is nearer than its worst product form less the rounding of that form.
    A doubt far below the distances themselves is only a tie.
    """
    eps = float(np.finfo(kth.dtype).eps)
    # The lists leave out |x|^2, which the comparison with true distances needs.
    worst = own_norms + worst
    doubt = 64 * eps * (own_norms + np.abs(worst))
    return (kth > worst - doubt) & (doubt > np.sqrt(eps) * kth)


@kernel
def _insert(value: float, j: int, best: np.ndarray, best_index: np.ndarray) -> float:
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
def _keep_smallest(
    products: np.ndarray,  # IN
    norms: np.ndarray,  # IN
    first_column: int,  # IN
    own: np.ndarray,  # IN
    best: np.ndarray,  # IN, OUT
    best_index: np.ndarray,  # IN, OUT
) -> None:
    """Merge a tile of ``|y|^2 - 2 x'y`` into the sorted lists of the smallest ones seen so far.

    ``|x|^2`` is the same for a whole row, so the order of the candidates does not need it. Row i never
    takes column ``own[i]``.
    """
    size = best.shape[1]
    for i in range(products.shape[0]):
        # Few values get past this bound once the lists are filled: the insertion is rare, and short.
        worst = best[i, size - 1]
        for t in range(products.shape[1]):
            value = norms[t] - 2 * products[i, t]
            if value < worst and first_column + t != own[i]:
                worst = _insert(value, first_column + t, best[i], best_index[i])


@kernel
def _search_directly(
    X: np.ndarray, queries: np.ndarray, own: np.ndarray, best: np.ndarray, best_index: np.ndarray
) -> None:
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
