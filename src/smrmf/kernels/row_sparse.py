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
def shrunk_entry(y, shrinkage, i):
    """Project one entry of group i: ``scale * clip(factor * y, -cap, cap)``."""
    cap = shrinkage.cap[i]
    return shrinkage.scale * min(max(shrinkage.factor[i] * y, -cap), cap)


@kernel
def z_target_rows(
    D,  # IN
    C,  # IN
    multiplier,  # IN
    Z,  # OUT
    beta,  # IN
    mu,  # IN
):
    """Put what (4.12) projects, without its latent term, into Z: ``C - (Lambda_3 + beta D) / mu``."""
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
    change = 0.0
    gap = 0.0
    for j in range(Z.shape[0]):
        for i in range(Z.shape[1]):
            c = shrunk_entry(Z[j, i] + multiplier[j, i] / mu, shrinkage, i)
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
    """Do ``Z = P_simplex(C - (Lambda + D) / mu)`` of DS3, and step ``relaxation`` times as far from C."""
    n = D.shape[1]
    row = np.empty(n, D.dtype)
    active = np.empty(n, D.dtype)
    for j in range(D.shape[0]):
        for i in range(n):
            row[i] = C[j, i] - (multiplier[j, i] + D[j, i]) / mu
        project_in_place(row, 1.0, active)
        for i in range(n):
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
    n = D.shape[1]
    row = np.empty(n, D.dtype)
    active = np.empty(n, D.dtype)
    change = 0.0
    for j in range(D.shape[0]):
        for i in range(n):
            c_hat = shrunk_entry(multiplier[j, i], hat, i) + offset[i]
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
    """Measure ``||Z - C||^2 + ||C - C-hat||^2`` for the next C of A2DM2, and the largest entry of Z - C."""
    squares = 0.0
    gap = 0.0
    for j in range(Z.shape[0]):
        for i in range(Z.shape[1]):
            c_hat = shrunk_entry(multiplier[j, i], hat, i) + offset[i]
            c = shrunk_entry(Z[j, i] + multiplier[j, i] / mu, shrinkage, i)
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
    """Store ``Lambda = Lambda-hat + mu (Z - C)`` of A2DM2 in ``last``, and extrapolate Lambda-hat."""
    for j in range(Z.shape[0]):
        for i in range(Z.shape[1]):
            c = shrunk_entry(Z[j, i] + multiplier[j, i] / mu, shrinkage, i)
            ascended = multiplier[j, i] + mu * (Z[j, i] - c)
            multiplier[j, i] = ascended + momentum * (ascended - last[j, i])
            last[j, i] = ascended


@kernel
def shrink_rows(Y, C, shrinkage):
    """Write the projection of Y into C."""
    for j in range(Y.shape[0]):
        for i in range(Y.shape[1]):
            C[j, i] = shrunk_entry(Y[j, i], shrinkage, i)
