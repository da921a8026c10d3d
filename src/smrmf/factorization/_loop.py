"""Algorithm 1 of the paper: the only augmented-Lagrangian loop of the library.

    min  ||X - G F||_{2,1} + lambda tr(G' L G) + affinity    s.t.  G'G = I, G >= 0

is split as E = X - G F, H = G >= 0 and solved by exact updates of one variable at a time. Points are
rows: X is n x m, G and H n x c, F c x m. Where the graph comes from, which points are factorised and
which are reported as exemplars is up to the slots (:mod:`smrmf.factorization._slots`), and where the rows
lie to the operations (:mod:`smrmf.factorization._operations`); nothing here knows which variant runs.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from smrmf.factorization._operations import AbstractOperations, InMemory
from smrmf.factorization._slots import (
    AbstractAffinity,
    AbstractExemplars,
    AbstractPoints,
    GraphTerm,
    OutOfRangeError,
    PointsTerm,
    Rows,
    Slots,
    check_pair,
    check_points,
)
from smrmf.factorization._start import Start

# Beyond this the increments of the multipliers are rounding (paper note 9).
LARGEST_PENALTY = 1e10
# On one thread.
IN_PLACE = InMemory()
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
    G: Rows  # n x c, orthonormal columns
    H: Rows  # n x c, non-negative copy of G
    E: Rows  # n x m, copy of X - G F
    L1: Rows  # n x m, multiplier of X - G F = E
    L2: Rows  # n x c, multiplier of G = H
    mu: float
    affinity_state: Any
    points_state: Any
    graph: GraphTerm
    n_iter: int
    history: list[float]
    status: Status


class Measured(NamedTuple):
    """What an iteration says of itself: loss, how far the constraints fail, and ``tr(G' L G)``."""

    loss: float
    gap: float
    split: float
    roughness: float


@dataclass(frozen=True)
class Solution:
    """What the loop returns: the last state, and why it is the last."""

    state: LoopState
    status: Status


def first_state(slots: Slots, start: Start, ops: AbstractOperations) -> LoopState:
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
    ops.check_graph(graph.weights, X, type(slots.affinity).__name__)
    return LoopState(
        placed=PointsTerm(X, 0.0),
        F=start.F,
        G=start.G,
        H=start.G,
        # Written by line 9 before anything reads it.
        E=ops.zeros_like(X),
        L1=ops.zeros_like(X),
        L2=ops.zeros_like(start.G),
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
    ops: AbstractOperations = IN_PLACE,
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
    ops : AbstractOperations
        What is done with arrays that have a row for every point.
    on_iteration : callable, optional
        Sees the state after every iteration; returning True stops the loop.
    state : LoopState, optional
        Where to go on; by default the loop begins with the start.
    """
    size = ops.norm(start.scaled)
    state = first_state(slots, start, ops) if state is None else state
    affinity, points, lam, history = slots.affinity, slots.points, start.lam, state.history
    GF = ops.product(state.G, state.F)
    # Lines 7 and 8: Z-hat and its Laplacian. After this they are made where Z is, at the end of an
    # iteration: the objective needs them there, and the next iteration at its beginning.
    laplacian = ops.laplacian(state.graph.weights)
    LG = laplacian @ state.G
    checked = False
    # A state that has converged is the end of the run it was saved from.
    last = state.n_iter if state.status is Status.CONVERGED else max_iter
    for n_iter in range(state.n_iter + 1, last + 1):
        placed, graph, mu = state.placed, state.graph, state.mu
        X, G, F, H, L1, L2 = placed.X, state.G, state.F, state.H, state.L1, state.L2
        # Line 9: E. Lines 10 and 12 need Y = X - E + L1/mu, which may take the place of GF.
        E, Y = ops.shrink(X, GF, L1, mu, state.E)
        # Line 10: F. The first G need not be orthonormal (paper note 13), so (G'G)^-1 stays in the formula.
        F = ops.basis(G, Y)
        # Line 11: H, which does not depend on the last one; the first one is the start itself.
        H = ops.nonnegative(G, LG, L2, lam, mu, None if H is start.G else H)
        # Line 12: G. It is orthonormal after every iteration, while H = G holds in the limit only: labels and
        # objective are read from G. Nobody needs L G any more, so L H has its array, and then the next L G.
        G = ops.indicator(H, laplacian.times(H, LG), L2, Y, F, lam, mu)
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
                ops.check_graph(changed.weights, X, type(affinity).__name__)
                checked = True
            graph, laplacian = changed, ops.laplacian(changed.weights)
        LG = laplacian.times(G, LG)
        # Line 16: the other multipliers, and then the penalty: an ascent by mu times the residual belongs to
        # the mu of the steps above.
        GF, L1, loss, gap = ops.ascend(X, G, F, E, mu, L1, Y)
        L2, split = ops.ascend_split(G, H, mu, L2)
        mu = min(rho * mu, LARGEST_PENALTY)

        done = LoopState(
            placed, F, G, H, E, L1, L2, mu, learned, turned, graph, n_iter, history, Status.OBJECTIVE
        )
        measured = Measured(loss, gap, split, ops.inner(G, LG))
        state, laplacian, LG, GF, measured = ops.settle((done, laplacian, LG, GF, measured))
        # The objective itself, on G and without multiplier terms (paper note 10).
        history.append(measured.loss + lam * measured.roughness + (state.graph.value + state.placed.value))
        state = replace(state, history=history, status=_status(history, tol, measured, size))
        stopped = on_iteration is not None and on_iteration(state)
        if state.status is Status.CONVERGED:
            break
        if stopped:
            return Solution(state, Status.STOPPED)
    return Solution(state, state.status)


def _target(G: np.ndarray, F: np.ndarray, E: np.ndarray, L1: np.ndarray, mu: float) -> np.ndarray:
    """Return what the augmented Lagrangian pulls the points towards, ``GF + E - L1/mu``."""
    # The X that minimises <L1, X - G F - E> + mu/2 ||X - G F - E||^2.
    return G @ F + E - L1 / mu


def _status(history: list[float], tol: float, measured: Measured, size: float) -> Status:
    """Judge an iteration; the objective alone would stop at a turning point (paper notes 10 and 11)."""
    if not np.isfinite(history[-1]):
        raise OutOfRangeError("The objective of the loop is not finite")
    # Constraints first: while they fail, a settled objective means nothing.
    if measured.gap > FEASIBLE * size:
        return Status.RESIDUAL
    if measured.split > FEASIBLE:
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
