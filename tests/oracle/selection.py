"""The selections in their plain forms, as slow and obvious as they are: oracles for the tests."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits


@threadpool_limits.wrap(limits=1)
def plain_ipm(X, n_picks, matching="original"):
    """Iterative projection and matching by a pseudo-inverse and an SVD of the residual for every pick."""
    X = np.asarray(X, dtype=np.float64)
    picks, start = [], 0  # picks[start:] are those of the current pass
    while len(picks) < n_picks:
        rows = [row for row in range(len(X)) if row not in picks[:start]]
        A = X[rows].T
        chosen = X[picks[start:]].T
        R = A - chosen @ np.linalg.pinv(chosen) @ A
        if (R**2).sum() <= 1e-12 * (A**2).sum() and len(picks) > start:
            start = len(picks)
            continue
        # The quicker driver may not converge on residuals that lack rank.
        direction = scipy.linalg.svd(R, full_matrices=False, lapack_driver="gesvd")[0][:, 0]
        lengths = np.linalg.norm(A, axis=0)
        divisor = lengths
        if matching == "residual":
            divisor = np.linalg.norm(R, axis=0)
            divisor[divisor**2 <= 1e-12 * lengths**2] = np.inf
        score = np.abs(A.T @ direction) / np.where(lengths > 0, divisor, np.inf)
        score[[row in picks for row in rows]] = -1
        # The lowest index among equals, up to rounding: duplicates, or all once one direction is left.
        score = np.minimum(score, 1)
        picks.append(rows[np.flatnonzero(score >= score.max() * (1 - 1e-8))[0]])
    return picks


def kdpp_law(L, k):
    """Return the probability of every set of k items, proportional to the determinant of its part of L."""
    sets = list(combinations(range(len(L)), k))
    volumes = np.array([np.linalg.det(L[np.ix_(items, items)]) for items in sets])
    return sets, np.maximum(volumes, 0) / np.maximum(volumes, 0).sum()


def plain_elementary(values, k):
    """Return the elementary symmetric polynomial: the sum over all sets of k of the product of its values."""
    return sum(np.prod(items) for items in combinations(values, k))
