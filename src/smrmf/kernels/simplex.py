"""The simplex: projections on it, and the two problems over it that give Z its columns.

``min_z  d'z + delta/2 ||z||^2  s.t.  z >= 0, sum(z) = 1``, the column problem of f-SMRMF (5.18), is the
projection of ``-d / delta`` on the simplex: ``z_i = max(nu - d_i, 0) / delta``. Its support is the smallest
entries of d, so a list of candidates suffices; one comparison of the level nu with what lies outside the list
certifies it.

``min_s  1/2 sum_j u_j s_j^2 + sum_j d_j s_j  s.t.  s >= 0, sum(s) = 1``, the row problem of APMF, has the
solution ``s_j = max(eta - d_j, 0) / u_j`` with one level eta.
"""

from __future__ import annotations

import numpy as np

from smrmf._numba import kernel
from smrmf._parallel import SERIAL, Pool

# In columns from this length on, one entry in 16 gives a first bound on the threshold. Shorter ones are
# faster without (benchmarks/kernels.py, "simplex_threshold").
LONG_COLUMN, SAMPLE_STRIDE = 1000, 16
# Duplicates have no distance: this share of the mean weight keeps their 1 / u finite.
SMALLEST_WEIGHT_SHARE = 1e-12


@kernel
def simplex_threshold(y, radius, active):
    """Find theta with ``sum(max(y - theta, 0)) = radius``: Michelot's passes, from a bound on theta.

    The largest entry of ``y`` must be zero, so that a unit radius is not lost beside entries of 1e16;
    theta then is at least minus the radius, and at least the theta of a sample of a long column's entries.
    Starting there leaves out almost everything at once. ``active`` is a work array as long as ``y``.
    """
    bound = -radius
    # At theta the largest entry, 0, contributes -theta, at most the radius. A part of the entries needs a
    # lower theta to reach the radius than all of them, so the theta of a sample is a lower bound as well.
    for stride in (SAMPLE_STRIDE, 1):
        if stride > 1 and y.shape[0] < LONG_COLUMN:
            continue
        n_active = 0
        for i in range(0, y.shape[0], stride):
            # Store, then count: a branch that depends on the data would be mispredicted half of the time
            # (benchmarks/kernels.py, "simplex_threshold").
            active[n_active] = y[i]
            n_active += y[i] > bound
        if n_active > 0:  # none if the radius is zero or entries have overflowed
            bound = _threshold_of_active(active, n_active, radius)
    return bound


@kernel
def _threshold_of_active(active, n_active, radius):
    """Find the theta of the first entries, dropping those below its estimate until none is."""
    while True:
        # A fresh sum instead of running corrections, in which rounding would pile up.
        total = 0.0
        for a in range(n_active):
            total += active[a]
        # At most the true theta, as some of these entries may lie below it: those below this one can go.
        theta = (total - radius) / n_active
        kept = 0
        for a in range(n_active):
            active[kept] = active[a]
            kept += active[a] > theta
        # kept is 0 only where a tiny radius is lost in rounding.
        if kept == n_active or kept == 0:
            return theta
        n_active = kept


@kernel
def project_in_place(row, radius, active):
    """Project one vector on the simplex."""
    largest = row[0]
    for i in range(1, row.shape[0]):
        largest = max(largest, row[i])
    # Stored in between: the compiler may reorder (row - largest) - theta (_numba.FASTMATH), and
    # largest + theta would lose a unit radius beside 1e16.
    for i in range(row.shape[0]):
        row[i] -= largest
    theta = simplex_threshold(row, radius, active)
    for i in range(row.shape[0]):
        row[i] = max(row[i] - theta, 0.0)


@kernel
def project_rows_in_place(Y, radius):
    """Project each row of ``Y`` on the simplex of that radius."""
    active = np.empty(Y.shape[1], Y.dtype)
    for r in range(Y.shape[0]):
        project_in_place(Y[r], radius, active)


def project_simplex(Y, radius=1.0, pool: Pool = SERIAL):
    """Solve ``argmin_C ||C - Y||_F`` with every row of C non-negative and summing to ``radius``."""
    out = Y.copy()  # the projection is in place
    pool.over_rows(project_rows_in_place, (out,), float(radius))
    return out


def neighbor_smoothness(sorted_dissimilarity, n_neighbors):
    """Find the delta of each column that gives it exactly ``n_neighbors`` neighbours.

    Rows hold the smallest dissimilarities of a column in ascending order, self excluded. At
    ``delta = k d_(k+1) - sum of the k smallest`` the level nu is d_(k+1), so the k nearest share the
    mass and the next one gets none. Where no (k+1)-th exists, its place is taken one step further.
    """
    k = n_neighbors
    nearest = sorted_dissimilarity[:, :k]
    if sorted_dissimilarity.shape[1] > k:
        following = sorted_dissimilarity[:, k]
    else:
        # As far beyond the last as the last is beyond the first, and one unit where these are equal.
        following = 2 * nearest[:, -1] - nearest[:, 0] + (nearest[:, -1] == nearest[:, 0])
    # Differences first: k d_(k+1) less the sum would cancel where distances are nearly equal.
    delta = (following[:, None] - nearest).sum(axis=1)
    limits = np.finfo(delta.dtype)
    # Slightly less than the exact value: rounding must not give the (k+1)-th a positive share.
    delta *= 1 - 8 * k * float(limits.eps)
    # All k+1 equal: any small delta spreads the mass evenly over the ties.
    return np.maximum(delta, limits.tiny)


