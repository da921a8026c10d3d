"""Projections and shrinkages in plain NumPy: oracles for the tests, and peers for the benchmark."""

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


def sorted_l12(Y, radius):
    """Project on the l1,2 ball, rows as groups: their lengths go to the simplex, their directions stay."""
    lengths = np.linalg.norm(Y, axis=1)
    if lengths.sum() <= radius:
        return Y
    return shortened(Y, sorted_simplex(lengths[None, :], radius)[0])


def shortened(Y, lengths):
    """Give every row that is not zero another length."""
    own = np.linalg.norm(Y, axis=1)
    return Y * (lengths / np.where(own > 0, own, 1))[:, None]


def shrink_l21(B, threshold):
    """Solve ``argmin_E threshold ||E||_{2,1} + 1/2 ||E - B||_F^2``: shorten every row by the threshold."""
    return shortened(B, np.maximum(np.linalg.norm(B, axis=1) - threshold, 0))


def water_filling(d, delta):
    """Solve ``min d'z + delta/2 ||z||^2`` on the simplex: raise the smallest entries from one to the next."""
    order, z = np.argsort(d), np.zeros(len(d))
    level, mass, n_wet = d[order[0]], 1.0, 1
    while n_wet < len(d) and level + delta * mass / n_wet > d[order[n_wet]]:
        rise = (d[order[n_wet]] - level) / delta
        z[order[:n_wet]] += rise
        mass -= n_wet * rise
        level = d[order[n_wet]]
        n_wet += 1
    z[order[:n_wet]] += mass / n_wet
    return z
