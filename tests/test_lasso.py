"""The LASSO kernels against scikit-learn and cvxpy, their bounds, and the laws of the cost."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from plain_esc import plain_costs

from smrmf.kernels.lasso import (
    lasso_bounds,
    raise_bar,
    residual_products,
    solve_lasso,
    solve_rows,
    work_space,
)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def problem(seed, n_exemplars, n_features, n_points=1, coherent=False):
    rng = np.random.default_rng(seed)
    E = rng.normal(size=(n_exemplars, n_features))
    if coherent:  # rows that hardly differ, and one twice
        E = E[:1] + 1e-3 * E
        E[-1] = E[0]
    E = unit(E)
    return E, unit(rng.normal(size=(n_points, n_features)) + 0.5 * E[0])


def solve(E, x, fidelity, tol=1e-10, start=None):
    c = np.zeros(len(E)) if start is None else start.copy()
    bounds = solve_lasso(E @ E.T, E @ x, len(E), fidelity, tol, -np.inf, c, work_space(len(E)))
    return c, bounds


def cost(E, x, c, fidelity):
    return np.abs(c).sum() + fidelity / 2 * np.sum((x - c @ E) ** 2)


@pytest.mark.parametrize("coherent", [False, True])
@pytest.mark.parametrize("fidelity", [1.5, 10.0, 100.0, 1e4])
@pytest.mark.parametrize("shape", [(1, 5), (4, 10), (12, 5), (30, 30)])
def test_the_cost_is_that_of_cvxpy(shape, fidelity, coherent):
    E, points = problem(shape[0], *shape, coherent=coherent)
    c, (upper, lower) = solve(E, points[0], fidelity)
    v = cp.Variable(shape[0])
    least = cp.Problem(cp.Minimize(cp.norm1(v) + fidelity / 2 * cp.sum_squares(points[0] - E.T @ v))).solve(
        solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10
    )
    assert upper == pytest.approx(least, rel=1e-6)
    assert upper == pytest.approx(cost(E, points[0], c, fidelity), rel=1e-9)
    assert lower <= least * (1 + 1e-8)


@pytest.mark.parametrize("fidelity", [2.0, 100.0])
def test_all_rows_agree_with_least_angle_regression(fidelity):
    E, points = problem(3, 15, 20, n_points=40)
    coefficients = np.zeros((40, 15))
    solve_rows(E @ E.T, points @ E.T, fidelity, 1e-10, coefficients)
    found = [cost(E, x, c, fidelity) for x, c in zip(points, coefficients, strict=True)]
    assert_allclose(found, plain_costs(points, E, fidelity), rtol=1e-7)


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(2, 12), st.sampled_from([1.2, 10.0, 300.0]))
def test_the_bounds_bracket_the_least_cost_at_any_coefficients(seed, n_exemplars, n_features, fidelity):
    E, points = problem(seed, n_exemplars, n_features)
    anywhere = np.random.default_rng(seed).normal(size=n_exemplars)
    q = np.empty(n_exemplars)
    residual_products(E @ E.T, E @ points[0], n_exemplars, anywhere, q)
    upper, lower = lasso_bounds(E @ points[0], n_exemplars, fidelity, anywhere, q)
    least = solve(E, points[0], fidelity)[1][0]
    assert lower <= least * (1 + 1e-9)
    assert upper >= least * (1 - 1e-9)
    assert upper == pytest.approx(cost(E, points[0], anywhere, fidelity), rel=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(2, 12), st.sampled_from([1.2, 10.0, 300.0]))
def test_one_more_exemplar_never_costs_more(seed, n_exemplars, n_features, fidelity):
    E, points = problem(seed, n_exemplars, n_features)
    costs = [solve(E[:size], points[0], fidelity)[1][0] for size in (n_exemplars - 1, n_exemplars)]
    assert costs[1] <= costs[0] * (1 + 1e-9)
    assert 1 - 0.5 / fidelity - 1e-9 <= costs[1] <= fidelity / 2 + 1e-9


@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([1.2, 10.0, 300.0]))
def test_the_cost_is_what_the_exemplars_leave(seed, n_exemplars, fidelity):
    E, points = problem(seed, n_exemplars, 6)
    c, (upper, _) = solve(E, points[0], fidelity, tol=1e-12)
    assert upper == pytest.approx(fidelity / 2 * (1 - np.sum((c @ E) ** 2)), abs=1e-6 * fidelity)


@pytest.mark.parametrize("fidelity", [1.2, 10.0, 300.0])
def test_one_exemplar_has_a_closed_form(fidelity):
    E, points = problem(8, 1, 4)
    match = max(abs(float(E[0] @ points[0])) - 1 / fidelity, 0)
    assert solve(E, points[0], fidelity)[1][0] == pytest.approx(fidelity / 2 * (1 - match**2))
    c, (upper, _) = solve(E, E[0], fidelity)
    assert upper == pytest.approx(1 - 0.5 / fidelity)
    assert_allclose(c, 1 - 1 / fidelity)


def test_a_start_changes_nothing():
    E, points = problem(1, 20, 10)
    cold, (cold_cost, _) = solve(E, points[0], 50.0)
    warm, (warm_cost, _) = solve(E, points[0], 50.0, start=np.random.default_rng(0).normal(size=20))
    assert warm_cost == pytest.approx(cold_cost, rel=1e-9)
    assert_allclose(points[0] - warm @ E, points[0] - cold @ E, atol=1e-5)


def test_a_bar_ends_the_solution_early_with_a_valid_bound():
    E, points = problem(2, 30, 20)
    least = solve(E, points[0], 100.0)[1][0]
    c = np.zeros(30)
    bar = (least + 50) / 2
    upper, _ = solve_lasso(E @ E.T, E @ points[0], 30, 100.0, 1e-10, bar, c, work_space(30))
    assert least <= upper < bar
    assert upper == pytest.approx(cost(E, points[0], c, 100.0))


def test_the_largest_cost_is_found_with_few_solutions():
    E, points = problem(4, 10, 8, n_points=60)
    exact = np.array([solve(E, x, 100.0)[1][0] for x in points])
    upper = exact * (1 + 0.05 * np.random.default_rng(0).random(60))
    rows = np.argsort(-upper)
    bar, solved = raise_bar(E @ E.T, points @ E.T, 10, 100.0, 1e-8, -np.inf, rows, np.zeros((60, 10)), upper)
    assert bar == pytest.approx(exact.max(), rel=1e-7)
    assert solved < 40
    assert (upper >= exact * (1 - 1e-9)).all()
