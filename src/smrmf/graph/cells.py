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
from smrmf.graph.candidates import keep_smallest
from smrmf.graph.dense_points import TILE_COLUMNS, DensePoints, center_points
from smrmf.graph.groups import inverse_order, membership
from smrmf.graph.neighbors import find_neighbors
from smrmf.kernels.distances import squared_distances, squared_norms

# Cells per square root of the number of points. With more of them fewer points are compared, by smaller
# products (benchmarks/scale.py).
CELLS_PER_ROOT = 1.0
# Points per centre that k-means sees, and its iterations: centres need only be about right.
TRAINED_PER_CELL, TRAINING_ITERATIONS = 32, 5


@dataclass(frozen=True)
class Cells:
    """A table of points, and the cell that each lies in.

    ``order`` has the rows of the points, cell by cell, and ``places`` where each row is in this; None where
    the table has that order itself. ``starts`` is where each cell begins, and the end, and ``near`` has all
    cells in the order of their distance from each, which is the first itself.
    """

    X: np.ndarray
    centers: DensePoints
    of_point: np.ndarray
    order: np.ndarray | None
    places: np.ndarray | None
    starts: np.ndarray
    near: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, centers: np.ndarray, of_point: np.ndarray) -> Self:
        """Find out where the points of each cell are."""
        starts = np.concatenate([[0], np.cumsum(np.bincount(of_point, minlength=len(centers)))])
        measured = center_points(centers)
        near = np.argsort(measured.squared_block(slice(0, len(centers))), axis=1, kind="stable")
        order = places = None
        if (np.diff(of_point) < 0).any():
            order = np.argsort(of_point, kind="stable").astype(of_point.dtype)
            places = inverse_order(order)
        return cls(X, measured, of_point, order, places, starts, near.astype(of_point.dtype))

    @property
    def number(self) -> int:
        """Return the number of cells."""
        return len(self.centers.X)

    def squared_distances(self, queries: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Return squared distances of queries to the centres of some cells."""
        return squared_distances(queries - self.centers.center, self.centers.measured(cells))

    def members(self, cell: int) -> np.ndarray:
        """Return the rows of the points of a cell."""
        return self.rows(np.arange(self.starts[cell], self.starts[cell + 1]))

    def rows(self, places: np.ndarray) -> np.ndarray:
        """Return which rows of the table are at places in the order of cells."""
        return places if self.order is None else self.order[places]

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
            # Mostly the table has the order of cells, and nothing is gathered.
            points = (self.X[tile] if self.order is None else self.X[self.order[tile]]) - center
            products = rows @ points.T
            _keep_smallest_of(products, squared_norms(points), norms, start, own, which, best, index)


def train_cells(X: np.ndarray, pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres of cells, as many as suit the number of points, and the cell of every point."""
    n = len(X)
    number = max(1, round(CELLS_PER_ROOT * n**0.5))
    # With a seed of its own: the same points always have the same cells, whatever else is drawn.
    sample = np.random.RandomState(0).permutation(n)[: TRAINED_PER_CELL * number]
    centers, seen = X[sample[:number]], X[np.sort(sample)]
    for _ in range(TRAINING_ITERATIONS):
        owner = nearest_center(centers, seen, pool)
        # A centre without points stays where it is.
        some = np.bincount(owner, minlength=number) > 0
        centers = np.where(some[:, None], means_of_cells(seen, owner, number), centers)
    return centers, nearest_center(centers, X, pool)


def means_of_cells(X: np.ndarray, of_point: np.ndarray, number: int) -> np.ndarray:
    """Return the mean of the points of each cell; zero where there are none."""
    sums = membership(of_point, number, np.float64) @ X
    means: np.ndarray = sums / np.maximum(np.bincount(of_point, minlength=number), 1)[:, None]
    return means.astype(X.dtype)


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
