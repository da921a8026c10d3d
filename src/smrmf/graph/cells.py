"""Points in cells, such that a query is compared only with the points of the cells near it.

A cell holds the points nearest to one centre, a mean of k-means on a sample. Queries of one cell ask mostly
the same others, so they are compared with these by products of matrices, relative to the centre of the cell
that is asked, which keeps the digits of small distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from smrmf._numba import kernel
from smrmf._parallel import Pool
from smrmf._scratch import table_in_order
from smrmf.graph.candidates import keep_smallest
from smrmf.graph.dense_points import TILE_COLUMNS, DensePoints, center_points
from smrmf.graph.groups import membership
from smrmf.graph.neighbors import find_neighbors
from smrmf.kernels.distances import squared_distances, squared_norms

# Cells per square root of the number of points. With more of them fewer points are compared, by smaller
# products (benchmarks/scale.py).
CELLS_PER_ROOT = 1.0
# Points per centre that k-means sees, and its iterations: centres need only be about right.
TRAINED_PER_CELL, TRAINING_ITERATIONS = 32, 5


@dataclass(frozen=True)
class Cells:
    """Points behind each other, cell by cell, and their squared distances to the centres of their cells.

    ``places`` has the row of every point in its table and ``order`` the place of every row, ``starts`` is
    where each cell begins, and the end, and ``near`` has all cells in the order of their distance from each,
    which is the first itself.
    """

    centers: DensePoints
    of_point: np.ndarray
    places: np.ndarray
    order: np.ndarray
    starts: np.ndarray
    points: np.ndarray
    norms: np.ndarray
    near: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, centers: np.ndarray, of_point: np.ndarray) -> Self:
        """Put the points in the order of their cells."""
        places = np.argsort(of_point, kind="stable").astype(of_point.dtype)
        starts = np.concatenate([[0], np.cumsum(np.bincount(of_point, minlength=len(centers)))])
        # Mostly they come in this order, and are not copied.
        points = X if (np.diff(of_point) >= 0).all() else table_in_order(X, places)
        norms = np.empty(len(X), X.dtype)
        for cell, center in enumerate(centers):
            members = slice(starts[cell], starts[cell + 1])
            norms[members] = squared_norms(points[members] - center)
        measured = center_points(centers)
        near = np.argsort(measured.squared_block(slice(0, len(centers))), axis=1, kind="stable")
        near = near.astype(of_point.dtype)
        order = np.empty_like(places)
        order[places] = np.arange(len(places), dtype=places.dtype)
        return cls(measured, of_point, places, order, starts, points, norms, near)

    @property
    def number(self) -> int:
        """Return the number of cells."""
        return len(self.centers.X)

    def squared_distances(self, queries: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Return squared distances of queries to the centres of some cells."""
        return squared_distances(queries - self.centers.center, self.centers.measured(cells))

    def members(self, cell: int) -> np.ndarray:
        """Return the rows of the points of a cell."""
        return self.places[self.starts[cell] : self.starts[cell + 1]]

    def merge_nearest(
        self,
        cell: int,
        queries: np.ndarray,
        own: np.ndarray,
        which: np.ndarray,
        best: np.ndarray,
        index: np.ndarray,
    ) -> None:
        """Merge the places of points of one cell into the lists of some queries, those of ``which``."""
        center = self.centers.X[cell]
        rows = queries[which] - center
        norms = squared_norms(rows)
        for start in range(self.starts[cell], self.starts[cell + 1], TILE_COLUMNS):
            tile = slice(start, min(start + TILE_COLUMNS, self.starts[cell + 1]))
            products = rows @ (self.points[tile] - center).T
            _keep_smallest_of(products, self.norms[tile], norms, start, own, which, best, index)


def train_cells(X: np.ndarray, pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres of cells, as many as suit the number of points, and the cell of every point."""
    n = len(X)
    number = max(1, round(CELLS_PER_ROOT * n**0.5))
    # With a seed of its own: the same points always have the same cells, whatever else is drawn.
    sample = np.random.RandomState(0).permutation(n)[: TRAINED_PER_CELL * number]
    centers, seen = X[sample[:number]], X[np.sort(sample)]
    for _ in range(TRAINING_ITERATIONS):
        owner = nearest_center(centers, seen, pool)
        sizes = np.bincount(owner, minlength=number)
        sums = membership(owner, number, np.float64) @ seen
        # A centre without points stays where it is.
        centers = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], centers).astype(X.dtype)
    return centers, nearest_center(centers, X, pool)


def nearest_center(centers: np.ndarray, X: np.ndarray, pool: Pool) -> np.ndarray:
    """Return the nearest centre of every point."""
    return find_neighbors(centers, 1, X, pool=pool).indices[:, 0]


@kernel
def _keep_smallest_of(
    products: np.ndarray,  # IN
    norms: np.ndarray,  # IN
    row_norms: np.ndarray,  # IN
    first_column: int,  # IN
    own: np.ndarray,  # IN
    which: np.ndarray,  # IN
    best: np.ndarray,  # IN, OUT
    best_index: np.ndarray,  # IN, OUT
) -> None:
    """Merge a tile of products into the sorted lists of the queries that its rows are."""
    for i in range(products.shape[0]):
        q = which[i]
        keep_smallest(products[i], norms, row_norms[i], first_column, own[q], best[q], best_index[q])
