"""The row problem of APMF: a weighted quadratic program over the simplex.

``min_s  1/2 sum_j u_j s_j^2 + sum_j d_j s_j  s.t.  s >= 0, sum(s) = 1`` has the solution
``s_j = max(eta - d_j, 0) / u_j`` with one level eta.
"""

from __future__ import annotations

from smrmf._compile import kernel

# Duplicates have no distance at all: this share of the mean one keeps their weight finite.
SMALLEST_SHARE = 1e-12


@kernel
def solve_weighted_row(u, d, own, s):
    """Solve one row; entry ``own`` gets nothing.

    Starting with all entries, the level can only be too high, and each step drops those it does not
    reach: Newton's method on a convex function, which ends after finitely many steps.
    """
    n = u.shape[0]
    mean = 0.0
    for j in range(n):
        mean += u[j]
    smallest = max(SMALLEST_SHARE * mean / n, 1e-300)
    eta = 1e300
    n_active = n
    while True:
        slope = 0.0
        offset = 1.0
        active = 0
        for j in range(n):
            if j != own and d[j] < eta:
                weight = 1.0 / max(u[j], smallest)
                slope += weight
                offset += d[j] * weight
                active += 1
        if active == n_active or active == 0:
            break
        n_active = active
        eta = offset / slope
    for j in range(n):
        s[j] = max(eta - d[j], 0.0) / max(u[j], smallest)
    s[own] = 0.0
    # The weights span many orders of magnitude: what rounding left is made good.
    total = 0.0
    for j in range(n):
        total += s[j]
    for j in range(n):
        s[j] /= total


@kernel
def solve_weighted_rows(U, D, first, S):
    """Solve consecutive rows, the first of them being row ``first``; ``S`` may be ``U`` or ``D``."""
    for i in range(U.shape[0]):
        solve_weighted_row(U[i], D[i], first + i, S[i])
