"""Tables of some thousand points, as the tests of approximate searches use them."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_blobs


def sheets(n, seed=0, m=12, n_sheets=5, dimension=3, dtype=float):
    """Return points on curved sheets of few dimensions, and the sheet of each."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_sheets, size=n)
    places = rng.uniform(-1, 1, (n, dimension))
    bends, tilts = rng.normal(size=(2, n_sheets, dimension, m)) / dimension**0.5
    X = np.sin(2 * np.einsum("ij,ijk->ik", places, bends[labels]) + 6 * rng.random((n_sheets, m))[labels])
    X += np.einsum("ij,ijk->ik", places, tilts[labels]) + rng.normal(size=(n_sheets, m))[labels]
    return X.astype(dtype), labels


def overlapping(n, seed=0, m=12, dtype=float):
    """Return blobs that overlap, and the blob of each point."""
    X, labels = make_blobs(n, m, centers=5, cluster_std=4.0, random_state=seed)
    return X.astype(dtype), labels
