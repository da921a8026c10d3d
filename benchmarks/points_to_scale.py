"""Tables of any number of points, made block by block: blobs that overlap, and curved manifolds that meet."""

from __future__ import annotations

import numpy as np

BLOCK = 100_000
# Standard deviation of the middles of the blobs, where that inside of a blob is 1: a point in ten is nearer
# to another middle than to its own.
APART = 0.45
# Of the manifolds: intrinsic dimension, and how far apart their middles lie: they cross.
DIMENSION, MIDDLES = 8, 0.1

KINDS = ("blobs", "manifolds")


def blocks_of(kind: str, n: int, m: int, n_clusters: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points in single precision, and the cluster of each."""
    rng = np.random.default_rng(seed)
    place = {"blobs": blobs, "manifolds": manifolds}[kind](rng, m, n_clusters)
    X, labels = np.empty((n, m), np.float32), rng.integers(n_clusters, size=n)
    for start in range(0, n, BLOCK):
        X[start : start + BLOCK] = place(labels[start : start + BLOCK])
    return X, labels


def blobs(rng, m, n_clusters):
    """Return what draws points of blobs of one size."""
    middles = APART * rng.normal(size=(n_clusters, m))
    return lambda labels: middles[labels] + rng.normal(size=(len(labels), m))


def manifolds(rng, m, n_clusters):
    """Return what draws points of curved sheets: sines of eight coordinates, and a little noise."""
    bends, tilts = rng.normal(size=(2, n_clusters, DIMENSION, m)) / DIMENSION**0.5
    phases, middles = 6 * rng.random((n_clusters, m)), MIDDLES * rng.normal(size=(n_clusters, m))

    def draw(labels):
        places, points = rng.uniform(-1, 1, (len(labels), DIMENSION)), np.empty((len(labels), m))
        for label in range(n_clusters):
            rows = labels == label
            own = places[rows]
            points[rows] = np.sin(2 * own @ bends[label] + phases[label]) + own @ tilts[label]
            points[rows] += middles[label]
        return points + 0.1 * rng.normal(size=points.shape)

    return draw
