"""Points as a dense table: distances by tiles of matrix products, around a middle where these are exact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf._numba import kernel
from smrmf._parallel import row_blocks
from smrmf.graph.candidates import empty_lists, insert, keep_smallest
from smrmf.kernels.distances import pair_squared_distances, refine_small, squared_distances, squared_norms

# A tile of products should stay in the second-level cache while it is searched.
TILE_COLUMNS = 1024
CENTER_SAMPLE = 1024
ALL = slice(None)


@dataclass(frozen=True)
class DensePoints:
    """Dense points as given, and relative to their middle, where the product form keeps its digits.

    Of very many points the ``centered`` ones are not kept, but made where they are needed.
    """

    X: np.ndarray
    center: np.ndarray
    centered: np.ndarray | None
    norms: np.ndarray  # squared, of the centred points
    # Blocks of queries are as high as blocks of a table this wide.
    block_width: int = TILE_COLUMNS
    # A product of matrices rounds equal rows differently, by their place in it.
    copies_tie: bool = False

    @property
    def n_samples(self) -> int:
        """Return the number of points."""
        return len(self.X)

    def measured(self, rows: slice | np.ndarray = ALL) -> np.ndarray:
        """Return points as they are measured: their squared lengths are ``norms``."""
        return self.X[rows] - self.center if self.centered is None else self.centered[rows]

    def lengths_of(self, queries: np.ndarray) -> np.ndarray:
        """Return the squared lengths of points as given, not about the middle, in double precision."""
        return np.einsum("ij,ij->i", queries, queries, dtype=np.float64)

    def queries(self, X: Any) -> np.ndarray:
        """Return other points in the form of these."""
        return X.toarray() if sp.issparse(X) else X

    def measure(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return queries as points are measured, and their squared lengths."""
        rows = queries - self.center
        return rows, squared_norms(rows)

    def squared_block(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return squared distances of some points to all points; exactly zero to themselves."""
        # ||x||^2 + ||y||^2 - 2 x'y cancels for near points: entries below sqrt(eps) of the two norms are
        # summed again from differences. Centred points have small norms, which keeps such entries few.
        X, norms = self.measured(), self.norms
        block = squared_distances(X[rows], X, norms[rows], norms)
        refine_small(block, X[rows], X, norms[rows], norms, float(np.finfo(block.dtype).eps) ** 0.5)
        return block

    def merge_nearest(
        self, queries: np.ndarray, own: np.ndarray, best: np.ndarray, index: np.ndarray
    ) -> np.ndarray:
        """Merge the nearest points of every query into its list; return the queries' squared lengths."""
        rows, norms = self.measure(queries)
        for start in range(0, self.n_samples, TILE_COLUMNS):
            tile = slice(start, start + TILE_COLUMNS)
            # Merged at once, while the products are in cache.
            products = rows @ self.measured(tile).T
            _keep_smallest_rows(products, self.norms[tile], norms, start, own, best, index)
        return norms

    def pair_distances(self, queries: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return squared distances of every query to its listed points, as sums of squared differences."""
        exact = np.empty(index.shape, self.X.dtype)
        # From the points as given: differences of centred points would be rounded twice.
        pair_squared_distances(queries, self.X, index, exact)
        return exact

    def search_directly(
        self, queries: np.ndarray, own: np.ndarray, size: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return distances and indices of the nearest points by differences, which never cancel."""
        best, index = empty_lists(len(queries), size, self.X.dtype, self.n_samples)
        _search_directly(self.X, queries, own, best, index)
        return best, index


def center_points(X: np.ndarray) -> DensePoints:
    """Return the points relative to their middle, with their squared lengths.

    The middle is the median of a sample, so a few far points cannot pull it away. The median of whole numbers
    is a whole or half number, which leaves their ties exact.
    """
    center = middle_of(X)
    points = X - center
    return DensePoints(X, center, points, squared_norms(points))


def many_points(X: np.ndarray) -> DensePoints:
    """Return the same without a copy of the points."""
    center = middle_of(X)
    norms = [squared_norms(X[block] - center) for block in row_blocks(*X.shape)]
    return DensePoints(X, center, None, np.concatenate(norms))


def middle_of(X: np.ndarray) -> np.ndarray:
    """Return the median of a sample of the points."""
    # Rows at equal steps: no random state, so the same points always have the same middle.
    sample = X[np.linspace(0, len(X) - 1, min(len(X), CENTER_SAMPLE)).astype(int)]
    return np.median(sample, axis=0).astype(X.dtype)


@kernel
def _keep_smallest_rows(
    products: np.ndarray,  # IN
    norms: np.ndarray,  # IN
    row_norms: np.ndarray,  # IN
    first_column: int,  # IN
    own: np.ndarray,  # IN
    best: np.ndarray,  # IN, OUT
    best_index: np.ndarray,  # IN, OUT
) -> None:
    """Merge a tile of products into the sorted lists of its rows; row i never takes column ``own[i]``."""
    for i in range(products.shape[0]):
        keep_smallest(products[i], norms, row_norms[i], first_column, own[i], best[i], best_index[i])


@kernel
def _search_directly(
    X: np.ndarray, queries: np.ndarray, own: np.ndarray, best: np.ndarray, best_index: np.ndarray
) -> None:
    """Find the nearest rows of X by sums of squared differences, which never cancel, but take longer."""
    for i in range(queries.shape[0]):
        worst = np.inf
        for j in range(X.shape[0]):
            if j == own[i]:
                continue
            total = 0.0
            for f in range(X.shape[1]):
                difference = X[j, f] - queries[i, f]
                total += difference * difference
            if total < worst:
                worst = insert(total, j, best[i], best_index[i])
