"""The n x n steps of SMRMF and of A2DM2, against their dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq

from smrmf.kernels.balls import Shrinkage
from smrmf.kernels.row_sparse import (
    accept_rows,
    c_rows,
    clip_entry,
    extrapolated_z_rows,
    residual_rows,
    shrink_rows,
    z_target_rows,
)
from smrmf.kernels.simplex import project_rows_in_place

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
# The exemplar whose row of ones is C-hat at first; none later on.
EXEMPLARS = pytest.mark.parametrize("exemplar", [-1, 0, 5])
ATOL = {np.float32: 2e-5, np.float64: 1e-12}
MU, DELTA, BETA, SCALE = 0.3, 0.05, 0.7, 0.8


def problem(seed, dtype, shape=(6, 9)):
    """Draw D, C, a multiplier and Z with entries of either sign."""
    rng = np.random.default_rng(seed)
    D, C, multiplier, Z = rng.normal(size=(4, *shape))
    return D.astype(dtype), C.astype(dtype), (0.3 * multiplier).astype(dtype), Z.astype(dtype)


def shrinkage(seed, n=9, scale=SCALE):
    """Draw a shrinkage, among its groups a dead one and one without a cap."""
    rng = np.random.default_rng(seed)
    factor, cap = rng.uniform(0.2, 1, n), rng.uniform(0.05, 0.6, n)
    factor[0], cap[1], cap[2] = 0, 0, np.inf
    return Shrinkage(factor, cap, scale)


def wide(*arrays):
    return [a.astype(float) for a in arrays]


def simplex(Y):
    """Project rows by finding each threshold with a root finder."""

    def excess(theta, y):
        return np.maximum(y - theta, 0).sum() - 1

    thetas = [brentq(excess, y.max() - 1, y.max(), args=(y,), xtol=1e-15) for y in Y]
    return np.maximum(Y - np.array(thetas)[:, None], 0)


def shrunk(Y, shrinkage):
    factor, cap, scale = shrinkage
    return scale * np.clip(factor * Y, -cap, cap)


def extrapolated(multiplier, exemplar, hat):
    """Return C-hat: one row of ones, or the shrunken multiplier; and the offsets that ask for it."""
    if exemplar < 0:
        return shrunk(multiplier, hat), np.zeros(len(hat.factor))
    offset = np.eye(len(hat.factor))[exemplar]
    return np.tile(offset, (len(multiplier), 1)) + shrunk(multiplier, hat), offset


def z_step(D, C, multiplier, Z, mu):
    """Do (4.12) without a latent term, in the two steps of the library."""
    z_target_rows(D, C, multiplier, Z, BETA, mu)
    project_rows_in_place(Z, 1.0)


def test_an_entry_is_scaled_before_it_is_clipped():
    assert [clip_entry(y, 0.5, 1.0) for y in (-4.0, -1.0, 0.0, 1.0, 4.0)] == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert clip_entry(-1e150, 1.0, np.inf) == -1e150
    assert clip_entry(1e150, 1.0, 0.0) == 0


@DTYPES
def test_z_step_is_a_simplex_projection(dtype):
    D, C, multiplier, Z = problem(0, dtype)
    exact = wide(D, C, multiplier)
    z_step(D, C, multiplier, Z, MU)
    assert_allclose(Z, simplex(exact[1] - (exact[2] + BETA * exact[0]) / MU), rtol=0, atol=ATOL[dtype])


@DTYPES
def test_c_step_projects_and_ascends_the_multiplier(dtype):
    _, C, multiplier, Z = problem(1, dtype)
    _, old_C, old_multiplier, old_Z = wide(Z, C, multiplier, Z)
    ball = shrinkage(1)
    change, gap = c_rows(Z, C, multiplier, ball, MU)
    expected = shrunk(old_Z + old_multiplier / MU, ball)
    assert_allclose(C, expected, rtol=0, atol=ATOL[dtype])
    assert_allclose(multiplier, old_multiplier + MU * (old_Z - expected), rtol=0, atol=ATOL[dtype])
    assert change == pytest.approx(np.abs(expected - old_C).max(), rel=1e-5)
    assert gap == pytest.approx(np.abs(old_Z - expected).max(), rel=1e-5)
    assert_array_equal(Z, old_Z.astype(dtype))


@DTYPES
@EXEMPLARS
def test_accelerated_z_step_starts_from_the_right_c_hat(dtype, exemplar):
    D, _, multiplier, Z = problem(2, dtype)
    exact_D, exact_multiplier, old_Z = wide(D, multiplier, Z)
    hat = shrinkage(2)
    c_hat, offset = extrapolated(exact_multiplier, exemplar, hat)
    change = extrapolated_z_rows(D, multiplier, Z, hat, offset, MU, DELTA)
    expected = simplex((MU * c_hat - exact_multiplier - exact_D) / (MU + DELTA))
    assert_allclose(Z, expected, rtol=0, atol=ATOL[dtype])
    assert change == pytest.approx(np.abs(Z - old_Z).max(), rel=1e-5)


@DTYPES
@EXEMPLARS
def test_residual_measures_the_step_without_taking_it(dtype, exemplar):
    _, _, multiplier, Z = problem(3, dtype)
    before = [Z.copy(), multiplier.copy()]
    exact_Z, exact_multiplier = wide(*before)
    hat, ball = shrinkage(4, scale=1.7), shrinkage(5)
    c_hat, offset = extrapolated(exact_multiplier, exemplar, hat)
    squares, gap = residual_rows(Z, multiplier, hat, offset, ball, MU)
    new = shrunk(exact_Z + exact_multiplier / MU, ball)
    assert squares == pytest.approx(np.sum((exact_Z - new) ** 2) + np.sum((new - c_hat) ** 2), rel=1e-5)
    assert gap == pytest.approx(np.abs(exact_Z - new).max(), rel=1e-5)
    assert_array_equal(Z, before[0])
    assert_array_equal(multiplier, before[1])


@DTYPES
@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_accepted_step_extrapolates_the_multiplier(dtype, momentum):
    last, _, multiplier, Z = problem(6, dtype)
    old_last, old_multiplier, old_Z = wide(last, multiplier, Z)
    ball = shrinkage(6)
    accept_rows(Z, multiplier, last, ball, MU, momentum)
    new = shrunk(old_Z + old_multiplier / MU, ball)
    ascended = old_multiplier + MU * (old_Z - new)
    assert_allclose(last, ascended, rtol=0, atol=ATOL[dtype])
    assert_allclose(multiplier, ascended + momentum * (ascended - old_last), rtol=0, atol=ATOL[dtype])
    assert_array_equal(Z, old_Z.astype(dtype))


@DTYPES
def test_shrunken_rows_are_scaled_and_clipped_by_columns(dtype):
    _, C, _, Y = problem(9, dtype)
    ball = shrinkage(9)
    shrink_rows(Y, C, ball)
    assert_allclose(C, shrunk(Y.astype(float), ball), rtol=0, atol=ATOL[dtype])


@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (1, 1)])
def test_z_steps_of_one_row_or_column(shape):
    D, C, multiplier, Z = problem(7, float, shape)
    whole = Shrinkage(np.ones(shape[1]), np.full(shape[1], np.inf), SCALE)
    hat = Z.copy()
    z_step(D, C, multiplier, Z, MU)
    assert_allclose(Z, simplex(C - (multiplier + BETA * D) / MU), rtol=0, atol=1e-12)
    extrapolated_z_rows(D, multiplier, hat, whole, np.zeros(shape[1]), MU, DELTA)
    assert_allclose(hat, simplex(((MU * SCALE - 1) * multiplier - D) / (MU + DELTA)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("mu", [1e-12, 1e12])
def test_z_step_of_a_weak_and_of_a_strong_penalty(mu):
    D, C, multiplier, Z = problem(8, float)
    C = simplex(C)
    z_step(D, C, multiplier, Z, mu)
    nearest = np.eye(9)[np.argmin(multiplier + BETA * D, axis=1)]
    assert_allclose(Z, nearest if mu < 1 else C, rtol=0, atol=1e-9)
