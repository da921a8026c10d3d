"""Parts of a graph that no edge joins, and fewer of them where there are more than clusters.

Which parts belong together the graph cannot say. Their distances can: near ones are joined before far ones,
and small ones before large ones, so that a few points apart from all others take no cluster from the many.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from smrmf._numba import kernel
from smrmf._parallel import Pool
from smrmf.graph.merging import merge_tied
from smrmf.graph.neighbors import find_neighbors, measured_points

# So many components, the largest ones, are compared with each other, by so many points in all; a further one
# goes where the nearest of these points goes.
COMPARED, SAMPLED = 512, 2048
# Of two components that are tied, so many points of each are compared at most.
MOST_TIED = 20_000
# The weight between two components is the product of their sizes over the squared distance. Over the square
# of that product it is largest for near and small ones.
SIZE_POWER = 2.0


class Components(NamedTuple):
    """How many components a graph has, and the one of every point."""

    number: int
    of_point: np.ndarray


def components_of(W: sp.csr_array) -> Components:
    """Find the components of a symmetric graph, numbered by their first points."""
    # SciPy's takes ten times as long: it also makes the transpose, and a copy in double precision.
    lowest = np.arange(W.shape[0], dtype=np.intp)
    _join_ends(W.indptr, W.indices, lowest)
    first = lowest == np.arange(len(lowest))
    return Components(int(first.sum()), (np.cumsum(first) - 1)[lowest])


def join_components(X: Any, W: sp.csr_array, limit: int, pool: Pool) -> tuple[sp.csr_array, Components]:
    """Tie components together until ``limit`` are left: near ones before far ones, small before large."""
    components = components_of(W)
    if components.number <= limit:
        return W, components
    groups = groups_of_components(X, components, limit, pool)
    sizes = np.bincount(components.of_point)
    # Of every group the largest component stays as it is, and the others are tied to it.
    by_size = np.lexsort((-sizes, groups))
    largest = by_size[np.searchsorted(groups[by_size], np.arange(limit))]
    kept = np.isin(components.of_point, largest)
    ends = []
    for group in np.flatnonzero(np.bincount(groups) > 1):
        mine = groups[components.of_point] == group
        inside, outside = np.flatnonzero(mine & ~kept), some_of(np.flatnonzero(mine & kept))
        # Of every component at least one point.
        first = inside[np.unique(components.of_point[inside], return_index=True)[1]]
        inside = np.union1d(some_of(inside), first)
        nearest = find_neighbors(X[outside], 1, X[inside], pool=pool).indices[:, 0]
        ends.append(np.array([inside, outside[nearest]]))
    i, j = np.hstack(ends)
    # Ties as heavy as an average edge, whatever the unit of the weights.
    bridge = sp.csr_array((np.full(len(i), W.data.mean(), W.dtype), (i, j)), shape=W.shape)
    joined = (W + bridge + bridge.T).tocsr()
    return joined, components_of(joined)


def groups_of_components(X: Any, components: Components, limit: int, pool: Pool) -> np.ndarray:
    """Return for every component in which of ``limit`` groups it is."""
    sizes = np.bincount(components.of_point)
    compared = np.sort(np.argsort(-sizes, kind="stable")[: max(limit, COMPARED)])
    rows, owner = sampled_points(components, compared, max(1, SAMPLED // len(compared)))
    points = measured_points(X[rows])
    starts = np.searchsorted(owner, np.arange(len(compared)))
    squared = points.squared_block(slice(0, len(rows))).astype(np.float64)
    squared = np.minimum.reduceat(np.minimum.reduceat(squared, starts, axis=0), starts, axis=1)
    shares = sizes[compared] / sizes[compared].sum()
    # Copies of a point, which are at no distance, may have come into two components.
    tied = np.outer(shares, shares) / np.maximum(squared, np.finfo(float).tiny ** 0.5)
    merged = merge_tied(tied, limit, SIZE_POWER, shares)
    # By its first point, as it is small.
    first = np.unique(components.of_point, return_index=True)[1]
    nearest = find_neighbors(X[rows], 1, X[first], points=points, pool=pool).indices[:, 0]
    groups = merged[owner[nearest]]
    groups[compared] = merged
    return groups


def sampled_points(components: Components, compared: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points of some components, so many at most of each, and the place of the component of each."""
    by_component = np.argsort(components.of_point, kind="stable")
    ends = np.cumsum(np.bincount(components.of_point))
    parts = []
    for component in compared:
        members = by_component[ends[component - 1] if component else 0 : ends[component]]
        parts.append(members[np.linspace(0, len(members) - 1, min(count, len(members))).astype(int)])
    return np.concatenate(parts), np.repeat(np.arange(len(compared)), [len(part) for part in parts])


def some_of(rows: np.ndarray) -> np.ndarray:
    """Return the rows, or of very many some, evenly spread: all would take longer than the search."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_TIED)).astype(int)]


@kernel
def _join_ends(indptr: np.ndarray, indices: np.ndarray, lowest: np.ndarray) -> None:
    """Make every point name the first point of its component; each names an earlier one, or itself."""
    for i in range(lowest.shape[0]):
        for p in range(indptr[i], indptr[i + 1]):
            a, b = i, int(indices[p])
            # Up to the two roots, with every step halving the way for later ones.
            while lowest[a] != a:
                lowest[a] = lowest[lowest[a]]
                a = lowest[a]
            while lowest[b] != b:
                lowest[b] = lowest[lowest[b]]
                b = lowest[b]
            if a < b:
                lowest[b] = a
            else:
                lowest[a] = b
    # The root of a point is named before the point itself is read.
    for i in range(lowest.shape[0]):
        lowest[i] = lowest[lowest[i]]