@kernel
def solve_columns(
    indptr,  # IN
    dissimilarity,  # IN
    delta,  # IN
    bound_outside,  # IN
    z,  # OUT
    level,  # OUT
):
    """Solve (5.18), ``min d'z + delta/2 ||z||^2`` over the simplex, for each candidate list.

    Return how many solutions are certified.
    ``indptr`` delimits the lists in ``dissimilarity`` and in the solution ``z``, which may be one array.
    ``bound_outside`` bounds from below what the entries outside each list can be; a list is certified
    when its ``level`` nu does not exceed that bound, and then its solution is that of the whole column.
    """
    longest = 0
    for j in range(indptr.shape[0] - 1):
        longest = max(longest, indptr[j + 1] - indptr[j])
    shifted = np.empty(longest, dissimilarity.dtype)
    active = np.empty(longest, dissimilarity.dtype)
    certified = 0
    for j in range(indptr.shape[0] - 1):
        start = indptr[j]
        size = indptr[j + 1] - start
        smooth = delta[j]
        smallest = _smallest_entry(dissimilarity[start : start + size])
        # All of a list is read here before z is written, so z may be the array of the dissimilarities. A tiny
        # delta makes quotients overflow to minus infinity, which no threshold reaches.
        for q in range(size):
            shifted[q] = (smallest - dissimilarity[start + q]) / smooth
        theta = simplex_threshold(shifted[:size], 1.0, active)
        for q in range(size):
            z[start + q] = max(shifted[q] - theta, 0.0)
        # nu in the unit of d: z_q = (nu - d_q) / delta where positive.
        level[j] = smallest - smooth * theta
        certified += level[j] <= bound_outside[j]
    return certified


@kernel
def _smallest_entry(values):
    """Return the smallest entry, by four independent chains (benchmarks/kernels.py, "solve_columns")."""
    # Each minimum has to wait for the one before it in its chain.
    a = b = c = d = values[0]
    for q in range(0, values.shape[0] - 3, 4):
        a = min(a, values[q])
        b = min(b, values[q + 1])
        c = min(c, values[q + 2])
        d = min(d, values[q + 3])
    for q in range(values.shape[0] - values.shape[0] % 4, values.shape[0]):
        a = min(a, values[q])
    return min(min(a, b), min(c, d))


@kernel
def columns_value(indptr, dissimilarity, delta, z):
    """Return the objective of (5.18), summed over the columns; most of z is zero."""
    total = 0.0
    for j in range(indptr.shape[0] - 1):
        linear = 0.0
        square = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            if z[p] > 0:
                linear += dissimilarity[p] * z[p]
                square += z[p] * z[p]
        total += linear + 0.5 * delta[j] * square
    return total


@kernel
def solve_weighted_row(u, d, own, s, excess):
    """Solve ``min_s 1/2 sum_j u_j s_j^2 + sum_j d_j s_j`` on the simplex, where entry ``own`` gets nothing.

    Starting with all entries, the level can only be too high, and each step drops those it does not
    reach: Newton's method on a convex function, which ends after finitely many steps. ``excess`` is a work
    array as long as the row.
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
    # A common shift of d, or a common factor of u and d, does not change s. In units of the mean weight,
    # above the smallest d, large d and small u keep their digits.
    for j in range(n):
        excess[j] = (d[j] - least) / mean
    # Not below the first eta, infinity too, so this entry is never active.
    excess[own] = np.inf
    eta = np.inf
    n_active = -1
    while True:
        slope = 0.0
        offset = 1.0
        active = 0
        for j in range(n):
            if excess[j] < eta:
                # The level at which the active shares sum to one: sum (eta - excess_j) / u_j = 1.
                weight = 1.0 / max(u[j] / mean, SMALLEST_WEIGHT_SHARE)
                slope += weight
                offset += excess[j] * weight
                active += 1
        level = offset / slope
        # eta only falls and the active set only shrinks: an equal count is an equal set. Where rounding lets
        # eta rise, entries at the level would come and go for ever.
        if active == n_active or not level < eta:
            break
        n_active = active
        eta = level
    total = 0.0
    for j in range(n):
        share = max(eta - excess[j], 0.0) / max(u[j] / mean, SMALLEST_WEIGHT_SHARE)
        excess[j] = share
        total += share
    # The weights span many orders of magnitude, so the shares sum to one only up to rounding.
    for j in range(n):
        s[j] = excess[j] / total


@kernel
def solve_weighted_rows(U, D, first, S):
    """Solve consecutive rows, the first of them being row ``first``; ``S`` may be ``U`` or ``D``."""
    excess = np.empty(U.shape[1])
    for i in range(U.shape[0]):
        solve_weighted_row(U[i], D[i], first + i, S[i], excess)
