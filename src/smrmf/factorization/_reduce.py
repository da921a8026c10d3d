"""Shorten the points without changing the problem.

The loop sees X only through lengths and inner products of its rows, which stay the same on any
orthonormal basis of their span. With more features than points, or a much lower rank, it runs on the
coordinates in such a basis, and the components are carried back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

# Below this many features an attempt costs more than it can save.
FEW_FEATURES = 64
# Share of the squared length of the data that principal axes keep.
HELD = 0.999


class Reduced(NamedTuple):
    """Coordinates of the points, the basis (rows) that carries them back, and where their origin was.

    None is the identity, and the origin itself.
    """

    X: np.ndarray
    basis: np.ndarray | None
    center: np.ndarray | None = None

    def restore(self, F: np.ndarray) -> np.ndarray:
        """Carry directions back to the original features."""
        return F if self.basis is None else F @ self.basis

    def restore_basis(self, F: np.ndarray, G: np.ndarray, unit: float) -> np.ndarray:
        """Carry a basis F back, such that ``G F`` rebuilds the points as they were, in units of ``unit``.

        As an indicator, G spans the constant vector: ``G G' 1 = 1``, which carries the origin.
        """
        F = self.restore(F)
        if self.center is not None:
            F = F + np.outer(G.sum(axis=0), self.center / unit).astype(F.dtype)
        return F


def reduce_features(X: np.ndarray) -> Reduced:
    """Express X in a basis of its row span if that is shorter: ``X = coordinates @ basis``."""
    n, m = X.shape
    if m > n:
        # A thin QR of X' gives X = R' Q'.
        Q, R = scipy.linalg.qr(X.T, mode="economic", check_finite=False)
        return Reduced(np.ascontiguousarray(R.T), np.ascontiguousarray(Q.T))
    if m < FEW_FEATURES or not _sample_is_dependent(X):
        return Reduced(X, None)
    values, vectors = scipy.linalg.eigh((X.T @ X).astype(np.float64), check_finite=False)
    eps = np.finfo(X.dtype).eps
    rank = int(np.sum(values > values[-1] * m * eps))
    if rank == 0:
        return Reduced(X, None)
    basis = np.ascontiguousarray(vectors[:, m - rank :].T).astype(X.dtype)
    short = X @ basis.T
    # Squaring X hid singular values below sqrt(eps): if they mattered, keep X.
    if rank > m // 2 or np.linalg.norm(X - short @ basis) > np.sqrt(eps) / 100 * np.linalg.norm(X):
        return Reduced(X, None)
    return Reduced(short, basis)


def _sample_is_dependent(X: np.ndarray) -> bool:
    """Tell cheaply whether the rank may be at most half the number of features."""
    n, m = X.shape
    size = m // 2 + 1
    rows = X[np.linspace(0, n - 1, size).astype(int)].astype(np.float64, copy=False)
    gram = rows @ rows.T
    (pivoted_cholesky,) = scipy.linalg.get_lapack_funcs(("pstrf",), (gram,))
    tolerance = gram.diagonal().max() * size * np.finfo(X.dtype).eps
    rank = pivoted_cholesky(gram, tol=tolerance, overwrite_a=1)[2]
    return bool(rank < size)


def leading_axes(X: np.ndarray) -> Reduced:
    """Centre X, and keep only the axes that hold nearly all of it if it does not fill its features.

    A projection that is learned may hide in directions in which the points do not extend at all.
    Unlike :func:`reduce_features` this changes the problem: what is dropped is gone.
    """
    n, m = X.shape
    center = X.mean(axis=0, dtype=np.float64)
    wide = X - center
    X = wide.astype(X.dtype)
    gram = wide.T @ wide if m <= n else wide @ wide.T
    values, vectors = scipy.linalg.eigh(gram, check_finite=False)
    values, vectors = values[::-1], vectors[:, ::-1]
    rounding = max(np.finfo(np.float64).eps, float(np.finfo(X.dtype).eps) ** 2)
    rank = int(np.sum(values > values[0] * max(n, m) * rounding))
    if rank == m or values[0] <= 0:
        return Reduced(X, None, center)
    held = np.cumsum(values[:rank]) / values[:rank].sum()
    kept = int(np.searchsorted(held, HELD)) + 1
    axes = vectors[:, :kept] if m <= n else wide.T @ (vectors[:, :kept] / np.sqrt(values[:kept]))
    basis = np.ascontiguousarray(axes.T).astype(X.dtype)
    return Reduced(X @ basis.T, basis, center)
