"""Projections on the simplex and on the row-sparse balls of the paper.

Each function solves ``argmin_C ||C - Y||_F`` over a set. In the paper's orientation the rows of Z are
the groups of the ball and its columns lie on the simplex; the factorisation stores Z transposed, so
its groups are columns here.
"""

from __future__ import annotations

import numpy as np

from smrmf._numba import kernel
from smrmf._parallel import SERIAL, Pool, row_blocks

MAX_NEWTON_STEPS = 100
# Below this share of entries other than zero, collecting them pays.
SPARSE_SHARE = 0.1
# One entry in so many is looked at for a first bound.
SAMPLE_STRIDE = 16


@kernel
def simplex_threshold(y, radius, active):
    """Find theta with ``sum(max(y - theta, 0)) = radius``: Michelot's passes, from a bound on theta.

    The largest entry of ``y`` must be zero, so that a unit radius is not lost beside entries of 1e16;
    theta then is at least minus the radius, and at least the theta of a sample of the entries.
    Starting there leaves out almost everything at once. ``active`` is a work array as long as ``y``.
    """
    bound = -radius
    for stride in (SAMPLE_STRIDE, 1):
        n_active = 0
        for i in range(0, y.shape[0], stride):
            # Stored first and counted after: no branch that could be foretold wrongly.
            active[n_active] = y[i]
            n_active += y[i] > bound
        if n_active > 0:  # or no radius, or entries that overflowed, which are for the loop to tell
            bound = _threshold_of_active(active, n_active, radius)
    return bound


@kernel
def _threshold_of_active(active, n_active, radius):
    """Find the theta of the first entries, dropping those below its estimate until none is."""
    while True:
        # A fresh sum instead of running corrections: no rounding piles up.
        total = 0.0
        for a in range(n_active):
            total += active[a]
        theta = (total - radius) / n_active
        kept = 0
        for a in range(n_active):
            active[kept] = active[a]
            kept += active[a] > theta
        if kept == n_active or kept == 0:
            return theta
        n_active = kept


@kernel
def project_in_place(row, radius, active):
    """Project one vector on the simplex."""
    largest = row[0]
    for i in range(1, row.shape[0]):
        largest = max(largest, row[i])
    # Stored in between: reordered sums would lose a unit radius beside 1e16.
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
    out = Y.copy()
    pool.over_rows(project_rows_in_place, (out,), float(radius))
    return out


@kernel
def _absolute_column_totals(P, Q, weight, totals, largest):
    """Add up ``|P + weight Q|`` by columns and find its column maxima."""
    for r in range(P.shape[0]):
        for i in range(P.shape[1]):
            a = abs(P[r, i] + weight * Q[r, i])
            totals[i] += a
            largest[i] = max(largest[i], a)


@kernel
def _column_tails(P, Q, weight, level, sums, counts):
    """Sum and count, by columns, the entries of ``|P + weight Q|`` that reach the level."""
    for r in range(P.shape[0]):
        for i in range(P.shape[1]):
            a = abs(P[r, i] + weight * Q[r, i])
            reaches = a >= level[i]
            sums[i] += a if reaches else 0.0
            counts[i] += 1.0 if reaches else 0.0


@kernel
def _gather_entries(P, Q, weight, values, columns):
    """Collect the entries of ``|P + weight Q|`` other than zero, with their columns.

    Return how many, or -1 if there is no room for all of them.
    """
    count = 0
    for r in range(P.shape[0]):
        for i in range(P.shape[1]):
            a = abs(P[r, i] + weight * Q[r, i])
            if a > 0.0:
                if count == values.shape[0]:
                    return -1
                values[count] = a
                columns[count] = i
                count += 1
    return count


@kernel
def _entry_tails(values, columns, level, sums, counts):
    """Do what ``_column_tails`` does on collected entries."""
    for e in range(values.shape[0]):
        i = columns[e]
        if values[e] >= level[i]:
            sums[i] += values[e]
            counts[i] += 1.0


