"""Factorisations that improve their two factors in turn: the loop of GNMF and of every layer of semi-NMF.

No update raises the objective, ``||X - G F||_F^2`` plus what the method adds. So no penalty has to grow and
no constraint has to be watched: the loop ends when the objective settles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from smrmf._estimator import Warnings, convergence_warnings
from smrmf._parallel import BLOCK_ENTRIES, Pool, row_blocks
from smrmf.kernels.scaling import matmul
from smrmf.kernels.semi_nonnegative import multiply_rows

# Denominators of multiplicative updates are at least this, for data of unit size: 0 / 0 must give 0, not NaN.
SMALLEST = 1e-10


@dataclass(frozen=True)
class Factors:
    """The two factors, with ``G'X`` and ``G'G``, which both the next update and the objective need."""

    G: np.ndarray  # n x c
    F: np.ndarray  # c x m
    GX: np.ndarray  # c x m, double precision
    GG: np.ndarray  # c x c, double precision


class AbstractAlternation(ABC):
    """One way to improve the factors of X. Where it begins is up to the caller, who has the first factors."""

    X: np.ndarray | sp.csr_array
    squared_norm: float
    pool: Pool

    @abstractmethod
    def update(self, factors: Factors) -> Factors:
        """Return factors with a lower objective."""

    @abstractmethod
    def regularization(self, factors: Factors) -> float:
        """Return what the objective adds to the loss."""

    def products(self, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ``G'X`` and ``G'G`` in double precision, summed over blocks of rows."""
        # Sums over n rows in float32 would lose the digits that the difference in ``objective`` needs.
        X, G = self.X, G.astype(np.float64, copy=False)
        if sp.issparse(X):
            return (X.T @ G).T, G.T @ G
        # Blocks of many more rows than columns of G: each leaves a product behind.
        width = max(1, min(X.shape[1], BLOCK_ENTRIES // (8 * G.shape[1])))
        blocks = row_blocks(len(X), width)
        parts = self.pool.map(
            lambda rows: (G[rows].T @ X[rows].astype(np.float64, copy=False), G[rows].T @ G[rows]), blocks
        )
        # In the order of the blocks, so the rounding is the same on any number of threads.
        return np.sum([p for p, _ in parts], axis=0), np.sum([g for _, g in parts], axis=0)

    def times_basis(self, F: np.ndarray) -> np.ndarray:
        """Return ``X F'``."""
        return matmul(self.X, F.T, self.pool)

    def objective(self, factors: Factors) -> float:
        """Return the loss plus what the method adds, from the products at hand."""
        F = factors.F.astype(np.float64, copy=False)
        # ||X - G F||^2 - ||X||^2 = <G'G, F F'> - 2 <G'X, F>: no n x m residual is formed. For a nearly exact
        # fit the difference cancels and may come out slightly negative, hence the maximum below.
        fit = float(np.vdot(factors.GG, F @ F.T) - 2 * np.vdot(factors.GX, F))
        return max(self.squared_norm + fit, 0.0) + self.regularization(factors)


@dataclass(frozen=True)
class Multiplicative(AbstractAlternation):
    """Multiplicative updates of ``||X - G F||_F^2 + weight tr(G' L G)`` over non-negative factors (GNMF)."""

    X: np.ndarray | sp.csr_array
    squared_norm: float
    graph: sp.csr_array
    degrees: np.ndarray
    weight: float
    pool: Pool

    def with_products(self, G: np.ndarray, F: np.ndarray) -> Factors:
        """Return two factors together with the products of G."""
        return Factors(G, F, *self.products(G))

    def update(self, factors: Factors) -> Factors:
        G, F = factors.G, factors.F
        # Half the gradient in G is repelled - attracted, both non-negative: the ratio is 1 at a stationary
        # point, and G >= 0 stays so without a projection. With L = degrees - W the graph adds to both.
        attracted = self.times_basis(F) + self.weight * (self.graph @ G)
        repelled = G @ (F @ F.T) + (self.weight * self.degrees)[:, None] * G
        G = G * (attracted / np.maximum(repelled, SMALLEST))
        # Of the new G: the step of F, the objective and the next iteration all use them.
        GX, GG = self.products(G)
        return Factors(G, (F * (GX / np.maximum(GG @ F, SMALLEST))).astype(F.dtype, copy=False), GX, GG)

    def regularization(self, factors: Factors) -> float:
        G = factors.G
        # tr(G' L G) = <G, L G>; L itself is never built.
        rough = self.degrees[:, None] * G - self.graph @ G
        return self.weight * float(np.vdot(G, rough))


@dataclass(frozen=True)
class SemiNonnegative(AbstractAlternation):
    """Updates of ``||X - G F||_F^2`` with G non-negative and F of any sign (semi-NMF)."""

    X: np.ndarray | sp.csr_array
    squared_norm: float
    pool: Pool

    def with_best_basis(self, G: np.ndarray) -> Factors:
        """Return G with the F that fits it best, which has a closed form."""
        GX, GG = self.products(G)
        return Factors(G, least_squares(GX, GG, G.dtype), GX, GG)

    def update(self, factors: Factors) -> Factors:
        G, F = factors.G, factors.F
        # G sqrt(((X F')+ + G (F F')-) / ((X F')- + G (F F')+)), with + and - the positive and negative parts:
        # F has any sign, and the square root is what keeps the step from raising the objective.
        FF = F @ F.T
        attracted = self.pool.matmul(G, np.maximum(-FF, 0))
        repelled = self.pool.matmul(G, np.maximum(FF, 0))
        # X F' is read once per entry, so the kernel writes the new G over it.
        improved = self.times_basis(F)
        self.pool.over_rows(multiply_rows, (G, attracted, repelled, improved), SMALLEST)
        return self.with_best_basis(improved)

    def regularization(self, factors: Factors) -> float:
        return 0.0


def least_squares(GX: np.ndarray, GG: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the basis F that minimises ``||X - G F||_F``, from ``G'X``, ``G'G`` and the precision of G."""
    # Eigenvalues of G'G are squared singular values: where columns of G differ by rounding alone they are
    # about eps(G)^2 of the largest, and forming G'G adds the eps of double precision.
    precisions = (float(np.finfo(np.float64).eps), float(np.finfo(dtype).eps) ** 2)
    inverse = pseudo_inverse(GG, rtol=len(GG) ** 2 * max(precisions))
    return (inverse @ GX).astype(dtype)


def pseudo_inverse(A: np.ndarray, rtol: float) -> np.ndarray:
    """Invert a positive semi-definite matrix where its eigenvalues are above a share of the largest.

    As scipy's ``pinvh``, whose eigenvalue solver takes several times as long for some hundred columns.
    """
    # Ascending, so the last eigenvalue is the largest. A = 0 keeps none, and its inverse is 0.
    values, vectors = scipy.linalg.eigh(A, check_finite=False, driver="evd")
    kept = values > rtol * values[-1]
    return (vectors[:, kept] / values[kept]) @ vectors[:, kept].T


@dataclass(frozen=True)
class AlternatingSolution:
    """What the loop returns: the factors, the objective after each iteration, and why it ended."""

    factors: Factors
    history: list[float]
    converged: bool
    stopped: bool

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes about the descent itself."""
        return {
            "objective_": self.history[-1],
            "objective_history_": np.asarray(self.history),
            "n_iter_": len(self.history),
            "converged_": self.converged,
        }

    def warnings(self, name: str, tol: float) -> Warnings:
        """Return the warning that the iterations did not suffice; with ``tol=0`` all are done on purpose."""
        if self.converged or self.stopped or tol == 0:
            return []
        reason = "the objective still changes by more than tol per iteration: raise max_iter or tol"
        return convergence_warnings(name, len(self.history), reason)


def alternate(
    method: AbstractAlternation,
    factors: Factors,
    *,
    max_iter: int,
    tol: float,
    on_iteration: Callable[[int, float, Factors], bool] | None = None,
) -> AlternatingSolution:
    """Improve the factors until the objective changes by no more than ``tol`` of itself; 0 never stops."""
    # The loss is a difference of numbers of the size of ||X||^2, so below this it is rounding.
    floor = float(np.finfo(factors.G.dtype).eps) * method.squared_norm
    history: list[float] = []
    converged = stopped = False
    while len(history) < max_iter and not (converged or stopped):
        factors = method.update(factors)
        history.append(method.objective(factors))
        if len(history) > 1 and tol > 0:
            converged = abs(history[-2] - history[-1]) <= tol * max(history[-2], floor)
        if on_iteration is not None:
            stopped = on_iteration(len(history), history[-1], factors)
    return AlternatingSolution(factors, history, converged, stopped)


def unit_components(F: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale the rows of F to unit length and multiply the columns of G by their lengths; ``G F`` stays."""
    lengths = np.linalg.norm(F, axis=1)
    lengths[lengths == 0] = 1
    return F / lengths[:, None], G * lengths
