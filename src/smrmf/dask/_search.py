"""Nearest neighbours across parts: the points of near cells meet, wherever they lie.

The cells are those of a search in memory (:mod:`smrmf.graph.cells`), by centres that are trained on a sample
and known to all. Consecutive cells are near each other, and a part has consecutive ones, so that most of the
cells that its points ask are its own. For every pair of parts, the cells of the one that points of the other
may ask are compared with these; each point keeps the nearest that it has met.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from dask.delayed import Delayed

from smrmf._parallel import SERIAL
from smrmf.dask._blocks import Blocks, Each, Groups, mapped, pairs, rows_by_number, shared, value
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


def search(X: Blocks, chunk_sizes: Sequence[int], n_neighbors: int, n_parts: int) -> Found:
    """Bring near points together, and find nearly all of the nearest others of every one."""
    centers = in_a_row(centers_of(X, chunk_sizes))
    on_workers = shared(centers)
    cell_of = X.map(nearest_cell, on_workers).persist()
    placed = place(X, cell_of, len(centers), n_parts)
    cell_map = CellMap.of(centers, placed.sizes)
    n_asked, recall = tuned(placed, cell_map, n_neighbors)
    # Every worker makes its own map: that of many cells is larger than their centres.
    known = value(CellMap.of, on_workers, shared(placed.sizes)).persist()
    ways = Ways(cell_map, known, n_asked)
    return Found(placed, lists_in_cells(placed, ways, n_neighbors), ways, recall)


# Centres


def centers_of(X: Blocks, chunk_sizes: Sequence[int]) -> np.ndarray:
    """Return centres of cells, trained on a sample."""
    n = sum(chunk_sizes)
    number = min(cells_that_suit(n), MOST_CELLS)
    draw = np.random.RandomState(0)
    sample = np.unique(draw.randint(0, n, 2 * TRAINED_PER_CELL * number))
    sample = np.sort(draw.permutation(sample)[: TRAINED_PER_CELL * number])
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
        queries=X,
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
    bounds, n_parts, cell_map = placed.bounds, len(placed.X), ways.cell_map
    asked = ways.asked(n_neighbors + 1)
    wanted = np.zeros((n_parts, cell_map.number), dtype=bool)
    for part in range(n_parts):
        for cell in range(bounds[part], bounds[part + 1]):
            wanted[part, cell_map.choice(cell, asked[cell])] = True
    asking, having = pairs(n_parts, n_parts)
    of_pair = [
        np.arange(bounds[b], bounds[b + 1])[wanted[a, bounds[b] : bounds[b + 1]]]
        for a, b in zip(asking, having, strict=True)
    ]
    some = [place for place, cells in enumerate(of_pair) if len(cells) > 0]
    asking, having = asking[some], having[some]
    cell_of = placed.origin[0]
    pieces = placed.X.at(having).map(
        in_some_cells,
        cell_of.at(having),
        Each([of_pair[place] for place in some]),
        Each(placed.starts[having].tolist()),
    )
    found = placed.X.at(asking).map(
        nearest_in_piece,
        cell_of.at(asking),
        pieces,
        Each(placed.starts[asking].tolist()),
        ways.on_workers,
        shared(asked),
        n_neighbors=n_neighbors,
    )
    return mapped(n_parts, merged, Groups(found, [np.flatnonzero(asking == part) for part in range(n_parts)]))


class Piece(NamedTuple):
    """Some points of a part, in the order of their cells, and their numbers among all."""

    X: np.ndarray
    cell: np.ndarray
    numbers: np.ndarray


def in_some_cells(X: np.ndarray, cell: np.ndarray, cells: np.ndarray, first: int) -> Piece:
    """Return the points of a part in some of its cells."""
    mine = np.flatnonzero(np.isin(cell, cells))
    return Piece(X[mine], cell[mine], first + mine)


def nearest_in_piece(
    X: np.ndarray,
    cell: np.ndarray,
    piece: Piece,
    first: int,
    cell_map: CellMap,
    asked: np.ndarray,
    n_neighbors: int,
) -> Lists:
    """Return the nearest points of a piece to every point of a part, in the cells that it asks."""
    numbers = first + np.arange(len(X))
    own = np.searchsorted(piece.numbers, numbers)
    there = piece.numbers[np.minimum(own, len(piece.numbers) - 1)] == numbers
    search = CellSearch(Cells.on(cell_map, piece.X, piece.cell), 0)
    questions = Questions(X, np.where(there, own, -1), cell)
    found = search.nearest_where(asked, questions, n_neighbors, SERIAL)
    return Lists(piece.numbers[found.indices], found.squared)


def merged(parts: Sequence[Lists]) -> Lists:
    """Return the nearest of several lists of every point."""
    size = parts[0].numbers.shape[1]
    numbers, squared = (np.concatenate(side, axis=1) for side in zip(*parts, strict=True))
    squared, numbers = by_distance(squared, numbers)
    return Lists(np.ascontiguousarray(numbers[:, :size]), np.ascontiguousarray(squared[:, :size]))
