"""The row-wise steps of Algorithm 1: l2,1 shrinkage and orthogonal Procrustes."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from smrmf._numba import kernel

# The Gram route squares the condition number; beyond this the thin SVD takes over.
SAFE_GRAM_RATIO = 1e-4


def shrink_l21(B, threshold):
    """Solve ``argmin_E threshold ||E||_{2,1} + 1/2 ||E - B||_F^2``: shorten every row by the threshold."""
    # Squares of single-precision rows may overflow or vanish, those of double ones are safe.
    norms = np.linalg.norm(B.astype(np.float64), axis=1, keepdims=True)
    kept = np.maximum(norms - threshold, 0)
    factors = np.divide(kept, norms, out=np.zeros_like(norms), where=norms > 0)
    return B * factors.astype(B.dtype)


@kernel
def shrink_residual_rows(X, GF, multiplier, E, Y, mu):
    """Do line 9 of Algorithm 1 on a block of rows: E, and with it ``Y = X - E + Lambda_1 / mu``.

    ``E = shrink(B, 1/mu)`` with ``B = X - GF + Lambda_1/mu``. ``Y`` may be the array of ``GF``.
    """
    for i in range(X.shape[0]):
        total = 0.0
        for f in range(X.shape[1]):
            b = X[i, f] - GF[i, f] + multiplier[i, f] / mu
            E[i, f] = b
            total += b * b
        norm = np.sqrt(total)
        factor = 1.0 - 1.0 / (mu * norm) if mu * norm > 1.0 else 0.0
        for f in range(X.shape[1]):
            e = factor * E[i, f]
            E[i, f] = e
            Y[i, f] = X[i, f] - e + multiplier[i, f] / mu


@kernel
def ascend_multiplier_rows(X, GF, E, multiplier, mu):
    """Do ``Lambda_1 += mu (X - GF - E)`` on a block; return its loss and squared infeasibility."""
    loss = 0.0
    infeasible = 0.0
    for i in range(X.shape[0]):
        total = 0.0
        gap = 0.0
        for f in range(X.shape[1]):
            residual = X[i, f] - GF[i, f]
            rest = residual - E[i, f]
            total += residual * residual
            gap += rest * rest
            multiplier[i, f] += mu * rest
        loss += np.sqrt(total)
        infeasible += gap
    return loss, infeasible


def procrustes(N, gram=None):
    """Solve ``argmin_{G'G = I} ||G - N||_F``: the orthonormal polar factor of a tall matrix.

    By the c x c Gram matrix where that is accurate, otherwise by the thin SVD, whose singular
    vectors (not values, paper note 3) give ``U V'`` even when N has lost rank.
    """
    # The Gram matrix loses half the digits, so float32 gets it in float64.
    gram = (N.T.astype(np.float64) @ N.astype(np.float64)) if gram is None else gram
    values, vectors = scipy.linalg.eigh(gram, check_finite=False)
    if values[0] > SAFE_GRAM_RATIO * values[-1]:
        return N @ ((vectors / np.sqrt(values)) @ vectors.T).astype(N.dtype)
    left, _, right = scipy.linalg.svd(N, full_matrices=False, check_finite=False)
    return left @ right
