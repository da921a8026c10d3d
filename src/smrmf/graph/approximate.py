"""The nearest neighbours of many points in a fraction of the time, with nearly all of them found.

A query asks the cells of its nearest centres (:mod:`smrmf.graph.cells`). How many it must ask, a sample of
the points tells beforehand, whose true neighbours are looked for in all cells; another sample tells what is
found so, and is asked before all others are. Distances of what is found are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from smrmf._parallel import Pool
from smrmf._progress import NOBODY, Progress
from smrmf.graph.candidates import SPARE_CANDIDATES, Neighbors, by_distance, empty_lists, lost_in_rounding
from smrmf.graph.cells import CHOICE, CellMap, Cells
from smrmf.kernels.distances import pair_squared_distances

# Queries that are compared at a time.
MOST_QUERIES = 1024
# Points whose true neighbours are found, to choose how many cells are asked, and as many others to measure
# what is found. More is aimed at than promised, so that more cells are rarely needed.
SAMPLE = 256
AIMED_RECALL, PROMISED_RECALL = 0.97, 0.95
# Where a larger share of the cells would have to be asked, comparing all points is as fast.
LARGEST_SHARE = 0.3


class Questions(NamedTuple):
    """Queries, the row that each is itself or -1, and the cell that each lies in."""

    X: np.ndarray
    own: np.ndarray
    cell: np.ndarray

    def part(self, rows: np.ndarray) -> Questions:
        """Return some of them."""
        return Questions(self.X[rows], self.own[rows], self.cell[rows])

    def blocks(self) -> list[np.ndarray]:
        """Cut them into blocks of one cell each."""
        order = np.argsort(self.cell, kind="stable")
        ends = np.cumsum(np.bincount(self.cell))
        ends = ends[np.diff(ends, prepend=0) > 0]
        runs = np.split(order, ends[:-1])
        return [
            run[start : start + MOST_QUERIES] for run in runs for start in range(0, len(run), MOST_QUERIES)
        ]


class Sample(NamedTuple):
    """Some of the queries, and their nearest points."""

    questions: Questions
    neighbors: Neighbors

    def part(self, rows: slice) -> Sample:
        """Return some of them."""
        X, own, cell = self.questions
        indices, squared = self.neighbors[:2]
        return Sample(Questions(X[rows], own[rows], cell[rows]), Neighbors(indices[rows], squared[rows]))

    def found(self, squared: np.ndarray) -> float:
        """Return which share of these points lists with such distances have, or others as near."""
        return float(np.mean(squared <= self.neighbors.squared[:, -1:]))


@dataclass(frozen=True)
class CellSearch:
    """Points in cells, of which every query asks the same number."""

    cells: Cells
    n_asked: int

    def nearest(
        self, questions: Questions, n_neighbors: int, pool: Pool, progress: Progress = NOBODY
    ) -> Neighbors:
        """Return the nearest points in the cells that each query asks."""
        asked = self.cells.map.asked_from(self.n_asked, n_neighbors + 1)
        return self.nearest_where(asked, questions, n_neighbors, pool, progress)

    def nearest_where(
        self,
        asked: np.ndarray,
        questions: Questions,
        n_neighbors: int,
        pool: Pool,
        progress: Progress = NOBODY,
    ) -> Neighbors:
        """Return the same where queries of each cell ask as many as is said, maybe with too few points."""
        squared, indices = self._lists(len(questions.own), n_neighbors)

        def search_block(rows: np.ndarray) -> None:
            # Each block writes to lists of its own.
            squared[rows], indices[rows] = self._ask(questions.part(rows), n_neighbors, asked)

        pool.map(search_block, questions.blocks(), progress)
        return Neighbors(indices, squared, exact=False, n_asked=self.n_asked)

    def nearest_of_few(self, questions: Questions, n_neighbors: int, pool: Pool) -> Neighbors:
        """Return the same for few queries, in few blocks, whatever cells they lie in: where all are asked."""
        asked = np.full(self.cells.map.number, self.cells.map.number)
        found = pool.map(
            lambda rows: self._ask(questions.part(rows), n_neighbors, asked),
            np.array_split(np.arange(len(questions.own)), 4),
        )
        squared, indices = map(np.concatenate, zip(*found, strict=True))
        return Neighbors(indices, squared)

    def _ask(
        self, block: Questions, n_neighbors: int, asked_from: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ask cells near that of the first query; return distances and indices."""
        cells, queries = self.cells, block.X
        own_cell = block.cell[0]
        choice, to_centers, asked = cells.map.asked_by(queries, own_cell, asked_from[own_cell])
        best, index = self._lists(len(queries), n_neighbors + SPARE_CANDIDATES)
        own = block.own
        if cells.places is not None:
            own = np.where(own < 0, -1, cells.places[own])
        for column in np.flatnonzero(asked.any(axis=0)):
            cells.merge_nearest(choice[column], queries, own, np.flatnonzero(asked[:, column]), best, index)
        exact, indices = by_distance(*self._exact(queries, best, cells.rows(index)))
        # The product form has the rounding of the distance to the farthest centre that was asked.
        farthest = np.where(asked, to_centers, 0).max(axis=1)
        kth = exact[:, n_neighbors - 1]
        full = np.flatnonzero(np.isfinite(best[:, -1]))  # others have all there is in these cells
        for q in full[lost_in_rounding(farthest[full], best[full, -1], kth[full])]:
            query = block.part(np.array([q]))
            exact[q], indices[q] = self._ask_directly(query, choice[asked[q]], exact.shape[1])
        return exact[:, :n_neighbors], indices[:, :n_neighbors]

    def _exact(
        self, queries: np.ndarray, best: np.ndarray, indices: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return distances that are measured anew where lists have found anything, and the indices."""
        exact, found = np.full_like(best, np.inf), np.flatnonzero(np.isfinite(best[:, 0]))
        measured = np.empty((len(found), best.shape[1]), best.dtype)
        pair_squared_distances(queries[found], self.cells.X, indices[found], measured)
        exact[found] = measured
        exact[np.isinf(best)] = np.inf  # where a list is not full
        return exact, indices

    def _ask_directly(self, query: Questions, asked: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Compare one query with all points of some cells by differences, which never cancel."""
        indices = np.concatenate([self.cells.members(cell) for cell in asked])
        indices = indices[indices != query.own][None, :]
        exact = np.empty(indices.shape, query.X.dtype)
        pair_squared_distances(query.X, self.cells.X, indices, exact)
        exact, indices = by_distance(exact, indices)
        return exact[0, :size], indices[0, :size]

    def _lists(self, n_queries: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        return empty_lists(n_queries, size, self.cells.X.dtype, len(self.cells.X))


def find_in_cells(
    n_neighbors: int, cells: Cells, pool: Pool, progress: Progress = NOBODY
) -> Neighbors | None:
    """Find nearly all of the points nearest to every point but itself.

    None where comparing all is as fast.
    """
    found = tuned_search(n_neighbors, cells, pool)
    if found is None:
        return None
    search, recall = found
    return search.nearest(asked_by_points(cells), n_neighbors, pool, progress)._replace(recall=recall)


def asked_by_points(cells: Cells) -> Questions:
    """Return all points as queries."""
    return Questions(cells.X, np.arange(len(cells.X)), cells.of_point)


def tuned_search(n_neighbors: int, cells: Cells, pool: Pool) -> tuple[CellSearch, float] | None:
    """Choose how many cells are asked, by some of the points; return the recall of as many others, too.

    None where comparing all is as fast.
    """
    some = np.unique(np.linspace(0, len(cells.X) - 1, 2 * SAMPLE).astype(int))
    questions = asked_by_points(cells).part(some)
    everywhere = CellSearch(cells, cells.map.number).nearest_of_few(questions, n_neighbors, pool)
    known = Sample(questions, everywhere)
    chosen, measured = known.part(slice(0, None, 2)), known.part(slice(1, None, 2))
    n_asked = cells_to_ask(cells.map, chosen.questions, cells.of_point[chosen.neighbors.indices])
    while n_asked <= LARGEST_SHARE * cells.map.number:
        search = CellSearch(cells, n_asked)
        recall = measured.found(search.nearest(measured.questions, n_neighbors, pool).squared)
        if recall >= PROMISED_RECALL:
            return search, recall
        n_asked *= 2
    return None


def cells_to_ask(cell_map: CellMap, questions: Questions, of_neighbors: np.ndarray) -> int:
    """Return how many cells a query must ask so that nearly all true neighbours are found."""
    return int(np.quantile(cells_needed(cell_map, questions, of_neighbors), AIMED_RECALL, method="higher"))


def cells_needed(cell_map: CellMap, questions: Questions, of_neighbors: np.ndarray) -> np.ndarray:
    """Return how many cells a query must ask to come to each of some cells."""
    to_centers = cell_map.squared_distances(questions.X, np.arange(cell_map.number))
    own_rank = np.take_along_axis(ranks(to_centers), of_neighbors, 1)
    # A cell is asked if it is also one of those that queries of this cell choose among.
    choice_rank = np.take_along_axis(np.argsort(cell_map.near[questions.cell], axis=1), of_neighbors, 1)
    needed: np.ndarray = np.maximum(own_rank + 1, choice_rank // CHOICE + 1)
    return needed


def ranks(values: np.ndarray) -> np.ndarray:
    """Return the place of every entry in its sorted row."""
    return np.argsort(np.argsort(values, axis=1, kind="stable"), axis=1)
