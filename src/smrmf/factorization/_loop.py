"""Algorithm 1 of the paper: the only augmented-Lagrangian loop of the library.

    min  ||X - G F||_{2,1} + lambda tr(G' L G) + affinity    s.t.  G'G = I, G >= 0

is split as E = X - G F, H = G >= 0 and solved by exact updates of one variable at a time. Points are
rows: X is n x m, G and H n x c, F c x m. Where the graph comes from, which points are factorised and
which are reported as exemplars is up to the slots (:mod:`smrmf.factorization._slots`); nothing here knows
which variant runs.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import NoneType
from typing import Any

import numpy as np

from smrmf._parallel import SERIAL, Pool, row_blocks
from smrmf.factorization._slots import (
    AbstractAffinity,
    AbstractExemplars,
    AbstractPoints,
    GraphTerm,
    OutOfRangeError,
    PointsTerm,
    Slots,
    check_graph,
    check_pair,
    check_points,
)
from smrmf.factorization._start import Start
from smrmf.graph.graphs import Laplacian
from smrmf.kernels.prox import (
    ascend_multiplier_rows,
    least_squares_basis,
    procrustes,
    shrink_residual_rows,
)

# Beyond this the increments of the multipliers are rounding (paper note 9).
LARGEST_PENALTY = 1e10
# What each slot must be filled with.
SLOT_KINDS = {"affinity": AbstractAffinity, "points": AbstractPoints, "exemplars": AbstractExemplars}
# Feasibility asked of a converged run, relative to G and to X (paper note 11).
FEASIBLE = 1e-2


class Status(enum.Enum):
    """How the loop stands after an iteration; where it has not converged, the value says what to do."""

    CONVERGED = "the objective settled and the constraints hold"
    STOPPED = "a callback asked to stop"
    OBJECTIVE = "the objective still changes by more than tol per iteration: raise max_iter or tol"
    SPLIT = "G and its non-negative copy H still differ: raise max_iter, penalty or penalty_growth"
    RESIDUAL = "X - GF still differs from E: raise max_iter, penalty or penalty_growth"


@dataclass(frozen=True)
class LoopState:
    """What one iteration hands to the next; a loop that goes on from a saved one gives the same run.

    The next iteration changes multipliers, H, E, history and the states of the slots in place: save a copy.
    """

    placed: PointsTerm
    F: np.ndarray  # c x m
    G: np.ndarray  # n x c, orthonormal columns
    H: np.ndarray  # n x c, non-negative copy of G
    E: np.ndarray  # n x m, copy of X - G F
    L1: np.ndarray  # n x m, multiplier of X - G F = E
    L2: np.ndarray  # n x c, multiplier of G = H
    mu: float
    affinity_state: Any
    points_state: Any
    graph: GraphTerm
    n_iter: int
    history: list[float]
    status: Status


@dataclass(frozen=True)
class Solution:
    """What the loop returns: the last state, and why it is the last."""

    state: LoopState
    status: Status


def first_state(slots: Slots, start: Start) -> LoopState:
    """Do lines 3 to 5: the start, and the affinity's own first Z."""
    if not isinstance(slots, Slots):
        raise TypeError(f"_slots returned {type(slots).__name__}, but must return Slots.")
    for name, kind in SLOT_KINDS.items():
        if not isinstance(filling := getattr(slots, name), kind):
            raise TypeError(
                f"The slot {name!r} holds {filling!r}, which is no {kind.__name__}: derive its class from "
                f"{kind.__module__}.{kind.__name__}."
            )
    X = start.scaled
    affinity_state, graph = check_pair(slots.affinity.init(X), (GraphTerm,), slots.affinity, "init")
    check_graph(graph.weights, len(X), type(slots.affinity).__name__)
    return LoopState(
        placed=PointsTerm(X, 0.0),
        F=start.F,
        G=start.G,
        H=start.G,
        # Written by line 9 before anything reads it.
        E=np.empty_like(X),
        L1=np.zeros_like(X),
        L2=np.zeros_like(start.G),
        mu=min(start.mu, LARGEST_PENALTY),
        affinity_state=affinity_state,
        points_state=start.points_state,
        graph=graph,
        n_iter=0,
        history=[],
        status=Status.OBJECTIVE,
    )


