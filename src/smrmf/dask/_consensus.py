"""Clusters of a graph in parts by the edges that many clusterings agree on.

It is what :mod:`smrmf.graph.consensus` does in memory. What is decided is decided in memory here, too, by
what all points together say: weights between cells, counts, a sample. What is done to every point is done
where it lies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from smrmf._parallel import WARNING_FILTERS
from smrmf.dask._blocks import Blocks, added, rows_by_number, settled, value
from smrmf.dask._graph import BlockGraph
from smrmf.dask._spectrum import BlockSpectrum, Joined, rows_of_table, smoothest_in_parts
from smrmf.graph.consensus import (
    DIFFUSION_STEPS,
    ROUNDS,
    candidates_of_grains,
    merged,
    n_cells,
    place_of_most_telling,
    trusted_graph,
    twice,
)
from smrmf.graph.labels import MOST_ROWS
from smrmf.graph.partitions import adjusted_rand_of, joined_shares, points_in_both, weights_between
from smrmf.graph.spectrum import Spectrum


class BlockConsensus(NamedTuple):
    """Clusters, how well the voters agree with them, and which share of the voters puts each point where."""

    labels: Blocks
    stability: float
    votes: Blocks


@dataclass(frozen=True)
class Voting:
    """What the candidates for the clusters of some points depend on.

    ``points(numbers)`` returns points by their numbers, to be compared with each other, ``settle(labels)``
    moves points to the means of clusters.
    """

    graphs: Sequence[BlockGraph]
    n_clusters: int
    points: Callable[[np.ndarray], np.ndarray]
    settle: Callable[[Blocks], Blocks]
    random_state: np.random.RandomState

    def labels(self) -> BlockConsensus:
        """Cluster the points on the first graph; the others only give candidates."""
        W, c = settled(self.graphs[0]), self.n_clusters
        joined = Joined.of(W, self.points, c)
        if joined.components.number == c:
            labels = by_size(joined.coarse.of_point.map(labels_of, joined.components.of_point), c)
            return BlockConsensus(labels, 1.0, labels.map(certain_votes, n_clusters=c))
        voters, lenient = self._first_candidates(W, joined)
        grains, table = grains_of(voters)
        trusted = W.parts.map(trusted_part, W.halo.gathered(voters))
        edges = trusted.map(edges_of_grains, W.halo.gathered(grains), total=len(table))
        counts = grains.map(np.bincount, minlength=len(table)).total(added)
        W_grains, sizes = value(tuple, [edges.total(added_up), counts]).compute()
        later = np.column_stack(list(candidates_of_grains(W_grains, sizes, c, self.random_state)))
        every = voters.map(beside, lenient, grains.map(rows_of_table, later.astype(np.int32))).persist()
        chosen = place_of_most_telling(shares_of(W, every, c))
        labels = by_size(self.settle(every.map(column, place=chosen)), c)
        return with_votes(labels, voters, c)

    def _first_candidates(self, W: BlockGraph, joined: Joined) -> tuple[Blocks, Blocks]:
        """Return candidates that vote on the edges, a column each, and those merged more leniently."""
        found = [self._merged_cells(W, self._spectrum(W, joined))]
        for graph in map(settled, self.graphs[1:]):
            spectrum = self._spectrum(graph, Joined.of(graph, self.points, self.n_clusters))
            found.append(self._merged_cells(W, spectrum))
        voters, lenient = zip(*found, strict=True)
        return settled((voters[0].map(beside, *voters[1:]), lenient[0].map(beside, *lenient[1:])))

    def _spectrum(self, graph: BlockGraph, joined: Joined) -> BlockSpectrum:
        return smoothest_in_parts(graph, joined, twice(self.n_clusters), self.random_state)

    def _merged_cells(self, W: BlockGraph, by: BlockSpectrum) -> tuple[Blocks, Blocks]:
        """Cut the points into cells by the eigenvectors of a graph, and merge these by the weights of W."""
        c, n = self.n_clusters, int(W.halo.starts[-1])
        rows = np.arange(n)
        if n > MOST_ROWS:
            rows = np.sort(self.random_state.choice(n, MOST_ROWS, replace=False))
        sample = Spectrum(by.values, rows_by_number(by.vectors, W.halo.starts, rows))
        count = n_cells(n, c)
        centers = []
        for n_columns in (c, twice(c)):
            embedding = sample.embedding(n_columns, DIFFUSION_STEPS)
            centers.append([centers_of_cells(embedding, count, self.random_state) for _ in range(ROUNDS)])
        cells = by.vectors.map(cells_of, centers=centers, values=by.values).persist()
        ways = [merged_filled(J, c) for J in shares_of(W, cells, count)]
        voting, lenient = (np.column_stack(side) for side in zip(*ways, strict=True))
        return cells.map(labels_by_column, voting), cells.map(labels_by_column, lenient)


# Cells and their clusters


def centers_of_cells(
    embedding: np.ndarray, count: int, random_state: np.random.RandomState, n_starts: int = 1
) -> np.ndarray:
    """Return the centres of k-means on a sample."""
    from sklearn.cluster import KMeans

    with WARNING_FILTERS.changed("ignore"):
        model = KMeans(count, n_init=n_starts, random_state=random_state).fit(embedding)
    centers: np.ndarray = model.cluster_centers_
    return centers


def cells_of(vectors: np.ndarray, centers: list[list[np.ndarray]], values: np.ndarray) -> np.ndarray:
    """Return the nearest centre of every point, a column for each clustering."""
    columns, spectrum = [], Spectrum(values, vectors)
    for of_width in centers:
        embedding = spectrum.embedding(of_width[0].shape[1], DIFFUSION_STEPS)
        columns += [nearest_mean(embedding, mine) for mine in of_width]
    return np.column_stack(columns)


def nearest_mean(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the nearest of few centres of every row."""
    nearest: np.ndarray = (np.einsum("ij,ij->i", centers, centers) - 2 * X @ centers.T).argmin(axis=1)
    return nearest.astype(np.int32)


