"""The first G of the loop for points in parts, and the weights that are measured on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from smrmf.dask._blocks import MOST_BYTES, Blocks, added, rows_by_number, settled, value
from smrmf.dask._consensus import BlockConsensus, Voting, by_size, centers_of_cells, nearest_mean
from smrmf.dask._graph import BlockGraph
from smrmf.dask._halo import Halo
from smrmf.dask._largest import median
from smrmf.dask._operations import InParts
from smrmf.factorization._plane import alternating, basis_of_plane, with_distance, write_places
from smrmf.factorization._start import FirstFit, Start, lengths, scale_of, weights_of
from smrmf.graph.candidates import Neighbors
from smrmf.graph.dense_points import DensePoints
from smrmf.graph.graphs import simplex_graph
from smrmf.graph.labels import KMEANS_STARTS, MOST_ROWS
from smrmf.graph.means import ClusterMeans, settled_rows
from smrmf.kernels.distances import squared_norms

# So many directions stand for very many features.
DIRECTIONS = 256


@dataclass(frozen=True)
class Points:
    """Points in parts, who knows whom, and the neighbours of each, by their places in a part and its halo."""

    X: Blocks
    halo: Halo
    places: Blocks
    squared: Blocks
    n_neighbors: int
    n_clusters: int
    center: np.ndarray

    @property
    def n_samples(self) -> int:
        """Return the number of points."""
        return int(self.halo.starts[-1])

    def representation(self, n_neighbors: int) -> BlockGraph:
        """Return the first Zt, (5.18) on squared distances with exactly so many neighbours."""
        make = partial(first_rows, n_neighbors=n_neighbors)
        return BlockGraph(self.places.map(make, self.squared, self.halo.numbers), self.halo)

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """Return some points, by their numbers."""
        return rows_by_number(self.X, self.halo.starts, numbers)

    def comparable_rows(self, numbers: np.ndarray) -> np.ndarray:
        """Return some points to be compared with each other in one process.

        Where they have too many features for it, it gets their coordinates in directions drawn at random:
        distances are right to a tenth, enough to tell near from far.
        """
        n_features, dtype = len(self.center), self.center.dtype
        if len(numbers) * n_features * dtype.itemsize <= MOST_BYTES or n_features <= DIRECTIONS:
            return self.rows(numbers)
        directions = np.random.RandomState(0).standard_normal((n_features, DIRECTIONS))
        sketch = self.X.map(np.matmul, (directions / DIRECTIONS**0.5).astype(dtype))
        return rows_by_number(sketch, self.halo.starts, numbers)

    def settled_by_means(self, labels: Blocks) -> Blocks:
        """Move points to the cluster of the best mean, if a mean is nearer than any other point."""
        c = self.n_clusters
        sums = self.X.map(sums_in_part, labels, center=self.center, n_clusters=c).total(added)
        moved = self.X.map(settled_part, labels, self.squared, sums, center=self.center).persist()
        before, after = (mine.map(np.bincount, minlength=c).total(added) for mine in (labels, moved))
        filled = [int(np.count_nonzero(sizes)) for sizes in value(tuple, [before, after]).compute()]
        return moved if filled[0] == filled[1] else labels


def first_rows(places: np.ndarray, squared: np.ndarray, numbers: np.ndarray, n_neighbors: int) -> Any:
    """Return the rows of the first Zt of a part."""
    n = len(places)
    return simplex_graph(Neighbors(places, squared, exact=False), n_neighbors, n + len(numbers))


def spectral_labels(points: Points, random_state: np.random.RandomState) -> BlockConsensus:
    """Return the clusters of the default start."""
    k, length = points.n_neighbors, 2 * points.n_neighbors
    graphs = [points.representation(count).symmetrized() for count in (k, max(k, length))]
    return Voting(
        graphs, points.n_clusters, points.comparable_rows, points.settled_by_means, random_state
    ).labels()


def kmeans_clusters(points: Points, random_state: np.random.RandomState) -> Blocks:
    """Return the clusters of k-means, by centres of a sample."""
    n = points.n_samples
    rows = np.sort(random_state.choice(n, min(n, MOST_ROWS), replace=False))
    centers = centers_of_cells(points.rows(rows), points.n_clusters, random_state, KMEANS_STARTS)
    return by_size(points.X.map(nearest_mean, centers), points.n_clusters)


def sums_in_part(
    X: np.ndarray, labels: np.ndarray, center: np.ndarray, n_clusters: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sums about the center, numbers and squared lengths of the points of every cluster in a part."""
    points = points_of_part(X, center)
    means = ClusterMeans.of(points, labels, n_clusters)
    own = np.bincount(labels, points.lengths_of(X), minlength=n_clusters)
    return means.means * np.maximum(means.sizes, 1)[:, None], means.sizes, own


