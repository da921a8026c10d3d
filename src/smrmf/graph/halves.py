"""Whether clusters of one half of the points are found again in the other: the test of what is really there.

The neighbours of all points are known, so neither half is searched again: of long lists about every second
neighbour lies in the same half, and makes its graph, and the others say to which of its clusters a point of
the other half would go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from smrmf._parallel import Pool
from smrmf.graph.candidates import Neighbors
from smrmf.graph.components import join_components
from smrmf.graph.consensus import DIFFUSION_STEPS, ENTROPY_POWER, LENIENT_POWER, VOTING_POWER, most_telling
from smrmf.graph.graphs import neighbor_graph, symmetrize
from smrmf.graph.labels import kmeans_labels
from smrmf.graph.membership import one_hot
from smrmf.graph.merging import merge_by_information, merge_tied
from smrmf.graph.partitions import adjusted_rand, contingency, shares_between
from smrmf.graph.spectrum import smoothest

# Cells for every cluster, and rounds of k-means that make them: they are merged, and need no last digit.
CELLS_PER_CLUSTER, CELL_ROUNDS = 2, 10
# Few clusters are seen best in few eigenvectors, many in many: cells are made in this share of them, and all.
FEW_COLUMNS = 0.25
# How many points of the other half a point asks.
ASKED = 5
TINY = 1e-12


class Agreement(NamedTuple):
    """How well clusters of one half, extended to the other, agree with the clusters found there."""

    rand: float  # adjusted Rand index
    weakest: float  # share of its points that the cluster found again worst has kept


def agreements(
    X: Any, neighbors: Neighbors, numbers: Sequence[int], random_state: np.random.RandomState, pool: Pool
) -> dict[int, list[Agreement]]:
    """Split the points into two halves, and compare their clusters, for several numbers of clusters."""
    n = len(neighbors.indices)
    order = random_state.permutation(n)
    halves = [Half.of(neighbors, np.sort(part)) for part in (order[: n // 2], order[n // 2 :])]
    labels = [nested_labels(X[half.rows], half.graph, numbers, random_state, pool).labels for half in halves]
    found: dict[int, list[Agreement]] = {number: [] for number in numbers}
    for one, other in ((0, 1), (1, 0)):
        votes, heard = halves[one].votes_on(neighbors, halves[other].rows)
        for number in numbers:
            seen = votes @ one_hot(labels[one][number], number, votes.dtype)
            predicted, there = seen.argmax(axis=1)[heard], labels[other][number][heard]
            found[number].append(compare(predicted, there, number))
    return found


def compare(predicted: np.ndarray, there: np.ndarray, n_clusters: int) -> Agreement:
    """Compare two clusterings of the same points."""
    pairs, matched = contingency(predicted, there, n_clusters)
    kept = pairs[np.argsort(matched), np.arange(n_clusters)] / np.maximum(pairs.sum(axis=0), 1)
    return Agreement(adjusted_rand(predicted, there, n_clusters), float(kept.min()))


class Half(NamedTuple):
    """Some of the points, and their graph."""

    rows: np.ndarray
    place: np.ndarray  # of every point among the rows, or -1
    graph: sp.csr_array

    @classmethod
    def of(cls, neighbors: Neighbors, rows: np.ndarray) -> Half:
        """Return the graph of rows, without those that have no neighbour among them."""
        n, width = neighbors.indices.shape
        while True:
            place = np.full(n, -1)
            place[rows] = np.arange(len(rows))
            # Of 2 k + 1 neighbours about k are inside: one less for the weights, and some for bad luck.
            graph = symmetrize(_simplex_inside(neighbors, rows, place, max(1, width // 4 + 1)))
            tied = np.asarray(graph.sum(axis=1)).ravel() > 0
            if tied.all() or not tied.any():
                return cls(rows, place, graph)
            rows = rows[tied]

    def votes_on(self, neighbors: Neighbors, others: np.ndarray) -> tuple[sp.csr_array, np.ndarray]:
        """Return the weights of this half's points for others, and which of these have a neighbour here."""
        indices, squared = neighbors.indices[others], neighbors.squared[others]
        inside = self.place[indices] >= 0
        asked = inside & (np.cumsum(inside, axis=1) <= ASKED)
        nearest = np.maximum(squared, TINY * squared[:, -1:])
        weights = np.where(asked, 1 / np.where(nearest > 0, nearest, 1), 0)
        votes = neighbor_graph(np.where(asked, self.place[indices], 0), weights, len(self.rows))
        return votes, asked.any(axis=1)


