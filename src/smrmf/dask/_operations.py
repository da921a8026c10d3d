"""The operations of the loop on rows in parts: one task for each part, sums over parts as trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from dask.delayed import Delayed

from smrmf.dask._blocks import Blocks, added, settled, value
from smrmf.dask._graph import BlockLaplacian
from smrmf.factorization._operations import AbstractOperations, ascend_split_rows, nonnegative_rows, pull_rows
from smrmf.factorization._slots import OutOfRangeError
from smrmf.kernels.prox import ascend_multiplier_rows, basis_of_products, products_with, shrink_residual_rows

# Singular values below this share of the largest are none.
NOTHING = 1e-12


@dataclass(frozen=True)
class InParts(AbstractOperations):
    """The operations on rows in parts. Tasks never write to what they are given."""

    def norm(self, X: Blocks) -> float:
        squares: float = X.map(squared_length).total(sum).compute()
        return squares**0.5

    def zeros_like(self, A: Blocks) -> Blocks:
        return A.map(np.zeros_like)

    def product(self, G: Blocks, F: Any) -> Blocks:
        return G.map(np.matmul, F)

    def shrink(self, X: Blocks, GF: Blocks, L1: Blocks, mu: float, E: Blocks) -> tuple[Blocks, Blocks]:
        both = X.map(shrunk, GF, L1, mu=mu)
        return both[0], both[1]

    def basis(self, G: Blocks, Y: Blocks) -> Delayed:
        return value(basis_of_products, G.map(products_with, Y).total(added))

    def nonnegative(self, G: Blocks, LG: Blocks, L2: Blocks, lam: float, mu: float, H: Any) -> Blocks:
        return G.map(nonnegative_rows, LG, L2, lam=lam, mu=mu, out=None)

    def indicator(
        self, H: Blocks, LH: Blocks, L2: Blocks, Y: Blocks, F: Any, lam: float, mu: float
    ) -> Blocks:
        N = H.map(pulled, LH, L2, Y, F, lam=lam, mu=mu)
        return N.map(turned, value(turning, N.map(triangle).total(stacked)))

    def laplacian(self, weights: Any) -> BlockLaplacian:
        return BlockLaplacian.of(weights)

    def check_graph(self, weights: Any, X: Blocks, owner: str) -> None:
        """Do nothing: the graphs of parts are made here, and not by a user."""

    def ascend(
        self, X: Blocks, G: Blocks, F: Any, E: Blocks, mu: float, L1: Blocks, GF: Blocks
    ) -> tuple[Blocks, Blocks, Delayed, Delayed]:
        GF = self.product(G, F)
        ascended = X.map(ascended_rows, GF, E, L1, mu=mu)
        sums = ascended[1].total(added)
        return GF, ascended[0], value(first, sums), value(root_of_second, sums)

    def ascend_split(self, G: Blocks, H: Blocks, mu: float, L2: Blocks) -> tuple[Blocks, Delayed]:
        ascended = G.map(ascended_split, H, L2, mu=mu)
        return ascended[0], value(ratio, ascended[1].total(largest))

    def inner(self, G: Blocks, LG: Blocks) -> Delayed:
        return G.map(inner_product, LG).total(sum)

    def settle(self, step: Any) -> Any:
        return settled(step)


# What a task does with its part


def squared_length(X: np.ndarray) -> float:
    return float(np.vdot(X, X))


def shrunk(X: np.ndarray, GF: np.ndarray, L1: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
    """Return E and Y of some rows."""
    E, Y = np.empty_like(X), np.empty_like(X)
    shrink_residual_rows(X, GF, L1, E, Y, mu)
    return E, Y


def pulled(
    H: np.ndarray, LH: np.ndarray, L2: np.ndarray, Y: np.ndarray, F: np.ndarray, lam: float, mu: float
) -> np.ndarray:
    """Return what G is pulled towards; refuse what is not finite."""
    N = pull_rows(H, LH, L2, Y, F, lam, mu, np.empty_like(H))
    if not np.isfinite(N).all():
        raise OutOfRangeError(f"The numbers of the loop leave the range of {N.dtype}")
    return N


def triangle(N: np.ndarray) -> np.ndarray:
    """Return R of ``N = Q R``, in double precision."""
    return scipy.linalg.qr(N.astype(np.float64), mode="r", check_finite=False)[0][: N.shape[1]]


def stacked(triangles: list[np.ndarray]) -> np.ndarray:
    """Return R of what has some triangles below each other."""
    return triangle(np.vstack(triangles))


def turning(R: np.ndarray) -> np.ndarray:
    """Return ``(N'N)^(-1/2)`` for an N with this triangle, by which N becomes its polar factor."""
    _, sizes, right = scipy.linalg.svd(R, check_finite=False)
    inverse = np.where(sizes > NOTHING * sizes[0], 1 / np.maximum(sizes, np.finfo(float).tiny), 0)
    return (right.T * inverse) @ right


def turned(N: np.ndarray, by: np.ndarray) -> np.ndarray:
    return N @ by.astype(N.dtype)


def ascended_rows(
    X: np.ndarray, GF: np.ndarray, E: np.ndarray, L1: np.ndarray, mu: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the multiplier of some rows after line 16, and their loss and squared infeasibility."""
    L1 = L1.copy()
    return L1, np.array(ascend_multiplier_rows(X, GF, E, L1, mu))


def ascended_split(G: np.ndarray, H: np.ndarray, L2: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray]:
    L2 = L2.copy()
    return L2, np.array(ascend_split_rows(G, H, mu, L2))


def inner_product(G: np.ndarray, LG: np.ndarray) -> float:
    return float(np.vdot(G, LG))


# Of sums


def largest(parts: list[np.ndarray]) -> np.ndarray:
    return np.max(parts, axis=0)


def first(sums: np.ndarray) -> float:
    return float(sums[0])


def root_of_second(sums: np.ndarray) -> float:
    return float(sums[1]) ** 0.5


def ratio(pair: np.ndarray) -> float:
    return float(pair[0] / pair[1])
