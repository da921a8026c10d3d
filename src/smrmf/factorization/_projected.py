"""The slots of APMF: a dense graph, and a projection of the points, learned from each other.

Beside the loop's own terms it minimises ``alpha sum_ij s_ij^2 ||P'(x_i - x_j)||^2`` over S, whose rows lie
on the simplex, and over P with orthonormal columns. The published iteration has the sign of a
multiplier wrong and drops a term of the step of the projection (paper note 53); here both steps minimise the
augmented Lagrangian, and neither can raise it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from smrmf._parallel import Pool, row_blocks
from smrmf.factorization._points import Reduction
from smrmf.factorization._slots import (
    AbstractAffinity,
    AbstractPoints,
    GraphTerm,
    OutOfRangeError,
    PointsTerm,
)
from smrmf.graph.exemplars import Matrix
from smrmf.graph.graphs import Laplacian
from smrmf.kernels.distances import squared_distances
from smrmf.kernels.prox import descend_on_stiefel
from smrmf.kernels.simplex import solve_weighted_rows


@dataclass(frozen=True)
class ProjectedAffinity(AbstractAffinity[np.ndarray]):
    """S of APMF, with ``alpha`` its weight; ``first`` is the first S. The state is S itself."""

    first: sp.csr_array
    alpha: float
    pool: Pool

    def init(self, X: np.ndarray) -> tuple[np.ndarray, GraphTerm]:
        S = self.first.toarray()
        return S, _graph_term(S)

    def update(
        self, state: np.ndarray, X: np.ndarray, G: np.ndarray, H: np.ndarray, lam: float, mu: float
    ) -> tuple[np.ndarray, GraphTerm]:
        """Solve every row of S for the distances of the projected points and the clusters so far."""
        # Row i: min sum_j alpha u_j s_j^2 + lambda q_j s_j, where u_j are squared distances of the projected
        # points and q_j = (g_i - g_j)'(h_i - h_j)/2. Divided by 2 alpha it is the kernel's problem.
        own = np.einsum("ij,ij->i", G, H)

        def solve_block(rows: slice) -> None:
            squared = squared_distances(X[rows], X)
            # 2 q_j, hence the 4 below.
            rough = own[rows, None] + own[None, :] - G[rows] @ H.T - H[rows] @ G.T
            rough *= lam / (4 * self.alpha)
            # The kernel leaves s_ii = 0: at distance zero a point would take all of its row.
            solve_weighted_rows(squared, rough, rows.start, state[rows])

        # In place: the rows do not depend on what they were, and the array is n x n.
        self.pool.map(solve_block, row_blocks(*state.shape))
        return state, _graph_term(state)

    def representation(self, state: np.ndarray) -> np.ndarray:
        return state


def _graph_term(S: np.ndarray) -> GraphTerm:
    """Return ``(S + S') / 2``; the value of S is counted once, by the projected points."""
    W = S + S.T
    W *= 0.5
    return GraphTerm(W, 0.0)


@dataclass(frozen=True)
class ProjectedPoints(AbstractPoints[np.ndarray]):
    """The points ``X P`` of APMF; the state is P, with orthonormal columns.

    X are all coordinates of the points in the unit of the loop, before the projection.
    """

    X: np.ndarray
    alpha: float
    reduction: Reduction
    pool: Pool

    @cached_property
    def gram(self) -> np.ndarray:
        """Return ``X'X``, which every step of the projection needs."""
        return self.pool.matmul(self.X.T, self.X)

    @cached_property
    def centered(self) -> np.ndarray:
        """Return X relative to its mean, for the scatter of every step."""
        # L 1 = 0: an offset of X cancels in exact arithmetic, and would leave rounding errors of its size.
        return self.X - self.X.mean(axis=0)

    def update(
        self, state: np.ndarray, Zt: Callable[[], Matrix], target: Callable[[], np.ndarray], mu: float
    ) -> tuple[np.ndarray, PointsTerm]:
        """Turn P towards points that fit the target and lie close to their neighbours."""
        # 2 alpha tr(P'X'LXP) + mu/2 ||X P - T||^2, divided by 2 alpha and without its constant, is
        # tr(P'(X'LX + w X'X)P) - 2 w tr(P'X'T), with w = mu / (4 alpha) and L the Laplacian of S squared.
        weight = mu / (4 * self.alpha)
        scatter = squared_graph_scatter(np.asarray(Zt()), self.centered, self.pool)
        A = scatter + weight * self.gram
        B = weight * self.pool.matmul(self.X.T, target())
        # The step takes sums of rows of A.
        if not np.isfinite(4 * len(A) * (np.abs(A).max() + np.abs(B).max())):
            raise OutOfRangeError(f"The numbers of the loop leave the range of {A.dtype}")
        P = descend_on_stiefel(A, B, state, self.pool)
        # sum_ij w_ij ||y_i - y_j||^2 = 2 tr(Y'LY) for symmetric weights w.
        value = 2 * self.alpha * float(np.vdot(P, scatter @ P))
        return P, PointsTerm(self.pool.matmul(self.X, P), value)

    def restore(self, state: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
        # The basis has orthonormal rows, so basis' P keeps orthonormal columns.
        projection = np.ascontiguousarray(self.reduction.carry_back(state.T).T)
        return F @ state.T, {"projection_": projection, "n_components_": projection.shape[1]}


def graph_scatter(W: sp.csr_array, X: np.ndarray, pool: Pool) -> np.ndarray:
    """Return ``X' L X`` for a symmetric sparse graph."""
    return X.T @ (Laplacian(W, pool) @ X)


def squared_graph_scatter(S: np.ndarray, X: np.ndarray, pool: Pool) -> np.ndarray:
    """Return ``X' L X`` with L the Laplacian of ``(S^2 + S^2') / 2``, squares by entries, for centred X."""
    spread = np.empty_like(X)

    def spread_rows(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        squares = np.square(S[rows])
        np.matmul(squares, X, out=spread[rows])
        return squares.sum(axis=1), squares.sum(axis=0)

    # Blocks of four times the usual height: each returns column sums of length n.
    out, into = zip(*pool.map(spread_rows, row_blocks(len(S), max(1, len(S) // 4))), strict=True)
    degrees = (np.concatenate(out) + np.sum(into, axis=0)) / 2
    # X'LX = X'(degrees X) - (X'S^2 X + X'S^2'X) / 2, and the last product is the transpose of the one before.
    mixed = pool.matmul(X.T, degrees[:, None] * X - spread)
    return (mixed + mixed.T) / 2


def smallest_axes(scatter: np.ndarray, n_axes: int) -> np.ndarray:
    """Return the directions in which neighbours differ least, as columns."""
    # min tr(P' scatter P) over orthonormal P: the eigenvectors of the smallest eigenvalues.
    vectors = scipy.linalg.eigh(scatter, subset_by_index=[0, n_axes - 1], check_finite=False)[1]
    return np.ascontiguousarray(vectors)
