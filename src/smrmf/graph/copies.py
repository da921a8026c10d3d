"""Which rows a fit learns from, and in which order: of rows that are there many times one is enough.

A list of neighbours that are copies tells nothing. A graph of such lists falls apart into groups of copies,
and which of these belong together it does not know. So every distinct row is learned from once, and what is
found of it holds for its copies: they have its label, and are represented by the same rows.

Many rows are learned from in an order in which neighbours lie near each other: a graph of them is read faster
than one whose edges lead all over the memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf._scratch import table_of_rows
from smrmf.graph.candidates import Neighbors
from smrmf.graph.groups import inverse_order

# Bytes that are read at once.
CACHE_LINE = 64


@dataclass(frozen=True)
class Copies:
    """Which rows are copies of which: the distinct one of every row, and the first row of every distinct one.

    None where no row is left out and all are in their order: then everything stays as it is.
    """

    groups: np.ndarray | None = None
    first: np.ndarray | None = None

    @classmethod
    def to_leave_out(cls, groups: np.ndarray, n_neighbors: int, n_needed: int = 0) -> Copies:
        """Return the copies to leave out: all, if some would fill lists and enough distinct rows remain."""
        counts = np.bincount(groups)
        # Copies outweigh all others already where they fill half of a list: they are at no distance.
        if counts.max() <= n_neighbors // 2 or len(counts) <= max(2 * n_neighbors + 1, n_needed):
            return cls()
        return cls(groups, np.unique(groups, return_index=True)[1])

    def in_order(self, order: np.ndarray) -> Copies:
        """Return the same with the distinct rows in another order."""
        place = inverse_order(order)
        if self.groups is None or self.first is None:
            return Copies(place, order)
        return Copies(place[self.groups], self.first[order])

    def distinct(self, data: Any) -> Any:
        """Return the distinct rows of a table that has all."""
        return data if self.first is None else table_of_rows(data, self.first)

    def table(self, data: Any) -> Any:
        """Return the table of all rows from that of the distinct ones; in its place if these are all."""
        if self.groups is None or self.first is None or len(self.first) < len(self.groups):
            return self.rows(data)
        return take_rows_in_place(data, self.groups)

    def rows(self, found: Any) -> Any:
        """Return for all rows what was found for the distinct ones."""
        return found if self.groups is None else found[self.groups]

    def places(self, indices: np.ndarray) -> np.ndarray:
        """Return the first rows of distinct ones."""
        return indices if self.first is None else self.first[indices]

    def neighbors(self, lists: Neighbors, count: int) -> Neighbors:
        """Return the ``count`` nearest of all rows to every distinct one, each called by its distinct one."""
        if self.groups is None or len(lists.indices) == len(self.groups):
            return lists
        times = np.bincount(self.groups)
        own = np.arange(len(times))[:, None]
        # A row is no neighbour of itself, but of its copies, which are at no distance.
        indices = np.hstack([own, lists.indices])
        squared = np.hstack([np.zeros_like(lists.squared[:, :1]), lists.squared])
        ends = np.cumsum(np.hstack([times[:, None] - 1, times[lists.indices]]), axis=1)
        places = np.column_stack([(ends <= rank).sum(axis=1) for rank in range(count)])
        indices, squared = (np.take_along_axis(part, places, 1) for part in (indices, squared))
        return lists._replace(indices=indices, squared=squared)

    def represented(self, Zt: Any) -> Any:
        """Return Zt of all rows: each is represented as its distinct one is, by first rows."""
        return Zt if self.groups is None else self._columns(Zt[self.groups])

    def graph(self, W: Any) -> Any:
        """Return the graph of all rows: each is tied to the first rows of those that its distinct one has."""
        if self.groups is None:
            return W
        # Of rows in another order alone the graph is symmetric as it was; adding it up sorts its columns.
        tied = self._columns(W[self.groups])
        return sp.csr_array((tied + tied.T) / 2) if sp.issparse(tied) else (tied + tied.T) / 2

    def _columns(self, found: Any) -> Any:
        """Return columns of distinct rows at the places of their first rows, all others empty."""
        assert self.first is not None
        n = found.shape[0]
        if sp.issparse(found):
            found = sp.csr_array(found)
            return sp.csr_array((found.data, self.first[found.indices], found.indptr), shape=(n, n))
        wide = np.zeros((n, n), found.dtype)
        wide[:, self.first] = found
        return wide


def take_rows_in_place(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return ``X[rows]``, a permutation of the rows, in the array of X."""
    # Some columns at a time, a line of the cache: a second table of many points would not be small.
    width = max(1, CACHE_LINE // X.dtype.itemsize)
    for start in range(0, X.shape[1], width):
        X[:, start : start + width] = X[rows, start : start + width]
    return X
