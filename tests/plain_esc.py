"""Farthest-first search in its plain form: every point is solved anew for every exemplar."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import sparse_encode


def plain_costs(unit, exemplars, fidelity=100.0):
    """Return ``min_c ||c||_1 + fidelity/2 ||x - c E||^2`` of every row x, by least angle regression."""
    coefficients = sparse_encode(unit, exemplars, algorithm="lasso_lars", alpha=1 / fidelity)
    residuals = unit - coefficients @ exemplars
    return np.abs(coefficients).sum(axis=1) + fidelity / 2 * (residuals**2).sum(axis=1)


def plain_esc(X, n_exemplars, first, fidelity=100.0):
    """Choose exemplars farthest-first, from a given first one."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    picks = [int(first)]
    while len(picks) < n_exemplars:
        costs = plain_costs(unit, unit[picks], fidelity)
        costs[picks] = -np.inf
        # The lowest index among equals; equal up to rounding, as all that nothing expresses are.
        picks.append(int(np.flatnonzero(costs >= costs.max() * (1 - 1e-9))[0]))
    return picks