def _simplex_inside(
    neighbors: Neighbors, rows: np.ndarray, place: np.ndarray, n_neighbors: int
) -> sp.csr_array:
    """Weigh the nearest neighbours among the rows as (5.18) does: by how much nearer than the next."""
    indices, squared = neighbors.indices[rows], neighbors.squared[rows]
    inside = place[indices] >= 0
    rank = np.cumsum(inside, axis=1)
    used = inside & (rank <= n_neighbors)
    following = np.where(inside & (rank <= n_neighbors + 1), squared, 0).max(axis=1, keepdims=True)
    weights = np.where(used, following - squared, 0)
    total = weights.sum(axis=1, keepdims=True)
    # Of neighbours at one distance, or of too few for a next one, all count alike.
    weights = np.where(total > 0, weights / np.where(total > 0, total, 1), used)
    return neighbor_graph(np.where(used, place[indices], 0), weights.astype(squared.dtype), len(rows))


class Nested(NamedTuple):
    """Labels for several numbers of clusters, by the same cells, and the leading eigenvalues of the graph."""

    labels: dict[int, np.ndarray]
    values: np.ndarray


def nested_labels(
    X: Any, W: sp.csr_array, numbers: Sequence[int], random_state: np.random.RandomState, pool: Pool
) -> Nested:
    """Cluster the points of a graph into several numbers of clusters, at the price of one.

    Points are cut into cells, which are merged step by step, in three ways; for each number the candidate is
    taken that the start of a fit would take.
    """
    most, fewest = max(numbers), min(numbers)
    W, components = join_components(X, W, most, pool)
    spectrum = smoothest(W, components, most + 1, random_state)
    candidates: dict[int, list[np.ndarray]] = {number: [] for number in numbers}
    for n_columns in dict.fromkeys((max(fewest, round(FEW_COLUMNS * most)), most)):
        embedding = spectrum.embedding(n_columns, DIFFUSION_STEPS)
        n_cells = min(CELLS_PER_CLUSTER * most, max(most, len(embedding) // 4), len(embedding))
        cells = kmeans_labels(embedding, n_cells, random_state, 1, max_iter=CELL_ROUNDS)
        J = shares_between(W, cells, int(cells.max()) + 1)
        # Of few distinct points there are fewer cells than some numbers: then these are all there is.
        for number in (number for number in numbers if number > len(J)):
            candidates[number].append(cells)
        for number, merged in _merged_step_by_step(J, most, fewest):
            if number in candidates:
                candidates[number].append(merged[cells])
    labels = {number: most_telling(W, found, number) for number, found in candidates.items()}
    return Nested(labels, spectrum.values)


def _merged_step_by_step(J: np.ndarray, most: int, fewest: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the cluster of every cell for every number of clusters, by each way of merging."""
    ways = (
        lambda shares, number: merge_tied(shares, number, VOTING_POWER),
        lambda shares, number: merge_tied(shares, number, LENIENT_POWER),
        lambda shares, number: merge_by_information(shares, number, ENTROPY_POWER),
    )
    for merge in ways:
        owner, shares = np.arange(len(J)), J
        for number in range(min(most, len(J)), fewest - 1, -1):
            step = merge(shares, number)
            owner = step[owner]
            members = one_hot(step, number, shares.dtype)
            shares = members.T @ shares @ members
            yield number, owner
