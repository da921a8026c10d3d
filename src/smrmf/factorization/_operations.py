"""What the loop does with arrays that have a row for every point: a dozen operations, and all in memory.

Algorithm 1 touches such arrays in no other way. So it is the same loop where they lie in memory and where
their rows are spread over the workers of a cluster (:mod:`smrmf.dask`): only these operations differ. What
has no row for every point, F above all, is a plain array in memory; elsewhere it may be put off like the
others, until :meth:`AbstractOperations.settle` does all that has been put off at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from smrmf._parallel import SERIAL, Pool, row_blocks
from smrmf.factorization._slots import OutOfRangeError, check_graph
from smrmf.graph.graphs import Laplacian
from smrmf.kernels.prox import (
    ascend_multiplier_rows,
    least_squares_basis,
    procrustes,
    shrink_residual_rows,
)

T = TypeVar("T")


class AbstractOperations(ABC):
    """The operations of the loop. Each may write to the arrays that it is given, but for X and graphs."""

    @abstractmethod
    def norm(self, X: Any) -> float:
        """Return the Frobenius norm of the points."""

    @abstractmethod
    def zeros_like(self, A: Any) -> Any:
        """Return an array of zeros."""

    @abstractmethod
    def product(self, G: Any, F: Any) -> Any:
        """Return ``G F``."""

    @abstractmethod
    def shrink(self, X: Any, GF: Any, L1: Any, mu: float, E: Any) -> tuple[Any, Any]:
        """Do line 9: E, the rows of ``X - GF + L1/mu`` shortened by ``1/mu``, and ``Y = X - E + L1/mu``."""

    @abstractmethod
    def basis(self, G: Any, Y: Any) -> Any:
        """Do line 10: F, the least squares solution of ``Y = G F``."""

    @abstractmethod
    def nonnegative(self, G: Any, LG: Any, L2: Any, lam: float, mu: float, H: Any) -> Any:
        """Do line 11: ``H = max(G + L2/mu - (lambda/mu) L G, 0)``, in the place of an H that may be None."""

    @abstractmethod
    def indicator(self, H: Any, LH: Any, L2: Any, Y: Any, F: Any, lam: float, mu: float) -> Any:
        """Do line 12: G, the polar factor of ``H - L2/mu - (lambda/mu) L H + Y F'``."""

    @abstractmethod
    def laplacian(self, weights: Any) -> Any:
        """Return the Laplacian of a graph, whose ``times(G, out)`` is ``L G``."""

    @abstractmethod
    def check_graph(self, weights: Any, X: Any, owner: str) -> None:
        """Refuse a graph that has no Laplacian; ``owner`` has made it."""

    @abstractmethod
    def ascend(
        self, X: Any, G: Any, F: Any, E: Any, mu: float, L1: Any, GF: Any
    ) -> tuple[Any, Any, Any, Any]:
        """Do line 16 for L1; return GF, L1, the loss ``||X - GF||_{2,1}``, and ``||X - GF - E||_F``."""

    @abstractmethod
    def ascend_split(self, G: Any, H: Any, mu: float, L2: Any) -> tuple[Any, Any]:
        """Do line 16 for L2; return it, and how far G and H are apart, relative to the largest entry of G."""

    @abstractmethod
    def inner(self, G: Any, LG: Any) -> Any:
        """Return ``tr(G' L G)``."""

    @abstractmethod
    def settle(self, step: T) -> T:
        """Return the same records with everything done that has been put off, and numbers as numbers."""