def factorize(
    slots: Slots,
    start: Start,
    *,
    rho: float,
    max_iter: int,
    tol: float,
    pool: Pool = SERIAL,
    on_iteration: Callable[[LoopState], bool] | None = None,
    state: LoopState | None = None,
) -> Solution:
    """Solve the problem above by Algorithm 1, up to feasibility and a settled objective.

    The multipliers are ascended and the penalty mu only grows; neither is minimised, as (3.5) prints it
    (paper note 1).

    Parameters
    ----------
    slots : Slots
        All that a method supplies.
    start : Start
        The first points and factors, and the weights.
    rho : float
        Growth of the penalty per iteration.
    max_iter, tol : int, float
        Limits: iterations in all, and relative change of the objective.
    pool : Pool
        Threads.
    on_iteration : callable, optional
        Sees the state after every iteration; returning True stops the loop.
    state : LoopState, optional
        Where to go on; by default the loop begins with the start.
    """
    size = float(np.linalg.norm(start.scaled))
    state = first_state(slots, start) if state is None else state
    affinity, points, lam = slots.affinity, slots.points, start.lam
    placed, graph, history, mu = state.placed, state.graph, state.history, state.mu
    X, G, F, H, E, L1, L2 = placed.X, state.G, state.F, state.H, state.E, state.L1, state.L2
    # G F is the one work array of this size: line 9 needs it, and the ascent of line 16 renews it.
    GF = np.empty_like(X)
    pool.map(lambda rows: np.matmul(G[rows], F, out=GF[rows]), row_blocks(*X.shape))
    # Lines 7 and 8: Z-hat and its Laplacian. After this they are made where Z is, at the end of an
    # iteration: the objective needs them there, and the next iteration at its beginning.
    laplacian = Laplacian(graph.weights, pool)
    LG = laplacian @ G
    checked = False
    # A state that has converged is the end of the run it was saved from.
    last = state.n_iter if state.status is Status.CONVERGED else max_iter
    for n_iter in range(state.n_iter + 1, last + 1):
        # Line 9: E. The array of GF comes back as Y = X - E + L1/mu, which lines 10 and 12 need.
        Y = GF
        update_error(X, GF, L1, mu, E, Y, pool)
        # Line 10: F. The first G need not be orthonormal (paper note 13), so (G'G)^-1 stays in the formula.
        F = least_squares_basis(G, Y, pool)
        # Line 11: H, which does not depend on the last one; the first one is the start itself.
        H = update_nonnegative(G, LG, L2, lam, mu, pool, None if H is start.G else H)
        # Line 12: G. It is orthonormal after every iteration, while H = G holds in the limit only: labels and
        # objective are read from G. Nobody needs L G any more, so L H has its array, and then the next L G.
        G = update_indicator(H, laplacian.times(H, LG), L2, Y, F, lam, mu, pool)
        # Lines 13 to 15: D-hat, Z and C, with their multiplier.
        of_graph = affinity.update(state.affinity_state, X, G, H, lam, mu)
        learned, changed = check_pair(of_graph, (GraphTerm, NoneType), affinity, "update")
        # Beyond the paper's loop: the points may move towards what fits them, as APMF's do.
        represented = partial(affinity.representation, learned)
        target = partial(_target, G, F, E, L1, mu)
        of_points = points.update(state.points_state, represented, target, mu)
        turned, moved = check_pair(of_points, (PointsTerm, NoneType), points, "update")
        if moved is not None:
            check_points(moved.X, X, type(points).__name__)
            placed, X = moved, moved.X
        if changed is not None:
            if not checked:  # once is enough to find a mistake, and costs two products
                check_graph(changed.weights, len(X), type(affinity).__name__)
                checked = True
            graph, laplacian = changed, Laplacian(changed.weights, pool)
        laplacian.times(G, LG)
        # Line 16: the other multipliers, and then the penalty: an ascent by mu times the residual belongs to
        # the mu of the steps above.
        loss, gap = ascend(X, G, F, E, mu, L1, GF, pool)
        split = ascend_split(G, H, mu, L2, pool)
        mu = min(rho * mu, LARGEST_PENALTY)

        # The objective itself, on G and without multiplier terms (paper note 10).
        history.append(loss + lam * float(np.vdot(G, LG)) + (graph.value + placed.value))
        status = _status(history, tol, split, gap, size)
        state = LoopState(placed, F, G, H, E, L1, L2, mu, learned, turned, graph, n_iter, history, status)
        stopped = on_iteration is not None and on_iteration(state)
        if status is Status.CONVERGED:
            break
        if stopped:
            return Solution(state, Status.STOPPED)
    return Solution(state, state.status)


def update_error(
    X: np.ndarray,
    GF: np.ndarray,
    L1: np.ndarray,
    mu: float,
    E: np.ndarray,
    Y: np.ndarray,
    pool: Pool,
) -> None:
    """Do line 9: E, the rows of ``X - GF + L1/mu`` shortened by ``1/mu``, and ``Y = X - E + L1/mu``.

    Y may be the array of GF: every entry of GF is read before its place is written.
    """
    pool.map(
        lambda rows: shrink_residual_rows(X[rows], GF[rows], L1[rows], E[rows], Y[rows], mu),
        row_blocks(*X.shape),
    )


