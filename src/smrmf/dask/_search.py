"""Nearest neighbours across parts: the points of near cells meet, wherever they lie.

The cells are those of a search in memory (:mod:`smrmf.graph.cells`), by centres that are trained on a sample
and known to all. Consecutive cells are near each other, and a part has consecutive ones, so that most of the
cells that its points ask are its own. Two parts meet if points of the one may ask cells of the other; each
point keeps the nearest that it has met.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from dask.delayed import Delayed

from smrmf._parallel import SERIAL
from smrmf.dask._blocks import MOST_BYTES, Blocks, Each, Groups, mapped, rows_by_number, shared, value
from smrmf.dask._input import Input
from smrmf.dask._shuffle import Placed, place
from smrmf.graph.approximate import AIMED_RECALL, LARGEST_SHARE, SAMPLE, CellSearch, Questions, cells_needed
from smrmf.graph.candidates import by_distance
from smrmf.graph.cells import (
    TRAINED_PER_CELL,
    CellMap,
    Cells,
    cells_that_suit,
    nearest_center,
    trained_centers,
)

# The distances between all centres are known to every worker: more centres than this take too much room.
MOST_CELLS = 4096


class Lists(NamedTuple):
    """Neighbours of points: their numbers among all, and squared distances, nearest first."""

    numbers: np.ndarray
    squared: np.ndarray


class Ways(NamedTuple):
    """Where cells lie, here and on the workers, and how many of them a query asks at least."""

    cell_map: CellMap
    on_workers: Delayed
    n_asked: int

    def asked(self, needed: int) -> np.ndarray:
        """Return for every cell how many its queries ask, such that they have as many points as needed."""
        return self.cell_map.asked_from(self.n_asked, needed)


class Found(NamedTuple):
    """Points in their parts, and what a search has found: neighbours, and which share of the true ones."""

    placed: Placed
    lists: Blocks
    ways: Ways
    recall: float


def search(given: Input, n_neighbors: int, n_parts: int) -> Found:
    """Bring near points together, and find nearly all of the nearest others of every one."""
    centers = in_a_row(centers_of(given.X, given.chunk_sizes, given.row_bytes))
    on_workers = shared(centers)
    cell_of = given.X.map(nearest_cell, on_workers).persist()
    placed = place(given.X, cell_of, len(centers), n_parts)
    cell_map = CellMap.of(centers, placed.sizes)
    n_asked, recall = tuned(placed, cell_map, n_neighbors)
    # Every worker makes its own map: that of many cells is larger than their centres.
    known = value(CellMap.of, on_workers, shared(placed.sizes)).persist()
    ways = Ways(cell_map, known, n_asked)
    return Found(placed, lists_in_cells(placed, ways, n_neighbors), ways, recall)


# Centres


def centers_of(X: Blocks, chunk_sizes: Sequence[int], row_bytes: int) -> np.ndarray:
    """Return centres of cells, trained in this process on a sample."""
    n = sum(chunk_sizes)
    number = min(cells_that_suit(n), MOST_CELLS)
    size = min(TRAINED_PER_CELL * number, max(MOST_BYTES // row_bytes, number))
    draw = np.random.RandomState(0)
    sample = np.unique(draw.randint(0, n, 2 * size))
    sample = np.sort(draw.permutation(sample)[:size])
    seen = rows_by_number(X, np.concatenate([[0], np.cumsum(chunk_sizes)]), sample)
    first = np.sort(draw.permutation(len(seen))[:number])
    return trained_centers(seen[first], seen, SERIAL)


def in_a_row(centers: np.ndarray) -> np.ndarray:
    """Return centres in an order in which those next to each other are near: halves of halves."""
    order, stack = [], [np.arange(len(centers))]
    while stack:
        some = stack.pop()
        if len(some) <= 2:
            order.append(some)
            continue
        axis = centers[some].var(axis=0).argmax()
        by_axis = some[np.argsort(centers[some, axis], kind="stable")]
        half = len(some) // 2
        stack += [by_axis[half:], by_axis[:half]]
    return centers[np.concatenate(order)]


def nearest_cell(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return nearest_center(centers, X, SERIAL)


# How many cells are asked


def tuned(placed: Placed, cell_map: CellMap, n_neighbors: int) -> tuple[int, float]:
    """Return how many cells are asked, by the true neighbours of some points, and the recall on others."""
    n = int(placed.starts[-1])
    numbers = np.unique(np.linspace(0, n - 1, 2 * SAMPLE).astype(int))
    X, cell = (rows_by_number(of, placed.starts, numbers) for of in (placed.X, placed.origin[0]))
    everywhere = placed.X.map(
        nearest_in_part,
        Each(placed.starts[:-1].tolist()),
        shared(X),
        numbers=numbers,
        n_neighbors=n_neighbors,
    )
    of_neighbors = cell_of_numbers(placed, everywhere.total(merged).compute().numbers)
    needed = cells_needed(cell_map, Questions(X, numbers, cell), of_neighbors)
    chosen, measured = needed[::2], needed[1::2]
    n_asked = int(np.quantile(chosen, AIMED_RECALL, method="higher"))
    if n_asked > LARGEST_SHARE * cell_map.number:
        return cell_map.number, 1.0
    return n_asked, float(np.mean(measured <= n_asked))


def nearest_in_part(
    X: np.ndarray, first: int, queries: np.ndarray, numbers: np.ndarray, n_neighbors: int
) -> Lists:
    """Return the nearest points of a part to some points, not counting these themselves."""
    cells = Cells.on(CellMap.of(X[:1], np.array([len(X)])), X, np.zeros(len(X), np.int32))
    own = np.where((numbers >= first) & (numbers < first + len(X)), numbers - first, -1)
    questions = Questions(queries, own, np.zeros(len(queries), int))
    found = CellSearch(cells, 1).nearest_where(np.ones(1, int), questions, n_neighbors, SERIAL)
    return Lists(first + found.indices.astype(np.int64), found.squared)


def cell_of_numbers(placed: Placed, numbers: np.ndarray) -> np.ndarray:
    """Return the cells of points, which are numbered cell by cell."""
    return np.searchsorted(np.cumsum(placed.sizes), numbers, side="right")


# The search


def lists_in_cells(placed: Placed, ways: Ways, n_neighbors: int) -> Blocks:
    """Return the nearest points of every point in the cells that it asks."""
    asked, cell_of = shared(ways.asked(n_neighbors + 1)), placed.origin[0]
    wanted = np.array(placed.X.map(cells_asked, cell_of, ways.on_workers, asked).compute())
    asking, having = np.nonzero(np.add.reduceat(wanted, placed.bounds[:-1], axis=1))
    found = placed.X.at(asking).map(
        nearest_in_other,
        cell_of.at(asking),
        placed.X.at(having),
        cell_of.at(having),
        Each(placed.starts[having].tolist()),
        Each((asking == having).tolist()),
        ways.on_workers,
        asked,
        n_neighbors=n_neighbors,
    )
    of_part = [np.flatnonzero(asking == part) for part in range(len(placed.X))]
    return mapped(len(placed.X), merged, Groups(found, of_part))


def cells_asked(X: np.ndarray, cell: np.ndarray, cell_map: CellMap, asked: np.ndarray) -> np.ndarray:
    """Mark the cells that any point of a part asks."""
    wanted = np.zeros(cell_map.number, dtype=bool)
    for rows in Questions(X, cell, cell).blocks():
        own = cell[rows[0]]
        by = cell_map.asked_by(X[rows], own, asked[own])
        wanted[by.choice[by.chosen.any(axis=0)]] = True
    return wanted


def nearest_in_other(
    X: np.ndarray,
    cell: np.ndarray,
    other: np.ndarray,
    other_cell: np.ndarray,
    first: int,
    itself: bool,
    cell_map: CellMap,
    asked: np.ndarray,
    n_neighbors: int,
) -> Lists:
    """Return the nearest points of another part, or the same, to the points of a part in cells they ask."""
    own = np.arange(len(X)) if itself else np.full(len(X), -1)
    search = CellSearch(Cells.on(cell_map, other, other_cell), 0)
    found = search.nearest_where(asked, Questions(X, own, cell), n_neighbors, SERIAL)
    return Lists(first + found.indices.astype(np.int64), found.squared)


def merged(parts: Sequence[Lists]) -> Lists:
    """Return the nearest of several lists of every point."""
    size = parts[0].numbers.shape[1]
    numbers, squared = (np.concatenate(side, axis=1) for side in zip(*parts, strict=True))
    squared, numbers = by_distance(squared, numbers)
    return Lists(np.ascontiguousarray(numbers[:, :size]), np.ascontiguousarray(squared[:, :size]))
