"""Rows that lie near each other come into one part, and what is found of them goes back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from smrmf.dask._blocks import Blocks, Each, Groups, added, mapped, settled

# In one round a part is cut into so many pieces at most. Tasks are few times the parts, not their square.
MOST_PIECES = 32


class Origin(NamedTuple):
    """Of points of a part, in the order of their cells: the cell, the chunk they came in, the row there."""

    cell: np.ndarray
    chunk: np.ndarray
    row: np.ndarray


@dataclass(frozen=True)
class Placed:
    """Points in the order of their cells.

    Part p has the cells from ``bounds[p]`` to before ``bounds[p + 1]``, of ``sizes`` points, and its points
    begin at ``starts[p]`` among all. ``chunk_sizes`` are those of the chunks in which they came.
    """

    X: Blocks
    origin: Blocks
    bounds: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray
    chunk_sizes: list[int]

    def returned(self, found: Blocks) -> Blocks:
        """Return what was found of the points in the chunks, and in the order, in which they came."""
        arrived = delivered(self.origin.map(sent_back, found), len(self.chunk_sizes))
        return arrived.map(in_row_order, Each(self.chunk_sizes))


def place(X: Blocks, cell_of: Blocks, n_cells: int, n_parts: int) -> Placed:
    """Bring the points of consecutive cells together, such that parts have about equally many."""
    sizes = cell_of.map(np.bincount, minlength=n_cells).total(added).compute()
    chunk_sizes = cell_of.map(len).compute()
    bounds = cut_evenly(sizes, n_parts)
    sent = X.map(sent_to_parts, cell_of, Each(range(len(X))), bounds=bounds)
    placed = delivered(sent, len(bounds) - 1).map(in_cell_order)
    rows, origin = settled((placed[0], placed[1]))
    starts = np.concatenate([[0], np.cumsum(sizes)])[bounds]
    return Placed(rows, origin, bounds, sizes, starts, chunk_sizes)


def cut_evenly(sizes: np.ndarray, n_parts: int) -> np.ndarray:
    """Return where to cut a row of cells so that about as many points lie in every part, and some in each."""
    before = np.concatenate([[0], np.cumsum(sizes)])
    cuts = np.searchsorted(before, np.arange(n_parts) * before[-1] / n_parts)
    cuts = cuts[np.concatenate([[True], np.diff(before[cuts]) > 0]) & (before[cuts] < before[-1])]
    return np.concatenate([cuts, [len(sizes)]])


def sent_to_parts(X: Any, cell_of: np.ndarray, chunk: int, bounds: np.ndarray) -> Sent:
    """Return the rows of a chunk for the parts that have their cells."""
    to = np.searchsorted(bounds, cell_of, side="right") - 1
    return Sent(to, (X, cell_of, np.full(len(to), chunk, np.int32), np.arange(len(to), dtype=np.int32)))


def in_cell_order(arrived: Sent) -> tuple[Any, Origin]:
    """Return rows in the order of their cells, and in each in the order they came."""
    order = np.argsort(arrived.what[1], kind="stable")
    X, *origin = (side[order] for side in arrived.what)
    return X, Origin(*origin)


def sent_back(origin: Origin, found: Any) -> Sent:
    return Sent(origin.chunk, (origin.row, found))


def in_row_order(arrived: Sent, size: int) -> Any:
    """Return what was found of the rows of a chunk, in their order."""
    rows, found = arrived.what
    assert len(rows) == size
    return found[np.argsort(rows, kind="stable")]


# Rounds


class Sent(NamedTuple):
    """Rows on their way: the part for which each is meant, and what is known of it, an array each."""

    to: np.ndarray
    what: tuple[Any, ...]


def delivered(sent: Blocks, n_parts: int) -> Blocks:
    """Bring rows to the parts for which they are meant, in the order in which they were.

    In every round the rows in a part are cut by ranges of parts, which become narrower, and some pieces for
    the same range make one part again.
    """
    n_rounds = max(1, math.ceil(math.log(n_parts, MOST_PIECES)))
    n_pieces = next(size for size in range(1, n_parts + 1) if size**n_rounds >= n_parts)
    holders = [np.arange(len(sent))]
    for left in reversed(range(n_rounds)):
        sent, holders = after_round(sent, holders, n_parts, n_pieces, n_pieces**left)
    return sent


def after_round(
    sent: Blocks, holders: list[np.ndarray], n_parts: int, n_pieces: int, width: int
) -> tuple[Blocks, list[np.ndarray]]:
    """Cut every range of parts into ranges of a width; ``holders`` are those that hold rows for each."""
    n_ranges = math.ceil(n_parts / width)
    mine = [holders[place // n_pieces] for place in range(n_ranges)]
    first = width * np.repeat(np.arange(n_ranges), [len(some) for some in mine])
    pieces = sent.at(np.concatenate(mine)).map(
        meant_for, Each(first.tolist()), Each((first + width).tolist())
    )
    # In the last round all that is meant for a part comes to it.
    together = max(map(len, mine)) if width == 1 else n_pieces
    lots: list[np.ndarray] = []
    after, done = [], 0
    for some in mine:
        cuts = np.arange(together, len(some), together)
        of_range = np.split(done + np.arange(len(some)), cuts)
        after.append(len(lots) + np.arange(len(of_range)))
        lots += of_range
        done += len(some)
    return mapped(len(lots), joined, Groups(pieces, lots)), after


def meant_for(sent: Sent, first: int, end: int) -> Sent:
    """Return the rows for some parts."""
    rows = np.flatnonzero((sent.to >= first) & (sent.to < end))
    return Sent(sent.to[rows], tuple(side[rows] for side in sent.what))


def joined(pieces: Sequence[Sent]) -> Sent:
    """Return the rows of some pieces behind each other."""
    to, what = zip(*pieces, strict=True)
    return Sent(np.concatenate(to), tuple(stacked_rows(side) for side in zip(*what, strict=True)))


def stacked_rows(parts: Sequence[Any]) -> Any:
    return sp.csr_array(sp.vstack(parts)) if sp.issparse(parts[0]) else np.concatenate(parts)