def merged_filled(J: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Merge the cells that have points; return the cluster of every cell, in both ways."""
    filled = J.sum(axis=1) > 0
    both = np.zeros((2, len(J)), np.int32)
    both[:, filled] = merged(J[np.ix_(filled, filled)], n_clusters)
    return both[0], both[1]


def labels_by_column(cells: np.ndarray, of_cells: np.ndarray) -> np.ndarray:
    """Return the clusters of the cells of every point, each column by its own."""
    return np.take_along_axis(of_cells, cells, axis=0)


def beside(*columns: np.ndarray) -> np.ndarray:
    return np.column_stack(columns)


def column(labels: np.ndarray, place: int) -> np.ndarray:
    return labels[:, place]


# Weights between clusters


def shares_of(W: BlockGraph, labels: Blocks, n_labels: int) -> list[np.ndarray]:
    """Return the share of the weight between any two clusters, of every clustering."""
    sums = W.parts.map(weights_in_part, W.halo.gathered(labels), n_labels=n_labels).total(added).compute()
    return [J / J.sum() for J in sums]


def weights_in_part(W: sp.csr_array, labels: np.ndarray, n_labels: int) -> np.ndarray:
    return np.array([weights_between(W, np.ascontiguousarray(mine), n_labels) for mine in labels.T])


# Grains


def grains_of(voters: Blocks) -> tuple[Blocks, np.ndarray]:
    """Return the grain of every point, points that no voter parts, and the labels of each grain as bytes."""
    keys = voters.map(as_bytes)
    table: np.ndarray = keys.map(np.unique).total(different).compute()
    return keys.map(place_in, table).persist(), table


def as_bytes(labels: np.ndarray) -> np.ndarray:
    """Return every row as one value that can be compared."""
    rows = np.ascontiguousarray(labels)
    return rows.view(f"S{rows.shape[1] * rows.itemsize}").ravel()


def different(parts: list[np.ndarray]) -> np.ndarray:
    return np.unique(np.concatenate(parts))


def place_in(keys: np.ndarray, table: np.ndarray) -> np.ndarray:
    return np.searchsorted(table, keys)


def trusted_part(W: sp.csr_array, voters: np.ndarray) -> sp.csr_array:
    """Return the edges of a part, weighed by the voters that join their ends."""
    return trusted_graph(W, joined_shares(W, voters))


def edges_of_grains(W: sp.csr_array, grains: np.ndarray, total: int) -> sp.csr_array:
    """Return the weights between grains, and inside of each, of the edges of a part."""
    entries = sp.coo_array(W)
    ends = grains[entries.coords[0]], grains[entries.coords[1]]
    return sp.csr_array((entries.data, ends), shape=(total, total))


def added_up(parts: list[sp.csr_array]) -> sp.csr_array:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


# The result


def labels_of(groups: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return labels[groups].astype(np.int32)


def by_size(labels: Blocks, n_clusters: int) -> Blocks:
    """Return the labels renumbered by size, the largest cluster first."""
    sizes = labels.map(np.bincount, minlength=n_clusters).total(added).compute()
    rank = np.empty(n_clusters, np.int32)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(n_clusters)
    return labels.map(labels_of, rank).persist()


def with_votes(labels: Blocks, voters: Blocks, n_clusters: int) -> BlockConsensus:
    """Say how well the voters agree with the labels, and which share of them puts every point where."""
    counts = voters.map(counts_in_part, labels, n_clusters=n_clusters).total(added).compute()
    stability = float(np.mean([adjusted_rand_of(mine) for mine in counts]))
    matching = np.array([linear_sum_assignment(mine, maximize=True)[1] for mine in counts])
    return BlockConsensus(labels, stability, voters.map(voted, matching=matching))


def certain_votes(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    return np.eye(n_clusters)[labels]


def counts_in_part(voters: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    return np.array([points_in_both(voter, labels, n_clusters) for voter in voters.T])


def voted(voters: np.ndarray, matching: np.ndarray) -> np.ndarray:
    """Return the shares of the voters that put every point into each cluster of the labels."""
    shares = np.zeros((len(voters), matching.shape[1]))
    places = np.arange(len(voters))
    for voter, of_voter in zip(voters.T, matching, strict=True):
        shares[places, of_voter[voter]] += 1
    return shares / len(matching)
