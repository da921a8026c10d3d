"""The solver of DS3: ``min <D, Z>`` over columns on the simplex, with a ball or a price on the rows of Z.

The simplex is kept by Z and the rows are kept in order by its copy C; the alternating direction method of
multipliers ties them. This serves the constrained form (a ball) and the regularised one (a price)
alike. All arrays are transposed: row j is how target j is represented.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from smrmf._parallel import Pool
from smrmf.kernels._balls import AbstractBall, Sum
from smrmf.kernels.row_sparse import c_rows, relaxed_z_rows

# The published penalty, for dissimilarities of at most one. A growing one would freeze. With a price it
# follows for some time the slower of the two, Z - C and the change of C; with a ball that does not pay.
PENALTY = 0.1
BALANCE_EVERY, BALANCE_UNTIL = 10, 1000
SLOWER, BALANCE_STEP = 3.0, 1.3
# Beyond one: every step goes further than the plain method, which saves iterations.
RELAXATION = 1.6


class Represented(NamedTuple):
    """The representation Zt (rows on the simplex), and how the iteration ended."""

    Zt: np.ndarray
    n_iter: int
    converged: bool
    stopped: bool


def represent(
    D: np.ndarray,
    rows: Callable[[float], AbstractBall],
    *,
    balanced: bool,
    tol: float,
    max_iter: int,
    pool: Pool,
    on_iteration: Callable[[int, float, Callable[[], np.ndarray]], bool] | None = None,
) -> Represented:
    """Represent every target (row of D) by few sources (columns of D).

    Parameters
    ----------
    D : array of shape (n_targets, n_sources)
        Dissimilarities of at most one in size.
    rows : callable
        Returns what is asked of the rows of Z for a given penalty, in units of which a price is.
    balanced : bool
        Whether to adapt the penalty for some time.
    tol : float
        Largest entry of Z - C (now and before) and largest change of C at which to stop; they bound the
        change of Z.
    max_iter : int
        At most so many iterations.
    pool : Pool
        Threads.
    on_iteration : callable, optional
        Sees the iteration, the largest of those numbers, and a function that makes Zt as of now;
        returning True stops.
    """
    Z, C, multiplier = np.empty_like(D), np.zeros_like(D), np.zeros_like(D)
    # One source for all, the best such.
    C[:, int(np.argmin(D.sum(axis=0)))] = 1

    def feasible() -> np.ndarray:
        Zt = np.empty_like(D)
        pool.over_rows(relaxed_z_rows, (D, C, multiplier, Zt), mu, 1.0)
        return Zt

    mu, shrunk, last_gap = PENALTY, None, np.inf
    converged = stopped = False
    for n_iter in range(1, max_iter + 1):
        pool.over_rows(relaxed_z_rows, (D, C, multiplier, Z), mu, RELAXATION)
        shrunk = rows(mu).shrinkage(Sum(Z, multiplier, 1 / mu), 1.0, shrunk, pool)
        measured = pool.over_rows(c_rows, (Z, C, multiplier), *shrunk, mu)
        change, gap = (max(entries) for entries in zip(*measured, strict=True))
        unrest = max(gap, last_gap, change)
        last_gap = gap
        converged = unrest <= tol
        if on_iteration is not None:
            stopped = on_iteration(n_iter, unrest, feasible)
        if converged or stopped:
            break
        if balanced and n_iter % BALANCE_EVERY == 0 and n_iter <= BALANCE_UNTIL:
            mu *= balance(gap, change)
    pool.over_rows(relaxed_z_rows, (D, C, multiplier, Z), mu, 1.0)
    return Represented(Z, n_iter, converged, stopped)


def balance(gap: float, change: float) -> float:
    """Return what the penalty is multiplied by: more of it closes the gap, less lets C move."""
    if gap > SLOWER * change:
        return BALANCE_STEP
    return 1 / BALANCE_STEP if change > SLOWER * gap else 1.0
