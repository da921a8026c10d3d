"""The LASSO on a Gram matrix against other solvers, its optimality conditions and its bounds."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from oracle import esc as plain

from smrmf.kernels.lasso import (
    drop_from_support,
    factorise,
    find_costliest,
    lasso_bounds,
    residual_products,
    solve_lasso,
    solve_rows,
    work_space,
)

FIDELITIES = [1.01, 2.0, 30.0, 100.0, 1e3]
seeds = st.integers(0, 2**32 - 1)


def unit_rows(seed, n, m, coherence=0.0):
    """Make random rows of length one; coherent ones all point much the same way."""
    return plain.unit(np.random.default_rng(seed).normal(size=(n, m)) + coherence)


def solve(x, E, fidelity, tol=1e-10, bar=-np.inf, start=None):
    """Return the coefficients and both bounds of the cost."""
    c = np.zeros(len(E)) if start is None else start.copy()
    upper, lower = solve_lasso(E @ E.T, E @ x, len(E), fidelity, tol, bar, c, work_space(len(E)))
    return c, upper, lower


def assert_optimal(x, E, c, fidelity, tol=1e-7):
    """Check the conditions that c alone, or with others of the same cost, satisfies."""
    q = fidelity * E @ (x - c @ E)
    assert np.abs(q).max() <= 1 + tol
    inside = c != 0
    assert_allclose(q[inside], np.sign(c[inside]), rtol=0, atol=tol)


# The solution


@pytest.mark.parametrize("fidelity", FIDELITIES)
@pytest.mark.parametrize(("n", "m", "coherence"), [(6, 30, 0.0), (15, 40, 1.0), (25, 8, 0.0), (12, 12, 0.5)])
def test_agrees_with_scikit_learn(fidelity, n, m, coherence):
    E = unit_rows(0, n, m, coherence)
    for x in unit_rows(1, 4, m, coherence):
        c, upper, _ = solve(x, E, fidelity)
        expected = plain.coefficients(x, E, fidelity)
        assert_allclose(upper, plain.cost(x, E, expected, fidelity), rtol=1e-8)
        assert_allclose(c, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("fidelity", [2.0, 100.0])
@pytest.mark.parametrize(("n", "m"), [(8, 20), (20, 8)])
def test_agrees_with_cvxpy(fidelity, n, m):
    E, x = unit_rows(2, n, m, 0.3), unit_rows(3, 1, m, 0.3)[0]
    c = cp.Variable(n)
    problem = cp.Problem(cp.Minimize(cp.norm1(c) + fidelity / 2 * cp.sum_squares(x - c @ E)))
    problem.solve(solver=cp.CLARABEL)
    found, upper, lower = solve(x, E, fidelity)
    assert_allclose([upper, lower], problem.value, rtol=1e-6)
    assert_allclose(found, c.value, rtol=0, atol=1e-4)


@given(seeds, st.integers(1, 30), st.integers(1, 30), st.sampled_from([0.0, 1.0, 5.0]))
def test_solution_is_optimal_and_its_value_right(seed, n, m, coherence):
    E, x = unit_rows(seed, n, m, coherence), unit_rows(seed + 1, 1, m, coherence)[0]
    for fidelity in FIDELITIES:
        c, upper, lower = solve(x, E, fidelity, tol=0.0)
        assert_optimal(x, E, c, fidelity, tol=1e-5)
        assert_allclose(upper, plain.cost(x, E, c, fidelity), rtol=1e-11)
        assert_allclose(upper, fidelity / 2 * (1 - np.sum((c @ E) ** 2)), rtol=1e-7)
        assert lower <= upper * (1 + 1e-12)
        assert 1 - 0.5 / fidelity <= upper * (1 + 1e-12)
        assert upper <= fidelity / 2 * (1 + 1e-12)


@given(seeds, st.integers(1, 20), st.integers(1, 12))
def test_the_start_does_not_matter(seed, n, m):
    E, x = unit_rows(seed, n, m), unit_rows(seed + 1, 1, m)[0]
    start = np.random.default_rng(seed).normal(size=n) * 3
    assert_allclose(solve(x, E, 50.0, start=start)[1], solve(x, E, 50.0)[1], rtol=1e-9)


@pytest.mark.parametrize("fidelity", [100.0, 1e3, 1e5])
@pytest.mark.parametrize(
    ("n", "m", "coherence"), [(200, 50, 3.0), (120, 20, 30.0), (100, 3, 0.0), (50, 1, 0.0)]
)
def test_dependent_and_equal_rows_do_not_stall(fidelity, n, m, coherence):
    E = unit_rows(0, n, m, coherence)
    E[n // 2], E[n // 3] = E[0], -E[1]
    for place, x in enumerate(unit_rows(1, 20, m, coherence)):
        start = np.random.default_rng(place).normal(size=n) if place % 2 else None
        _, upper, lower = solve(x, E, fidelity, tol=1e-5, start=start)
        assert upper - lower <= 1e-5 * upper


def test_nearly_equal_rows_are_told_apart():
    E = unit_rows(0, 10, 30)
    E = plain.unit(np.vstack([E, E + 1e-5 * unit_rows(1, 10, 30)]))
    x = plain.unit((2 * E[10] - E[0] + E[5])[None])[0]
    c, upper, lower = solve(x, E, 1e4, tol=1e-9)
    assert upper - lower <= 1e-9 * upper
    assert_optimal(x, E, c, 1e4, tol=1e-3)


# Closed forms


@given(seeds, st.integers(1, 10), st.sampled_from(FIDELITIES))
def test_one_row_has_a_closed_form(seed, m, fidelity):
    e, x = unit_rows(seed, 2, m)
    c, upper, lower = solve(x, e[None], fidelity)
    expected = max(abs(e @ x) - 1 / fidelity, 0)
    assert_allclose(c, [np.sign(e @ x) * expected], rtol=0, atol=1e-12)
    assert_allclose([upper, lower], fidelity / 2 * (1 - expected**2), rtol=1e-9)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_an_exemplar_and_its_opposite_sit_at_the_floor(sign, fidelity):
    E = unit_rows(0, 12, 7, 1.0)
    c, upper, lower = solve(sign * E[4], E, fidelity, tol=0.0)
    assert_allclose(c, sign * (1 - 1 / fidelity) * np.eye(12)[4], rtol=0, atol=1e-12)
    assert_allclose([upper, lower], 1 - 0.5 / fidelity, rtol=1e-11)


def test_what_no_row_comes_near_is_not_represented():
    E = np.eye(5)[:3]
    c, upper, lower = solve(plain.unit(np.array([[0.009, 0, 0, 1.0, 0]]))[0], E, 100.0)
    assert_array_equal(c, 0)
    assert upper == lower == 50.0


@given(seeds, st.integers(2, 15), st.integers(1, 12), st.sampled_from(FIDELITIES))
def test_the_cost_never_rises_when_a_row_is_added(seed, n, m, fidelity):
    E, x = unit_rows(seed, n, m, 0.5), unit_rows(seed + 1, 1, m, 0.5)[0]
    costs = [solve(x, E[:size], fidelity)[1] for size in range(1, n + 1)]
    assert (np.diff(costs) <= 1e-9 * costs[0]).all()


# Bounds


@given(seeds, st.integers(1, 15), st.integers(1, 15), st.sampled_from([1e-6, 0.01, 1.0, 30.0]))
def test_bounds_hold_for_any_coefficients(seed, n, m, size):
    rng = np.random.default_rng(seed)
    E, x = unit_rows(seed, n, m), unit_rows(seed + 1, 1, m)[0]
    for fidelity in (1.5, 100.0):
        best = solve(x, E, fidelity)[1]
        c = rng.normal(size=n) * size * (rng.random(n) < 0.6)
        q = np.empty(n)
        residual_products(E @ E.T, E @ x, n, c, q)
        assert_allclose(q, E @ (x - c @ E), rtol=0, atol=1e-12 * (1 + size))
        upper, lower = lasso_bounds(E @ x, n, fidelity, c, q)
        assert_allclose(upper, plain.cost(x, E, c, fidelity), rtol=1e-9)
        assert lower <= best * (1 + 1e-9)
        assert best <= upper * (1 + 1e-9)


def test_solving_stops_below_the_bar_with_a_valid_bound():
    E, x = unit_rows(0, 60, 100, 0.3), unit_rows(1, 1, 100, 0.3)[0]
    _, best, _ = solve(x, E, 100.0)
    some, upper, _ = solve(x, E, 100.0, bar=best * 1.5)
    assert best * (1 + 1e-3) < upper < best * 1.5
    assert_allclose(upper, plain.cost(x, E, some, 100.0), rtol=1e-11)
    assert_allclose(solve(x, E, 100.0, bar=best * 0.99)[1], best, rtol=1e-9)


def test_only_the_first_rows_count():
    E, x = unit_rows(0, 9, 12), unit_rows(1, 1, 12)[0]
    c = np.zeros(9)
    upper, _ = solve_lasso(E @ E.T, E @ x, 5, 100.0, 1e-10, -np.inf, c, work_space(5))
    expected, cost, _ = solve(x, E[:5], 100.0)
    assert_allclose(c[:5], expected, atol=1e-13)
    assert_array_equal(c[5:], 0)
    assert upper == pytest.approx(cost, rel=1e-13)


# Many points


def test_the_bar_rises_to_the_largest_cost_and_spares_most_points():
    E, X = unit_rows(0, 10, 20), unit_rows(1, 200, 20)
    costs = np.array([solve(x, E, 100.0)[1] for x in X])
    loose = costs * np.random.default_rng(0).uniform(1, 1.2, len(X))
    upper, C = loose.copy(), np.zeros((200, 10))
    order = np.argsort(-upper)
    bar, solved = find_costliest(E @ E.T, X @ E.T, 10, 100.0, 1e-8, -np.inf, order, C, upper)
    assert_allclose(bar, costs.max(), rtol=1e-7)
    assert solved < 100
    assert (upper >= costs * (1 - 1e-9)).all()
    assert (upper <= loose).all()
    assert_array_equal(upper[order[solved:]], loose[order[solved:]])


def test_rows_are_solved_one_by_one():
    E, X = unit_rows(0, 10, 20), unit_rows(1, 30, 20)
    C = np.random.default_rng(0).normal(size=(30, 10))
    expected = np.array([solve(x, E, 100.0, start=c)[0] for x, c in zip(X, C, strict=True)])
    solve_rows(E @ E.T, X @ E.T, 100.0, 1e-10, C)
    assert_allclose(C, expected, rtol=0, atol=1e-12)


@given(seeds, st.lists(st.floats(0, 0.999), min_size=1, max_size=8))
def test_dropping_rows_leaves_the_factor_of_the_others(seed, places):
    E = unit_rows(seed, 10, 14)
    gram, factor, support = E @ E.T, np.zeros((10, 10)), np.arange(10)
    factorise(gram, support, 0, 6, factor)
    factorise(gram, support, 6, 10, factor)
    assert_allclose(np.tril(factor), np.linalg.cholesky(gram), rtol=0, atol=1e-12)
    left = list(range(10))
    for share in places:
        place = int(share * len(left))
        drop_from_support(support, place, len(left), factor, np.empty((2, 10)))
        del left[place]
    assert_array_equal(support[: len(left)], left)
    size = len(left)
    expected = np.linalg.cholesky(gram[np.ix_(left, left)])
    assert_allclose(np.tril(factor[:size, :size]), expected, rtol=0, atol=1e-11)
