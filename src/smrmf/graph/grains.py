"""Grains of a graph: points that no clustering of several has parted, taken as one.

Where clusterings agree nothing is left to decide, but where each grain goes. The graph of the grains has the
weight between any two of them, and that inside each as a loop: a clustering of the grains cuts in it what it
cuts in the graph of the points. The less doubt there is, the smaller it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from smrmf._numba import kernel
from smrmf._parallel import SERIAL, Pool
from smrmf.graph.groups import numbered_by_first

# The grains are cut into so many blocks: each has work arrays as long as there are grains.
BLOCKS = 16


def find_grains(partitions: Sequence[np.ndarray]) -> np.ndarray:
    """Return the grain of every point; points of one grain are together in all partitions.

    Grains are numbered by their first point, so they do not depend on how the partitions name their clusters.
    """
    grains = partitions[0]
    for labels in partitions:
        # Numbered anew each time, so that the product stays small.
        grains = numbered_by_first(grains * (labels.max() + 1) + labels)
    return grains


def graph_of_grains(W: sp.csr_array, grains: np.ndarray, pool: Pool = SERIAL) -> sp.csr_array:
    """Add the weights of all edges between any two grains, and of those inside of each."""
    # Not as a product with the matrix of members, which is found by way of another one as large as W.
    count = int(grains.max()) + 1
    members = np.argsort(grains, kind="stable").astype(W.indices.dtype)
    starts = np.concatenate([[0], np.cumsum(np.bincount(grains))])
    graph = (W.indptr, W.indices, W.data, grains, members, starts)
    step, ends = -(-count // BLOCKS), np.zeros(count + 1, np.int64)
    blocks = [slice(start, min(start + step, count)) for start in range(0, count, step)]

    def count_block(rows: slice) -> None:
        _count_linked(*graph, rows.start, np.full(count, -1, np.int64), ends[1:][rows])

    pool.map(count_block, blocks)
    np.cumsum(ends, out=ends)
    indices, data = np.empty(ends[-1], W.indices.dtype), np.empty(ends[-1], W.dtype)

    def add_block(rows: slice) -> None:
        # Each writes to the rows of its own grains.
        place, sums = np.full(count, -1, np.int64), np.zeros(count)
        _add_links(*graph, rows.start, rows.stop, ends, place, sums, indices, data)

    pool.map(add_block, blocks)
    if ends[-1] <= np.iinfo(W.indices.dtype).max:
        ends = ends.astype(W.indices.dtype)  # of one type with the indices, or SciPy widens these
    return sp.csr_array((data, indices, ends), shape=(count, count))


@kernel
def _count_linked(
    indptr: np.ndarray,  # IN
    indices: np.ndarray,  # IN
    weights: np.ndarray,  # IN
    grains: np.ndarray,  # IN
    members: np.ndarray,  # IN
    starts: np.ndarray,  # IN
    first: int,  # IN
    seen: np.ndarray,  # IN, OUT: by which grain each was seen last
    counts: np.ndarray,  # OUT
) -> None:
    """Count the grains that each is linked to, from the grain ``first`` on."""
    for r in range(counts.shape[0]):
        count = 0
        for s in range(starts[first + r], starts[first + r + 1]):
            i = members[s]
            for p in range(indptr[i], indptr[i + 1]):
                other = grains[indices[p]]
                count += seen[other] != first + r
                seen[other] = first + r
        counts[r] = count


@kernel
def _add_links(
    indptr: np.ndarray,  # IN
    indices: np.ndarray,  # IN
    weights: np.ndarray,  # IN
    grains: np.ndarray,  # IN
    members: np.ndarray,  # IN
    starts: np.ndarray,  # IN
    first: int,  # IN
    last: int,  # IN
    ends: np.ndarray,  # IN
    place: np.ndarray,  # IN, OUT: where each grain was written last
    sums: np.ndarray,  # IN, OUT: zeros, in double precision
    columns: np.ndarray,  # OUT
    data: np.ndarray,  # OUT
) -> None:
    """Write the weights between grains, for the rows from ``first`` to before ``last``."""
    for grain in range(first, last):
        begin = ends[grain]
        count = 0
        for s in range(starts[grain], starts[grain + 1]):
            i = members[s]
            for p in range(indptr[i], indptr[i + 1]):
                other = grains[indices[p]]
                if place[other] < begin:
                    place[other] = begin + count
                    columns[begin + count] = other
                    count += 1
                sums[other] += weights[p]
        for q in range(begin, begin + count):
            data[q] = sums[columns[q]]
            sums[columns[q]] = 0
