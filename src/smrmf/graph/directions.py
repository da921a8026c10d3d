"""Which cluster a point is most like, where points are directions, as texts of any length are.

Rows of equal length lie on a sphere, and differ by angles only. The mean of a cluster of many kinds of texts
is short, and a short mean is near to everything: by distances to means, whatever is in doubt would go there.
By the angle with the direction of a cluster it goes where its few words belong.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

# Squared lengths are equal if they differ by less than this share of the squared distances from the middle.
EQUAL_LENGTHS = 1e-3
# In a cone so narrow that such distances are less than this share of the squared lengths, angles say what
# distances say, and are lost in rounding first.
WIDE = 1e-3
# Points whose cosine with a cluster is not above this have nothing in common with it but rounding.
NOTHING_COMMON = 1e-3


def are_directions(lengths: np.ndarray, middle: np.ndarray) -> bool:
    """Tell by squared lengths and the mean whether all points but zeros lie on a sphere around the origin.

    Not by the lengths alone, which are nearly equal wherever points are far from the origin.
    """
    filled = lengths[lengths > 0]
    if len(filled) == 0:
        return False
    spread = float(lengths.mean() - middle @ middle)
    equal = float(filled.max() - filled.min()) <= EQUAL_LENGTHS * spread
    return equal and spread > WIDE * float(lengths.mean())


class ClusterDirections(NamedTuple):
    """What is known of clusters of directions.

    ``lengths`` are the squared lengths of the points, ``squares`` those of the clusters' means, and ``pairs``
    the mean products of two different points of each: the squared length of a mean without the part that is
    noise, which is the larger the smaller a cluster is. Where noise is more than half of it, the cluster has
    no direction, and ``pairs`` is 0.
    """

    lengths: np.ndarray
    sizes: np.ndarray
    squares: np.ndarray
    pairs: np.ndarray

    @classmethod
    def of(cls, means: np.ndarray, sizes: np.ndarray, lengths: np.ndarray, own: np.ndarray) -> Self:
        """Take means about the origin, the squared lengths of the points, and their sums by cluster."""
        squares = np.einsum("ij,ij->i", means, means)
        # s^2 |m|^2 is the sum over all pairs, of which s are those of a point with itself.
        pairs = (sizes**2 * squares - own) / np.maximum(sizes * (sizes - 1), 1)
        # Noise alone gives a mean of s points the squared length own / s^2.
        return cls(lengths, sizes, squares, np.where(pairs * sizes**2 > own, pairs, 0))

    def of_rows(self, rows: slice) -> ClusterDirections:
        """Return the same for some of the points."""
        return self._replace(lengths=self.lengths[rows])

    def products(self, squared: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return products of points with means, from their squared distances and squared lengths."""
        return (lengths[:, None] + self.squares - squared) / 2

    def products_with_others(self, squared: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return products of the points with means, that of their own cluster without themselves."""
        products, rows, s = self.products(squared, self.lengths), np.arange(len(labels)), self.sizes[labels]
        products[rows, labels] = (s * products[rows, labels] - self.lengths) / np.maximum(s - 1, 1)
        return products

    def most_alike(self, products: np.ndarray, lengths: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
        """Return the cluster with whose direction every point has the smallest angle.

        Points that have nothing in common with any cluster, as rows of zeros, get what is ``otherwise``.
        """
        directed = self.pairs > 0
        likeness = np.where(directed, products / np.sqrt(np.where(directed, self.pairs, 1)), -np.inf)
        alike = likeness.max(axis=1) > NOTHING_COMMON * np.sqrt(lengths)
        return np.where(alike & (lengths > 0), likeness.argmax(axis=1), otherwise)
