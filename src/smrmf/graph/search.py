"""Which search finds the neighbours: exact, approximate, or none, as they are given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from smrmf._arrays import is_cheap_dense
from smrmf._parallel import SERIAL, Pool
from smrmf._progress import NOBODY, Progress
from smrmf.graph.approximate import CellSearch, Questions, find_in_cells, sample_of, tuned_search
from smrmf.graph.candidates import Neighbors
from smrmf.graph.cells import Cells, nearest_center, train_cells
from smrmf.graph.dense_points import many_points
from smrmf.graph.given_neighbors import given_neighbors
from smrmf.graph.neighbors import MeasuredPoints, find_neighbors, measured_points

# So many pairs of points are compared within a second or two: 20,000 points with each other.
EXACT_PAIRS = 20_000**2
# Cells of fewer points would hold a handful each.
FEWEST_IN_CELLS = 2000


class InCells(NamedTuple):
    """Neighbours are to be found in cells: the centres of these, and the one of every point."""

    centers: np.ndarray
    of_point: np.ndarray

    def ordered(self) -> tuple[InCells, np.ndarray]:
        """Return the same for points in the order of their cells, and that order."""
        order = np.argsort(self.of_point, kind="stable").astype(self.of_point.dtype)
        return InCells(self.centers, self.of_point[order]), order


def search(
    X: Any,
    n_neighbors: int,
    pool: Pool,
    how: Any = "auto",
    needed: int = 1,
    progress: Progress = NOBODY,
) -> tuple[MeasuredPoints, Neighbors]:
    """Prepare the points for distances, and find the nearest others of every one.

    ``how`` is the name of a search, cells to search in, or has the neighbours. Of these there may be fewer
    than ``n_neighbors``, but not fewer than ``needed``.
    """
    if isinstance(how, InCells):
        found = find_in_cells(X, n_neighbors, *how, pool, progress)
        return many_points(X), found or find_neighbors(X, n_neighbors, pool=pool, progress=progress)
    points = measured_points(X)
    if not isinstance(how, str):
        return points, given_neighbors(how, X, n_neighbors, needed)
    return points, nearest(X, n_neighbors, how=how, points=points, pool=pool, progress=progress)


def nearest(
    X: Any,
    n_neighbors: int,
    queries: Any = None,
    *,
    how: str = "auto",
    points: MeasuredPoints | None = None,
    pool: Pool = SERIAL,
    progress: Progress = NOBODY,
) -> Neighbors:
    """Find the nearest rows of ``X`` to every query (by default to every row but itself).

    "auto" compares all pairs up to some hundred million of them, and beyond this points of near cells.
    """
    if queries is not None:
        n_queries = queries.shape[0]
        search = SearchAmong.prepare(X, n_neighbors, how, n_queries, lambda rows: queries[rows], pool)
        return search.nearest(queries, pool)
    if is_searched_in_cells(X, how):
        dense = X.toarray() if sp.issparse(X) else X
        found = find_in_cells(dense, n_neighbors, *train_cells(dense, pool), pool, progress)
        if found is not None:
            return found
    return find_neighbors(X, n_neighbors, points=points, pool=pool, progress=progress)


@dataclass(frozen=True)
class SearchAmong:
    """A search among points that is prepared once, for block after block of queries."""

    points: MeasuredPoints
    n_neighbors: int
    in_cells: CellSearch | None = None
    recall: float = 1.0

    @classmethod
    def prepare(
        cls,
        X: Any,
        n_neighbors: int,
        how: str,
        n_queries: int,
        some: Callable[[np.ndarray], Any],
        pool: Pool,
    ) -> Self:
        """Prepare it for so many queries, of which ``some`` returns those of given numbers."""
        if not is_searched_in_cells(X, how, n_queries):
            return cls(measured_points(X), n_neighbors)
        dense = X.toarray() if sp.issparse(X) else X
        points, cells = many_points(dense), Cells.of(dense, *train_cells(dense, pool))
        sample = queries_in_cells(points.queries(some(sample_of(n_queries))), cells, pool)
        tuned = tuned_search(dense, n_neighbors, cells, sample, pool)
        return cls(points, n_neighbors) if tuned is None else cls(points, n_neighbors, *tuned)

    def nearest(self, queries: Any, pool: Pool) -> Neighbors:
        """Return the nearest points of every query."""
        if self.in_cells is None:
            return find_neighbors(self.points.X, self.n_neighbors, queries, points=self.points, pool=pool)
        questions = queries_in_cells(self.points.queries(queries), self.in_cells.cells, pool)
        return self.in_cells.nearest(questions, self.n_neighbors, pool)._replace(recall=self.recall)


def queries_in_cells(queries: np.ndarray, cells: Cells, pool: Pool) -> Questions:
    """Return queries that are no points themselves, with the cell that each lies in."""
    none = np.full(len(queries), -1)
    return Questions(queries, none, nearest_center(cells.centers.X, queries, pool))


def is_searched_in_cells(X: Any, how: Any, n_queries: int | None = None) -> bool:
    """Tell whether a search is approximate; among sparse points, which have no cells, it never is."""
    if sp.issparse(X) and not is_cheap_dense(X):
        return False
    return suits_cells(X.shape[0], how, n_queries)


def suits_cells(n_samples: int, how: Any, n_queries: int | None = None) -> bool:
    """Tell whether dense points are searched in cells: because they are many, or because it is wished."""
    if not isinstance(how, str) or how == "exact" or n_samples < FEWEST_IN_CELLS:
        return False
    return how == "approximate" or n_samples * (n_samples if n_queries is None else n_queries) > EXACT_PAIRS
