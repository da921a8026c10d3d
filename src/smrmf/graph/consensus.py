"""Clusters of a graph by the edges that many clusterings agree on.

One clustering of a noisy graph follows its wrong edges as well as its right ones. Many rough ones, from
neighbourhoods of two sizes, disagree about the wrong edges: weighed by the share of clusterings that
join its two ends, an edge counts only where it deserves trust. More clusters are found on that graph, on
which points that no clustering parts are one. The choice among all is made by the graph as it was: of those
that cut little of its weight, the one in which the cluster of a point tells the most of the clusters of its
neighbours. Last, points without a neighbour worth listening to follow the means of the clusters.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from smrmf._parallel import SERIAL, Pool
from smrmf._progress import Step, no_step
from smrmf.graph.components import components_of, join_components
from smrmf.graph.grains import find_grains, graph_of_grains
from smrmf.graph.labels import kmeans_labels, relabel_by_size
from smrmf.graph.means import settle_by_means
from smrmf.graph.membership import one_hot, voted_shares
from smrmf.graph.merging import merge_by_information, merge_tied
from smrmf.graph.neighbors import MeasuredPoints
from smrmf.graph.partitions import (
    adjusted_rand,
    information,
    joined_shares,
    leak,
    shares_between,
)
from smrmf.graph.spectrum import smoothest

# Steps of diffusion on the graph: eigenvectors count by their eigenvalue to this power, so the
# least smooth ones, which are mostly noise, count least. Between 2 and 10 steps differ little.
DIFFUSION_STEPS = 2
# Candidates see as many eigenvectors as clusters, or twice as many, and cut the points into twice as many
# cells, which are merged: neither k-means with its equal clusters nor one number of eigenvectors suits all
# data. Of many clusters so many more are enough, as time grows with a power of their number.
MOST_MORE = 50
POINTS_PER_CELL = 4
# Powers of the clusters' sizes in the merging. 1 compares with chance, and what it merges votes on the edges.
# The smaller one lets clusters be of very unequal size, which is right for some data; where neighbourhoods
# are noisy it makes one cluster of all that is in doubt, and by votes it would tie these points together.
VOTING_POWER, LENIENT_POWER = 1.0, 0.75
# Runs of k-means: one for each set of cells, the best of some where its clusters are the result.
ROUNDS, STARTS = 2, 2
# What an edge keeps that no voter joins: the graph falls apart nowhere.
TRUST_FLOOR = 1e-3
# What still counts as cutting little: this factor and this share more than the candidate that cuts least.
# Clusters of unequal size that are well apart cut far less than any others, and stay; where all cut much, the
# difference says little, and the information decides.
LEAK_FACTOR, LEAK_MARGIN = 1.25, 2e-3
# Power of the entropy in the choice, and in merging by its rule: 0 favours equal clusters, 1 unequal ones.
ENTROPY_POWER = 0.75


class Consensus(NamedTuple):
    """Clusters, how well the voters agree with them, and which share of them puts each point where.

    ``stability`` is the mean adjusted Rand index of labels and voting candidates; ``votes`` has a row for
    every point and a column for every cluster.
    """

    labels: np.ndarray
    stability: float
    votes: np.ndarray


def consensus_labels(
    points: MeasuredPoints,
    nearest: np.ndarray,
    graphs: Iterable[sp.csr_array],
    n_clusters: int,
    random_state: np.random.RandomState,
    pool: Pool,
    step: Step = no_step,
) -> Consensus:
    """Cluster points on the first of several symmetric graphs; the others only give candidates.

    ``nearest`` has the squared distance of every point to its nearest other one. As in
    :func:`~smrmf.graph.labels.graph_labels`, components are never split by rounding, and where their
    number is that of the clusters they are the answer. ``step`` is called :func:`n_steps` times at most.
    """
    more = iter(graphs)
    W, components = join_components(points.X, next(more), n_clusters, pool)
    if components.number == n_clusters:
        labels = relabel_by_size(components.of_point, n_clusters)
        return Consensus(labels, 1.0, one_hot(labels, n_clusters, W.dtype))
    voters, lenient = find_candidates(points.X, W, more, n_clusters, random_state, pool, step)
    joined_share = joined_shares(W, np.column_stack(voters))
    trusted = trusted_graph(W, joined_share)
    later = later_candidates(trusted, find_grains(voters), n_clusters, random_state, pool, step)
    labels = most_telling(W, [*voters, *lenient, *later], n_clusters, pool)
    labels = relabel_by_size(settle_by_means(points, labels, n_clusters, nearest, pool), n_clusters)
    stability = float(np.mean([adjusted_rand(labels, other, n_clusters) for other in voters]))
    return Consensus(labels, stability, voted_shares(labels, voters, n_clusters, W.dtype))


def n_steps(n_graphs: int) -> int:
    """Return how many steps there are on so many graphs: eigenvectors of each, and rounds of candidates."""
    return n_graphs * (1 + 2 * ROUNDS) + 3


def twice(n_clusters: int) -> int:
    """Return how many eigenvectors and cells candidates have at most: twice as many as clusters, if few."""
    return n_clusters + min(n_clusters, MOST_MORE)


def find_candidates(
    X: Any,
    W: sp.csr_array,
    more: Iterable[sp.csr_array],
    n_clusters: int,
    random_state: np.random.RandomState,
    pool: Pool,
    step: Step = no_step,
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Cluster the points roughly on W and on more graphs, several times; cells are merged by W's weights.

    The candidates that vote on the edges come first, then those merged from the same cells more leniently.
    """
    voters: list[np.ndarray] = []
    lenient: list[np.ndarray] = []
    for graph in itertools.chain([W], more):
        for cells in cells_of_graph(X, graph, n_clusters, random_state, pool, step):
            voter, other = merged(cell_shares(W, cells), n_clusters)
            voters.append(voter[cells])
            lenient.append(other[cells])
            step()
    return voters, lenient


