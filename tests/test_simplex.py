"""The column problem of f-SMRMF on whole columns and on candidate lists."""

from __future__ import annotations

from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from oracle.projections import water_filling

from smrmf.graph.exemplars import keep_largest
from smrmf.kernels.distances import (
    LatentPoints,
    gather_kernel_lists,
    gather_roughness_lists,
    latent_kernel_lists,
    latent_roughness_lists,
    latent_squared_lists,
)
from smrmf.kernels.simplex import neighbor_smoothness, solve_columns

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])

smooth = st.floats(-10, 10, allow_subnormal=False)
tied = st.integers(-2, 2).map(float)
columns = st.one_of(arrays(float, st.integers(1, 12), elements=e) for e in (smooth, tied))
deltas = st.sampled_from([1e-9, 0.01, 0.5, 1.0, 7.0, 1e3])


def solve_table(table, delta, outside=np.inf):
    """Solve one list per row; return the solutions, the levels and the number of certificates."""
    n, width = table.shape
    z, level = np.empty(table.size, table.dtype), np.empty(n, table.dtype)
    bounds = np.broadcast_to(np.asarray(outside, table.dtype), n).copy()
    indptr = np.arange(0, table.size + 1, width)
    smoothness = np.broadcast_to(np.asarray(delta, table.dtype), n).copy()
    certified = solve_columns(indptr, table.ravel(), smoothness, bounds, z, level)
    return z.reshape(n, width), level, certified


def solve_column(d, delta):
    """Solve one whole column."""
    return solve_table(d[None, :], delta)[0][0]


def ascending(seed, n, width, dtype=float):
    """Draw sorted rows whose entries are well apart from each other."""
    steps = np.random.default_rng(seed).uniform(0.1, 1, size=(n, width))
    return np.cumsum(steps, axis=1).astype(dtype)


def ragged(seed, n, first, n_columns):
    """Draw candidate lists of different lengths for some columns, one of them empty."""
    rng = np.random.default_rng(seed)
    lists = [rng.permutation(n)[: (0 if j == 1 else rng.integers(1, n))] for j in range(n_columns)]
    indptr = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
    owners = np.repeat(np.arange(first, first + n_columns), np.diff(indptr))
    return indptr, np.concatenate(lists), owners


# One column


@given(columns, deltas)
def test_solution_is_that_of_water_filling(d, delta):
    z = solve_column(d, delta)
    assert np.all(z >= 0)
    assert z.sum() == pytest.approx(1)
    assert_allclose(z, water_filling(d, delta), rtol=0, atol=1e-6 if delta < 1e-6 else 1e-11)


@given(columns, st.sampled_from([0.01, 1.0, 1e3]))
def test_gradient_is_least_and_equal_on_the_support(d, delta):
    z = solve_column(d, delta)
    gradient = d + delta * z
    tol = 1e-11 * (delta + np.abs(d).max())
    assert_allclose(gradient[z > 0], gradient.min(), rtol=0, atol=tol)
    assert np.all(gradient >= gradient[z > 0].max() - tol)


@given(columns, deltas)
def test_ties_share_alike_and_smaller_entries_get_more(d, delta):
    order = np.argsort(d)
    rise, fall = np.diff(d[order]), np.diff(solve_column(d, delta)[order])
    assert np.all(fall <= 0)
    assert np.all(fall[rise == 0] == 0)


@pytest.mark.parametrize("delta", [0.05, 1.0, 30.0])
def test_solution_agrees_with_cvxpy(delta):
    d = np.random.default_rng(0).normal(size=15)
    z = cp.Variable(15)
    objective = cp.Minimize(d @ z + delta / 2 * cp.sum_squares(z))
    cp.Problem(objective, [z >= 0, cp.sum(z) == 1]).solve(solver=cp.CLARABEL)
    assert_allclose(solve_column(d, delta), z.value, rtol=0, atol=1e-5)


