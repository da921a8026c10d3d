"""The n x n steps of SMRMF, (4.12) and (4.13), of its start A2DM2, and of DS3, on blocks of rows of Zt.

Z is stored transposed: its simplex vectors are rows here, and the groups of its ball are columns. A
projection on the ball is a :class:`~smrmf.kernels.balls.Shrinkage`: one factor and one cap per group. C is
never stored where it follows from the multiplier.
"""

from __future__ import annotations

import numpy as np

from smrmf._numba import kernel
from smrmf.kernels.simplex import project_in_place


@kernel
def clip_entry(y, factor, cap):
    """Scale and clip one entry; with the scale of the shrinkage this is its projection."""
    return min(max(factor * y, -cap), cap)


@kernel
def z_target_rows(
    D,  # IN
    C,  # IN
    multiplier,  # IN
    Z,  # OUT
    beta,  # IN
    mu,  # IN
):
    """Put what (4.12) projects, without its latent term, into Z: ``C - (Lambda_3 + beta D) / mu``.

    The caller adds ``-(lambda / mu) D_hg``, the other part of ``-(beta / mu) D-hat``, and projects the rows.
    """
    # The old Z is not read: (4.12) depends on C and its multiplier only (paper note 12). D is symmetric, so
    # it needs no transposing.
    for j in range(D.shape[0]):
        for i in range(D.shape[1]):
            Z[j, i] = C[j, i] - (multiplier[j, i] + beta * D[j, i]) / mu


@kernel
def c_rows(
    Z,  # IN
    C,  # IN, OUT
    multiplier,  # IN, OUT
    shrinkage,  # IN
    mu,  # IN
):
    """Do (4.13), ``C = P_ball(Z + Lambda_3 / mu)``, and ``Lambda_3 += mu (Z - C)``.

    Return the largest change of C and the largest entry of Z - C.
    """
    factor, cap, scale = shrinkage
    change = 0.0
    gap = 0.0
    for j in range(Z.shape[0]):
        for i in range(Z.shape[1]):
            # Column passes over the same sum have found the shrinkage; entries are independent given it.
            c = scale * clip_entry(Z[j, i] + multiplier[j, i] / mu, factor[i], cap[i])
            change = max(change, abs(c - C[j, i]))
            gap = max(gap, abs(Z[j, i] - c))
            multiplier[j, i] += mu * (Z[j, i] - c)
            C[j, i] = c
    return change, gap


@kernel
def relaxed_z_rows(
    D,  # IN
    C,  # IN
    multiplier,  # IN
    Z,  # OUT
    mu,  # IN
    relaxation,  # IN
):
    """Do ``Z = P_simplex(C - (Lambda + D) / mu)`` of DS3, and go ``relaxation`` times as far from C."""
    n = D.shape[1]
    row = np.empty(n, D.dtype)
    active = np.empty(n, D.dtype)
    for j in range(D.shape[0]):
        for i in range(n):
            row[i] = C[j, i] - (multiplier[j, i] + D[j, i]) / mu
        project_in_place(row, 1.0, active)
        for i in range(n):
            # With a relaxation above 1 this may leave the simplex; in the limit Z = C and it does not.
            Z[j, i] = relaxation * row[i] + (1.0 - relaxation) * C[j, i]


@kernel
def extrapolated_z_rows(
    D,  # IN
    multiplier,  # IN
    Z,  # OUT
    hat,  # IN
    offset,  # IN
    mu,  # IN
    delta,  # IN
):
    """Do ``Z = P_simplex((mu C-hat - Lambda-hat - D) / (mu + delta))`` of A2DM2; return its largest change.

    C-hat is the multiplier shrunk by ``hat``, plus an ``offset`` for every group.
    """
    hat_factor, hat_cap, hat_scale = hat
    # Line 3 of Algorithm 2, with the multiplier as Lambda-hat: the minimiser on the simplex of
    # <D + Lambda-hat, Z> + delta/2 ||Z||^2 + mu/2 ||Z - C-hat||^2, by completing the square.
    n = D.shape[1]
    row = np.empty(n, D.dtype)
    active = np.empty(n, D.dtype)
    change = 0.0
    for j in range(D.shape[0]):
        for i in range(n):
            # P_ball(Lambda-hat / delta), with 1/delta as the scale of hat (paper note 20): recomputed where
            # needed, which saves an n x n array. Only the first C-hat has an offset (paper note 22).
            c_hat = hat_scale * clip_entry(multiplier[j, i], hat_factor[i], hat_cap[i]) + offset[i]
            row[i] = (mu * c_hat - multiplier[j, i] - D[j, i]) / (mu + delta)
        project_in_place(row, 1.0, active)
        for i in range(n):
            change = max(change, abs(row[i] - Z[j, i]))
            Z[j, i] = row[i]
    return change


@kernel
def residual_rows(
    Z,  # IN
    multiplier,  # IN
    hat,  # IN
    offset,  # IN
    shrinkage,  # IN
    mu,  # IN
):
    """Measure ``||Z - C||^2 + ||C - C-hat||^2`` for the next C of A2DM2, and the largest entry of Z - C.

    mu times the sum of squares is the combined residual that decides on a restart (paper note 21).
    """
    hat_factor, hat_cap, hat_scale = hat
    factor, cap, scale = shrinkage
    # Nothing is written: the caller may reject this C and restart the momentum.
    squares = 0.0
    gap = 0.0
    for j in range(Z.shape[0]):
        for i in range(Z.shape[1]):
            c_hat = hat_scale * clip_entry(multiplier[j, i], hat_factor[i], hat_cap[i]) + offset[i]
            # Line 4 of Algorithm 2, P_ball((mu Z + Lambda-hat) / (mu + delta)), scale mu / (mu + delta).
            c = scale * clip_entry(Z[j, i] + multiplier[j, i] / mu, factor[i], cap[i])
            squares += (Z[j, i] - c) ** 2 + (c - c_hat) ** 2
            gap = max(gap, abs(Z[j, i] - c))
    return squares, gap


@kernel
def accept_rows(
    Z,  # IN
    multiplier,  # IN, OUT
    last,  # IN, OUT
    shrinkage,  # IN
    mu,  # IN
    momentum,  # IN
):
    """Store ``Lambda = Lambda-hat + mu (Z - C)`` of A2DM2 in ``last``, and extrapolate Lambda-hat.

    Lines 5 and 7 of Algorithm 2; ``momentum`` is ``(a_t - 1) / a_(t+1)``.
    """
    factor, cap, scale = shrinkage
    for j in range(Z.shape[0]):
        for i in range(Z.shape[1]):
            c = scale * clip_entry(Z[j, i] + multiplier[j, i] / mu, factor[i], cap[i])
            ascended = multiplier[j, i] + mu * (Z[j, i] - c)
            # last still holds Lambda of the iteration before; it is replaced after this.
            multiplier[j, i] = ascended + momentum * (ascended - last[j, i])
            last[j, i] = ascended


@kernel
def shrink_rows(Y, C, shrinkage):
    """Write the projection of Y into C."""
    factor, cap, scale = shrinkage
    for j in range(Y.shape[0]):
        for i in range(Y.shape[1]):
            C[j, i] = scale * clip_entry(Y[j, i], factor[i], cap[i])
