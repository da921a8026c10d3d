"""The n x n steps of SMRMF, (4.12) and (4.13), and of its start A2DM2, on blocks of rows of Zt.

Z is stored transposed: its simplex vectors are rows here, and the groups of its ball are columns. A
projection on the ball is one factor and one cap per group (:mod:`smrmf.kernels._balls`).
"""

from __future__ import annotations

import numpy as np

from smrmf._numba import kernel
from smrmf.kernels.balls import project_in_place
from smrmf.kernels.simplex import kernel_entry


@kernel
def shrunk(y, factor, cap):
    """Scale and clip one entry."""
    return min(max(factor * y, -cap), cap)


@kernel
def z_target_rows(D, C, multiplier, Z, beta, mu):
    """Put what (4.12) projects, but for its latent term, into Z: ``C - (Lambda_3 + beta D) / mu``."""
    for j in range(D.shape[0]):
        for i in range(D.shape[1]):
            Z[j, i] = C[j, i] - (multiplier[j, i] + beta * D[j, i]) / mu


@kernel
def relaxed_z_rows(D, C, multiplier, Z, mu, relaxation):
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
def add_kernel_tiles(P, Q, g, h, decay, other_g, other_h, other_decay, weight, tile, mirror):
    """Add ``weight`` times the latent part of (4.10) to a tile and to its mirror image.

    ``P`` and ``Q`` hold the inner products g_i'h_j and g_j'h_i of the points i of the tile's rows and j
    of its columns; ``g`` and ``h`` are squared norms.
    """
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            forward = g[i] + other_h[j] - 2 * P[i, j]
            backward = other_g[j] + h[i] - 2 * Q[j, i]
            entry = weight * kernel_entry(forward, backward, decay[i], other_decay[j])
            tile[i, j] += entry
            if mirror.shape[0] > 0:
                mirror[j, i] += entry


@kernel
def c_rows(Z, C, multiplier, factor, cap, scale, mu):
    """Do (4.13), ``C = P_ball(Z + Lambda_3 / mu)``, and ``Lambda_3 += mu (Z - C)``.

    Return the largest change of C and the largest entry of Z - C.
    """
    change = 0.0
    gap = 0.0
    for j in range(Z.shape[0]):
        for i in range(Z.shape[1]):
            c = scale * shrunk(Z[j, i] + multiplier[j, i] / mu, factor[i], cap[i])
            change = max(change, abs(c - C[j, i]))
            gap = max(gap, abs(Z[j, i] - c))
            multiplier[j, i] += mu * (Z[j, i] - c)
            C[j, i] = c
    return change, gap


@kernel
def ahead(multiplier, i, exemplar, factor, cap, scale):
    """Return an entry of C-hat: the shrunken multiplier, or at first one row of ones."""
    if exemplar >= 0:
        return 1.0 if i == exemplar else 0.0
    return scale * shrunk(multiplier, factor, cap)


@kernel
def hat_z_rows(D, multiplier, Z, exemplar, factor, cap, scale, mu, delta):
    """Do ``Z = P_simplex((mu C-hat - Lambda-hat - D) / (mu + delta))`` of A2DM2; return its change."""
    n = D.shape[1]
    row = np.empty(n, D.dtype)
    active = np.empty(n, D.dtype)
    change = 0.0
    for j in range(D.shape[0]):
        for i in range(n):
            c_hat = ahead(multiplier[j, i], i, exemplar, factor[i], cap[i], scale)
            row[i] = (mu * c_hat - multiplier[j, i] - D[j, i]) / (mu + delta)
        project_in_place(row, 1.0, active)
        for i in range(n):
            change = max(change, abs(row[i] - Z[j, i]))
            Z[j, i] = row[i]
    return change


@kernel
def residual_rows(Z, multiplier, exemplar, hat_factor, hat_cap, hat_scale, factor, cap, scale, mu):
    """Measure ``||Z - C||^2 + ||C - C-hat||^2`` for the next C, and the largest gap Z - C."""
    squares = 0.0
    gap = 0.0
    for j in range(Z.shape[0]):
        for i in range(Z.shape[1]):
            c_hat = ahead(multiplier[j, i], i, exemplar, hat_factor[i], hat_cap[i], hat_scale)
            c = scale * shrunk(Z[j, i] + multiplier[j, i] / mu, factor[i], cap[i])
            squares += (Z[j, i] - c) ** 2 + (c - c_hat) ** 2
            gap = max(gap, abs(Z[j, i] - c))
    return squares, gap


@kernel
def accept_rows(Z, multiplier, last, factor, cap, scale, mu, momentum):
    """Store ``Lambda = Lambda-hat + mu (Z - C)``, and extrapolate Lambda-hat."""
    for j in range(Z.shape[0]):
        for i in range(Z.shape[1]):
            c = scale * shrunk(Z[j, i] + multiplier[j, i] / mu, factor[i], cap[i])
            ascended = multiplier[j, i] + mu * (Z[j, i] - c)
            multiplier[j, i] = ascended + momentum * (ascended - last[j, i])
            last[j, i] = ascended


@kernel
def shrink_rows(Y, C, factor, cap, scale):
    """Do ``C = scale * clip(factor * Y, -cap, cap)``."""
    for j in range(Y.shape[0]):
        for i in range(Y.shape[1]):
            C[j, i] = scale * shrunk(Y[j, i], factor[i], cap[i])
