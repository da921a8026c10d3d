"""The leading singular vectors of a table too large for all of them, and the coordinates along them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh

from smrmf.kernels.distances import squared_norms
from smrmf.kernels.principal_axes import eigenpairs
from smrmf.kernels.scaling import squared_frobenius_norm, unit_rows
from smrmf.kernels.thin_svd import thin_svd

# Up to this many rows all coordinates are kept: an eigenvalue problem of their size takes a second or less.
FEW_ROWS = 1024


class Coordinates(NamedTuple):
    """Sparse rows on few orthonormal axes: they are nearly ``points @ axes``.

    The axes, as wide as the rows, are left as the product ``mixing @ table``. ``neglected`` is the share of
    the squared length of the rows that lies along other axes.
    """

    points: np.ndarray  # n x q
    mixing: np.ndarray  # q x n
    table: sp.csr_array  # n x m
    neglected: float


def most_exact_rows(count: int) -> int:
    """Return up to how many rows all coordinates are kept, as finding ``count`` of them would take longer."""
    return max(FEW_ROWS, 3 * count)


def leading_coordinates(X: sp.csr_array, count: int) -> Coordinates:
    """Solve ``max ||X V||_F`` over V with ``count`` orthonormal columns, or with as many as the rank of X.

    Of few rows, also relative to the count, all coordinates are kept. The same ones every time, in any unit.
    """
    n, m = X.shape
    if n <= most_exact_rows(count):
        return _all_coordinates(X)
    total = squared_frobenius_norm(X)
    if total == 0:
        return Coordinates(np.zeros((n, 1), X.dtype), np.zeros((1, n), X.dtype), X, 0.0)
    # By a power of two, which is exact: the iteration has an absolute threshold, and squares squares.
    unit = 2.0 ** np.round(np.log2(total) / 2)
    wide = sp.csr_array((X.data.astype(np.float64) / unit, X.indices, X.indptr), shape=X.shape)
    first = np.random.RandomState(0).uniform(0.5, 1, min(n, m))
    # By the vectors on the shorter side: those of the other would be the largest array of all.
    if n <= m:
        energies, left = leading_eigenvectors(wide, count, first)
    else:
        right = leading_eigenvectors(wide.T, count, first)[1]
        along = wide @ right
        energies = squared_norms(along.T)
        left = along / np.sqrt(np.where(energies > 0, energies, 1))
    # Beyond the rank vectors are rounding.
    known = energies > energies.max() * max(n, m) * np.finfo(np.float64).eps
    left, values = left[:, known], np.sqrt(energies[known])
    lost = 1 - float(values @ values) * (unit / np.sqrt(total)) ** 2
    # A difference of two sums of squares: what is left of equal ones is rounding.
    neglected = lost if lost > n * np.finfo(np.float64).eps else 0.0
    # X V = U S, and V' = S^-1 U' X.
    points, mixing = left * (values * unit), np.ascontiguousarray((left / (values * unit)).T)
    return Coordinates(points.astype(X.dtype), mixing.astype(X.dtype), X, neglected)


def _all_coordinates(X: sp.csr_array) -> Coordinates:
    """Return coordinates that keep all lengths and inner products of rows."""
    # From the cosines of rows, so that coordinates are as exact as the row they stand for, however short.
    unit, lengths = unit_rows(X)
    energies, vectors, _ = eigenpairs((unit @ unit.T).toarray(), X.shape[1])
    if len(energies) == 0:  # all rows are zeros
        energies, vectors = np.ones(1), np.zeros((X.shape[0], 1))
    roots = np.sqrt(energies)
    lengths = lengths * float(abs(X).max())
    points, mixing = lengths[:, None] * (vectors * roots), np.ascontiguousarray((vectors / roots).T)
    return Coordinates(points.astype(X.dtype), mixing.astype(X.dtype), unit.astype(X.dtype), 0.0)


def leading_eigenvectors(wide: Any, count: int, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading eigenvalues of ``wide wide'``, largest first, and their vectors.

    The same ones every time, unlike those of ``scipy.sparse.linalg.svds``: its iterations go on in a random
    direction, which it does not let us seed, when a table of low rank leaves them no other.
    """
    side = wide.shape[0]
    gram = LinearOperator((side, side), matvec=lambda v: wide @ (wide.T @ v), dtype=wide.dtype)
    values, vectors = eigsh(gram, k=count, v0=first.astype(wide.dtype), rng=0)
    return values[::-1], vectors[:, ::-1]


def leading_singular_vectors(
    X: Any, count: int, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the leading ``left, values, right`` of the SVD of a large X."""
    tall = X.T if X.shape[0] < X.shape[1] else X
    basis, _ = np.linalg.qr(leading_eigenvectors(tall.T, count, first)[1])
    left, values, turn = thin_svd(tall @ basis)
    right = turn @ basis.T
    return (left, values, right) if tall is X else (right.T, values, left.T)
