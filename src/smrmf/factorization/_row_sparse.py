"""Z and C of SMRMF, (4.12) and (4.13), and their start A2DM2, (4.14) and (4.15).

A2DM2 is an accelerated ADMM. It solves ``min <D,Z> + delta/2 ||Z||_F^2 + delta/2 ||C||_F^2`` with Z = C, the
columns of Z on the simplex and C in the ball. Momentum acts on the multiplier, and C-hat minimises the plain
Lagrangian of the C block. The printed algorithm uses the other block's function there and lets mu grow,
which converges to a wrong point or not at all (paper notes 19 to 24); here mu stays constant and the
momentum restarts whenever the combined residual stops falling.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from smrmf._parallel import Pool
from smrmf.factorization._dissimilarity import AbstractDissimilarity
from smrmf.factorization._slots import AbstractAffinity, GraphTerm
from smrmf.graph.exemplars import Neighborhoods
from smrmf.kernels.balls import RowConstraint, Shrinkage, WeightedSum
from smrmf.kernels.row_sparse import (
    accept_rows,
    c_rows,
    extrapolated_z_rows,
    residual_rows,
    shrink_rows,
    z_target_rows,
)
from smrmf.kernels.simplex import project_rows_in_place
from smrmf.sharing import remember

# A residual must fall below this share of the last one, or the momentum restarts.
RESTART_RATIO = 0.999


@dataclass(frozen=True)
class RowSparseState:
    """Four n x n arrays, updated in place, all transposed."""

    D: np.ndarray
    Z: np.ndarray  # rows on the simplex
    C: np.ndarray  # columns in the ball
    multiplier: np.ndarray
    shrinkage: Shrinkage | None = None  # of the last C, from which Newton's method starts
    settled: bool = False


@dataclass(frozen=True)
class RowSparseAffinity(AbstractAffinity[RowSparseState]):
    """Z on the simplex and C in a ball, tied by a multiplier: SMRMF and its ablations.

    Z and C are not updated any more once no entry of C changes by more than ``freeze_tol``, if that is above
    zero (paper note 18). With ``single_start`` the first C has one exemplar for all points, so that the first
    Z reaches the first graph only (paper note 12).
    """

    dissimilarity: AbstractDissimilarity
    constraint: RowConstraint
    neighborhoods: Neighborhoods
    beta: float
    freeze_tol: float = 0.0
    single_start: bool = False

    def init(self, X: np.ndarray) -> tuple[RowSparseState, GraphTerm]:
        """Find the first Z and C by A2DM2; the main multiplier starts at zero (paper note 12).

        A start that has not settled after A2DM2's 1000 iterations is used as it is, without a warning: the
        loop moves Z and C on, and has a test of convergence of its own.
        """
        D = self.dissimilarity.dense()
        start = remember(a2dm2, D, self.constraint, self.dissimilarity.space.pool)
        if self.single_start:
            # In place: ``remember`` hands out copies of what it keeps for other fits.
            start.C[:] = 0
            start.C[:, central_point(D)] = 1
        state = RowSparseState(D, start.Z, start.C, start.multiplier)
        return state, self._graph_term(state)

    def update(
        self, state: RowSparseState, X: np.ndarray, G: np.ndarray, H: np.ndarray, lam: float, mu: float
    ) -> tuple[RowSparseState, GraphTerm | None]:
        if state.settled:
            return state, None
        pool, Z, multiplier = self.dissimilarity.space.pool, state.Z, state.multiplier
        # (4.12) projects C - Lambda_3/mu - (beta/mu) D-hat. It does not use the last Z, so it is made in its
        # place. In the latent part beta cancels: (beta/mu) (lambda/beta) = lambda/mu.
        pool.over_rows(z_target_rows, (state.D, state.C, multiplier, Z), self.beta, mu)
        if lam > 0:
            latent = self.dissimilarity.measure_latent(G, H)
            self.dissimilarity.add_latent(G, H, latent, -lam / mu, Z)
        pool.over_rows(project_rows_in_place, (Z,), 1.0)
        # (4.13): one factor and one cap per group are the projection on the ball. C follows in one pass with
        # the ascent of Lambda_3, which the paper has in line 16.
        shrinkage = self.constraint.shrinkage(WeightedSum(Z, multiplier, 1 / mu), 1.0, state.shrinkage, pool)
        measured = pool.over_rows(c_rows, (Z, state.C, multiplier), shrinkage, mu)
        change = max(moved for moved, _ in measured)
        # A C that repeats to the last bit settles nothing: multiplier and penalty still move (paper note 18).
        state = replace(state, shrinkage=shrinkage, settled=self.freeze_tol > 0 and change <= self.freeze_tol)
        return state, self._graph_term(state)

    def representation(self, state: RowSparseState) -> np.ndarray:
        return state.Z

    def _graph_term(self, state: RowSparseState) -> GraphTerm:
        # D of the input space, not D-hat, and Z, not C (paper note 10).
        value = self.beta * float(np.vdot(state.D, state.Z))
        weights, kept = self.neighborhoods.graph(state.Z, state.D)
        return GraphTerm(weights, value, kept)


class ExemplarStart(NamedTuple):
    """The first Z (on the simplex), C (in the ball) and multiplier (zero), stored transposed."""

    Z: np.ndarray
    C: np.ndarray
    multiplier: np.ndarray
    n_iter: int
    converged: bool


def a2dm2(
    D: np.ndarray,
    constraint: RowConstraint,
    pool: Pool,
    *,
    delta: float = 0.01,
    mu: float = 0.1,
    tol: float = 1e-5,
    max_iter: int = 1000,
) -> ExemplarStart:
    """Solve ``min <D, Z> + delta ||Z||_F^2`` over the simplex and the ball, by (4.15).

    Takes four n x n arrays in all, D among them.

    Parameters
    ----------
    D : array of shape (n, n)
        Symmetric dissimilarities.
    constraint : RowConstraint
        The set of C.
    pool : Pool
        Threads.
    delta, mu : float
        Strong convexity and the constant penalty; the paper's values.
    tol : float
        Largest change of any entry of Z, and largest entry of Z - C, at which to stop.
    max_iter : int
        Maximum number of iterations.
    """
    n = len(D)
    Z, multiplier, last = np.zeros_like(D), np.zeros_like(D), np.zeros_like(D)
    # C-hat starts with one exemplar for all (paper note 22): the multiplier is zero, and the offset is its
    # column of ones. All later ones are P_ball(Lambda-hat / delta), which ``hat`` yields entry by entry from
    # the multiplier, so C-hat is never stored.
    offset = np.zeros(n)
    offset[central_point(D)] = 1
    hat, shrinkage = Shrinkage(np.ones(n), np.full(n, np.inf), 1 / delta), None
    step, bound, last_gap, converged = 1.0, np.inf, np.inf, False
    for n_iter in range(1, max_iter + 1):  # noqa: B007
        # mu is constant: with a growing one the accelerated method freezes or overflows (paper note 21).
        changes = pool.over_rows(extrapolated_z_rows, (D, multiplier, Z), hat, offset, mu, delta)
        target = WeightedSum(Z, multiplier, 1 / mu)
        # C = P_ball((mu Z + Lambda-hat) / (mu + delta)); delta ||C||^2 / 2 shortens the target.
        shrinkage = constraint.shrinkage(target, mu / (mu + delta), shrinkage, pool)
        measured = pool.over_rows(residual_rows, (Z, multiplier), hat, offset, shrinkage, mu)
        squares, gaps = zip(*measured, strict=True)
        # ||Lambda - Lambda-hat||^2 / mu + mu ||C - C-hat||^2, as Lambda - Lambda-hat = mu (Z - C).
        residual, gap = mu * sum(squares), max(gaps)
        # C moves by at most the two gaps and the move of Z, so it needs no test of its own.
        converged = max(gap, last_gap, *changes) <= tol
        if residual < RESTART_RATIO * bound:
            following = (1 + np.sqrt(1 + 4 * step**2)) / 2
            # Nesterov's weights. The first step is 1, so the first momentum is 0, whatever the multiplier
            # before the first may be (paper note 24).
            momentum = (step - 1) / following
            pool.over_rows(accept_rows, (Z, multiplier, last), shrinkage, mu, momentum)
            step, bound, last_gap = following, residual, gap
        else:
            # The extrapolation overshot: back to the last accepted multiplier, without momentum. The bound is
            # relaxed a little, so that the next, plain step can be accepted.
            np.copyto(multiplier, last)
            step, bound = 1.0, bound / RESTART_RATIO
        if converged:
            break
        hat = constraint.shrinkage(WeightedSum(multiplier, multiplier, 0.0), 1 / delta, hat, pool)
        offset[:] = 0
    # By optimality of its step, C = P_ball(Lambda / delta) at the ascended Lambda, so it has not been kept.
    # It takes the place of the extrapolated multiplier, and the zero multiplier of the main loop that of
    # Lambda: no array is added.
    hat = constraint.shrinkage(WeightedSum(last, last, 0.0), 1 / delta, hat, pool)
    pool.over_rows(shrink_rows, (last, multiplier), hat)
    last[:] = 0
    return ExemplarStart(Z, C=multiplier, multiplier=last, n_iter=n_iter, converged=converged)


def central_point(D: np.ndarray) -> int:
    """Return the point that represents all others best on its own."""
    # D is symmetric, so sums over columns and over rows agree.
    return int(np.argmin(D.sum(axis=0)))