def _sum_blocks(pass_over, P, Q, n_groups, pool):
    """Run a column pass over row blocks and combine (sum, second) in the order of the blocks."""

    def one(block):
        first, second = np.zeros(n_groups), np.zeros(n_groups)
        pass_over(P[block], Q[block], first, second)
        return first, second

    # A pass reads every entry once and keeps only sums: larger blocks than usual cost nothing.
    return pool.map(one, row_blocks(len(P), max(1, P.shape[1] // 4)))


def _totals(P, Q, weight, pool):
    """Return the column sums and column maxima of ``|P + weight Q|``."""

    def one(p, q, total, top):
        _absolute_column_totals(p, q, weight, total, top)

    parts = _sum_blocks(one, P, Q, P.shape[1], pool)
    return np.sum([t for t, _ in parts], axis=0), np.max([m for _, m in parts], axis=0)


class _Tails:
    """Sums and counts of the entries of each column of ``|P + weight Q|`` that reach its level.

    Every step of Newton's method asks for them. Inside an iteration most entries are zero, and those
    that are not are collected once.
    """

    def __init__(self, P, Q, weight, pool):
        self.P, self.Q, self.weight, self.pool = P, Q, weight, pool
        # Larger blocks than usual: a pass leaves only sums behind.
        self.blocks = row_blocks(len(P), max(1, P.shape[1] // 4))
        entries = pool.map(lambda b: _gather_block(P[b], Q[b], weight), self.blocks)
        self.entries = None if any(part is None for part in entries) else entries

    def __call__(self, level):
        """Return the sums and the counts, which are at least 1."""

        def one(place):
            sums, counts = np.zeros(len(level)), np.zeros(len(level))
            if self.entries is not None:
                _entry_tails(*self.entries[place], level, sums, counts)
            else:
                block = self.blocks[place]
                _column_tails(self.P[block], self.Q[block], self.weight, level, sums, counts)
            return sums, counts

        parts = self.pool.map(one, range(len(self.blocks)))
        counts = np.maximum(np.sum([k for _, k in parts], axis=0), 1.0)
        return np.sum([s for s, _ in parts], axis=0), counts


def _gather_block(P, Q, weight):
    """Return the entries of a block that differ from zero, and their columns; None if they are too many."""
    room = int(SPARSE_SHARE * P.size) + 1
    values, columns = np.empty(room, P.dtype), np.empty(room, np.int32)
    count = _gather_entries(P, Q, weight, values, columns)
    return None if count < 0 else (values[:count].copy(), columns[:count].copy())


def l1inf_penalty_levels(P, Q, weight, threshold, warm=None, pool: Pool = SERIAL):
    """Find the clipping levels of ``argmin_C threshold sum_i max_j |c_ij| + 1/2 ||C - Y||_F^2``.

    ``Y = P + weight Q``, columns as groups. Every live group loses exactly ``threshold`` to the
    clipping; lighter ones get level 0. Newton's method finds all levels at once.
    """
    totals, largest = _totals(P, Q, weight, pool)
    live = totals > threshold
    level = largest if warm is None else np.minimum(warm, largest)
    tails = _Tails(P, Q, weight, pool)
    for _ in range(MAX_NEWTON_STEPS):
        sums, counts = tails(level)
        updated = np.where(live, np.clip((sums - threshold) / counts, 0.0, largest), 0.0)
        settled = np.allclose(updated, level, rtol=1e-13, atol=0.0)
        level = updated
        if settled:
            break
    return level


def l1inf_levels(P, Q, weight, radius, warm=None, pool: Pool = SERIAL):
    """Find the clipping levels that project ``Y = P + weight Q`` on the l1,inf ball, columns as groups.

    The projection is ``sign(Y) min(|Y|, level)``: one theta > 0 exists such that every live group
    loses exactly theta to the clipping, groups lighter than theta get level 0, and the levels sum
    to the radius. A joint Newton iteration finds theta and all levels; ``warm`` levels of a nearby
    problem save about half of its passes. Levels are infinite when Y is inside the ball.
    """
    n_groups = P.shape[1]
    totals, largest = _totals(P, Q, weight, pool)
    if largest.sum() <= radius:
        return np.full(n_groups, np.inf)
    level = largest.copy() if warm is None else np.minimum(warm, largest)
    live = np.ones(n_groups, dtype=bool)
    tails = _Tails(P, Q, weight, pool)
    for _ in range(MAX_NEWTON_STEPS):
        sums, counts = tails(level)
        theta = max(0.0, (np.sum((sums / counts)[live]) - radius) / np.sum(1.0 / counts[live]))
        alive = totals > theta
        # A group that comes back to life has no level yet, so it restarts from zero.
        updated = np.where(alive & live, np.clip((sums - theta) / counts, 0.0, largest), 0.0)
        settled = np.array_equal(alive, live) and np.allclose(updated, level, rtol=1e-13, atol=0.0)
        level, live = updated, alive
        if settled or not live.any():
            break
    return _exact_sum(level, totals, radius)


def _exact_sum(level, totals, radius):
    """Make the levels sum to the radius; far outside the ball they are small differences of large sums.

    Where nothing is left of the differences, the heaviest group is the last one alive.
    """
    total = level.sum()
    if total > 0:
        return level * (radius / total)
    return np.where(np.arange(len(level)) == np.argmax(totals), radius, 0.0)


def project_l1inf_ball(Y, radius, warm=None, pool: Pool = SERIAL):
    """Solve ``argmin_C ||C - Y||_F  s.t.  sum_i max_j |c_ij| <= radius`` with the rows of C as groups."""
    columns = np.ascontiguousarray(Y.T)
    level = l1inf_levels(columns, columns, 0.0, radius, warm, pool)[:, None]
    return np.clip(Y, -level, level).astype(Y.dtype, copy=False)


@kernel
def _column_squares(P, Q, weight, squares, unused):
    """Add up ``(P + weight Q)^2`` by columns."""
    for r in range(P.shape[0]):
        for i in range(P.shape[1]):
            squares[i] += (P[r, i] + weight * Q[r, i]) ** 2


def _column_norms(P, Q, weight, pool):
    """Return the lengths of the columns of ``P + weight Q``."""

    def one(p, q, squares, unused):
        _column_squares(p, q, weight, squares, unused)

    parts = _sum_blocks(one, P, Q, P.shape[1], pool)
    return np.sqrt(np.sum([s for s, _ in parts], axis=0))


def _length_factors(kept, norms):
    """Return what shortens columns to the kept lengths."""
    return np.divide(kept, norms, out=np.zeros_like(norms), where=norms > 0)


def l12_penalty_factors(P, Q, weight, threshold, pool: Pool = SERIAL):
    """Find the factors of ``argmin_C threshold sum_i ||c_i||_2 + 1/2 ||C - Y||_F^2``, columns as groups."""
    norms = _column_norms(P, Q, weight, pool)
    return _length_factors(np.maximum(norms - threshold, 0), norms)


def l12_factors(P, Q, weight, radius, pool: Pool = SERIAL):
    """Find the factors that scale the columns of ``Y = P + weight Q`` into the l1,2 ball."""
    norms = _column_norms(P, Q, weight, pool)
    if norms.sum() <= radius:
        return np.ones_like(norms)
    return _length_factors(project_simplex(norms[None, :], radius)[0], norms)


def project_l12_ball(Y, radius):
    """Solve ``argmin_C ||C - Y||_F  s.t.  sum_i ||c_i||_2 <= radius`` with the rows of C as groups."""
    columns = np.ascontiguousarray(Y.T)
    return (Y * l12_factors(columns, columns, 0.0, radius)[:, None]).astype(Y.dtype, copy=False)
