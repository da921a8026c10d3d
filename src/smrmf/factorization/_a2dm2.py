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

from smrmf._compile import kernel
from smrmf._parallel import Pool, row_blocks
from smrmf.factorization._balls import AbstractBall, Shrinkage
from smrmf.kernels.projections import simplex_threshold

BLOCK_ROWS = 64
# A residual must fall below this share of the last one, or the momentum starts anew.
RESTART_RATIO = 0.999


class ExemplarStart(NamedTuple):
    """The first Z (on the simplex) and C (in the ball), stored transposed; two spare arrays."""

    Z: np.ndarray
    C: np.ndarray
    spare: np.ndarray
    n_iter: int
    converged: bool


@kernel
def _shrunk(y, factor, cap):
    """Scale and clip one entry."""
    return min(max(factor * y, -cap), cap)


@kernel
def _z_rows(D, C, multiplier, from_c, factor, cap, scale, mu, delta, Z):
    """Do ``Z = P_simplex((mu C-hat - Lambda-hat - D) / (mu + delta))``; return its largest change."""
    n = D.shape[1]
    row = np.empty(n, D.dtype)
    active = np.empty(n, D.dtype)
    waiting = np.empty(n, D.dtype)
    change = 0.0
    for j in range(D.shape[0]):
        largest = -np.inf
        for i in range(n):
            ahead = C[j, i] if from_c else scale * _shrunk(multiplier[j, i], factor[i], cap[i])
            row[i] = (mu * ahead - multiplier[j, i] - D[j, i]) / (mu + delta)
            largest = max(largest, row[i])
        for i in range(n):
            row[i] -= largest
        theta = simplex_threshold(row, 1.0, active, waiting)
        for i in range(n):
            z = max(row[i] - theta, 0.0)
            change = max(change, abs(z - Z[j, i]))
            Z[j, i] = z
    return change


@kernel
def _residual_rows(Z, C, multiplier, from_c, hat_factor, hat_cap, hat_scale, factor, cap, scale, mu):
    """Measure ``||Z - C_new||^2 + ||C_new - C-hat||^2``, the gap Z - C_new and the change of C."""
    squares = 0.0
    gap = 0.0
    change = 0.0
    for j in range(Z.shape[0]):
        for i in range(Z.shape[1]):
            ahead = C[j, i]
            if not from_c:
                ahead = hat_scale * _shrunk(multiplier[j, i], hat_factor[i], hat_cap[i])
            c = scale * _shrunk(Z[j, i] + multiplier[j, i] / mu, factor[i], cap[i])
            squares += (Z[j, i] - c) ** 2 + (c - ahead) ** 2
            gap = max(gap, abs(Z[j, i] - c))
            change = max(change, abs(c - C[j, i]))
    return squares, gap, change


@kernel
def _accept_rows(Z, C, multiplier, last, factor, cap, scale, mu, momentum):
    """Store C and ``Lambda = Lambda-hat + mu (Z - C)``, and extrapolate Lambda-hat."""
    for j in range(Z.shape[0]):
        for i in range(Z.shape[1]):
            c = scale * _shrunk(Z[j, i] + multiplier[j, i] / mu, factor[i], cap[i])
            ascended = multiplier[j, i] + mu * (Z[j, i] - c)
            multiplier[j, i] = ascended + momentum * (ascended - last[j, i])
            last[j, i] = ascended
            C[j, i] = c


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
    blocks = row_blocks(n, BLOCK_ROWS)
    Z, C = np.zeros_like(D), np.zeros_like(D)
    multiplier, last = np.zeros_like(D), np.zeros_like(D)
    C[:, np.argmin(D.sum(axis=0))] = 1  # one exemplar for all (E22)
    hat, shrunk, from_c = Shrinkage(np.ones(n), np.ones(n), 1.0), None, True
    step, bound = 1.0, np.inf
    for n_iter in range(1, max_iter + 1):
        moved = pool.map(
            lambda b, hat=hat, from_c=from_c: _z_rows(
                D[b], C[b], multiplier[b], from_c, *hat, mu, delta, Z[b]
            ),
            blocks,
        )
        shrunk = ball.shrinkage(Z, multiplier, 1 / mu, mu / (mu + delta), shrunk, pool)
        measured = pool.map(
            lambda b, hat=hat, from_c=from_c, to=shrunk: _residual_rows(
                Z[b], C[b], multiplier[b], from_c, *hat, *to, mu
            ),
            blocks,
        )
        squares, gaps, changes = zip(*measured, strict=True)
        residual = mu * sum(squares)
        if residual < RESTART_RATIO * bound:
            following = (1 + np.sqrt(1 + 4 * step**2)) / 2
            pool.map(
                lambda b, to=shrunk, momentum=(step - 1) / following: _accept_rows(
                    Z[b], C[b], multiplier[b], last[b], *to, mu, momentum
                ),
                blocks,
            )
            hat = ball.shrinkage(multiplier, multiplier, 0.0, 1 / delta, None, pool)
            step, bound, from_c = following, residual, False
        else:
            np.copyto(multiplier, last)
            step, bound, from_c = 1.0, bound / RESTART_RATIO, True
        if max(*gaps, *changes, *moved) <= tol:
            return ExemplarStart(Z, C, multiplier, n_iter, True)
    return ExemplarStart(Z, C, multiplier, max_iter, False)
