"""The sets that make Z row-sparse: l1,inf (tau counts exemplars), l1,2, or no constraint (-NS).

Projecting on any of them solves ``argmin_C ||C - Y||_F`` by scaling and clipping whole rows of Z. In the
paper's orientation the rows of Z are the groups of the ball; the factorisation stores Z transposed, so its
groups are columns here. A :class:`RowConstraint` answers with one factor and one cap per group, so that
n x n arrays are touched by kernels only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from smrmf._numba import kernel
from smrmf._parallel import SERIAL, Pool, row_blocks
from smrmf.kernels.simplex import project_simplex

MAX_NEWTON_STEPS = 100
# Newton's method ends when no level changes by more than this share of it.
SETTLED = 1e-13
# Below this share of entries other than zero it pays to collect them (benchmarks/kernels.py, "_Tails").
COLLECTED_SHARE = 0.1


class Shrinkage(NamedTuple):
    """A projection: ``C = scale * clip(factor * Y, -cap, cap)``, columns of Y as groups."""

    factor: np.ndarray
    cap: np.ndarray
    scale: float


class WeightedSum(NamedTuple):
    """``P + weight Q``, which the kernels never store."""

    P: np.ndarray
    Q: np.ndarray
    weight: float


class RowConstraint(ABC):
    """Solve ``argmin_C ||C - Y||_F`` over a set of row-sparse C, or the proximal problem of a regulariser."""

    @abstractmethod
    def shrinkage(self, Y: WeightedSum, scale: float, warm: Shrinkage | None, pool: Pool) -> Shrinkage:
        """Return the projection of ``scale * Y``; ``warm`` is the one of a nearby Y, where to start."""


@dataclass(frozen=True)
class L1InfBall(RowConstraint):
    """``sum_i max_j |z_ij| <= radius``, the norm for which tau counts exemplars (paper note 6)."""

    radius: float

    def shrinkage(self, Y: WeightedSum, scale: float, warm: Shrinkage | None, pool: Pool) -> Shrinkage:
        """Clip every group at its level."""
        # Projecting scale * Y on this ball is scale times projecting Y on the ball of radius / scale. Caps
        # are in the unit of Y, so those of another scale are converted; infinite ones (warm Y inside the
        # ball) are harmless, as guesses are cut at the largest entries.
        guess = None if warm is None else warm.cap * (warm.scale / scale)
        levels = l1inf_levels(*Y, self.radius / scale, guess, pool)
        return Shrinkage(np.ones_like(levels), levels, scale)


@dataclass(frozen=True)
class L12Ball(RowConstraint):
    """``sum_i ||z_i||_2 <= radius``; the radius must be at least ``sqrt(n)`` for columns that sum to one.

    The rows of such a Z sum to n ones, so their lengths add up to at least ``sqrt(n)`` (paper note 6).
    """

    radius: float

    def shrinkage(self, Y: WeightedSum, scale: float, warm: Shrinkage | None, pool: Pool) -> Shrinkage:
        """Shorten every group."""
        factors = l12_factors(*Y, self.radius / scale, pool)
        return Shrinkage(factors, np.full_like(factors, np.inf), scale)


@dataclass(frozen=True)
class Unconstrained(RowConstraint):
    """No selection constraint: the paper's SMRMF-NS."""

    def shrinkage(self, Y: WeightedSum, scale: float, warm: Shrinkage | None, pool: Pool) -> Shrinkage:
        """Leave every group as it is."""
        n = Y.P.shape[1]
        return Shrinkage(np.ones(n), np.full(n, np.inf), scale)


@dataclass(frozen=True)
class L1InfRegularizer(RowConstraint):
    """The regulariser ``threshold sum_i max_j |z_ij|`` (DS3)."""

    threshold: float

    def shrinkage(self, Y: WeightedSum, scale: float, warm: Shrinkage | None, pool: Pool) -> Shrinkage:
        """Clip every group at its level."""
        guess = None if warm is None else warm.cap * (warm.scale / scale)
        # The proximal map scales like the ball: a threshold t on scale * Y is t / scale on Y.
        levels = l1inf_penalty_levels(*Y, self.threshold / scale, guess, pool)
        return Shrinkage(np.ones_like(levels), levels, scale)


