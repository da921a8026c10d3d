"""Points in cells, such that a query is compared only with the points of the cells near it.

A cell holds the points nearest to one centre, a mean of k-means on a sample. Queries of one cell ask mostly
the same others, so they are compared with these by products of matrices, relative to the centre of the cell
that is asked, which keeps the digits of small distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

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
# Which cells it asks a query chooses among so many times as many, those nearest to its own cell.
CHOICE = 4
# Points per centre that k-means sees, and its iterations: centres need only be about right.
TRAINED_PER_CELL, TRAINING_ITERATIONS = 32, 5
# Entries of the points that are compared at a time: fewer points of very many features.
TILE_ENTRIES = 2**22


class Asked(NamedTuple):
    """Cells among which queries choose, their squared distances to each, and which they have chosen."""

    choice: np.ndarray
    squared: np.ndarray
    chosen: np.ndarray


@dataclass(frozen=True)
class CellMap:
    """Where cells lie: their centres, and how many points each has.

    ``near`` has all cells in the order of their distance from each, which is the first itself.
    """

    centers: DensePoints
    near: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(cls, centers: np.ndarray, sizes: np.ndarray) -> Self:
        """Measure the distances between all centres."""
        measured = center_points(centers)
        near = np.argsort(measured.squared_block(slice(0, len(centers))), axis=1, kind="stable")
        return cls(measured, near.astype(np.int32), sizes)

    @property
    def number(self) -> int:
        """Return the number of cells."""
        return len(self.sizes)

    def squared_distances(self, queries: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Return squared distances of queries to the centres of some cells."""
        return squared_distances(queries - self.centers.center, self.centers.measured(cells))

    def choice(self, cell: int, n_asked: int) -> np.ndarray:
        """Return the cells among which a query that lies in one of them chooses those that it asks."""
        return self.near[cell, : CHOICE * n_asked]

    def asked_by(self, queries: np.ndarray, cell: int, n_asked: int) -> Asked:
        """Return which cells are asked by queries that lie in one."""
        choice = self.choice(cell, n_asked)
        to_centers = self.squared_distances(queries, choice)
        return Asked(choice, to_centers, smallest_columns(to_centers, n_asked))

    def asked_from(self, n_asked: int, needed: int) -> np.ndarray:
        """Return for every cell how many its queries ask: so many, or twice as many, and so on.

        Whichever cells a query chooses, they have as many points as are needed.
        """
        asked = np.full(self.number, min(n_asked, self.number))
        few = np.flatnonzero(asked < self.number)
        while len(few) > 0:
            n_asked = int(asked[few[0]])
            choice = np.sort(self.sizes[self.near[few, : CHOICE * n_asked]], axis=1)
            few = few[choice[:, :n_asked].sum(axis=1) < needed]
            asked[few] = min(2 * n_asked, self.number)
            few = few[asked[few] < self.number]
        return asked


@dataclass(frozen=True)
class Cells:
    """A table of points, and the cell that each lies in.

    ``order`` has the rows of the points, cell by cell, and ``places`` where each row is in this; None where
    the table has that order itself. ``starts`` is where each cell begins, and the end. The table may be a
    part of the points that the map knows of.
    """

    map: CellMap
    X: np.ndarray
    of_point: np.ndarray
    order: np.ndarray | None
    places: np.ndarray | None
    starts: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, centers: np.ndarray, of_point: np.ndarray) -> Self:
        """Find out where the points of each cell are."""
        return cls.on(CellMap.of(centers, np.bincount(of_point, minlength=len(centers))), X, of_point)

    @classmethod
    def on(cls, cell_map: CellMap, X: np.ndarray, of_point: np.ndarray) -> Self:
        """Find out where the points of each cell of a map are."""
        starts = np.concatenate([[0], np.cumsum(np.bincount(of_point, minlength=cell_map.number))])
        order = places = None
        if (np.diff(of_point) < 0).any():
            order = np.argsort(of_point, kind="stable").astype(of_point.dtype)
            places = inverse_order(order)
        return cls(cell_map, X, of_point, order, places, starts)

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
        center = self.map.centers.X[cell]
        rows = queries[which] - center
        norms = squared_norms(rows)
        size = min(TILE_COLUMNS, max(1, TILE_ENTRIES // queries.shape[1]))
        for start in range(self.starts[cell], self.starts[cell + 1], size):
            tile = slice(start, min(start + size, self.starts[cell + 1]))
            # Mostly the table has the order of cells, and nothing is gathered.
            points = (self.X[tile] if self.order is None else self.X[self.order[tile]]) - center
            products = rows @ points.T
            _keep_smallest_of(products, squared_norms(points), norms, start, own, which, best, index)


def train_cells(X: np.ndarray, pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """Return the centres of cells, as many as suit the number of points, and the cell of every point."""
    # With a seed of its own: the same points always have the same cells, whatever else is drawn.
    number = cells_that_suit(len(X))
    sample = np.random.RandomState(0).permutation(len(X))[: TRAINED_PER_CELL * number]
    centers = trained_centers(X[sample[:number]], X[np.sort(sample)], pool)
    return centers, nearest_center(centers, X, pool)


def cells_that_suit(n_samples: int) -> int:
    """Return the number of cells for so many points."""
    return max(1, round(CELLS_PER_ROOT * n_samples**0.5))


def trained_centers(centers: np.ndarray, seen: np.ndarray, pool: Pool) -> np.ndarray:
    """Return better centres: means of the points that are seen nearest to each, a few times."""
    number = len(centers)
    for _ in range(TRAINING_ITERATIONS):
        owner = nearest_center(centers, seen, pool)
        # A centre without points stays where it is.
        some = np.bincount(owner, minlength=number) > 0
        centers = np.where(some[:, None], means_of_cells(seen, owner, number), centers)
    return centers


def means_of_cells(X: np.ndarray, of_point: np.ndarray, number: int) -> np.ndarray:
    """Return the mean of the points of each cell; zero where there are none."""
    sums = membership(of_point, number, np.float64) @ X
    means: np.ndarray = sums / np.maximum(np.bincount(of_point, minlength=number), 1)[:, None]
    return means.astype(X.dtype)


def nearest_center(centers: np.ndarray, X: np.ndarray, pool: Pool) -> np.ndarray:
    """Return the nearest centre of every point."""
    return find_neighbors(centers, 1, X, pool=pool).indices[:, 0]


def smallest_columns(values: np.ndarray, count: int) -> np.ndarray:
    """Mark the smallest entries of every row, so many of each."""
    marked = np.ones(values.shape, dtype=bool)
    if count < values.shape[1]:
        np.put_along_axis(marked, np.argpartition(values, count, axis=1)[:, count:], False, 1)
    return marked


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