@DTYPES
def test_tiny_delta_takes_the_nearest_and_huge_delta_takes_all(dtype):
    d = np.array([3.0, 1.0, 1.0, 1e6, -1e6, -1e6], dtype)
    for delta, expected in [(1e-30, [0, 0, 0, 0, 0.5, 0.5]), (1e30, [1 / 6] * 6)]:
        z = solve_column(d, delta)
        assert z.dtype == dtype
        assert_allclose(z, expected, rtol=1e-6)


@pytest.mark.parametrize("delta", [np.finfo(float).tiny, 1e-150, 1.0, 1e150])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e12, 1e150])
def test_extreme_columns_stay_on_the_simplex(delta, scale):
    d = scale * np.array([1.0, -1.0, 0.5, -1.0])
    z = solve_column(d, delta)
    assert_allclose(z.sum(), 1, rtol=1e-14)
    assert z[1] == z[3] >= z[2] >= z[0] >= 0


def test_a_lonely_candidate_takes_everything():
    assert_array_equal(solve_column(np.array([7.0]), 0.01), [1.0])


# The delta that gives k neighbours


@DTYPES
@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_smoothness_gives_exactly_k_neighbors(dtype, k):
    d = ascending(k, 400, 10, dtype)
    z, _, _ = solve_table(d, neighbor_smoothness(d, k))
    assert np.all(z[:, :k] > 0)
    assert_array_equal(z[:, k:], np.zeros((400, 10 - k)))


@DTYPES
@pytest.mark.parametrize("k", [1, 4])
def test_smoothness_of_the_last_neighbor_still_gives_k(dtype, k):
    d = ascending(0, 50, k, dtype)
    delta = neighbor_smoothness(d, k)
    assert delta.dtype == dtype
    assert np.all(solve_table(d, delta)[0] > 0)


@DTYPES
@pytest.mark.parametrize("width", [3, 4])
def test_smoothness_of_ties_spreads_evenly(dtype, width):
    d = np.array([[0.0] * width, [2.5] * width], dtype)
    delta = neighbor_smoothness(d, 3)
    assert np.all(delta > 0)
    assert_allclose(solve_table(d, delta)[0], 1 / width, rtol=1e-6)


@given(st.sampled_from([1e-150, 1e-3, 1e12, 1e150]), st.integers(1, 6))
def test_smoothness_scales_with_the_dissimilarities(scale, k):
    d = ascending(0, 5, 7)
    assert_allclose(neighbor_smoothness(scale * d, k), scale * neighbor_smoothness(d, k), rtol=1e-12)
    assert_allclose(neighbor_smoothness(d + 5, k), neighbor_smoothness(d, k), rtol=1e-12)


# Candidate lists


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.01, 0.3, 1.0, 10.0]))
def test_certificate_holds_exactly_when_the_list_is_long_enough(seed, delta):
    rng = np.random.default_rng(seed)
    full = np.sort(rng.normal(size=(1, 20)))
    for size in range(1, 20):
        z, level, certified = solve_table(np.ascontiguousarray(full[:, :size]), delta, full[0, size])
        whole = solve_column(full[0], delta)
        exact = np.allclose(np.pad(z[0], (0, 20 - size)), whole, rtol=0, atol=1e-13)
        assert bool(certified) == exact == bool(level[0] <= full[0, size])


@DTYPES
def test_ragged_lists_are_solved_one_by_one(dtype):
    rng = np.random.default_rng(0)
    lengths = np.array([3, 1, 12, 5])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    d = rng.normal(size=indptr[-1]).astype(dtype)
    delta = np.array([0.1, 1.0, 5.0, 0.7], dtype)
    z, level = np.empty_like(d), np.empty_like(delta)
    outside = np.array([np.inf, -np.inf, np.inf, np.inf], dtype)
    assert solve_columns(indptr, d, delta, outside, z, level) == 3
    for j, (start, stop) in enumerate(pairwise(indptr)):
        assert_array_equal(z[start:stop], solve_column(d[start:stop], delta[j]))
        water = np.maximum(level[j] - d[start:stop].astype(float), 0).sum()
        assert water == pytest.approx(delta[j], rel=1e-5)