@dataclass(frozen=True)
class L12Regularizer(RowConstraint):
    """The regulariser ``threshold sum_i ||z_i||_2`` (DS3)."""

    threshold: float

    def shrinkage(self, Y: WeightedSum, scale: float, warm: Shrinkage | None, pool: Pool) -> Shrinkage:
        """Shorten every group."""
        factors = l12_penalty_factors(*Y, self.threshold / scale, pool)
        return Shrinkage(factors, np.full_like(factors, np.inf), scale)


@kernel
def _absolute_column_totals(P, Q, weight, totals, largest):
    """Add up ``|P + weight Q|`` by columns and find its column maxima."""
    # Groups in the inner loop: rows are contiguous, and each group has its own place to add to.
    for r in range(P.shape[0]):
        for i in range(P.shape[1]):
            a = abs(P[r, i] + weight * Q[r, i])
            totals[i] += a
            largest[i] = max(largest[i], a)


@kernel
def _column_tails(
    P,  # IN
    Q,  # IN
    weight,  # IN
    level,  # IN
    sums,  # OUT
    counts,  # OUT
):
    """Sum and count, by columns, the entries of ``|P + weight Q|`` that reach the level."""
    # ">=": at the level of its largest entry a column counts that entry, and Newton has a slope. At level 0
    # zeros are counted too, which only shortens the step from there.
    for r in range(P.shape[0]):
        for i in range(P.shape[1]):
            a = abs(P[r, i] + weight * Q[r, i])
            # Selections instead of a branch, so that the loop over columns vectorises.
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
    """Sum and count, by columns, the collected entries that reach the level, as ``_column_tails`` does."""
    for e in range(values.shape[0]):
        i = columns[e]
        if values[e] >= level[i]:
            sums[i] += values[e]
            counts[i] += 1.0