def settled_part(
    X: np.ndarray,
    labels: np.ndarray,
    squared: np.ndarray,
    sums: tuple[np.ndarray, np.ndarray, np.ndarray],
    center: np.ndarray,
) -> np.ndarray:
    """Return the labels of a part after points have moved."""
    total, sizes, own = sums
    means = ClusterMeans(points_of_part(X, center), labels, sizes, total / np.maximum(sizes, 1)[:, None], own)
    return settled_rows(means, slice(0, len(X)), squared[:, 0]).astype(labels.dtype)


def points_of_part(X: np.ndarray, center: np.ndarray) -> DensePoints:
    return DensePoints(X, center, None, squared_norms(X - center))


def weigh_in_parts(
    X: Blocks,
    n: int,
    found: Blocks,
    n_clusters: int,
    weights: tuple[Any, Any],
    magnitude: float,
    dtype: np.dtype,
) -> Start:
    """Scale the points, measure the residuals of clusters, and set the weights left to the library."""
    ops = InParts()
    manifold_weight, penalty = weights
    sizes = found.map(np.bincount, minlength=n_clusters).total(added)
    G = found.map(indicator_part, sizes, dtype=dtype)
    norm = ops.norm(X)
    scale = scale_of(norm, n_clusters, penalty)
    scaled = X.map(divided, by=scale)
    done: Any = settled((scaled, G, ops.basis(G, scaled)))
    scaled, G, F = done
    residuals = scaled.map(residual_lengths, G, F)
    residual = median(residuals, n).compute()
    fit = FirstFit(n, norm, scale, residual, True, dtype)
    unit, lam, mu = weights_of(fit, n_clusters, manifold_weight, penalty, magnitude)
    return Start(scaled, G, F, scale, unit, lam, mu)


def indicator_part(labels: np.ndarray, sizes: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the rows of the indicator of clusters of so many points."""
    G = np.zeros((len(labels), len(sizes)), dtype)
    G[np.arange(len(labels)), labels] = 1 / np.sqrt(np.maximum(sizes, 1))[labels]
    return G


def divided(X: np.ndarray, by: float) -> np.ndarray:
    return X / X.dtype.type(by)


def residual_lengths(X: np.ndarray, G: np.ndarray, F: np.ndarray) -> np.ndarray:
    return lengths(X - G @ F)


# The plane of the means (:mod:`smrmf.factorization._plane`)


def in_plane_of_means(X: Blocks, labels: Blocks, means: np.ndarray) -> tuple[Blocks, np.ndarray]:
    """Return the places of points in the plane of means, with the distance from it, and what leads back."""
    basis = basis_of_plane(means).astype(means.dtype)
    return X.map(places_in_plane, labels, basis=basis), with_distance(basis)


def places_in_plane(X: np.ndarray, labels: np.ndarray, basis: np.ndarray) -> np.ndarray:
    places = np.empty((len(X), len(basis) + 1), X.dtype)
    write_places(X, basis, places)
    places[:, -1] *= alternating(labels).astype(X.dtype)
    return places
