"""The non-negative SVD, the paper's start: of every singular pair the larger of its non-negative parts."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from smrmf.kernels.thin_svd import thin_svd
from smrmf.kernels.truncated_svd import leading_coordinates


def nonnegative_svd(X: np.ndarray | sp.csr_array, n_columns: int) -> np.ndarray:
    """Return G of the plain non-negative SVD of a non-negative X, exact and unscaled (paper note 13)."""
    if not sp.issparse(X):
        left, values, right = thin_svd(X)
        return nonnegative_parts(left[:, :n_columns], values, right)[0]
    found = leading_coordinates(X, n_columns)
    # On orthonormal axes the coordinates have the singular values of the rows, and the same left vectors.
    left, values, turn = thin_svd(found.points)
    right = (turn[:n_columns] @ found.mixing) @ found.table
    parts = nonnegative_parts(left[:, :n_columns], values, right)[0]
    # Beyond the rank all singular values are zero, and so are their columns.
    return np.pad(parts, ((0, 0), (0, n_columns - parts.shape[1])))


def nonnegative_parts(
    left: np.ndarray, values: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return G (n x c) and F (c x m) of the non-negative SVD, ``G F`` near the table and both non-negative.

    Of the positive and the negative part of each singular pair, the one with the larger product of lengths.
    """
    n, c = left.shape
    G, F = np.zeros((n, c), left.dtype), np.zeros((c, right.shape[1]), left.dtype)
    # The leading pair of a non-negative table has no mixed signs (Perron and Frobenius), but for rounding.
    G[:, 0] = np.sqrt(values[0]) * np.abs(left[:, 0])
    F[0] = np.sqrt(values[0]) * np.abs(right[0])
    for q in range(1, c):
        u, v = left[:, q], right[q]
        # The non-negative part of u v' is u+ v+' + u- v-'. The larger of the two terms is kept.
        parts = [(np.maximum(s * u, 0), np.maximum(s * v, 0)) for s in (1, -1)]
        lengths = [(np.linalg.norm(a), np.linalg.norm(b)) for a, b in parts]
        side = int(np.prod(lengths[1]) > np.prod(lengths[0]))
        u_length, v_length = lengths[side]
        # u+ v+' has the length u_length v_length; G and F share it, and the singular value, equally.
        if u_length > 0 and v_length > 0:
            size = np.sqrt(values[q] * u_length * v_length)
            G[:, q] = size * parts[side][0] / u_length
            F[q] = size * parts[side][1] / v_length
    return G, F
