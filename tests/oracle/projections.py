"""The projections of DS3 in plain NumPy, by sorting: oracles for the tests and peers for the benchmark."""

from __future__ import annotations

import numpy as np


def thresholds(Y, radius):
    """Find theta with ``sum(max(y - theta, 0)) = radius`` for every row, by sorting."""
    falling = -np.sort(-Y, axis=1)
    sums = np.cumsum(falling, axis=1)
    ranks = np.arange(1, Y.shape[1] + 1)
    count = np.sum(ranks * falling > sums - radius, axis=1)
    return (np.take_along_axis(sums, count[:, None] - 1, axis=1) - radius) / count[:, None]


def sorted_simplex(Y, radius=1.0):
    """Project every row on the simplex."""
    return np.maximum(Y - thresholds(Y, radius), 0)


def sorted_l1inf(Y, radius):
    """Project on the l1,inf ball, rows as groups: sort every row, then Newton's method on what each loses."""
    size = np.abs(Y)
    if size.max(axis=1).sum() <= radius:
        return Y
    falling = -np.sort(-size, axis=1)
    sums, counts = np.cumsum(falling, axis=1), np.arange(1, Y.shape[1] + 1)
    # What a row loses when it is clipped at its next entry.
    losses = sums - counts * np.append(falling[:, 1:], np.zeros((len(Y), 1)), axis=1)
    theta = 0.0
    while True:
        live = sums[:, -1] > theta
        rank = np.minimum(np.sum(losses <= theta, axis=1), Y.shape[1] - 1)
        level = (np.take_along_axis(sums, rank[:, None], 1)[:, 0] - theta) / (rank + 1)
        excess = level[live].sum() - radius
        if abs(excess) <= 1e-12 * radius:
            break
        following = theta + excess / np.sum(1 / (rank[live] + 1))
        if following == theta:
            break
        theta = following
    level = np.where(live, level, 0)[:, None]
    return np.clip(Y, -level, level)