def cells_of_graph(
    X: Any,
    graph: sp.csr_array,
    n_clusters: int,
    random_state: np.random.RandomState,
    pool: Pool,
    step: Step,
) -> Iterator[np.ndarray]:
    """Yield several clusterings of the points into more cells than clusters, by one graph."""
    joined, components = join_components(X, graph, n_clusters, pool)
    spectrum = smoothest(joined, components, twice(n_clusters), random_state, pool)
    step()
    for n_columns in (n_clusters, twice(n_clusters)):
        embedding = spectrum.embedding(n_columns, DIFFUSION_STEPS)
        for _ in range(ROUNDS):
            yield kmeans_labels(embedding, n_cells(len(embedding), n_clusters), random_state, 1)


def later_candidates(
    trusted: sp.csr_array,
    grains: np.ndarray,
    n_clusters: int,
    random_state: np.random.RandomState,
    pool: Pool = SERIAL,
    step: Step = no_step,
) -> Iterator[np.ndarray]:
    """Yield clusterings of the points, in which those of a grain are together, by the graph of the grains."""
    W, sizes = graph_of_grains(trusted, grains, pool), np.bincount(grains)
    for labels in candidates_of_grains(W, sizes, n_clusters, random_state, pool, step):
        yield labels[grains]


def candidates_of_grains(
    W: sp.csr_array,
    sizes: np.ndarray,
    n_clusters: int,
    random_state: np.random.RandomState,
    pool: Pool = SERIAL,
    step: Step = no_step,
) -> Iterator[np.ndarray]:
    """Yield clusterings of grains, by cells that are merged in several ways and by k-means alone."""
    spectrum = smoothest(W, components_of(W), twice(n_clusters), random_state, pool)
    step()
    count = min(n_cells(int(sizes.sum()), n_clusters), len(sizes))
    for n_columns in (n_clusters, twice(n_clusters)):
        embedding = spectrum.embedding(n_columns, DIFFUSION_STEPS)
        cells = kmeans_labels(embedding, count, random_state, 1, sizes)
        # Of fewer distinct points than clusters there are fewer grains, too.
        plain = kmeans_labels(embedding, min(n_clusters, len(sizes)), random_state, STARTS, sizes)
        J = cell_shares(W, cells)
        telling = merge_by_information(J, n_clusters, ENTROPY_POWER)
        yield from (merging[cells] for merging in (*merged(J, n_clusters), telling))
        yield plain
        step()


def n_cells(n_points: int, n_clusters: int) -> int:
    """Return into how many cells points are cut, before these are merged."""
    return min(twice(n_clusters), max(n_clusters, n_points // POINTS_PER_CELL))


def merged(J: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the clusters of cells that are merged by J, the shares of the weight between them.

    Against chance, and more leniently.
    """
    # A number of points each, of which there may be many.
    ways = (merge_tied(J, n_clusters, power) for power in (VOTING_POWER, LENIENT_POWER))
    voter, lenient = (labels.astype(np.int32) for labels in ways)
    return voter, lenient


def cell_shares(W: sp.csr_array, cells: np.ndarray) -> np.ndarray:
    """Return the shares of the graph's weight between the cells that have points."""
    # Cells are numbered by size, so only the last can be empty: where there are fewer distinct points.
    return shares_between(W, cells, int(cells.max()) + 1)


def trusted_graph(W: sp.csr_array, joined_share: np.ndarray) -> sp.csr_array:
    """Return the graph with its edges weighed by the squared share of voters that join their ends."""
    trust = joined_share**2 + W.dtype.type(TRUST_FLOOR)
    return sp.csr_array((W.data * trust, W.indices, W.indptr), shape=W.shape)


def most_telling(
    W: sp.csr_array, candidates: list[np.ndarray], n_clusters: int, pool: Pool = SERIAL
) -> np.ndarray:
    """Choose among clusterings: of those that cut little, the one that tells the most of neighbours."""
    shares = pool.map(lambda labels: shares_between(W, labels, n_clusters), candidates)
    return candidates[place_of_most_telling(shares)]


def place_of_most_telling(shares: Sequence[np.ndarray]) -> int:
    """Choose among clusterings by the shares of the weight between the clusters of each."""
    filled, leaks, tells = np.empty((3, len(shares)))
    for place, J in enumerate(shares):
        filled[place], leaks[place] = np.count_nonzero(J.sum(axis=1)), leak(J)
        tells[place] = information(J, ENTROPY_POWER)
    # Fewer clusters than wanted cut less, and are no answer.
    eligible = filled == filled.max()
    eligible &= leaks <= LEAK_FACTOR * leaks[eligible].min() + LEAK_MARGIN
    return int(np.argmax(np.where(eligible, tells, -np.inf)))
