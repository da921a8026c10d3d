"""The affinity of APMF: a dense graph and a projection of the points, learned from each other.

Beside the loop's own terms it minimises ``alpha sum_ij s_ij^2 ||W'(x_i - x_j)||^2`` over S, whose rows lie
on the simplex, and over W with orthonormal columns. The published iteration has the sign of a
multiplier wrong and drops a term of the W step (paper note 53); here both steps minimise the augmented
Lagrangian, and neither can raise it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from smrmf._parallel import Pool, row_blocks
from smrmf.factorization._closed_form import AbstractAffinity
from smrmf.graph.neighbors import Laplacian
from smrmf.kernels.distances import squared_distances
from smrmf.kernels.prox import procrustes
from smrmf.kernels.weighted_simplex import solve_weighted_rows

# The W step improves on the last W and need not be exact.
MAX_PROJECTION_STEPS = 10
PROJECTION_TOL = 1e-3


@dataclass(frozen=True)
class ProjectedState:
    """The projection and the projected points, S, and the scatter of the points on the graph of S^2."""

    W: np.ndarray
    Y: np.ndarray
    S: np.ndarray
    scatter: np.ndarray


@dataclass(frozen=True)
class ProjectedAffinity(AbstractAffinity):
    """S and W of APMF, with ``alpha`` their weight; ``start`` and ``W`` are the first S and W."""

    X: np.ndarray
    start: sp.csr_array
    W: np.ndarray
    alpha: float
    pool: Pool

    @cached_property
    def gram(self) -> np.ndarray:
        """Return ``X'X``, which every W step needs."""
        return self.pool.matmul(self.X.T, self.X)

    def init(self) -> ProjectedState:
        S = self.start.toarray()
        Y = self.pool.matmul(self.X, self.W)
        return ProjectedState(self.W, Y, S, squared_graph_scatter(S, self.X, self.pool))

    def graph(self, state: ProjectedState) -> np.ndarray:
        W = state.S + state.S.T
        W *= 0.5
        return W

    def update(
        self, state: ProjectedState, G: np.ndarray, H: np.ndarray, lam: float, mu: float
    ) -> ProjectedState:
        """Solve every row of S for the distances of the projected points and the clusters so far."""
        own = np.einsum("ij,ij->i", G, H)
        S, Y = np.empty_like(state.S), state.Y

        def one(rows: slice) -> None:
            squared = squared_distances(Y[rows], Y)
            rough = own[rows, None] + own[None, :] - G[rows] @ H.T - H[rows] @ G.T
            rough *= lam / (4 * self.alpha)
            solve_weighted_rows(squared, rough, rows.start, S[rows])

        self.pool.map(one, row_blocks(*S.shape))
        return replace(state, S=S, scatter=squared_graph_scatter(S, self.X, self.pool))

    def project(self, state: ProjectedState, target: Callable[[], np.ndarray], mu: float) -> ProjectedState:
        """Turn W towards points that fit the target and lie close to their neighbours."""
        weight = mu / (4 * self.alpha)
        A = state.scatter + weight * self.gram
        B = weight * self.pool.matmul(self.X.T, target())
        W = descend_on_stiefel(A, B, state.W, self.pool)
        return replace(state, W=W, Y=self.pool.matmul(self.X, W))

    def points(self, state: ProjectedState, X: np.ndarray) -> np.ndarray:
        return state.Y

    def components(self, state: ProjectedState, F: np.ndarray) -> np.ndarray:
        return F @ state.W.T

    def value(self, state: ProjectedState) -> float:
        return 2 * self.alpha * float(np.vdot(state.W, state.scatter @ state.W))

    def representation(self, state: ProjectedState) -> np.ndarray:
        return state.S


def graph_scatter(W: sp.csr_array, X: np.ndarray, pool: Pool) -> np.ndarray:
    """Return ``X' L X`` for a symmetric sparse graph."""
    return X.T @ (Laplacian(W, pool) @ X)


def squared_graph_scatter(S: np.ndarray, X: np.ndarray, pool: Pool) -> np.ndarray:
    """Return ``X' L X`` with L the Laplacian of ``(S^2 + S^2') / 2``, squares by entries."""
    # A Laplacian does not see the origin, so rounding need not either.
    X = X - X.mean(axis=0)
    spread = np.empty_like(X)

    def one(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        squares = np.square(S[rows])
        np.matmul(squares, X, out=spread[rows])
        return squares.sum(axis=1), squares.sum(axis=0)

    out, into = zip(*pool.map(one, row_blocks(len(S), max(1, len(S) // 4))), strict=True)
    degrees = (np.concatenate(out) + np.sum(into, axis=0)) / 2
    # L X' = degrees X - (S^2 X + S^2' X) / 2, and the second half is the transpose of the first.
    mixed = pool.matmul(X.T, degrees[:, None] * X - spread)
    return (mixed + mixed.T) / 2


def smallest_axes(scatter: np.ndarray, n_axes: int) -> np.ndarray:
    """Return the directions in which neighbours differ least, as columns."""
    vectors = scipy.linalg.eigh(scatter, subset_by_index=[0, n_axes - 1], check_finite=False)[1]
    return np.ascontiguousarray(vectors)


def descend_on_stiefel(A: np.ndarray, B: np.ndarray, W: np.ndarray, pool: Pool) -> np.ndarray:
    """Lower ``tr(W'AW) - 2 tr(W'B)`` over orthonormal W, from W, by generalised power iteration.

    ``W <- polar((eta I - A) W + B)`` cannot raise it while eta is at least the largest eigenvalue of A.
    """
    eta = largest_eigenvalue_bound(A)
    AW = pool.matmul(A, W)
    value = float(np.vdot(W, AW) - 2 * np.vdot(W, B))
    for _ in range(MAX_PROJECTION_STEPS):
        turned = procrustes(eta * W - AW + B)
        AW = pool.matmul(A, turned)
        last, value = value, float(np.vdot(turned, AW) - 2 * np.vdot(turned, B))
        W = turned
        if last - value <= PROJECTION_TOL * abs(last):
            break
    return W


def largest_eigenvalue_bound(A: np.ndarray) -> float:
    """Bound the largest eigenvalue of a positive semi-definite matrix from above, closely."""
    m = len(A)
    largest = scipy.linalg.eigh(A, eigvals_only=True, subset_by_index=[m - 1, m - 1], check_finite=False)
    return float(largest[0]) * (1 + m * float(np.finfo(A.dtype).eps))
