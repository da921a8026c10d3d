"""Graphs of points in parts: a part has the rows of its own points, and columns for these and its halo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from smrmf.dask._blocks import Blocks, Each, Groups
from smrmf.dask._halo import Halo, readers
from smrmf.graph.graphs import keep_entries, laplacian_rows


@dataclass(frozen=True)
class BlockGraph:
    """The weights between points that know each other."""

    parts: Blocks
    halo: Halo

    def transposed(self) -> BlockGraph:
        """Return the same with the ends of every edge exchanged."""
        halo, columns = self.halo, self.halo.columns
        group = halo.known // readers(len(halo.pairs))
        # In a halo parts that follow each other are next to each other: a letter is a range of columns.
        ways, first, letter = np.unique(
            np.stack([halo.knowing, group]), axis=1, return_index=True, return_inverse=True
        )
        begins, letter = columns[first], letter.ravel()
        ends = begins + np.bincount(letter, halo.counts, minlength=len(begins)).astype(int)
        letters = self.parts.at(ways[0]).map(columns_known, Each(begins.tolist()), Each(ends.tolist()))
        # A part gets what each other has of its points: whom these are, and whom it knows of the other.
        theirs = [halo.turned[mine] for mine in halo.pairs]
        parts = self.parts.map(
            rows_with_those_of_others,
            Groups(letters, [letter[mine] for mine in theirs]),
            Each([(columns - begins[letter])[mine].tolist() for mine in theirs]),
            Groups(halo.rows, theirs),
            Groups(halo.rows, halo.pairs),
            Each([columns[mine].tolist() for mine in halo.pairs]),
        )
        return BlockGraph(parts, halo)

    def symmetrized(self) -> BlockGraph:
        """Return ``(W + W') / 2`` without its diagonal."""
        return BlockGraph(self.parts.map(mean_of_both, self.transposed().parts), self.halo)


@dataclass(frozen=True)
class BlockLaplacian:
    """The Laplacian of a symmetric graph in parts."""

    weights: BlockGraph
    degrees: Blocks

    @classmethod
    def of(cls, weights: BlockGraph) -> BlockLaplacian:
        """Add up the weights of every point."""
        return cls(weights, weights.parts.map(row_sums))

    def __matmul__(self, G: Blocks) -> Blocks:
        """Return ``L G``."""
        return self.times(G, None)

    def times(self, G: Blocks, out: object) -> Blocks:
        """Return ``L G``."""
        return self.weights.parts.map(laplacian_of_part, self.degrees, self.weights.halo.gathered(G))


def columns_known(W: sp.csr_array, first: int, end: int) -> sp.csr_array:
    """Return the edges of a part to points of others, as rows of these."""
    return sp.csr_array(W[:, first:end].T)


def rows_with_those_of_others(
    W: sp.csr_array,
    letters: Sequence[sp.csr_array],
    begins: Sequence[int],
    own: Sequence[np.ndarray],
    known: Sequence[np.ndarray],
    columns: Sequence[int],
) -> sp.csr_array:
    """Return the transposed rows of a part from its own edges, and from those of others to its points.

    From where it begins, a letter has a row for each of the ``own`` points that another part knows, and
    columns for all points of that part, of which this one knows some. These begin at a column of their own.
    """
    n = W.shape[0]
    inside = sp.coo_array(W[:, :n].T)
    rows, places, data = [inside.coords[0]], [inside.coords[1]], [inside.data]
    for letter, begin, mine, theirs, column in zip(letters, begins, own, known, columns, strict=True):
        entries = sp.coo_array(letter[begin : begin + len(mine)])
        rows.append(mine[entries.coords[0]])
        places.append(column + np.searchsorted(theirs, entries.coords[1]))
        data.append(entries.data)
    ends = np.concatenate(rows), np.concatenate(places)
    return sp.csr_array((np.concatenate(data), ends), shape=W.shape)


def mean_of_both(one: sp.csr_array, other: sp.csr_array) -> sp.csr_array:
    """Return the mean of two graphs, without edges from a point to itself."""
    # A quotient would be of doubles.
    both = sp.csr_array((one + other) * one.dtype.type(0.5))
    rows = np.repeat(np.arange(both.shape[0]), np.diff(both.indptr))
    return keep_entries(both, (both.indices != rows) & (both.data != 0))


def row_sums(W: sp.csr_array) -> np.ndarray:
    return np.asarray(W.sum(axis=1)).ravel()


def laplacian_of_part(W: sp.csr_array, degrees: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Return the rows of L G of a part, with G of its own points and of its halo."""
    out = np.empty((W.shape[0], G.shape[1]), G.dtype)
    laplacian_rows(W.indptr, W.indices, W.data, degrees, 0, G, out)
    return out