@pytest.mark.parametrize("size", range(1, 10))
def test_the_smallest_entry_is_found_at_any_place_beside_huge_ones(size):
    for place in range(size):
        d = np.full(size, 1e20)
        d[place] = 0
        assert_array_equal(solve_column(d, 1.0), np.arange(size) == place)


# Latent lists and the graph's largest entries


@DTYPES
@pytest.mark.parametrize("first", [0, 4])
def test_latent_lists_are_entries_of_the_dense_formulas(dtype, first):
    rng = np.random.default_rng(first)
    G, H = rng.normal(size=(2, 10, 3)).astype(dtype)
    gamma = rng.uniform(0.5, 2, 10).astype(dtype)
    squared = np.sum((G[:, None].astype(float) - H[None]) ** 2, axis=2)
    K = np.exp(-squared / (2 * gamma[:, None] ** 2))
    indptr, indices, owners = ragged(first, 10, first, 5)
    rtol = 1e-5 if dtype == np.float32 else 1e-12
    out = np.empty(len(indices), dtype)
    latent_squared_lists(indptr, indices, first, G, H, out)
    assert_allclose(out, squared[indices, owners], rtol=rtol)
    decay = -0.5 / gamma**2
    latent_kernel_lists(indptr, indices, first, G, H, decay, out)
    assert_allclose(out, -(K + K.T)[indices, owners] / 2, rtol=rtol)
    columns = slice(first, first + len(indptr) - 1)
    products, norms = (H[columns] @ G.T, G[columns] @ H.T), ((G * G).sum(axis=1), (H * H).sum(axis=1))
    gather_kernel_lists(indptr, indices, first, *products, LatentPoints(*norms, decay), out)
    assert_allclose(out, -(K + K.T)[indices, owners] / 2, rtol=10 * rtol)
    roughness = np.einsum("ijq,ijq->ij", *(M[:, None] - M[None] for M in (G, H))) / 2
    latent_roughness_lists(indptr, indices, first, G, H, out)
    assert_allclose(out, roughness[indices, owners], rtol=rtol, atol=rtol)
    gather_roughness_lists(indptr, indices, first, sum(products), (G * H).sum(axis=1), out)
    assert_allclose(out, roughness[indices, owners], rtol=rtol, atol=10 * rtol)


entries = st.tuples(st.integers(-1, 3), st.sampled_from([0.0, 1e-12, -1e-12]), st.integers(0, 2))


@given(st.lists(st.lists(entries, max_size=6), min_size=1, max_size=5), st.integers(0, 7))
def test_largest_positive_entries_are_kept_and_of_equals_the_likelier_then_the_earlier(rows, limit):
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    table = np.array([entry for row in rows for entry in row], float).reshape(-1, 3)
    data = table[:, 0] + table[:, 1] * (table[:, 0] != 0)
    keep = np.zeros(len(data), bool)
    keep_largest(indptr, data, table[:, 2].copy(), limit, 1e-9, keep)
    expected = []
    for row in rows:
        ranked = sorted(range(len(row)), key=lambda p: (-row[p][0], row[p][2], p))[:limit]
        expected += [p in ranked and row[p][0] > 0 for p in range(len(row))]
    assert_array_equal(keep, np.array(expected, bool))


@DTYPES
def test_long_rows_of_equals_keep_the_earliest(dtype):
    rng = np.random.default_rng(0)
    data, unlikeness = rng.integers(1, 3, 200).astype(dtype), rng.integers(0, 3, 200).astype(dtype)
    keep = np.zeros(200, bool)
    keep_largest(np.array([0, 200]), data, unlikeness, 50, 1e-6, keep)
    assert_array_equal(np.flatnonzero(keep), np.sort(np.lexsort((unlikeness, -data))[:50]))
