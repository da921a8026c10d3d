"""Which search finds the neighbours: exact, approximate, or none, as they are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from smrmf._arrays import is_cheap_dense
from smrmf._parallel import SERIAL, Pool
from smrmf._progress import NOBODY, Progress
from smrmf.graph.approximate import CellSearch, Questions, find_in_cells, tuned_search
from smrmf.graph.candidates import Neighbors
from smrmf.graph.cells import Cells, nearest_center, train_cells
from smrmf.graph.dense_points import many_points
from smrmf.graph.given_neighbors import given_neighbors
from smrmf.graph.neighbors import MeasuredPoints, find_neighbors, measured_points

# So many points are compared with each other within a second or two.
MOST_EXACT = 20_000
# Cells of fewer points would hold a handful each.
FEWEST_IN_CELLS = 2000


class InCells(NamedTuple):
    """Neighbours are to be found in cells: the centres of these, and the one of every point.

    Every point asks ``n_asked`` of them; None where this is not known yet, 0 where it would have to ask most
    of them, so that comparing all points is as fast.
    """

    centers: np.ndarray
    of_point: np.ndarray
    n_asked: int | None = None

    def ordered(self) -> tuple[InCells, np.ndarray]:
        """Return the same for points in the order of their cells, and that order."""
        order = np.argsort(self.of_point, kind="stable").astype(self.of_point.dtype)
        return self._replace(of_point=self.of_point[order]), order


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
        found = find_in_cells(n_neighbors, Cells.of(X, how.centers, how.of_point), pool, progress)
        if found is None:
            # All are found, but who makes lists of many points longer would compare all of them again.
            found = find_neighbors(X, n_neighbors, pool=pool, progress=progress)._replace(exact=False)
        return many_points(X), found
    points = measured_points(X)
    if not isinstance(how, str):
        return points, given_neighbors(how, X, n_neighbors, needed)
    return points, nearest(X, n_neighbors, how=how, points=points, pool=pool, progress=progress)


def nearest(
    X: Any,
    n_neighbors: int,
    *,
    how: str = "auto",
    points: MeasuredPoints | None = None,
    pool: Pool = SERIAL,
    progress: Progress = NOBODY,
) -> Neighbors:
    """Find the nearest rows of ``X`` to every row but itself.

    "auto" compares all pairs up to some hundred million of them, and beyond this points of near cells.
    """
    if is_searched_in_cells(X, how):
        dense = X.toarray() if sp.issparse(X) else X
        found = find_in_cells(n_neighbors, Cells.of(dense, *train_cells(dense, pool)), pool, progress)
        if found is not None:
            return found
    return find_neighbors(X, n_neighbors, points=points, pool=pool, progress=progress)


@dataclass(frozen=True)
class SearchAmong:
    """A search among points that is prepared once, for block after block of queries."""

    points: MeasuredPoints
    n_neighbors: int
    in_cells: CellSearch | None = None

    @classmethod
    def prepare(cls, X: Any, n_neighbors: int, how: str, pool: Pool, known: InCells | None = None) -> Self:
        """Prepare it, with the cells that are known, or anew.

        How a query is answered depends on the points, not on how many others are asked with it.
        """
        if not is_searched_in_cells(X, how) or (known is not None and known.n_asked == 0):
            return cls(measured_points(X), n_neighbors)
        dense = X.toarray() if sp.issparse(X) else X
        if known is not None and known.n_asked is not None:
            cells = Cells.of(dense, known.centers, known.of_point)
            return cls(many_points(dense), n_neighbors, CellSearch(cells, known.n_asked))
        tuned = tuned_search(n_neighbors, Cells.of(dense, *train_cells(dense, pool)), pool)
        return cls(many_points(dense), n_neighbors, None if tuned is None else tuned[0])

    def nearest(self, queries: Any, pool: Pool) -> Neighbors:
        """Return the nearest points of every query."""
        if self.in_cells is None:
            return find_neighbors(self.points.X, self.n_neighbors, queries, points=self.points, pool=pool)
        dense = self.points.queries(queries)
        cell = nearest_center(self.in_cells.cells.map.centers.X, dense, pool)
        # None is a point itself.
        questions = Questions(dense, np.full(len(dense), -1), cell)
        return self.in_cells.nearest(questions, self.n_neighbors, pool)


def is_searched_in_cells(X: Any, how: Any) -> bool:
    """Tell whether a search is approximate; among sparse points, which have no cells, it never is."""
    if sp.issparse(X) and not is_cheap_dense(X):
        return False
    return suits_cells(X.shape[0], how)


def suits_cells(n_samples: int, how: Any) -> bool:
    """Tell whether dense points are searched in cells: because they are many, or because it is wished."""
    if not isinstance(how, str) or how == "exact" or n_samples < FEWEST_IN_CELLS:
        return False
    return how == "approximate" or n_samples > MOST_EXACT
