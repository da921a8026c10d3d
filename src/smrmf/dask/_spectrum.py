"""The smoothest functions on a graph in parts: found on a small graph of groups, smoothed on the whole one.

As in memory (:mod:`smrmf.graph.coarse`), where points are taken as one with their closest neighbours. Here
every part does so with its own points, until few are left in all: their graph fits anywhere, and is solved
there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from smrmf._parallel import SERIAL
from smrmf.dask._blocks import Blocks, Each, added, settled, value
from smrmf.dask._graph import BlockGraph, row_sums
from smrmf.dask._shuffle import stacked_rows
from smrmf.graph.coarse import GUARD, Walk, chebyshev_steps, closest_as_one, products_by_degree, ritz
from smrmf.graph.components import Components, components_of, join_components
from smrmf.graph.grains import graph_of_grains
from smrmf.graph.spectrum import MANY_POINTS, smoothest

# By how much a graph shrinks when closest neighbours are taken as one; for every such step it is smoothed
# once.
SHRINKING = 3.0


@dataclass(frozen=True)
class CoarseGraph:
    """A graph of groups: ``of_point`` has the group of every point, ``first`` a point of every group."""

    W: sp.csr_array
    of_point: Blocks
    first: np.ndarray

    @classmethod
    def of(cls, graph: BlockGraph) -> CoarseGraph:
        """Take points as one until few are left."""
        n = int(graph.halo.starts[-1])
        if n <= MANY_POINTS:
            groups = graph.parts.map(every_point)
        else:
            groups = graph.parts.map(groups_of_points, share=MANY_POINTS / n)
        groups = groups.persist()
        counts = np.array(groups.map(n_groups).compute())
        before = np.concatenate([[0], np.cumsum(counts)])
        of_point = groups.map(np.add, Each(before[:-1].tolist())).persist()
        edges = graph.parts.map(
            edges_of_groups, graph.halo.gathered(of_point), Each(before[:-1].tolist()), total=int(before[-1])
        )
        first = groups.map(first_of_groups, Each(graph.halo.starts[:-1].tolist()))
        W, first = value(tuple, [edges.total(stacked_rows), first.total(np.concatenate)]).compute()
        return cls(W, of_point, first)


def every_point(W: sp.csr_array) -> np.ndarray:
    return np.arange(W.shape[0])


def groups_of_points(W: sp.csr_array, share: float) -> np.ndarray:
    """Return groups of the points of a part, about this share of them: closest neighbours, repeatedly."""
    W = sp.csr_array(W[:, : W.shape[0]])
    groups = np.arange(W.shape[0])
    while W.shape[0] > max(share * len(groups), 1):
        closer = closest_as_one(W)
        groups, count = closer[groups], W.shape[0]
        W = graph_of_grains(W, closer)
        if W.shape[0] == count:  # nobody has a neighbour in this part
            break
    return groups.astype(np.int64)


def n_groups(groups: np.ndarray) -> int:
    return int(groups.max()) + 1


def first_of_groups(groups: np.ndarray, first: int) -> np.ndarray:
    return first + np.unique(groups, return_index=True)[1]


def edges_of_groups(W: sp.csr_array, of_point: np.ndarray, before: int, total: int) -> sp.csr_array:
    """Return the weights between the groups of a part and all groups."""
    own = of_point[: W.shape[0]] - before
    entries = sp.coo_array(W)
    ends = own[entries.coords[0]], of_point[entries.coords[1]]
    return sp.csr_array((entries.data, ends), shape=(int(own.max()) + 1, total))


class Joined(NamedTuple):
    """A coarse graph, with bridges where it had more components than clusters, and the components left."""

    coarse: CoarseGraph
    W: sp.csr_array
    components: Components

    @classmethod
    def of(cls, graph: BlockGraph, points: Callable[[np.ndarray], np.ndarray], n_clusters: int) -> Self:
        """Make a graph coarse, and join near components; ``points(numbers)`` returns points of it."""
        coarse = CoarseGraph.of(graph)
        components = components_of(coarse.W)
        if components.number <= n_clusters:
            return cls(coarse, coarse.W, components)
        return cls(coarse, *join_components(points(coarse.first), coarse.W, n_clusters, SERIAL))


class BlockSpectrum(NamedTuple):
    """Leading eigenvalues of a graph, and its eigenvectors in parts."""

    values: np.ndarray
    vectors: Blocks


def smoothest_in_parts(
    graph: BlockGraph, joined: Joined, n_columns: int, random_state: np.random.RandomState
) -> BlockSpectrum:
    """Find the smoothest functions on a graph from those on its coarse graph."""
    of_point, W = joined.coarse.of_point, joined.W
    n = int(graph.halo.starts[-1])
    many = n > MANY_POINTS
    spectrum = smoothest(W, joined.components, n_columns + (GUARD if many else 0), random_state, SERIAL)
    if not many:
        return BlockSpectrum(spectrum.values, of_point.map(rows_of_table, spectrum.vectors))
    degrees = np.asarray(W.sum(axis=1)).ravel()
    functions = of_point.map(rows_of_table, spectrum.vectors / np.sqrt(degrees)[:, None])
    rounds = max(1, math.ceil(math.log(n / len(degrees), SHRINKING)))
    return smoothed(graph, functions, float(spectrum.values.min()), n_columns, rounds)


def smoothed(graph: BlockGraph, functions: Blocks, cut: float, n_columns: int, rounds: int) -> BlockSpectrum:
    """Filter functions on a graph in parts; return eigenvalues and eigenvectors in their span."""
    degrees = graph.parts.map(row_sums)
    for _ in range(rounds):
        last: Blocks | None = None
        for factors in chebyshev_steps(cut):
            now = graph.parts.map(
                stepped,
                degrees,
                graph.halo.gathered(functions),
                functions if last is None else last,
                of_means=factors[0],
                of_functions=factors[1],
                of_others=factors[2],
            )
            last, functions = functions, now
    means = graph.parts.map(means_over_neighbors, degrees, graph.halo.gathered(functions))
    sums = functions.map(products_by_degree, means, degrees).total(added)
    best = value(best_of, sums, count=n_columns)
    vectors = functions.map(mixed, best, degrees)
    vectors, (values, _) = settled((vectors, best))
    return BlockSpectrum(values, vectors)


def rows_of_table(rows: np.ndarray, table: np.ndarray) -> np.ndarray:
    return table[rows]


def stepped(
    W: sp.csr_array,
    degrees: np.ndarray,
    functions: np.ndarray,
    others: np.ndarray,
    of_means: float,
    of_functions: float,
    of_others: float,
) -> np.ndarray:
    """Do a step of the filter in a part."""
    out = np.empty((W.shape[0], functions.shape[1]), functions.dtype)
    walk, rows = Walk(W, 1 / degrees), slice(0, W.shape[0])
    walk.step(functions, rows, (of_means, of_functions, of_others), others, out)
    return out


def means_over_neighbors(W: sp.csr_array, degrees: np.ndarray, functions: np.ndarray) -> np.ndarray:
    return stepped(W, degrees, functions, functions[: W.shape[0]], 1.0, 0.0, 0.0)


def best_of(sums: tuple[np.ndarray, np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    return ritz(*sums, count)


def mixed(functions: np.ndarray, best: tuple[np.ndarray, np.ndarray], degrees: np.ndarray) -> np.ndarray:
    """Return eigenvectors of the normalised graph from functions of which they are made."""
    vectors: np.ndarray = (functions @ best[1].astype(functions.dtype)) * np.sqrt(degrees)[:, None]
    return vectors
