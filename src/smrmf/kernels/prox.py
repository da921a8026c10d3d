"""The steps of Algorithm 1 that are the same for every graph: F, E, multipliers, and orthonormal factors."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from smrmf._numba import kernel
from smrmf._parallel import BLOCK_ENTRIES, SERIAL, Pool, row_blocks
from smrmf.kernels.thin_svd import thin_svd

# Least ratio of the extreme eigenvalues of N'N at which its square root is taken: the smallest eigenvalue
# then has a relative error of at most some 1e4 eps. Below it the thin SVD takes over.
SAFE_GRAM_RATIO = 1e-4
# A step of the projection P improves on the last one and need not be exact.
MAX_PROJECTION_STEPS = 10
PROJECTION_TOL = 1e-3


@kernel
def shrink_residual_rows(
    X,  # IN
    GF,  # IN
    multiplier,  # IN
    E,  # OUT
    Y,  # OUT
    mu,  # IN
):
    """Do line 9 of Algorithm 1 on a block of rows: E, and with it ``Y = X - E + Lambda_1 / mu``.

    E is the solution of ``argmin_E 1/mu ||E||_{2,1} + 1/2 ||E - B||_F^2`` with ``B = X - GF + Lambda_1/mu``:
    every row of B is shortened by 1/mu. ``Y`` may be the array of ``GF``.
    """
    for i in range(X.shape[0]):
        total = 0.0  # a double, also for float32 rows
        # E holds the row of B between the two passes. The first pass has read all of this row of GF when the
        # second begins, which is why Y may take its place.
        for f in range(X.shape[1]):
            b = X[i, f] - GF[i, f] + multiplier[i, f] / mu
            E[i, f] = b
            total += b * b
        norm = np.sqrt(total)
        # Compared as a product: a row of zeros never becomes a divisor.
        factor = 1.0 - 1.0 / (mu * norm) if mu * norm > 1.0 else 0.0
        for f in range(X.shape[1]):
            e = factor * E[i, f]
            E[i, f] = e
            # Given E, the first quadratic term is mu/2 ||Y - GF||^2, which lines 10 and 12 minimise.
            Y[i, f] = X[i, f] - e + multiplier[i, f] / mu


@kernel
def ascend_multiplier_rows(X, GF, E, multiplier, mu):
    """Do ``Lambda_1 += mu (X - GF - E)`` (line 16) on a block; return its loss and squared infeasibility.

    The loss is ``||X - GF||_{2,1}``, not that of E: the objective has no split variables (paper note 10).
    """
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


def least_squares_basis(G, Y, pool: Pool):
    """Solve ``min_F ||Y - G F||_F``, line 10: ``F = (G'G)^-1 G' Y``, the inverse a pseudo-inverse."""
    # Blocks have at least 8 c rows, and each leaves c rows behind: at most an eighth of its size.
    width = max(1, min(Y.shape[1], BLOCK_ENTRIES // (8 * G.shape[1])))
    parts = pool.map(lambda b: products_with(G[b], Y[b]), row_blocks(len(Y), width))
    return basis_of_products([np.sum(sums, axis=0) for sums in zip(*parts, strict=True)])


def products_with(G, Y):
    """Return ``G'Y`` and ``G'G`` of some rows."""
    return G.T @ Y, G.T @ G


def basis_of_products(sums):
    """Return F from ``G'Y`` and ``G'G`` of all rows."""
    products, gram = sums
    # G is orthonormal after its first update; the start need not be, and may lack rank (paper note 13).
    return (scipy.linalg.pinvh(gram) @ products).astype(products.dtype, copy=False)


def procrustes(N, gram=None, pool: Pool = SERIAL, out=None):
    """Solve ``argmin_{G'G = I} ||G - N||_F``: the orthonormal polar factor of a tall matrix.

    By the c x c Gram matrix where that is accurate, otherwise by the thin SVD, whose singular
    vectors (not values, paper note 3) give ``U V'`` even when N has lost rank. N must be finite; its squares
    may overflow, as G does not depend on the unit of N. ``out`` may be N itself, and need not be used.
    """
    gram = wide_gram(N) if gram is None else gram
    if not np.isfinite(gram).all():
        N = N / np.abs(N).max()
        gram = wide_gram(N)
    values, vectors = scipy.linalg.eigh(gram, check_finite=False)
    if values[0] > SAFE_GRAM_RATIO * values[-1]:
        # N (N'N)^(-1/2), with a c x c matrix as the only inverse.
        inverse = ((vectors / np.sqrt(values)) @ vectors.T).astype(N.dtype)
        out = np.empty_like(N) if out is None else out
        pool.map(lambda rows: np.copyto(out[rows], N[rows] @ inverse), row_blocks(*N.shape))
        return out
    left, _, right = thin_svd(N)
    return left @ right


def wide_gram(N):
    """Return ``N'N``, which loses half the digits, so float32 gets it in float64."""
    return N.T.astype(np.float64) @ N.astype(np.float64)


def descend_on_stiefel(A, B, P, pool):
    """Lower ``tr(P'AP) - 2 tr(P'B)`` over orthonormal P, from P, by generalised power iteration.

    ``P <- polar((eta I - A) P + B)`` cannot raise it while eta is at least the largest eigenvalue of A:
    ``tr(P'AP)`` is a constant less the convex ``tr(P'(eta I - A)P)``, which lies above its tangent at the
    last P, and the polar factor maximises that tangent together with ``2 tr(P'B)``.
    """
    eta = largest_eigenvalue_bound(A)
    AP = pool.matmul(A, P)
    value = float(np.vdot(P, AP) - 2 * np.vdot(P, B))
    for _ in range(MAX_PROJECTION_STEPS):
        turned = procrustes(eta * P - AP + B)
        AP = pool.matmul(A, turned)
        last, value = value, float(np.vdot(turned, AP) - 2 * np.vdot(turned, B))
        P = turned
        if last - value <= PROJECTION_TOL * abs(last):
            break
    return P


def largest_eigenvalue_bound(A):
    """Return a close upper bound of the largest eigenvalue of a positive semi-definite matrix."""
    m = len(A)
    # The computed eigenvalue may be too small by rounding, of the order of m eps, and an eta below the true
    # one could raise the objective.
    largest = scipy.linalg.eigh(A, eigvals_only=True, subset_by_index=[m - 1, m - 1], check_finite=False)
    return float(largest[0]) * (1 + m * float(np.finfo(A.dtype).eps))
