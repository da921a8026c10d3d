"""The leading singular vectors of a table too large for all of them, and the coordinates along them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh

from smrmf.kernels.principal_axes import eigenpairs
from smrmf.kernels.scaling import squared_frobenius_norm

# Up to this many rows all singular vectors are found, from the inner products of the rows.
FEW_ROWS = 1024


class Coordinates(NamedTuple):
    """Rows of a sparse table on few orthonormal axes, ``table ~ points @ axes`` with ``axes = mixing @ table``.

    The axes, as wide as the table, are never formed. ``neglected`` is the share of the squared length of the
    table that lies along other axes.
    """

    points: np.ndarray  # n x q
    mixing: np.ndarray  # q x n
    neglected: float


def leading_coordinates(X: sp.csr_array, count: int) -> Coordinates:
    """Solve ``max ||X V||_F`` over V with ``count`` orthonormal columns, or with as many as the rank of X.

    Of few rows all axes are kept, whatever the count. The same axes every time, and in any unit.
    """
    n, m = X.shape
    total = squared_frobenius_norm(X)
    if total == 0:
        return Coordinates(np.zeros((n, 1), X.dtype), np.zeros((1, n), X.dtype), 0.0)
    # By a power of two, which is exact: the iteration has an absolute threshold, and squares squares.
    unit = 2.0 ** np.round(np.log2(total) / 2)
    wide = sp.csr_array((X.data.astype(np.float64) / unit, X.indices, X.indptr), shape=X.shape)
    if n <= max(FEW_ROWS, count):
        energies, left, _ = eigenpairs((wide @ wide.T).toarray(), m)
        values, neglected = np.sqrt(energies), 0.0
    else:
        first = np.random.RandomState(0).uniform(0.5, 1, min(n, m))
        left, values, _ = leading_singular_vectors(wide, count, first)
        # Beyond the rank vectors are rounding.
        rank = int(np.sum(values > values[0] * max(n, m) * np.finfo(np.float64).eps))
        left, values = left[:, :rank], values[:rank]
        kept = float(values @ values) * (unit / np.sqrt(total)) ** 2
        # A difference of two sums of squares: what is left of equal ones is rounding.
        neglected = 1 - kept if 1 - kept > n * np.finfo(np.float64).eps else 0.0
    # X V = U S, and V' = S^-1 U' X.
    points, mixing = left * (values * unit), (left / (values * unit)).T
    return Coordinates(points.astype(X.dtype), np.ascontiguousarray(mixing).astype(X.dtype), neglected)


def leading_singular_vectors(
    X: Any, count: int, first: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the leading ``left, values, right`` of the SVD of a large X, the same ones every time.

    As ``scipy.sparse.linalg.svds``, whose iterations go on in a random direction, which it does not let us
    seed, when a table of low rank leaves them no other.
    """
    tall = X.T if X.shape[0] < X.shape[1] else X
    side = tall.shape[1]
    gram = LinearOperator((side, side), matvec=lambda v: tall.T @ (tall @ v), dtype=X.dtype)
    basis, _ = np.linalg.qr(eigsh(gram, k=count, v0=first.astype(X.dtype), rng=0)[1])
    left, values, turn = scipy.linalg.svd(tall @ basis, full_matrices=False, check_finite=False)
    right = turn @ basis.T
    return (left, values, right) if tall is X else (right.T, values, left.T)
