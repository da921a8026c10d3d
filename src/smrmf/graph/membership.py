"""How sure it is to which cluster a point belongs, and how far it lies from all others.

A point is surely in a cluster if a short walk from it over the graph of neighbours stays there, and if the
clusterings that were tried agree. It lies apart if its neighbours are much farther from it than from theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from smrmf.graph.partitions import contingency

# Of one step the neighbours are few, and most points come out as certain; of many all clusters look alike.
WALK_STEPS = 2
# By how much the share of a label against its neighbourhood exceeds the next one.
HAIR = 1e-6
# A distance below this share of the usual one sets no point apart.
NEAR = 0.1


def one_hot(labels: np.ndarray, n_clusters: int, dtype: np.dtype) -> np.ndarray:
    """Return the table of points and clusters with a one where a point belongs."""
    return np.eye(n_clusters, dtype=dtype)[labels]


def voted_shares(
    labels: np.ndarray, voters: Sequence[np.ndarray], n_clusters: int, dtype: np.dtype
) -> np.ndarray:
    """Return which share of some clusterings puts every point into each of the clusters of the labels.

    The clusters of a voter are those that they share most points with, one for each (Hungarian matching).
    """
    shares, places = np.zeros((len(labels), n_clusters), dtype), np.arange(len(labels))
    for voter in voters:
        shares[places, contingency(voter, labels, n_clusters)[1][voter]] += 1
    return shares / dtype.type(max(len(voters), 1))


def walked_shares(W: sp.csr_array, shares: np.ndarray) -> np.ndarray:
    """Return the mean shares at the end of a short walk over the graph, from every point."""
    degrees = np.asarray(W.sum(axis=1)).ravel()
    alone = np.flatnonzero(degrees <= np.finfo(W.dtype).tiny)
    degrees[alone] = 1
    for _ in range(WALK_STEPS):
        walked = W @ shares
        walked /= degrees[:, None]
        walked[alone] = shares[alone]
        shares = walked
    return shares


def favor_labels(shares: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the shares of every row such that they sum to one and the label has the largest.

    A point may be labelled against its neighbourhood. Then the label counts as much as the cluster that the
    neighbourhood is for, and a hair more.
    """
    favored = shares / shares.sum(axis=1, keepdims=True)
    against = np.flatnonzero(favored.argmax(axis=1) != labels)
    favored[against, labels[against]] = favored[against].max(axis=1) + HAIR
    favored[against] /= favored[against].sum(axis=1, keepdims=True)
    return favored


def unfavored(favored: np.ndarray, label: int, confidence: float) -> np.ndarray:
    """Return the shares of a point before its label was favoured, when this had its ``confidence`` alone."""
    rest = 1 - float(favored[label])
    shares = favored * ((1 - confidence) / rest if rest > 0 else 0.0)
    shares[label] = confidence
    return shares


def mean_distances(squared: np.ndarray) -> np.ndarray:
    """Return the mean distance of every point to its neighbours, from the squares."""
    return np.sqrt(squared).mean(axis=1)


def least_reach(reach: np.ndarray) -> float:
    """Return the distance below which neighbours are near whatever is usual."""
    apart = reach[reach > 0]
    return NEAR * float(np.median(apart)) if len(apart) else 0.0


def outlyingness(
    own: np.ndarray, indices: np.ndarray, reach: np.ndarray, least: float | None = None
) -> np.ndarray:
    """Return by how much points are farther from their neighbours than these from theirs, from 0 to 1.

    ``own`` has the mean distance of every point to its neighbours, ``indices`` these, and ``reach`` the mean
    distances of all that can be one. One less the ratio of the two: 0 for a point amid others, 1/2 if it is
    twice as far away as they are from each other, nearly 1 if it is far from everything. What is a small part
    of the distances usual among all points, ``least``, is near, also to copies, which have none among
    themselves.
    """
    least = least_reach(reach) if least is None else least
    usual = np.maximum(reach[indices].mean(axis=1), np.asarray(least, reach.dtype))
    return 1 - np.divide(usual, own, out=np.ones_like(own), where=own > usual)