@dataclass(frozen=True)
class InMemory(AbstractOperations):
    """The operations on arrays in memory, by all threads of a pool."""

    pool: Pool = SERIAL

    def norm(self, X: np.ndarray) -> float:
        return float(np.linalg.norm(X))

    def zeros_like(self, A: np.ndarray) -> np.ndarray:
        return np.zeros_like(A)

    def product(self, G: np.ndarray, F: np.ndarray) -> np.ndarray:
        GF = np.empty((len(G), F.shape[1]), F.dtype)
        self.pool.map(lambda rows: np.matmul(G[rows], F, out=GF[rows]), row_blocks(*GF.shape))
        return GF

    def shrink(
        self, X: np.ndarray, GF: np.ndarray, L1: np.ndarray, mu: float, E: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        # Y takes the place of GF: every entry of GF is read before its place is written.
        self.pool.map(
            lambda rows: shrink_residual_rows(X[rows], GF[rows], L1[rows], E[rows], GF[rows], mu),
            row_blocks(*X.shape),
        )
        return E, GF

    def basis(self, G: np.ndarray, Y: np.ndarray) -> np.ndarray:
        return least_squares_basis(G, Y, self.pool)

    def nonnegative(
        self, G: np.ndarray, LG: np.ndarray, L2: np.ndarray, lam: float, mu: float, H: np.ndarray | None
    ) -> np.ndarray:
        H = np.empty_like(G) if H is None else H

        def update_rows(rows: slice) -> None:
            nonnegative_rows(G[rows], LG[rows], L2[rows], lam, mu, H[rows])

        self.pool.map(update_rows, row_blocks(*G.shape))
        return H

    def indicator(
        self,
        H: np.ndarray,
        LH: np.ndarray,
        L2: np.ndarray,
        Y: np.ndarray,
        F: np.ndarray,
        lam: float,
        mu: float,
    ) -> np.ndarray:
        N = np.empty_like(H)

        def write_rows(rows: slice) -> np.ndarray:
            # Each thread writes to rows of its own, and the Gram matrix is taken while they are in the cache.
            pull_rows(H[rows], LH[rows], L2[rows], Y[rows], F, lam, mu, N[rows])
            # The polar factor is found from N'N, which loses half of the digits: too many for float32.
            wide = N[rows].astype(np.float64, copy=False)
            return wide.T @ wide

        gram = np.sum(self.pool.map(write_rows, row_blocks(*Y.shape)), axis=0)
        # Squares of N overflow before N does.
        if not (np.isfinite(gram).all() or np.isfinite(N).all()):
            raise OutOfRangeError(f"The numbers of the loop leave the range of {N.dtype}")
        return procrustes(N, gram, self.pool, out=N)

    def laplacian(self, weights: Any) -> Laplacian:
        return Laplacian(weights, self.pool)

    def check_graph(self, weights: Any, X: np.ndarray, owner: str) -> None:
        check_graph(weights, len(X), owner)

    def ascend(
        self,
        X: np.ndarray,
        G: np.ndarray,
        F: np.ndarray,
        E: np.ndarray,
        mu: float,
        L1: np.ndarray,
        GF: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, float, float]:
        def ascend_rows(rows: slice) -> tuple[float, float]:
            np.matmul(G[rows], F, out=GF[rows])
            return ascend_multiplier_rows(X[rows], GF[rows], E[rows], L1[rows], mu)

        # Sums in the order of the blocks: the same objective on any number of threads.
        losses, squares = zip(*self.pool.map(ascend_rows, row_blocks(*X.shape)), strict=True)
        return GF, L1, sum(losses), sum(squares) ** 0.5

    def ascend_split(
        self, G: np.ndarray, H: np.ndarray, mu: float, L2: np.ndarray
    ) -> tuple[np.ndarray, float]:
        parts = self.pool.map(
            lambda rows: ascend_split_rows(G[rows], H[rows], mu, L2[rows]), row_blocks(*G.shape)
        )
        apart, largest = np.max(parts, axis=0)
        return L2, float(apart / largest)

    def inner(self, G: np.ndarray, LG: np.ndarray) -> float:
        return float(np.vdot(G, LG))

    def settle(self, step: T) -> T:
        return step


def nonnegative_rows(
    G: np.ndarray, LG: np.ndarray, L2: np.ndarray, lam: float, mu: float, out: np.ndarray
) -> np.ndarray:
    """Write line 11 for some rows, and return them."""
    # The trace is split as tr(G' L H), linear in H, so the minimum over H >= 0 is taken entry by entry; with
    # tr(H' L H) it would be a quadratic program.
    return np.maximum(G + L2 / mu - (lam / mu) * LG, 0, out=out)


def pull_rows(
    H: np.ndarray,
    LH: np.ndarray,
    L2: np.ndarray,
    Y: np.ndarray,
    F: np.ndarray,
    lam: float,
    mu: float,
    out: np.ndarray,
) -> np.ndarray:
    """Write what G is pulled towards, ``N = H - L2/mu - (lambda/mu) L H + Y F'``, for some rows."""
    # With G'G = I, ||Y - G F||^2 and ||G - H||^2 are linear in G up to constants: all of line 12 is to
    # maximise <N, G>, a Procrustes problem, and needs singular vectors of N (paper note 3).
    out[:] = H - L2 / mu - (lam / mu) * LH
    out += Y @ F.T
    return out


def ascend_split_rows(G: np.ndarray, H: np.ndarray, mu: float, L2: np.ndarray) -> tuple[float, float]:
    """Ascend the multiplier of ``G = H`` on some rows; return the largest entries of ``G - H`` and of G."""
    apart = G - H
    L2 += mu * apart
    return float(np.abs(apart).max()), float(np.abs(G).max())
