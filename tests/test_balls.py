"""Projections on the simplex and on the l1,inf and l1,2 balls."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_allclose, assert_array_equal
from oracle.projections import sorted_l1inf, sorted_l12, sorted_simplex

from smrmf._parallel import SERIAL, thread_pool
from smrmf.kernels.balls import L1InfBall, L12Ball, WeightedSum, l1inf_levels, l12_factors
from smrmf.kernels.row_sparse import shrink_rows
from smrmf.kernels.simplex import LONG_COLUMN, SAMPLE_STRIDE, project_rows_in_place, project_simplex

RTOL = {np.float32: 1e-5, np.float64: 1e-10}
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
SCALES = pytest.mark.parametrize("scale", [1e-150, 1e12, 1e150])

# Nothing so small that its square vanishes.
smooth = st.floats(-100, 100).map(lambda x: x if abs(x) > 1e-60 else 0.0)
tied = st.integers(-3, 3).map(float)
matrices = st.one_of(
    arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=8), elements=e) for e in (smooth, tied)
)
shares = st.sampled_from([1e-6, 0.01, 0.3, 0.9, 1 - 1e-9])


def exact_simplex(Y, radius=1.0):
    """Project by sorting, in more digits than the kernel has."""
    Y = Y.astype(np.longdouble)
    return sorted_simplex(Y - Y.max(axis=1, keepdims=True), radius).astype(float)


def project(Y, ball):
    """Project by the steps of the solvers, rows as groups: these are columns there, and Y is ``Y + 0 Y``."""
    columns = np.ascontiguousarray(Y.T)
    C = np.empty_like(columns)
    shrink_rows(columns, C, ball.shrinkage(WeightedSum(columns, columns, 0.0), 1.0, None, SERIAL))
    return C.T


def l1inf_norm(Y):
    return float(np.abs(Y).max(axis=1).sum())


def l12_norm(Y):
    return float(np.linalg.norm(Y, axis=1).sum())


def assert_l1inf_projection(C, Y, radius, rtol=1e-9):
    """Check the conditions that only the projection of a point outside the ball fulfils."""
    size, kept = np.abs(Y).astype(float), np.abs(C).astype(float)
    tol = rtol * size.sum(axis=1).max()
    level = kept.max(axis=1)
    assert level.sum() == pytest.approx(radius, abs=tol)
    assert np.all(C * Y >= 0)
    clipped = kept < size
    assert_allclose(kept[clipped], np.broadcast_to(level[:, None], size.shape)[clipped], rtol=0, atol=tol)
    lost = (size - kept).sum(axis=1)
    theta = lost[level > 0].mean()
    assert_allclose(lost[level > 0], theta, rtol=0, atol=tol, err_msg="live rows lose different amounts")
    assert np.all(lost <= theta + tol)


def solve_with_cvxpy(Y, constraints):
    C = cp.Variable(Y.shape)
    cp.Problem(cp.Minimize(cp.sum_squares(C - Y)), constraints(C)).solve(solver=cp.CLARABEL)
    return C.value


# The simplex


@given(matrices, st.sampled_from([1e-3, 1.0, 1e3]))
def test_simplex_is_the_sorted_solution(Y, radius):
    Z = project_simplex(Y, radius)
    assert np.all(Z >= 0)
    assert_allclose(Z.sum(axis=1), radius, rtol=1e-12)
    assert_allclose(Z, exact_simplex(Y, radius), rtol=0, atol=1e-12 * max(radius, 1))


@pytest.mark.parametrize("seed", range(3))
def test_simplex_agrees_with_cvxpy(seed):
    Y = np.random.default_rng(seed).normal(size=(4, 9))
    expected = solve_with_cvxpy(Y, lambda C: [C >= 0, cp.sum(C, axis=1) == 1])
    assert_allclose(project_simplex(Y), expected, rtol=0, atol=1e-6)


@given(matrices)
def test_simplex_is_idempotent_and_ignores_shifts(Y):
    Z = project_simplex(Y)
    assert_allclose(project_simplex(Z), Z, rtol=0, atol=1e-15)
    assert_allclose(project_simplex(Y + 37.0), Z, rtol=0, atol=1e-12)


@given(matrices)
def test_simplex_keeps_the_order_and_treats_ties_alike(Y):
    Z = project_simplex(Y)
    order = np.argsort(Y, axis=1)
    rise_in, rise_out = (np.diff(np.take_along_axis(A, order, axis=1), axis=1) for A in (Y, Z))
    assert np.all(rise_out >= 0)
    assert np.all(rise_out[rise_in == 0] == 0)


@pytest.mark.parametrize("scale", [1e16, 1e150, 1e300])
def test_simplex_far_from_the_origin(scale):
    Y = scale * np.array([[1.0, 1.0, 0.5, -1.0], [-1.0, -1.0, -1.0, -1.0], [-1.0, 0.0, 1.0, 0.5]])
    expected = [[0.5, 0.5, 0, 0], [0.25, 0.25, 0.25, 0.25], [0, 0, 1, 0]]
    assert_array_equal(project_simplex(Y), expected)


@DTYPES
@pytest.mark.parametrize(
    "arrange", [np.sort, lambda y: -np.sort(y), np.round, lambda y: y * 1e-7, lambda y: y]
)
def test_long_rows_in_any_order(dtype, arrange):
    Y = arrange(np.random.default_rng(0).normal(size=2000)).astype(dtype)[None, :]
    Z = project_simplex(Y)
    assert Z.dtype == dtype
    assert_allclose(Z, exact_simplex(Y), rtol=0, atol=10 * np.finfo(dtype).eps)
    assert Z.sum(dtype=float) == pytest.approx(1, abs=RTOL[dtype])


@pytest.mark.parametrize("place", [0, 1, SAMPLE_STRIDE - 1])
@pytest.mark.parametrize("seed", range(5))
def test_rows_whose_large_entries_are_all_sampled_or_none_is(seed, place):
    count = LONG_COLUMN // SAMPLE_STRIDE + 1
    Y = np.full((50, count * SAMPLE_STRIDE), -9.0)
    Y[:, place::SAMPLE_STRIDE] = np.random.default_rng(seed).normal(size=(50, count))
    assert_allclose(project_simplex(Y), sorted_simplex(Y), atol=1e-12)


def test_a_single_column_gets_the_whole_radius():
    assert_array_equal(project_simplex(np.array([[-5.0], [0.0], [1e150]]), 3.0), [[3.0], [3.0], [3.0]])


def test_a_simplex_of_radius_zero_is_a_point():
    assert_array_equal(project_simplex(np.array([[1.0, -2.0, 1.0]]), 0.0), [[0.0, 0.0, 0.0]])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_that_overflowed_do_no_harm_to_others(value):
    projected = project_simplex(np.array([[value, value], [0.0, 3.0]]))
    assert_array_equal(projected[1], [0.0, 1.0])


def test_simplex_projects_in_place():
    Y = np.random.default_rng(0).normal(size=(5, 6))
    expected = project_simplex(Y)
    project_rows_in_place(Y, 1.0)
    assert_array_equal(Y, expected)


# The l1,inf ball


@given(matrices.filter(np.any), shares)
def test_l1inf_takes_the_same_theta_from_all_live_rows(Y, share):
    radius = share * l1inf_norm(Y)
    assert_l1inf_projection(project(Y, L1InfBall(radius)), Y, radius)


@given(matrices.filter(np.any), shares)
def test_l1inf_is_the_sorted_solution(Y, share):
    radius = share * l1inf_norm(Y)
    C = project(Y, L1InfBall(radius))
    assert_allclose(C, sorted_l1inf(Y, radius), rtol=0, atol=1e-9 * np.abs(Y).sum())


@pytest.mark.parametrize("zero_rows", [0, 1, 4])
def test_l1inf_is_optimal_beside_zero_rows(zero_rows):
    rng = np.random.default_rng(zero_rows)
    for _ in range(200):
        n, m = rng.integers(1, 7, size=2)
        Y = np.concatenate([rng.normal(size=(n, m)), np.zeros((zero_rows, m))])
        radius = rng.uniform(0.05, 1) * l1inf_norm(Y)
        assert_l1inf_projection(project(Y, L1InfBall(radius)), Y, radius)


def test_l1inf_is_exact_when_rows_die_in_the_first_step():
    Y = np.array([[10, 9.6], [10, 0], [0, 0]])
    theta = 0.7 / 1.5
    expected = [[9.8 - theta / 2, 9.8 - theta / 2], [10 - theta, 0], [0, 0]]
    assert_allclose(project(Y, L1InfBall(19.1)), expected, rtol=1e-12)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("seed", range(2))
def test_l1inf_agrees_with_cvxpy(seed, share):
    Y = np.random.default_rng(seed).normal(size=(6, 8))
    radius = share * l1inf_norm(Y)
    expected = solve_with_cvxpy(Y, lambda C: [cp.sum(cp.max(cp.abs(C), axis=1)) <= radius])
    assert_allclose(project(Y, L1InfBall(radius)), expected, rtol=0, atol=1e-5)


@given(matrices, st.sampled_from([1.0, 1.5]))
def test_balls_leave_what_is_inside_alone(Y, factor):
    assert_array_equal(project(Y, L1InfBall(factor * l1inf_norm(Y))), Y)
    assert_array_equal(project(Y, L12Ball(factor * l12_norm(Y) * (1 + 1e-12))), Y)


@given(matrices.filter(np.any), shares, st.sampled_from([0.0, 1e-3, 0.5, 1.0, np.inf]))
def test_l1inf_warm_start_changes_nothing(Y, share, guess):
    radius = share * l1inf_norm(Y)
    columns = np.ascontiguousarray(Y.T)
    cold = l1inf_levels(columns, columns, 0.0, radius)
    for warm in (np.full(len(Y), guess), cold, cold[::-1].copy(), cold * 1.1):
        again = l1inf_levels(columns, columns, 0.0, radius, warm)
        assert_allclose(again, cold, rtol=0, atol=1e-10 * np.abs(Y).sum(axis=1).max())


@SCALES
def test_balls_scale_with_their_points(scale):
    Y = np.random.default_rng(0).normal(size=(6, 7))
    for ball, norm in [(L1InfBall, l1inf_norm), (L12Ball, l12_norm)]:
        radius = 0.4 * norm(Y)
        found = project(scale * Y, ball(scale * radius)) / scale
        assert_allclose(found, project(Y, ball(radius)), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("ball", "norm"), [(L1InfBall(1.0), l1inf_norm), (L12Ball(1.0), l12_norm)])
@pytest.mark.parametrize("scale", [1e8, 1e12, 1e16, 1e150])
def test_no_point_is_too_far_away_to_reach_the_ball(ball, norm, scale):
    Y = scale * np.random.default_rng(1).normal(size=(5, 7))
    assert norm(project(Y, ball)) == pytest.approx(1, abs=max(1e-12, 1e-15 * min(scale, 1e12)))


@pytest.mark.parametrize("scale", [1e3, 1e12, 1e16, 1e150])
def test_l1inf_keeps_only_the_heaviest_row_of_a_distant_point(scale):
    Y = scale * np.array([[3.0, 0.0, 0.0], [2.0, -2.0, 2.0], [-1.0, 1.0, 0.0]])
    assert_allclose(project(Y, L1InfBall(1.0)), [[0, 0, 0], [1, -1, 1], [0, 0, 0]], rtol=0, atol=1e-3)


@DTYPES
def test_balls_have_the_precision_of_their_points(dtype):
    Y = np.random.default_rng(0).normal(size=(20, 30)).astype(dtype)
    for ball, norm, exact in [(L1InfBall, l1inf_norm, sorted_l1inf), (L12Ball, l12_norm, sorted_l12)]:
        C = project(Y, ball(4.0))
        assert_allclose(C, exact(Y.astype(float), 4.0), rtol=0, atol=RTOL[dtype])
        assert norm(C.astype(float)) == pytest.approx(4, rel=RTOL[dtype])


@pytest.mark.parametrize("shape", [(1, 6), (6, 1)])
def test_balls_of_one_row_or_column(shape):
    Y = np.array([3.0, -3.0, 1.0, 0.0, -2.0, 2.5]).reshape(shape)
    for ball, norm in [(L1InfBall, l1inf_norm), (L12Ball, l12_norm)]:
        assert norm(project(Y, ball(2.0))) == pytest.approx(2)
    if shape[1] == 1:  # both balls are the l1 ball here
        soft = np.sign(Y) * exact_simplex(np.abs(Y).T, 2.0).T
        assert_allclose(project(Y, L1InfBall(2.0)), soft, rtol=0, atol=1e-12)
        assert_allclose(project(Y, L12Ball(2.0)), soft, rtol=0, atol=1e-12)
    else:
        assert_allclose(project(Y, L1InfBall(2.0)), np.clip(Y, -2, 2))
        assert_allclose(project(Y, L12Ball(2.0)), Y * 2 / np.linalg.norm(Y))


# The l1,2 ball


@given(matrices.filter(np.any), shares)
def test_l12_shortens_the_rows_along_themselves(Y, share):
    radius = share * l12_norm(Y)
    expected = sorted_l12(Y.astype(np.longdouble), radius).astype(float)
    longest = np.linalg.norm(Y, axis=1).max()
    assert_allclose(project(Y, L12Ball(radius)), expected, rtol=0, atol=1e-11 * longest)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_l12_agrees_with_cvxpy(share):
    Y = np.random.default_rng(0).normal(size=(6, 8))
    Y[2] = 0
    radius = share * l12_norm(Y)
    expected = solve_with_cvxpy(Y, lambda C: [cp.sum(cp.norm(C, 2, axis=1)) <= radius])
    assert_allclose(project(Y, L12Ball(radius)), expected, rtol=0, atol=1e-5)


# Sums of two arrays, and threads


@DTYPES
def test_balls_of_a_weighted_sum(dtype):
    P, Q = np.random.default_rng(0).normal(size=(2, 9, 6)).astype(dtype)
    total = np.ascontiguousarray(P.astype(float) + 2.5 * Q.astype(float))
    for find in (l1inf_levels, l12_factors):
        assert_allclose(find(P, Q, 2.5, 3.0), find(total, total, 0.0, 3.0), rtol=RTOL[dtype])


def test_blocks_of_rows_are_one_matrix():
    Y = np.random.default_rng(0).normal(size=(600, 900))  # too large for one block
    for ball, exact in [(L1InfBall, sorted_l1inf), (L12Ball, sorted_l12)]:
        assert_allclose(project(Y, ball(20.0)), exact(Y, 20.0), rtol=0, atol=1e-10)


@DTYPES
def test_threads_agree_to_the_last_bit(dtype):
    Y = np.random.default_rng(0).normal(size=(900, 600)).astype(dtype)
    answers = []
    for n_jobs in (1, 2):
        with thread_pool(n_jobs) as pool:
            assert (pool is SERIAL) == (n_jobs == 1)
            levels = l1inf_levels(Y, Y, 0.5, 20.0, None, pool)
            answers.append((levels, l12_factors(Y, Y, 0.5, 20.0, pool), project_simplex(Y, 1.0, pool)))
    for one, two in zip(*answers, strict=True):
        assert_array_equal(one, two)
