"""Labels by the means of the clusters, where even the nearest point is farther away than these.

In data of very many dimensions, as texts are, the nearest neighbours of a point are nearly as far as any
others, and which ones they are is mostly noise. The mean of a cluster, in which noise averages out, is then
nearer than any single point, and a better witness. In data on a curve or a surface it is the other way round:
neighbours are near, and means lie off the surface. Comparing the two distances tells for every point whom to
listen to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from smrmf._numba import kernel
from smrmf._parallel import Pool, row_blocks
from smrmf.graph.directions import ClusterDirections, are_directions
from smrmf.graph.groups import membership
from smrmf.graph.neighbors import MeasuredPoints
from smrmf.graph.sparse_points import SparsePoints

# The product form of a squared distance is off by a few units in the last place of the squared lengths. Where
# so many of them are not far below the distance to the nearest point, they could decide.
ROUNDING_UNITS, FAR_BELOW = 64, 1e-3


def settle_by_means(
    points: MeasuredPoints, labels: np.ndarray, n_clusters: int, nearest: np.ndarray, pool: Pool
) -> np.ndarray:
    """Move points to the cluster of the best mean, if a mean is nearer than any other point.

    The best is that by which the sum of squared distances to the means falls most (Hartigan 1975), or among
    directions that of the smallest angle. ``nearest`` has the squared distance of every point to its nearest
    other one. Done once, not until nothing moves: from the second time on large clusters grow at the expense
    of the others. Labels stay as they are if a cluster would lose all its points.
    """
    means = ClusterMeans.of(points, labels, n_clusters)
    blocks = row_blocks(*points.X.shape)
    settled = np.concatenate(pool.map(lambda rows: settled_rows(means, rows, nearest[rows]), blocks))
    kept = np.count_nonzero(np.bincount(settled, minlength=n_clusters)) == np.count_nonzero(means.sizes)
    return settled if kept else labels


def settled_rows(means: ClusterMeans, rows: slice, nearest: np.ndarray) -> np.ndarray:
    """Return the labels of some points after they have moved."""
    points, labels, sizes = means.points, means.labels[rows], means.sizes
    squared, doubt = means.squared_distances(points.measured(rows), points.norms[rows])
    cost, places = cost_of_joining(squared, sizes), np.arange(len(labels))
    # One that leaves takes away s / (s - 1) times its squared distance to the mean that it is part of.
    cost[places, labels] = squared[places, labels] * (sizes / np.maximum(sizes - 1, 1))[labels]
    best = cost.argmin(axis=1)
    nearer = (squared[places, best] + doubt < nearest) & (doubt < FAR_BELOW * nearest)
    if directions := means.directions:
        own = directions.of_rows(rows)
        best = own.most_alike(own.products_with_others(squared, labels), own.lengths, labels)
        # What belongs to no direction is not compared with any.
        nearer &= directions.pairs[labels] > 0
    return np.where(nearer, best, labels)


def votes_of_means(means: ClusterMeans, queries: Any, nearest: np.ndarray) -> np.ndarray:
    """Return how many votes every cluster's mean has on new points, whose neighbours have one in all.

    ``nearest`` has the squared distance of every query to its nearest point. Only the best mean has votes,
    as many as the distance to the mean of least cost allows. Where points are the mean of their cluster and
    noise, they are twice as far from each other, in squares, as from the mean: there it has one vote, as much
    as the neighbours. The nearer the nearest point is, the more neighbours know, and the less say the mean
    has: none where the nearest point is nearer than it.
    """
    rows, norms = means.points.measure(queries)
    squared, doubt = means.squared_distances(rows, norms)
    best, places = cost_of_joining(squared, means.sizes).argmin(axis=1), np.arange(len(squared))
    # Copies of points, whose nearest is at no distance, are never sure.
    sure = doubt < FAR_BELOW * nearest
    share = 2 - 2 * squared[places, best] / np.where(sure, nearest, 1)
    if directions := means.directions:
        lengths = means.points.lengths_of(queries)
        best = directions.most_alike(directions.products(squared, lengths), lengths, best)
    votes = np.zeros_like(squared)
    votes[places, best] = np.where(sure, np.clip(share, 0, 1), 0)
    return votes


def cost_of_joining(squared: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return by how much the sum of squared distances to the means grows when a point joins a cluster.

    A point that joins s others adds s / (s + 1) times its squared distance to their mean. A cluster of one
    point has no mean, but a point, and cannot be joined.
    """
    return np.where(sizes < 2, np.inf, squared * (sizes / (sizes + 1)))


@dataclass(frozen=True)
class ClusterMeans:
    """The means of clusters of points, as these are measured; that of an empty one is the origin.

    The clusters may have more points than are here: then ``lengths`` has the sums of all their squared
    lengths.
    """

    points: MeasuredPoints
    labels: np.ndarray
    sizes: np.ndarray
    means: np.ndarray
    lengths: np.ndarray | None = None

    @classmethod
    def of(cls, points: MeasuredPoints, labels: np.ndarray, n_clusters: int) -> Self:
        """Return the means of the points with each label."""
        sizes = np.bincount(labels, minlength=n_clusters)
        sums = sums_by_cluster(points, labels, n_clusters)
        return cls(points, labels, sizes, sums / np.maximum(sizes, 1)[:, None])

    def squared_distances(self, X: Any, norms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return squared distances of measured rows to all means, and their rounding by row."""
        lengths = np.einsum("ij,ij->i", self.means, self.means)
        # Dense points of single precision are not copied for this; entries of sparse ones are.
        squared = X @ (self.means.T if sp.issparse(X) else self.means.T.astype(X.dtype))
        squared = squared.astype(np.float64, copy=False)
        squared *= -2
        squared += norms[:, None]
        squared += lengths
        doubt = ROUNDING_UNITS * np.finfo(X.dtype).eps * (norms.astype(np.float64) + lengths.max())
        return np.maximum(squared, 0, out=squared), doubt

    @cached_property
    def directions(self) -> ClusterDirections | None:
        """Return the directions of the clusters, if points are directions."""
        lengths, about_origin = self.points.lengths_of(self.points.X), self.means + self.points.center
        if not are_directions(lengths, self.sizes @ about_origin / self.sizes.sum()):
            return None
        own = self.lengths
        if own is None:
            own = np.bincount(self.labels, lengths, minlength=len(self.sizes))
        return ClusterDirections.of(about_origin, self.sizes, lengths, own)


def sums_by_cluster(points: MeasuredPoints, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Add the rows of every cluster, in double precision: sums of many single ones would lose digits."""
    if isinstance(points, SparsePoints):
        return (membership(labels, n_clusters, np.float64) @ points.X).toarray()
    sums = np.zeros((n_clusters, points.X.shape[1]))
    for rows in row_blocks(*points.X.shape):
        # Not as a product, for which a table of single precision would be copied.
        _add_rows(points.measured(rows), labels[rows], sums)
    return sums


@kernel
def _add_rows(X: np.ndarray, labels: np.ndarray, sums: np.ndarray) -> None:
    """Add every row to the sum of its cluster."""
    for i in range(X.shape[0]):
        for f in range(X.shape[1]):
            sums[labels[i], f] += X[i, f]
