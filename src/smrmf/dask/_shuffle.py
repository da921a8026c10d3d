"""Rows that lie near each other come into one part, and what is found of them goes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from smrmf.dask._blocks import Blocks, Each, Groups, added, mapped


class Rows(NamedTuple):
    """Points of a part, the cell of each, and where each came from: its chunk, and its row there."""

    X: Any
    cell: np.ndarray
    chunk: np.ndarray
    row: np.ndarray


@dataclass(frozen=True)
class Placed:
    """Points in the order of their cells.

    Part p has the cells from ``bounds[p]`` to before ``bounds[p + 1]``, of ``sizes`` points, and its points
    begin at ``starts[p]`` among all. ``chunk_sizes`` are those of the chunks in which they came.
    """

    parts: Blocks
    bounds: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray
    chunk_sizes: list[int]

    def returned(self, found: Blocks) -> Blocks:
        """Return what was found of the points in the chunks, and in the order, in which they came."""
        n_parts, n_chunks = len(found), len(self.chunk_sizes)
        part, chunk = pairs(n_parts, n_chunks)
        pieces = self.parts.at(part).map(piece_for, found.at(part), Each(chunk))
        of_chunks = Groups(pieces, [np.flatnonzero(chunk == place) for place in range(n_chunks)])
        return mapped(n_chunks, put_back, of_chunks, Each(self.chunk_sizes))


def place(X: Blocks, cell_of: Blocks, n_cells: int, n_parts: int) -> Placed:
    """Bring the points of consecutive cells together, such that parts have about equally many."""
    counts, chunk_sizes = cell_of.map(np.bincount, minlength=n_cells), cell_of.map(len)
    sizes = counts.total(added).compute()
    bounds = cut_evenly(sizes, n_parts)
    n_parts = len(bounds) - 1
    chunk, part = pairs(len(X), n_parts)
    pieces = X.at(chunk).map(
        piece_of, cell_of.at(chunk), Each(chunk), Each(bounds[part].tolist()), Each(bounds[part + 1].tolist())
    )
    of_parts = Groups(pieces, [np.flatnonzero(part == place) for place in range(n_parts)])
    starts = np.concatenate([[0], np.cumsum(sizes)])[bounds]
    return Placed(mapped(n_parts, in_cell_order, of_parts), bounds, sizes, starts, chunk_sizes.compute())


def pairs(n_first: int, n_second: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of two numbers."""
    return np.repeat(np.arange(n_first), n_second), np.tile(np.arange(n_second), n_first)


def cut_evenly(sizes: np.ndarray, n_parts: int) -> np.ndarray:
    """Return where to cut a row of cells so that about as many points lie in every part, and some in each."""
    before = np.concatenate([[0], np.cumsum(sizes)])
    cuts = np.searchsorted(before, np.arange(n_parts) * before[-1] / n_parts)
    cuts = cuts[np.concatenate([[True], np.diff(before[cuts]) > 0]) & (before[cuts] < before[-1])]
    return np.concatenate([cuts, [len(sizes)]])


def piece_of(X: Any, cell_of: np.ndarray, chunk: int, first: int, end: int) -> Rows:
    """Return the rows of a chunk in some cells."""
    rows = np.flatnonzero((cell_of >= first) & (cell_of < end))
    return Rows(X[rows], cell_of[rows], np.full(len(rows), chunk), rows)


def in_cell_order(pieces: Sequence[Rows]) -> Rows:
    """Return rows from several chunks in the order of their cells, and in each in the order they came."""
    X = stacked_rows([piece.X for piece in pieces])
    cell, chunk, row = (np.concatenate(parts) for parts in list(zip(*pieces, strict=True))[1:])
    order = np.argsort(cell, kind="stable")
    return Rows(X[order], cell[order], chunk[order], row[order])


def stacked_rows(parts: Sequence[Any]) -> Any:
    return sp.csr_array(sp.vstack(parts)) if sp.issparse(parts[0]) else np.concatenate(parts)


def piece_for(rows: Rows, found: Any, chunk: int) -> tuple[np.ndarray, Any]:
    """Return the rows of a chunk that a part has, and what was found of them."""
    mine = rows.chunk == chunk
    return rows.row[mine], found[mine]


def put_back(pieces: Sequence[tuple[np.ndarray, Any]], size: int) -> Any:
    """Return what was found of the rows of a chunk, in their order."""
    rows = np.concatenate([rows for rows, _ in pieces])
    assert len(rows) == size
    return stacked_rows([found for _, found in pieces])[np.argsort(rows, kind="stable")]
