"""New points among points in parts: each asks its cells, wherever these are, and is told by the nearest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from smrmf._parallel import SERIAL
from smrmf.dask._blocks import Blocks, Groups, mapped, pairs, shared
from smrmf.dask._search import Ways, nearest_cell
from smrmf.dask._shuffle import Placed
from smrmf.dask._start import points_of_part
from smrmf.factorization._new_points import inverse_distance_weights
from smrmf.graph.approximate import CellSearch, Questions
from smrmf.graph.candidates import Neighbors
from smrmf.graph.cells import CellMap, Cells
from smrmf.graph.graphs import simplex_graph
from smrmf.graph.means import ClusterMeans, votes_of_means
from smrmf.graph.membership import favor_labels, mean_distances, outlyingness


class Met(NamedTuple):
    """The nearest points of new ones: their squared distances, and what is known of each."""

    squared: np.ndarray
    known: np.ndarray


def met(queries: Blocks, placed: Placed, known: Blocks, ways: Ways, n_neighbors: int) -> Blocks:
    """Find the nearest points of every query, and what is ``known`` of each of them: a row of numbers."""
    n_parts = len(placed.X)
    chunk, part = pairs(len(queries), n_parts)
    found = queries.at(chunk).map(
        met_in_part,
        queries.map(cell_on_map, ways.on_workers).at(chunk),
        placed.X.at(part),
        placed.origin[0].at(part),
        known.at(part),
        ways.on_workers,
        shared(ways.asked(n_neighbors)),
        n_neighbors=n_neighbors,
    )
    return mapped(
        len(queries), nearest_of, Groups(found, [np.flatnonzero(chunk == c) for c in range(len(queries))])
    )


def cell_on_map(queries: np.ndarray, cell_map: CellMap) -> np.ndarray:
    return nearest_cell(queries, cell_map.centers.X)


def met_in_part(
    queries: np.ndarray,
    cell: np.ndarray,
    X: np.ndarray,
    cell_of: np.ndarray,
    known: np.ndarray,
    cell_map: CellMap,
    asked: np.ndarray,
    n_neighbors: int,
) -> Met:
    """Return the nearest points of a part, in the cells that each query asks."""
    search = CellSearch(Cells.on(cell_map, X, cell_of), 0)
    questions = Questions(queries, np.full(len(queries), -1), cell)
    found = search.nearest_where(asked, questions, n_neighbors, SERIAL)
    return Met(found.squared, known[found.indices])


def nearest_of(parts: Sequence[Met]) -> Met:
    """Return the nearest of what queries have met in all parts."""
    size = parts[0].squared.shape[1]
    squared, known = (np.concatenate(side, axis=1) for side in zip(*parts, strict=True))
    order = np.argsort(squared, axis=1, kind="stable")[:, :size]
    return Met(np.take_along_axis(squared, order, 1), known[np.arange(len(order))[:, None], order])


# Answers, from the queries and what they have met


def weights_of(squared: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Return the weights of the points that queries have met; rows sum to one."""
    places = np.arange(squared.size).reshape(squared.shape)
    near = Neighbors(places, squared)
    z = simplex_graph(near, n_neighbors, squared.size).data.reshape(squared.shape)
    return inverse_distance_weights(near, z)


def mean_of_known(queries: np.ndarray, found: Met, n_neighbors: int) -> np.ndarray:
    """Return the weighted mean of what is known of the points met."""
    mean: np.ndarray = np.einsum("qk,qkc->qc", weights_of(found.squared, n_neighbors), found.known)
    return mean


class Clusters(NamedTuple):
    """The clusters of a fit: sizes, means about a center, and sums of squared lengths."""

    sizes: np.ndarray
    means: np.ndarray
    lengths: np.ndarray
    center: np.ndarray


def votes(
    queries: np.ndarray, found: Met, clusters: Clusters, n_neighbors: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the votes of points on clusters, those of means, and the weights of the points."""
    weights = weights_of(found.squared, n_neighbors)
    labels = found.known[:, :, 0].astype(int)
    own = np.zeros((len(queries), len(clusters.sizes)))
    np.add.at(own, (np.arange(len(queries))[:, None], labels), weights)
    points = points_of_part(queries, clusters.center)
    means = ClusterMeans(points, labels[:, 0], clusters.sizes, clusters.means, clusters.lengths)
    return own, votes_of_means(means, queries, found.squared[:, 0]), weights


def label_of(queries: np.ndarray, found: Met, clusters: Clusters, n_neighbors: int) -> np.ndarray:
    own, of_means, _ = votes(queries, found, clusters, n_neighbors)
    return (own + of_means).argmax(axis=1)


def shares_of(queries: np.ndarray, found: Met, clusters: Clusters, n_neighbors: int) -> np.ndarray:
    """Return how much queries belong to every cluster; what is known are labels and memberships."""
    own, of_means, weights = votes(queries, found, clusters, n_neighbors)
    shares = np.einsum("qk,qkc->qc", weights, found.known[:, :, 1:]) + of_means
    return favor_labels(shares, (own + of_means).argmax(axis=1))


def apartness(queries: np.ndarray, found: Met, least: float, n_neighbors: int) -> np.ndarray:
    """Return how far queries lie from all points; what is known is how far the neighbours of these are."""
    squared, reach = found.squared, found.known[:, :, 0]
    k = min(n_neighbors, squared.shape[1])
    skipped = (squared[:, 0] == 0) & (squared.shape[1] > k)
    places = np.arange(k) + skipped[:, None]
    own = mean_distances(np.take_along_axis(squared, places, 1))
    indices = np.arange(own.size * k).reshape(-1, k)
    return outlyingness(own, indices, np.take_along_axis(reach, places, 1).ravel(), least)