def _summing_blocks(P):
    """Return blocks of four times the usual rows, for passes that leave only column sums behind.

    Every block has its own sums, n numbers each, and few blocks keep the work of adding them small.
    """
    return row_blocks(len(P), max(1, P.shape[1] // 4))


def _totals(P, Q, weight, pool):
    """Return the column sums and column maxima of ``|P + weight Q|``."""

    # Threads share no array, and the parts are added in the order of the blocks, here and below: the sum is
    # the same on any number of threads.
    def totals_of_block(block):
        totals, largest = np.zeros(P.shape[1]), np.zeros(P.shape[1])
        _absolute_column_totals(P[block], Q[block], weight, totals, largest)
        return totals, largest

    parts = pool.map(totals_of_block, _summing_blocks(P))
    return np.sum([t for t, _ in parts], axis=0), np.max([m for _, m in parts], axis=0)


class _Tails:
    """Sums and counts of the entries of each column of ``|P + weight Q|`` that reach its level.

    Every step of Newton's method asks for them. In most iterations nearly all entries are zero, and those
    that are not are collected once.
    """

    def __init__(self, P, Q, weight, pool):
        self.P, self.Q, self.weight, self.pool = P, Q, weight, pool
        self.blocks = _summing_blocks(P)
        entries = pool.map(lambda b: _gather_block(P[b], Q[b], weight), self.blocks)
        # One block that is too dense makes all blocks use the dense pass.
        self.entries = None if any(part is None for part in entries) else entries

    def __call__(self, level):
        """Return the sums and the counts, which are at least 1."""
        # Every block has rows of its own to add to.
        sums, counts = np.zeros((2, len(self.blocks), len(level)))

        def add_tails_of_block(place):
            if self.entries is not None:
                _entry_tails(*self.entries[place], level, sums[place], counts[place])
            else:
                block = self.blocks[place]
                _column_tails(self.P[block], self.Q[block], self.weight, level, sums[place], counts[place])

        self.pool.map(add_tails_of_block, range(len(self.blocks)))
        # Where no entry reaches the level (a group of zeros, or a largest entry that was rounded to float32
        # when collected), a count of 1 makes the quotient 0 instead of NaN.
        return sums.sum(axis=0), np.maximum(counts.sum(axis=0), 1.0)


def _gather_block(P, Q, weight):
    """Return the entries of a block that differ from zero, and their columns; None if they are too many."""
    room = int(COLLECTED_SHARE * P.size) + 1
    values, columns = np.empty(room, P.dtype), np.empty(room, np.int32)
    count = _gather_entries(P, Q, weight, values, columns)
    # Copies, because views would keep the unused room alive.
    return None if count < 0 else (values[:count].copy(), columns[:count].copy())


def l1inf_penalty_levels(P, Q, weight, threshold, warm=None, pool: Pool = SERIAL):
    """Find the clipping levels of ``argmin_C threshold sum_i max_j |c_ij| + 1/2 ||C - Y||_F^2``.

    ``Y = P + weight Q``, columns as groups. Every live group loses exactly ``threshold`` to the
    clipping; lighter ones get level 0. Newton's method finds all levels at once.
    """
    totals, largest = _totals(P, Q, weight, pool)
    # The dual norm of the maximum is the sum: a group of no more than the threshold becomes zero.
    live = totals > threshold
    # Not above the largest entry: where no entry reaches its level, Newton's method starts again from 0.
    level = largest if warm is None else np.minimum(warm, largest)
    tails = _Tails(P, Q, weight, pool)
    for _ in range(MAX_NEWTON_STEPS):
        sums, counts = tails(level)
        # Newton's step for sum_j max(|y_j| - level, 0) = threshold. The left side is convex and falling, so
        # from the first step on levels are at or below the solution and rise; 0 is a valid lower start.
        updated = np.where(live, np.clip((sums - threshold) / counts, 0.0, largest), 0.0)
        settled = np.allclose(updated, level, rtol=SETTLED, atol=0.0)
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
    # Inside the ball: infinite levels clip nothing.
    if largest.sum() <= radius:
        return np.full(n_groups, np.inf)
    level = largest.copy() if warm is None else np.minimum(warm, largest)
    live = np.ones(n_groups, dtype=bool)
    tails = _Tails(P, Q, weight, pool)
    for _ in range(MAX_NEWTON_STEPS):
        if _newton_step(*tails(level), totals, largest, radius, level, live):
            break
    return _exact_sum(level, totals, radius)


@kernel
def _newton_step(
    sums,  # IN
    counts,  # IN
    totals,  # IN
    largest,  # IN
    radius,  # IN
    level,  # IN, OUT
    live,  # IN, OUT
):
    """Renew theta, the levels, and which groups are live; tell whether that is the end."""
    # With the entries above each level fixed, level_i = (sums_i - theta) / counts_i, and the levels of the
    # live groups sum to the radius: a linear equation in theta.
    excess, slope = -radius, 0.0
    for i in range(len(level)):
        if live[i]:
            excess += sums[i] / counts[i]
            slope += 1.0 / counts[i]
    theta = max(0.0, excess / slope)
    n_live, settled = 0, True
    for i in range(len(level)):
        alive = totals[i] > theta
        # A group that becomes live again has no level yet and restarts from zero.
        updated = min(max((sums[i] - theta) / counts[i], 0.0), largest[i]) if alive and live[i] else 0.0
        settled &= alive == live[i] and abs(updated - level[i]) <= SETTLED * level[i]
        level[i], live[i] = updated, alive
        n_live += alive
    return settled or n_live == 0


def _exact_sum(level, totals, radius):
    """Make the levels sum to the radius; far outside the ball they are small differences of large sums.

    Where nothing is left of the differences, the heaviest group is the last one alive.
    """
    total = level.sum()
    if total > 0:
        return level * (radius / total)
    # A radius below the rounding of the totals: in floating point theta is the largest of them.
    return np.where(np.arange(len(level)) == np.argmax(totals), radius, 0.0)


@kernel
def _column_squares(P, Q, weight, squares):
    """Add up ``(P + weight Q)^2`` by columns, in double precision as ``squares`` is."""
    for r in range(P.shape[0]):
        for i in range(P.shape[1]):
            squares[i] += (P[r, i] + weight * Q[r, i]) ** 2


def _column_norms(P, Q, weight, pool):
    """Return the lengths of the columns of ``P + weight Q``."""

    def squares_of_block(block):
        squares = np.zeros(P.shape[1])
        _column_squares(P[block], Q[block], weight, squares)
        return squares

    return np.sqrt(np.sum(pool.map(squares_of_block, _summing_blocks(P)), axis=0))


def _length_factors(kept, norms):
    """Return the factors that shorten columns to the kept lengths; 0 for columns of zeros."""
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
    # A projection on the ball keeps directions, and its lengths are the projection of the lengths. These are
    # non-negative and sum to more than the radius, so their ball is the simplex.
    return _length_factors(project_simplex(norms[None, :], radius)[0], norms)
