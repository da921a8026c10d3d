"""The row problem of APMF: a weighted quadratic program over the simplex.

``min_s  1/2 sum_j u_j s_j^2 + sum_j d_j s_j  s.t.  s >= 0, sum(s) = 1`` has the solution
``s_j = max(eta - d_j, 0) / u_j`` with one level eta.
"""

from __future__ import annotations

import numpy as np

from smrmf._numba import kernel

# Duplicates have no distance at all: this share of the mean one keeps their weight finite.
SMALLEST_SHARE = 1e-12


@kernel
def solve_weighted_row(u, d, own, s, excess):
    """Solve one row; entry ``own`` gets nothing. ``excess`` is a work array as long as the row.

    Starting with all entries, the level can only be too high, and each step drops those it does not
    reach: Newton's method on a convex function, which ends after finitely many steps.
    """
    n = u.shape[0]
    mean = 0.0
    least = np.inf
    for j in range(n):
        if j != own:
            mean += u[j] / (n - 1)
            least = min(least, d[j])
    if mean == 0.0:
        mean = 1.0
    # In units of the mean weight, above the smallest d: neither large d nor small u lose digits.
    for j in range(n):
        excess[j] = (d[j] - least) / mean
    excess[own] = np.inf
    eta = np.inf
    n_active = -1
    while True:
        slope = 0.0
        offset = 1.0
        active = 0
        for j in range(n):
            if excess[j] < eta:
                weight = 1.0 / max(u[j] / mean, SMALLEST_SHARE)
                slope += weight
                offset += excess[j] * weight
                active += 1
        if active == n_active:
            break
        n_active = active
        eta = offset / slope
    total = 0.0
    for j in range(n):
        share = max(eta - excess[j], 0.0) / max(u[j] / mean, SMALLEST_SHARE)
        excess[j] = share
        total += share
    # The weights span many orders of magnitude: what rounding left is made good.
    for j in range(n):
        s[j] = excess[j] / total


@kernel
def solve_weighted_rows(U, D, first, S):
    """Solve consecutive rows, the first of them being row ``first``; ``S`` may be ``U`` or ``D``."""
    excess = np.empty(U.shape[1])
    for i in range(U.shape[0]):
        solve_weighted_row(U[i], D[i], first + i, S[i], excess)
