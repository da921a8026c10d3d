"""A2DM2: accelerated ADMM for the first Z of SMRMF, (4.14) and (4.15).

It solves ``min <D,Z> + delta/2 ||Z||_F^2 + delta/2 ||C||_F^2`` with Z = C, the columns of Z on the simplex
and C in the ball. Momentum acts on the multiplier, and C-hat minimises the plain Lagrangian of the
C block. The printed algorithm uses the other block's function there and lets mu grow, which
converges to a wrong point or not at all (errata E19 to E24); here mu stays constant and the momentum
restarts whenever the combined residual stops falling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smrmf._parallel import Pool
from smrmf.factorization._balls import AbstractBall, Shrinkage
from smrmf.kernels.row_sparse import accept_rows, hat_z_rows, residual_rows

# A residual must fall below this share of the last one, or the momentum starts anew.
RESTART_RATIO = 0.999


class ExemplarStart(NamedTuple):
    """The first Z (on the simplex) and C (in the ball), stored transposed; two spare arrays."""

    Z: np.ndarray
    C: np.ndarray
    spare: np.ndarray
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
    """Find exemplars by (4.15); five n x n arrays in all, D among them.

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
        Largest change of any entry of Z, C and Z - C at which to stop.
    max_iter : int
        At most so many iterations.
    """
    n = len(D)
    Z, C = np.zeros_like(D), np.zeros_like(D)
    multiplier, last = np.zeros_like(D), np.zeros_like(D)
    C[:, np.argmin(D.sum(axis=0))] = 1  # one exemplar for all (E22)
    hat, shrunk, from_c = Shrinkage(np.ones(n), np.full(n, np.inf), 1.0), None, True
    step, bound = 1.0, np.inf
    for n_iter in range(1, max_iter + 1):
        moved = pool.over_rows(hat_z_rows, (D, C, multiplier, Z), from_c, *hat, mu, delta)
        shrunk = ball.shrinkage(Z, multiplier, 1 / mu, mu / (mu + delta), shrunk, pool)
        measured = pool.over_rows(residual_rows, (Z, C, multiplier), from_c, *hat, *shrunk, mu)
        squares, gaps, changes = zip(*measured, strict=True)
        residual = mu * sum(squares)
        if residual < RESTART_RATIO * bound:
            following = (1 + np.sqrt(1 + 4 * step**2)) / 2
            momentum = (step - 1) / following
            pool.over_rows(accept_rows, (Z, C, multiplier, last), *shrunk, mu, momentum)
            hat = ball.shrinkage(multiplier, multiplier, 0.0, 1 / delta, hat, pool)
            step, bound, from_c = following, residual, False
        else:
            np.copyto(multiplier, last)
            step, bound, from_c = 1.0, bound / RESTART_RATIO, True
        if max(*gaps, *changes, *moved) <= tol:
            return ExemplarStart(Z, C, multiplier, n_iter, True)
    return ExemplarStart(Z, C, multiplier, max_iter, False)
