"""Algorithm 1 of the paper: the only augmented-Lagrangian loop of the library.

    min  ||X - G F||_{2,1} + lambda tr(G' L G) + affinity    s.t.  G'G = I, G >= 0

is split as E = X - G F, H = G >= 0 and solved by exact updates of one variable at a time. Points are
rows: X is n x m, G and H n x c, F c x m. Where the graph comes from is the affinity's business
(:mod:`smrmf.factorization._closed_form`); nothing here knows which variant runs.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from smrmf._parallel import BLOCK_ENTRIES, SERIAL, Pool, row_blocks
from smrmf.factorization._closed_form import AbstractAffinity
from smrmf.graph.neighbors import Laplacian
from smrmf.kernels.prox import ascend_multiplier_rows, procrustes, shrink_residual_rows

# Beyond this the multipliers' increments drown in rounding (paper note 9).
LARGEST_PENALTY = 1e10
# Feasibility asked of a converged run, relative to G and to X (paper note 11).
FEASIBLE = 1e-2


class Status(enum.Enum):
    """Why the loop ended; the value says what to do about it."""

    CONVERGED = "the objective settled and the constraints hold"
    STOPPED = "a callback asked to stop"
    OBJECTIVE = "the objective still changes by more than tol per iteration: raise max_iter or tol"
    SPLIT = "G and its non-negative copy H still differ: raise max_iter, penalty or penalty_growth"
    RESIDUAL = "X - GF still differs from E: raise max_iter, penalty or penalty_growth"


@dataclass(frozen=True)
class Solution:
    """What the loop returns, always all of it."""

    F: np.ndarray
    G: np.ndarray
    H: np.ndarray
    E: np.ndarray
    state: Any
    graph: np.ndarray | sp.csr_array
    history: list[float]
    status: Status
    n_iter: int


@dataclass(frozen=True)
class Progress:
    """What a watcher sees after each iteration."""

    n_iter: int
    objective: float
    G: np.ndarray
    F: np.ndarray
    state: Any


def least_squares_basis(G: np.ndarray, Y: np.ndarray, pool: Pool) -> np.ndarray:
    """Solve line 10, ``F = (G'G)^-1 G' Y``; the pseudo-inverse serves a start that lacks rank."""
    # Blocks of many more rows than clusters: each leaves a product of c rows behind.
    width = max(1, min(Y.shape[1], BLOCK_ENTRIES // (8 * G.shape[1])))
    parts = pool.map(lambda b: (G[b].T @ Y[b], G[b].T @ G[b]), row_blocks(len(Y), width))
    products = np.sum([p for p, _ in parts], axis=0)
    gram = np.sum([g for _, g in parts], axis=0)
    return (scipy.linalg.pinvh(gram) @ products).astype(Y.dtype, copy=False)


def update_error(
    X: np.ndarray,
    GF: np.ndarray,
    L1: np.ndarray,
    mu: float,
    E: np.ndarray,
    Y: np.ndarray,
    pool: Pool,
) -> None:
    """Do line 9: shrink the rows of ``X - GF + L1/mu`` into E; ``Y = X - E + L1/mu`` on the way."""
    pool.over_rows(shrink_residual_rows, (X, GF, L1, E, Y), mu)


def update_nonnegative(G: np.ndarray, LG: np.ndarray, L2: np.ndarray, lam: float, mu: float) -> np.ndarray:
    """Do line 11: ``H = max(G + L2/mu - (lambda/mu) L G, 0)``."""
    return np.maximum(G + L2 / mu - (lam / mu) * LG, 0)


def update_indicator(
    H: np.ndarray,
    LH: np.ndarray,
    L2: np.ndarray,
    Y: np.ndarray,
    F: np.ndarray,
    lam: float,
    mu: float,
    pool: Pool,
) -> np.ndarray:
    """Do line 12: the polar factor of ``H - L2/mu - (lambda/mu) L H + Y F'``."""
    N = H - L2 / mu - (lam / mu) * LH

    def one(block: slice) -> np.ndarray:
        N[block] += Y[block] @ F.T
        wide = N[block].astype(np.float64, copy=False)
        return wide.T @ wide

    gram = np.sum(pool.map(one, row_blocks(*Y.shape)), axis=0)
    return procrustes(N, gram)


def factorize(
    X: np.ndarray,
    G: np.ndarray,
    affinity: AbstractAffinity,
    *,
    lam: float,
    mu: float,
    rho: float,
    max_iter: int,
    tol: float,
    pool: Pool = SERIAL,
    on_iteration: Callable[[Progress], bool] | None = None,
) -> Solution:
    """Run Algorithm 1 from the indicator ``G``.

    Parameters
    ----------
    X : array of shape (n, m)
        Data, points as rows.
    G : array of shape (n, c)
        Start; it need not be orthonormal. F starts at its least-squares basis.
    affinity : AbstractAffinity
        Supplies the graph.
    lam, mu, rho : float
        Weight of the manifold term, first penalty, and its growth per iteration.
    max_iter, tol : int, float
        Limits: iterations, and relative change of the objective.
    pool : Pool
        Threads.
    on_iteration : callable, optional
        Sees every iteration; returning True stops the loop.
    """
    # Lines 3 to 5: the start, and the affinity's own first Z.
    F = least_squares_basis(G, X, pool)
    L1, L2 = np.zeros_like(X), np.zeros_like(G)
    E, GF = np.empty_like(X), G @ F
    size, mu = float(np.linalg.norm(X)), min(mu, LARGEST_PENALTY)
    state = affinity.init()
    # Lines 7 and 8: Z-hat and its Laplacian. They are made anew when Z is, at the end of an
    # iteration, because the objective needs them there and the next iteration here.
    laplacian, affinity_value = Laplacian(affinity.graph(state), pool), affinity.value(state)
    LG = laplacian @ G
    history: list[float] = []
    for n_iter in range(1, max_iter + 1):
        # Line 9: E. The array of GF comes back as Y = X - E + L1/mu, which lines 10 and 12 need.
        Y = GF
        update_error(X, GF, L1, mu, E, Y, pool)
        # Line 10: F.
        F = least_squares_basis(G, Y, pool)
        # Line 11: H.
        H = update_nonnegative(G, LG, L2, lam, mu)
        # Line 12: G.
        G = update_indicator(H, laplacian @ H, L2, Y, F, lam, mu, pool)
        # Lines 13 to 15: D-hat, Z and C, with their multiplier.
        learned = affinity.update(state, G, H, lam, mu)
        settled, state = learned is state, learned
        # Beyond the paper's loop: a learner may turn the points towards what fits them, as APMF does.
        learned = affinity.project(state, partial(_target, G, F, E, L1, mu), mu)
        settled, state = settled and learned is state, learned
        X = affinity.points(state, X)
        if not settled:
            laplacian, affinity_value = Laplacian(affinity.graph(state), pool), affinity.value(state)
        LG = laplacian @ G
        # Line 16: the other multipliers and the penalty.
        loss, gap = _ascend(X, G, F, E, mu, L1, GF, pool)
        L2 += mu * (G - H)
        mu = min(rho * mu, LARGEST_PENALTY)

        history.append(loss + lam * float(np.vdot(G, LG)) + affinity_value)
        status = _status(history, tol, float(np.abs(G - H).max() / np.abs(G).max()), gap, size)
        if on_iteration is not None and on_iteration(Progress(n_iter, history[-1], G, F, state)):
            status = Status.CONVERGED if status is Status.CONVERGED else Status.STOPPED
        if status in (Status.CONVERGED, Status.STOPPED):
            break
    return Solution(F, G, H, E, state, laplacian.W, history, status, n_iter)


def _target(G: np.ndarray, F: np.ndarray, E: np.ndarray, L1: np.ndarray, mu: float) -> np.ndarray:
    """Return what the augmented Lagrangian pulls the points towards, ``GF + E - L1/mu``."""
    return G @ F + E - L1 / mu


def _ascend(
    X: np.ndarray,
    G: np.ndarray,
    F: np.ndarray,
    E: np.ndarray,
    mu: float,
    L1: np.ndarray,
    GF: np.ndarray,
    pool: Pool,
) -> tuple[float, float]:
    """Refresh GF and ascend its multiplier; return the l2,1 loss and ``||X - GF - E||_F``."""

    def one(block: slice) -> tuple[float, float]:
        np.matmul(G[block], F, out=GF[block])
        return ascend_multiplier_rows(X[block], GF[block], E[block], L1[block], mu)

    parts = pool.map(one, row_blocks(*X.shape))
    return sum(p[0] for p in parts), sum(p[1] for p in parts) ** 0.5


def _status(history: list[float], tol: float, split: float, gap: float, size: float) -> Status:
    """Judge an iteration; the objective alone would stop at a turning point (paper notes 10 and 11)."""
    if gap > FEASIBLE * size:
        return Status.RESIDUAL
    if split > FEASIBLE:
        return Status.SPLIT
    if len(history) < 2:
        return Status.OBJECTIVE
    change = abs(history[-1] - history[-2])
    settled = change <= tol * max(abs(history[-2]), np.finfo(float).tiny)
    return Status.CONVERGED if settled else Status.OBJECTIVE
