"""Labels by the means of the clusters, where even the nearest point is farther away than these.

In data of very many dimensions, as texts are, the nearest neighbours of a point are nearly as far as any
others, and which ones they are is mostly noise. The mean of a cluster, in which noise averages out, is then
nearer than any single point, and a better witness. In data on a curve or a surface it is the other way round:
neighbours are near, and means lie off the surface. Comparing the two distances tells for every point whom to
listen to.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from smrmf._parallel import Pool
from smrmf.graph.neighbors import MeasuredPoints


def settle_by_means(
    points: MeasuredPoints, labels: np.ndarray, n_clusters: int, nearest: np.ndarray, pool: Pool
) -> np.ndarray:
    """Give every point that is nearer to a mean than to any other point the cluster of that mean.

    ``nearest`` has the squared distance of every point to its nearest other one. Once, not until nothing
    moves: from the second time on large clusters grow at the expense of the others. Labels stay as they are
    if a cluster would lose all its points.
    """
    sizes = np.bincount(labels, minlength=n_clusters)
    squared = squared_to_means(points, labels, sizes, pool)
    rows = np.arange(len(labels))
    own, others = squared[rows, labels], np.maximum(sizes - 1, 1)
    variance = np.bincount(labels, own, minlength=n_clusters) / others
    # The mean of s points is off by a share 1/s of their variance, which makes small clusters seem far. A
    # point's own one seems near, as it is part of the mean: that of the others is s / (s - 1) times as far.
    fair = squared - variance / np.maximum(sizes, 1)
    without = own * ((sizes / others) ** 2)[labels] - (variance / others)[labels]
    # Who is alone in a cluster stays there.
    fair[rows, labels] = np.where(sizes[labels] > 1, without, -np.inf)
    fair[:, sizes == 0] = np.inf
    best = fair.argmin(axis=1)
    settled = np.where(squared[rows, best] < nearest, best, labels)
    kept = np.count_nonzero(np.bincount(settled, minlength=n_clusters)) == np.count_nonzero(sizes)
    return settled if kept else labels


def squared_to_means(points: MeasuredPoints, labels: np.ndarray, sizes: np.ndarray, pool: Pool) -> np.ndarray:
    """Return squared distances of every point to the mean of every cluster; an empty one is the origin."""
    X, n = points.measured, len(labels)
    shares = 1 / np.maximum(sizes, 1)[labels]
    averaging = sp.csr_array((shares.astype(X.dtype), (labels, np.arange(n))), shape=(len(sizes), n))
    means = averaging @ X
    if sp.issparse(means):
        means = means.toarray()
    squared = X @ means.T if sp.issparse(X) else pool.matmul(X, means.T)
    squared *= -2
    squared += points.norms[:, None].astype(squared.dtype)
    squared += np.einsum("ij,ij->i", means, means)
    return np.maximum(squared, 0, out=squared)