def update_nonnegative(
    G: np.ndarray,
    LG: np.ndarray,
    L2: np.ndarray,
    lam: float,
    mu: float,
    pool: Pool = SERIAL,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Do line 11: ``H = max(G + L2/mu - (lambda/mu) L G, 0)``."""
    # The trace is split as tr(G' L H), linear in H, so the minimum over H >= 0 is taken entry by entry; with
    # tr(H' L H) it would be a quadratic program.
    H = np.empty_like(G) if out is None else out

    def update_rows(rows: slice) -> None:
        np.maximum(G[rows] + L2[rows] / mu - (lam / mu) * LG[rows], 0, out=H[rows])

    pool.map(update_rows, row_blocks(*G.shape))
    return H


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
    # With G'G = I, ||Y - G F||^2 and ||G - H||^2 are linear in G up to constants: all of line 12 is to
    # maximise <N, G>, a Procrustes problem, and needs singular vectors of N (paper note 3).
    N = np.empty_like(H)

    def write_rows(rows: slice) -> np.ndarray:
        # Each thread writes to rows of its own, and the Gram matrix is taken while they are in the cache.
        N[rows] = H[rows] - L2[rows] / mu - (lam / mu) * LH[rows]
        N[rows] += Y[rows] @ F.T
        # The polar factor is found from N'N, which loses half of the digits: too many for float32.
        wide = N[rows].astype(np.float64, copy=False)
        return wide.T @ wide

    gram = np.sum(pool.map(write_rows, row_blocks(*Y.shape)), axis=0)
    # Squares of N overflow before N does.
    if not (np.isfinite(gram).all() or np.isfinite(N).all()):
        raise OutOfRangeError(f"The numbers of the loop leave the range of {N.dtype}")
    return procrustes(N, gram, pool, out=N)


def ascend(
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

    def ascend_rows(rows: slice) -> tuple[float, float]:
        np.matmul(G[rows], F, out=GF[rows])
        return ascend_multiplier_rows(X[rows], GF[rows], E[rows], L1[rows], mu)

    # Sums in the order of the blocks: the same objective on any number of threads.
    losses, squares = zip(*pool.map(ascend_rows, row_blocks(*X.shape)), strict=True)
    return sum(losses), sum(squares) ** 0.5


def ascend_split(G: np.ndarray, H: np.ndarray, mu: float, L2: np.ndarray, pool: Pool) -> float:
    """Ascend the multiplier of ``G = H``; return how far apart they are, relative to the largest of G."""

    def ascend_rows(rows: slice) -> tuple[float, float]:
        apart = G[rows] - H[rows]
        L2[rows] += mu * apart
        return float(np.abs(apart).max()), float(np.abs(G[rows]).max())

    apart, largest = np.max(pool.map(ascend_rows, row_blocks(*G.shape)), axis=0)
    return float(apart / largest)


def _target(G: np.ndarray, F: np.ndarray, E: np.ndarray, L1: np.ndarray, mu: float) -> np.ndarray:
    """Return what the augmented Lagrangian pulls the points towards, ``GF + E - L1/mu``."""
    # The X that minimises <L1, X - G F - E> + mu/2 ||X - G F - E||^2.
    return G @ F + E - L1 / mu


def _status(history: list[float], tol: float, split: float, gap: float, size: float) -> Status:
    """Judge an iteration; the objective alone would stop at a turning point (paper notes 10 and 11)."""
    if not np.isfinite(history[-1]):
        raise OutOfRangeError("The objective of the loop is not finite")
    # Constraints first: while they fail, a settled objective means nothing.
    if gap > FEASIBLE * size:
        return Status.RESIDUAL
    if split > FEASIBLE:
        return Status.SPLIT
    return Status.CONVERGED if settled(history, tol) else Status.OBJECTIVE


def settled(history: list[float], tol: float) -> bool:
    """Tell whether the last iteration has changed the objective by next to nothing."""
    if len(history) < 2:
        return False
    change = abs(history[-1] - history[-2])
    # By the absolute value: D_K is negative, and so may be the objective (paper note 10).
    # A tolerance of 0 never stops, also where two objectives are equal to the last bit.
    return tol > 0 and change <= tol * max(abs(history[-2]), np.finfo(float).tiny)


def to_go_on(state: LoopState, of_tol: float, max_iter: int, tol: float) -> LoopState | None:
    """Return a state saved from a run with the tolerance ``of_tol`` as a run with other limits has it.

    None if that run would have ended before it.
    """
    history = state.history
    if state.n_iter > max_iter:
        return None
    # What a smaller tolerance calls settled, a larger one does, too. That constraints may have failed where a
    # larger one is met first is not known: then the loop begins anew.
    if tol > of_tol and any(settled(history[:n_iter], tol) for n_iter in range(2, state.n_iter)):
        return None
    if state.status not in (Status.CONVERGED, Status.OBJECTIVE):
        return state
    return replace(state, status=Status.CONVERGED if settled(history, tol) else Status.OBJECTIVE)
