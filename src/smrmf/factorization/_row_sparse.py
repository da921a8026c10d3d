"""A2DM2: accelerated ADMM for the first Z of SMRMF, (4.14) and (4.15).

It solves ``min <D,Z> + delta/2 ||Z||_F^2 + delta/2 ||C||_F^2`` with Z = C, the columns of Z on the simplex
and C in the ball. Momentum acts on the multiplier, and C-hat minimises the plain Lagrangian of the
C block. The printed algorithm uses the other block's function there and lets mu grow, which
converges to a wrong point or not at all (paper notes 19 to 24); here mu stays constant and the momentum
restarts whenever the combined residual stops falling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smrmf._parallel import Pool
from smrmf.kernels._balls import AbstractBall, Shrinkage, Sum
from smrmf.kernels.row_sparse import accept_rows, hat_z_rows, residual_rows, shrink_rows

# A residual must fall below this share of the last one, or the momentum starts anew.
RESTART_RATIO = 0.999


class ExemplarStart(NamedTuple):
    """The first Z (on the simplex), C (in the ball) and multiplier (zero), stored transposed."""

    Z: np.ndarray
    C: np.ndarray
    multiplier: np.ndarray
    n_iter: int
    converged: bool


def a2dm2(
    D: np.ndarray,
    ball: AbstractBall,
    pool: Pool,
    *,
    delta: float = 0.01,
    mu: float = 0.1,
    tol: float = 1e-5,
    max_iter: int = 1000,
) -> ExemplarStart:
    """Find exemplars by (4.15); four n x n arrays in all, D among them.

    Parameters
    ----------
    D : array of shape (n, n)
        Symmetric dissimilarities.
    ball : AbstractBall
        The set of C.
    pool : Pool
        Threads.
    delta, mu : float
        Strong convexity and the constant penalty; the paper's values.
    tol : float
        Largest change of any entry of Z, and largest entry of Z - C, at which to stop.
    max_iter : int
        At most so many iterations.
    """
    n = len(D)
    Z, multiplier, last = np.zeros_like(D), np.zeros_like(D), np.zeros_like(D)
    # C-hat starts with one exemplar for all (paper note 22); from then on it is the shrunken multiplier.
    exemplar = central_point(D)
    hat, shrunk = Shrinkage(np.ones(n), np.full(n, np.inf), 1 / delta), None
    step, bound, last_gap, converged = 1.0, np.inf, np.inf, False
    for n_iter in range(1, max_iter + 1):  # noqa: B007
        moved = pool.over_rows(hat_z_rows, (D, multiplier, Z), exemplar, *hat, mu, delta)
        shrunk = ball.shrinkage(Sum(Z, multiplier, 1 / mu), mu / (mu + delta), shrunk, pool)
        measured = pool.over_rows(residual_rows, (Z, multiplier), exemplar, *hat, *shrunk, mu)
        squares, gaps = zip(*measured, strict=True)
        residual, gap = mu * sum(squares), max(gaps)
        # C moves by at most the two gaps and the move of Z, so it needs no test of its own.
        converged = max(gap, last_gap, *moved) <= tol
        if residual < RESTART_RATIO * bound:
            following = (1 + np.sqrt(1 + 4 * step**2)) / 2
            momentum = (step - 1) / following
            pool.over_rows(accept_rows, (Z, multiplier, last), *shrunk, mu, momentum)
            step, bound, last_gap = following, residual, gap
        else:
            np.copyto(multiplier, last)
            step, bound = 1.0, bound / RESTART_RATIO
        if converged:
            break
        hat = ball.shrinkage(Sum(multiplier, multiplier, 0.0), 1 / delta, hat, pool)
        exemplar = -1
    # The last C minimises its block at the last multiplier, so it need not have been kept.
    C = multiplier
    hat = ball.shrinkage(Sum(last, last, 0.0), 1 / delta, hat, pool)
    pool.over_rows(shrink_rows, (last, C), *hat)
    last[:] = 0
    return ExemplarStart(Z, C, last, n_iter, converged)


def central_point(D: np.ndarray) -> int:
    """Return the point that represents all others best on its own."""
    return int(np.argmin(D.sum(axis=0)))
