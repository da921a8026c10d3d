"""Where the rows of a test lie: in memory, or cut into parts that tasks work on."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from dask.delayed import Delayed

from smrmf.dask._blocks import Blocks, blocks_of
from smrmf.dask._graph import BlockGraph
from smrmf.dask._halo import Halo
from smrmf.dask._operations import InParts
from smrmf.factorization._loop import IN_PLACE


def cut(A, starts):
    return blocks_of([A[first:last] for first, last in pairwise(starts)])


def joined(blocks):
    return np.concatenate(blocks.compute())


def graph_in_parts(W, halo):
    """Cut a graph, whose edges lead to known points only, into parts."""
    numbers, parts = halo.numbers.compute(), []
    for part, (first, last) in enumerate(pairwise(halo.starts)):
        columns = np.concatenate([np.arange(first, last), numbers[part]])
        assert W[first:last].nnz == W[first:last][:, columns].nnz
        parts.append(sp.csr_array(W[first:last][:, columns]))
    return BlockGraph(blocks_of(parts), halo)


def graph_in_memory(graph):
    """Put the parts of a graph together."""
    n, numbers, rows = graph.halo.starts[-1], graph.halo.numbers.compute(), []
    for part, W in enumerate(graph.parts.compute()):
        first, last = graph.halo.starts[part : part + 2]
        columns = np.concatenate([np.arange(first, last), numbers[part]])
        entries = sp.coo_array(W)
        ends = entries.coords[0], columns[entries.coords[1]]
        rows.append(sp.coo_array((entries.data, ends), shape=(last - first, n)))
    return sp.csr_array(sp.vstack(rows))


class InMemory:
    """Rows stay as they are."""

    ops = IN_PLACE

    def cut(self, A):
        return A

    def joined(self, A):
        return A

    def graph(self, W, lists):
        return W


class InThreeParts:
    """Rows lie in three parts of unequal size; small values may be put off."""

    ops = InParts()

    def cut(self, A):
        n = len(A)
        return cut(A, np.array([0, n // 2, n // 2 + 1, n]))

    def joined(self, A):
        if isinstance(A, Blocks):
            return joined(A)
        return A.compute() if isinstance(A, Delayed) else A

    def graph(self, W, lists):
        n = len(lists)
        starts = np.array([0, n // 2, n // 2 + 1, n])
        return graph_in_parts(W, Halo.of(cut(lists, starts), starts))


PLACES = {"in memory": InMemory(), "in parts": InThreeParts()}
