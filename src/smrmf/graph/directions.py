"""Which cluster a point is most like, where points are directions, as texts of any length are.

Rows of equal length lie on a sphere, and differ by angles only. The mean of a cluster of many kinds of texts
is short, and a short mean is near to everything: by distances to means, whatever is in doubt would go there.
By the angle with the direction of a cluster it goes where its few words belong.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

# Squared lengths are equal if they differ by less than this share of the squared distances, also in single
# precision.
EQUAL_LENGTHS = 1e-3
# Points with a mean product below this share of their squared length have no direction in common.
NO_DIRECTION = 1e-4


def are_directions(lengths: np.ndarray, middle: np.ndarray) -> bool:
    """Tell whether points lie on a sphere around the origin, or on it, by squared lengths and mean."""
    filled = lengths[lengths > 0]
    # Not by the lengths alone, which are nearly equal wherever points are far from the origin.
    spread = float(lengths.mean() - middle @ middle)
    return len(filled) > 0 and float(filled.max() - filled.min()) <= EQUAL_LENGTHS * spread


class ClusterDirections(NamedTuple):
    """Squared lengths of the clusters' means, and the mean product of two different points of each.

    The mean product is the squared length of the mean without the part of it that is noise, which is the
    larger the smaller a cluster is. It is 0 where a cluster has no direction.
    """

    sizes: np.ndarray
    squares: np.ndarray
    pairs: np.ndarray

    @classmethod
    def of(cls, means: np.ndarray, labels: np.ndarray, sizes: np.ndarray, lengths: np.ndarray) -> Self:
        """Take means about the origin, and the labels and squared lengths of the points."""
        squares = np.einsum("ij,ij->i", means, means)
        own = np.bincount(labels, lengths, minlength=len(sizes))
        # s^2 |m|^2 is the sum over all pairs, of which s are those of a point with itself.
        pairs = (sizes**2 * squares - own) / np.maximum(sizes * (sizes - 1), 1)
        directed = (sizes > 1) & (pairs * sizes > NO_DIRECTION * own)
        return cls(sizes, squares, np.where(directed, pairs, 0))

    def products(self, squared: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return products of points with means, from squared distances and lengths."""
        return (lengths[:, None] + self.squares - squared) / 2

    def most_alike(self, products: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
        """Return the cluster with whose direction every point has the smallest angle, or what is given."""
        directed = self.pairs > 0
        likeness = np.where(directed, products / np.sqrt(np.where(directed, self.pairs, 1)), -np.inf)
        # Points without words are like nothing.
        return np.where(likeness.max(axis=1) > 0, likeness.argmax(axis=1), otherwise)

    def without_own(self, products: np.ndarray, labels: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return products of clustered points with means, each with its own cluster's as it is without it."""
        rows, s = np.arange(len(labels)), self.sizes[labels]
        others = products.copy()
        others[rows, labels] = (s * products[rows, labels] - lengths) / np.maximum(s - 1, 1)
        return others
