"""APMF: weighted simplex rows, scatter, the descent of W, principal axes, and a Lagrangian that falls."""

from __future__ import annotations

import tracemalloc
from functools import partial
from itertools import combinations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from paper_factors import paper_factors
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group
from sklearn.datasets import load_wine, make_blobs
from sklearn.metrics import adjusted_rand_score

from smrmf import _parallel
from smrmf._parallel import SERIAL
from smrmf._validation import Sizes
from smrmf.factorization._loop import IN_PLACE, _target
from smrmf.factorization._points import KEPT_VARIANCE, ManifoldInput, Reduction, leading_axes, prepare
from smrmf.factorization._projected import (
    ProjectedAffinity,
    ProjectedPoints,
    graph_scatter,
    smallest_axes,
    squared_graph_scatter,
)
from smrmf.factorization.apmf import APMF, projected_points
from smrmf.graph.graphs import Laplacian, simplex_graph, symmetrize
from smrmf.graph.neighbors import find_neighbors
from smrmf.kernels.prox import descend_on_stiefel, largest_eigenvalue_bound, least_squares_basis
from smrmf.kernels.simplex import solve_weighted_rows

MAY_BE_EMPTY = pytest.mark.filterwarnings("ignore:.*clusters came out empty")
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@pytest.fixture(scope="module")
def blobs():
    """Three groups in four of twelve features; the others are noise."""
    X, y = make_blobs(60, 4, centers=3, cluster_std=1.0, random_state=3)
    return np.hstack([X, np.random.default_rng(0).normal(size=(60, 8)) * 3]), y


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def orthonormal(seed, n, c):
    return np.linalg.qr(normal(seed, n, c))[0]


# Rows of S


def solve(u, d, own):
    """Solve one row by the kernel."""
    u, d = np.array([u]), np.array([d])
    S = np.full_like(u, np.nan)
    solve_weighted_rows(u, d, own, S)
    return S[0]


def by_sorting(u, d, own):
    """Solve one row by the sorted form of the reference, without entry ``own``."""
    others = np.flatnonzero(np.arange(len(u)) != own)
    u, d = u[others].astype(float), d[others].astype(float)
    order = np.argsort(d, kind="stable")
    weights = 1 / u[order]
    levels = (1 + np.cumsum(d[order] * weights)) / np.cumsum(weights)
    r = np.flatnonzero(levels > d[order])[-1]
    s = np.zeros(len(others) + 1)
    s[others] = np.maximum(levels[r] - d, 0) / u
    return s


def by_force(u, d, own):
    """Solve one row by trying every support."""
    others = [j for j in range(len(u)) if j != own]
    best, best_value = None, np.inf
    for size in range(1, len(others) + 1):
        for support in map(list, combinations(others, size)):
            weights = 1 / u[support]
            s = np.zeros(len(u))
            s[support] = ((1 + (d[support] * weights).sum()) / weights.sum() - d[support]) * weights
            value = (u * s**2).sum() / 2 + d @ s
            if s.min() >= 0 and value < best_value:
                best, best_value = s, value
    return best


lengths = st.one_of(st.integers(1, 3).map(float), st.floats(1e-3, 1e3, allow_subnormal=False))
levels = st.one_of(st.integers(-2, 2).map(float), st.floats(-50, 50, allow_subnormal=False))


@given(arrays(float, 6, elements=lengths), arrays(float, 6, elements=levels), st.integers(0, 5))
def test_a_row_is_the_best_of_all_supports(u, d, own):
    s = solve(u, d, own)
    np.testing.assert_allclose(s, by_force(u, d, own), atol=1e-8)
    assert s[own] == 0


@given(st.data(), st.integers(2, 30))
def test_a_row_is_that_of_the_sorted_form(data, n):
    u, d = data.draw(arrays(float, n, elements=lengths)), data.draw(arrays(float, n, elements=levels))
    own = data.draw(st.integers(0, n - 1))
    s = solve(u, d, own)
    np.testing.assert_allclose(s, by_sorting(u, d, own), atol=1e-8)
    assert s.sum() == pytest.approx(1)
    assert s.min() >= 0


def test_rows_agree_with_cvxpy():
    rng = np.random.default_rng(0)
    for own in range(4):
        u, d = rng.uniform(0.1, 3, 7), rng.normal(size=7)
        s = cp.Variable(7)
        loss = cp.sum(cp.multiply(u, cp.square(s))) / 2 + d @ s
        cp.Problem(cp.Minimize(loss), [s >= 0, cp.sum(s) == 1, s[own] == 0]).solve(solver=cp.CLARABEL)
        np.testing.assert_allclose(solve(u, d, own), s.value, atol=1e-5)


@DTYPES
def test_rows_keep_their_precision_and_their_own_places(dtype):
    rng = np.random.default_rng(1)
    U, D = rng.uniform(0.1, 3, (5, 9)).astype(dtype), rng.normal(size=(5, 9)).astype(dtype)
    expected = np.stack([by_sorting(U[i], D[i], 3 + i) for i in range(5)])
    S = np.empty_like(U)
    solve_weighted_rows(U, D, 3, S)
    np.testing.assert_allclose(S, expected, atol=1e-12 if dtype is np.float64 else 1e-5)
    # The result may take the place of either input.
    for target in (U, D):
        one, two = U.copy(), D.copy()
        into = one if target is U else two
        solve_weighted_rows(one, two, 3, into)
        np.testing.assert_array_equal(into, S)


@pytest.mark.timeout(600)  # it ends at once or never
def test_a_row_whose_level_rises_by_rounding_ends():
    d = 0.9996326161760329
    # Without a weight the second entry takes what the last one, whose share is at most d, leaves. In units of
    # the mean weight it has 1e-12, so the level's last bit is worth 4e-4 of a share.
    s = solve(np.array([0.0, 0.0, 0.0, 1.0]), np.array([0.0, d, 91.71275857326278, 9.158844469664374e-13]), 0)
    np.testing.assert_allclose(s, [0, 1 - d, 0, d], atol=1e-3)


# Squared distances and cluster terms of a row; point 0 is the row's own.
ROWS = {
    "two points": ([0, 2.0], [0, 1.0]),
    "all tied": ([0, 1.0, 1, 1], [0, 2.0, 2, 2]),
    "no cluster term": ([0, 1.0, 4, 9], [0, 0.0, 0, 0]),
    "one duplicate": ([0, 0.0, 1, 2], [0, 0.0, 0, 0]),
    "two duplicates": ([0, 0.0, 0, 2], [0, 0.0, 0, 0]),
    "duplicates alone": ([0, 0.0, 0, 0], [0, 0.0, 0, 0]),
    "duplicates alone, unlike": ([0, 0.0, 0, 0], [0, 0.3, 0.2, 0.2]),
    "a duplicate that is liked": ([0, 0.0, 1, 1], [0, -1e5, 0, 0]),
    "a duplicate that is disliked": ([0, 0.0, 1, 1], [0, 1e5, 0, 0]),
    "tiny distances": ([0, 1e-18, 1e-18, 2e-18], [0, 1.0, 1, 1]),
    "tiny distances, unlike": ([0, 1e-18, 1e-18, 2e-18], [0, 1.0, 2, 3]),
    "huge distances": ([0, 1e18, 1e18, 4e18], [0, 1.0, 1, 1]),
    "large cluster terms": ([0, 1.0, 2, 3], [0, 1e20, 2e20, 1e20]),
}


@DTYPES
@pytest.mark.parametrize("name", ROWS)
def test_odd_rows_are_shares(name, dtype):
    u, d = (np.asarray(values, dtype) for values in ROWS[name])
    s = solve(u, d, 0)
    assert np.isfinite(s).all()
    assert s.min() >= 0
    assert s[0] == 0
    assert s.sum() == pytest.approx(1, rel=1e-5)
    # No share of anyone would be better with anyone else.
    cost = u * s + d
    worst = cost[1:][s[1:] > 1e-6].max()
    assert worst <= cost[1:].min() + 1e-5 * max(1, np.abs(cost).max())


# The scatter and the descent of W


def dense_scatter(S, X):
    """Return ``X' L X`` for the graph of the squares of S, by its definition."""
    Q = (S**2 + (S**2).T) / 2
    X = X - X.mean(axis=0)
    return X.T @ (np.diag(Q.sum(axis=1)) - Q) @ X


def shares(seed, n):
    """Return random rows on the simplex, without a diagonal, not symmetric."""
    S = np.random.default_rng(seed).random((n, n)) ** 8
    np.fill_diagonal(S, 0)
    return S / S.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n", [2, 9, 70])
@DTYPES
def test_the_scatter_is_its_definition(n, dtype, monkeypatch):
    S, X = shares(0, n).astype(dtype), normal(1, n, 4).astype(dtype)
    expected = dense_scatter(S.astype(float), X.astype(float))
    for entries in (2**17, 64):
        monkeypatch.setattr(_parallel, "BLOCK_ENTRIES", entries)  # one block, and many
        found = squared_graph_scatter(S, X, SERIAL)
        assert found.dtype == dtype
        tol = (1e-12 if dtype is np.float64 else 1e-5) * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, atol=tol)
    pairs = (S.astype(float) ** 2 * cdist(X, X, "sqeuclidean")).sum()
    assert np.trace(expected) == pytest.approx(pairs / 2, rel=1e-5)


def test_the_scatter_of_a_given_graph_is_its_definition():
    X = normal(2, 30, 4)
    W = symmetrize(simplex_graph(find_neighbors(X, 6), 5))
    L = np.diag(W.toarray().sum(axis=1)) - W.toarray()
    np.testing.assert_allclose(graph_scatter(W, X, SERIAL), X.T @ L @ X, atol=1e-12)


@pytest.mark.parametrize("offset", [1e4, 1e7])
def test_the_scatter_of_points_far_from_the_origin_keeps_its_digits(offset):
    S, X = shares(0, 50), normal(1, 50, 4)
    centered = ProjectedPoints(X + offset, 1.0, Reduction(), SERIAL).centered
    found = squared_graph_scatter(S, centered, SERIAL)
    np.testing.assert_allclose(found, dense_scatter(S, X), atol=1e-6 * np.abs(found).max())


def test_the_smallest_axes_are_orthonormal_and_smallest():
    A = dense_scatter(shares(0, 30), normal(1, 30, 6))
    W = smallest_axes(A, 2)
    np.testing.assert_allclose(W.T @ W, np.eye(2), atol=1e-12)
    assert np.trace(W.T @ A @ W) == pytest.approx(np.linalg.eigvalsh(A)[:2].sum())


def stiefel_value(A, B, W):
    return np.trace(W.T @ A @ W) - 2 * np.trace(W.T @ B)


@given(
    st.integers(1, 8),
    st.integers(0, 2**16),
    st.sampled_from([0.0, 1e-3, 1.0, 1e3]),
    st.sampled_from([1, 3, 40]),
    st.booleans(),
)
def test_the_descent_never_rises_and_stays_orthonormal(m, seed, pull, rank, warm):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, m + 1))
    root = rng.normal(size=(rank, m)) * rng.uniform(0, 2, m) ** 4
    A, B = root.T @ root, pull * rng.normal(size=(m, p))
    W = np.linalg.qr(rng.normal(size=(m, p)))[0]
    if warm:
        W = np.linalg.eigh(A)[1][:, :p]
    turned = descend_on_stiefel(A, B, W, SERIAL)
    np.testing.assert_allclose(turned.T @ turned, np.eye(p), atol=1e-9)
    before, after = stiefel_value(A, B, W), stiefel_value(A, B, turned)
    assert after <= before + 1e-9 * (np.trace(A) + np.linalg.norm(B) + 1e-300)


@DTYPES
def test_the_descent_of_many_features_falls(dtype):
    root = normal(0, 60, 50)
    A, B = (root.T @ root).astype(dtype), normal(1, 50, 6).astype(dtype)
    W = orthonormal(2, 50, 6).astype(dtype)
    values = [stiefel_value(A, B, W)]
    for _ in range(30):
        W = descend_on_stiefel(A, B, W, SERIAL)
        values.append(stiefel_value(A, B, W))
    assert W.dtype == dtype
    assert (np.diff(values) <= 1e-5 * abs(values[0])).all()
    # With nothing to pull, the smallest axes are the best.
    np.testing.assert_allclose(W.T @ W, np.eye(6), atol=1e-5)
    assert values[-1] < values[0] / 2


def mirrored(m):
    """Return a matrix whose leading axis is hidden: its columns in a pair are as long as each other."""
    A = np.diag(np.r_[0, 0, np.linspace(0, 0.6, m - 3), 0.9])
    A[:2, :2] = [[1, -1], [-1, 1]]
    return A


@pytest.mark.parametrize("m", [5, 31, 32, 100])
def test_the_bound_is_above_the_largest_eigenvalue_and_close(m):
    root = normal(0, m, m)
    for A in (root.T @ root, np.eye(m), mirrored(m), np.diag(np.r_[np.zeros(m - 1), 1.0])):
        largest = np.linalg.eigvalsh(A)[-1]
        assert largest <= largest_eigenvalue_bound(A) <= 1.1 * largest


@pytest.mark.parametrize("m", [5, 40])
def test_nothing_has_a_bound_too(m):
    assert largest_eigenvalue_bound(np.zeros((m, m))) >= 0
    W = orthonormal(0, m, 2)
    turned = descend_on_stiefel(np.zeros((m, m)), np.zeros((m, 2)), W, SERIAL)
    np.testing.assert_allclose(turned.T @ turned, np.eye(2), atol=1e-9)


def test_the_descent_falls_where_the_leading_axis_is_hidden():
    A = mirrored(40)
    W = np.eye(40)[:, 2:3] + 0.05 * np.eye(40)[:, :1]
    W /= np.linalg.norm(W)
    for _ in range(10):
        turned = descend_on_stiefel(A, np.zeros_like(W), W, SERIAL)
        assert stiefel_value(A, 0 * W, turned) <= stiefel_value(A, 0 * W, W) + 1e-12
        W = turned


# Principal axes


@pytest.mark.parametrize("shape", [(40, 7), (8, 7), (300, 70)], ids=str)
@DTYPES
def test_points_that_fill_their_features_are_only_centred(shape, dtype):
    X = normal(0, *shape).astype(dtype)
    reduced, reduction = leading_axes(X)
    assert reduction.basis is None
    assert reduced.dtype == dtype
    np.testing.assert_allclose(reduction.center, X.mean(axis=0, dtype=float))
    np.testing.assert_allclose(reduced, X - reduction.center, atol=1e-6)


@pytest.mark.parametrize(("dtype", "ratio"), [(np.float64, 1e6), (np.float32, 1e3)])
def test_features_of_different_units_are_kept(dtype, ratio):
    X = (normal(0, 200, 5) * np.geomspace(1, 1 / ratio, 5)).astype(dtype)
    assert leading_axes(X)[1].basis is None


@pytest.mark.parametrize("shape", [(30, 80), (80, 30), (25, 25)], ids=str)
@pytest.mark.parametrize("rank", [1, 4, 20])
@pytest.mark.parametrize("offset", [0, 10])
@DTYPES
def test_axes_hold_nearly_all_of_points_that_do_not(shape, rank, offset, dtype):
    X = normal(0, shape[0], rank) * np.geomspace(1, 1e-3, rank) @ normal(1, rank, shape[1])
    X = (X + offset).astype(dtype)
    reduced, reduction = leading_axes(X)
    basis, centred = reduction.basis.astype(float), X.astype(float) - X.mean(axis=0, dtype=float)
    assert reduction.basis.dtype == reduced.dtype == dtype
    tol = 1e-10 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(basis @ basis.T, np.eye(len(basis)), atol=tol)
    assert len(basis) <= rank
    whole = np.sum(centred**2)
    assert np.sum((centred @ basis.T) ** 2) >= (KEPT_VARIANCE - 1e-6) * whole
    # One axis fewer would not do.
    assert np.sum((centred @ basis[:-1].T) ** 2) < (KEPT_VARIANCE + 1e-6) * whole
    np.testing.assert_allclose(reduced, centred @ basis.T, atol=tol * np.abs(X).max() * 10)


@DTYPES
def test_a_basis_is_carried_back_to_where_the_points_were(dtype):
    # With an indicator, the best basis of the centred points becomes that of the points.
    X = (normal(0, 30, 3) @ normal(1, 3, 50) + 100).astype(dtype)
    G = np.eye(3)[np.arange(30) % 3] / np.sqrt(10)
    reduced, reduction = leading_axes(X)
    F = (G.T @ (reduced / 7)).astype(dtype)
    restored = 7 * reduction.restore_basis(F, G, 7.0)
    held = reduced @ reduction.basis + reduction.center
    np.testing.assert_allclose(restored, G.T @ held, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1])
def test_points_that_are_all_alike_are_kept(value):
    reduced, reduction = leading_axes(np.full((5, 9), value))
    assert reduction.basis is None or len(reduction.basis) >= 1
    np.testing.assert_allclose(reduced, 0, atol=1e-12)


# The iteration


def lagrangian(X, W, E, F, G, H, S, L1, L2, lam, alpha, mu):
    """Evaluate the whole augmented Lagrangian, points as rows, in plain NumPy."""
    Y = X @ W
    A = (S + S.T) / 2
    L = np.diag(A.sum(axis=1)) - A
    value = np.linalg.norm(E, axis=1).sum() + lam * np.trace(G.T @ L @ H)
    value += alpha * np.sum(S**2 * cdist(Y, Y, "sqeuclidean"))
    value += mu / 2 * np.sum((Y - G @ F - E + L1 / mu) ** 2)
    return value + mu / 2 * np.sum((G - H + L2 / mu) ** 2)


def projected(X, p, alpha, k=5):
    """Return the affinity and the points of APMF, and the first projection."""
    first = simplex_graph(find_neighbors(X, k + 1), k)
    P = smallest_axes(graph_scatter(symmetrize(first), X, SERIAL), p)
    affinity = ProjectedAffinity(first, alpha, SERIAL)
    return affinity, ProjectedPoints(X, alpha, Reduction(), SERIAL), P


@pytest.mark.parametrize("lam", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("alpha", [0.01, 1.0])
@pytest.mark.parametrize(("mu", "m", "p"), [(0.1, 12, 6), (10.0, 12, 3), (0.1, 40, 20)])
def test_no_update_raises_the_augmented_lagrangian(lam, alpha, mu, m, p):
    X, _ = make_blobs(50, m, centers=3, cluster_std=4.0, random_state=0)
    X /= np.linalg.norm(X) / np.sqrt(3)
    n, c, rho = len(X), 3, 1.2
    affinity, points, state = projected(X, p, alpha)
    Y = X @ state
    S, term = affinity.init(Y)
    rng = np.random.default_rng(0)
    G, H = ortho_group.rvs(n, random_state=1)[:, :c], rng.random((n, c)) / np.sqrt(n)
    F, E = rng.normal(size=(c, p)), np.zeros((n, p))
    L1, L2 = np.zeros((n, p)), np.zeros((n, c))

    def value():
        return lagrangian(X, state, E, F, G, H, S, L1, L2, lam, alpha, mu)

    for _ in range(25):
        values = [value()]
        L = Laplacian(term.weights)
        fit = G @ F
        IN_PLACE.shrink(Y, fit, L1, mu, E)
        values.append(value())
        F = least_squares_basis(G, fit, SERIAL)
        values.append(value())
        H = IN_PLACE.nonnegative(G, L @ G, L2, lam, mu, None)
        values.append(value())
        G = IN_PLACE.indicator(H, L @ H, L2, fit, F, lam, mu)
        values.append(value())
        S, term = affinity.update(S, Y, G, H, lam, mu)
        values.append(value())
        target = partial(_target, G, F, E, L1, mu)
        state, (Y, _) = points.update(state, lambda now=S: now, target, mu)
        values.append(value())
        rises = np.diff(values)
        assert (rises <= 1e-6 * np.abs(values[0])).all(), rises
        np.testing.assert_allclose(state.T @ state, np.eye(p), atol=1e-8)
        np.testing.assert_allclose(Y, X @ state)
        L1 += mu * (Y - G @ F - E)
        L2 += mu * (G - H)
        mu *= rho


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_rows_of_s_solve_their_problem(offset):
    X = normal(0, 40, 6)
    rng = np.random.default_rng(1)
    G, H = ortho_group.rvs(40, random_state=2)[:, :3], rng.random((40, 3)) / np.sqrt(40)
    lam, alpha = 2.0, 0.05
    affinity, _, P = projected(X + offset, 3, alpha)
    first = (X + offset) @ P
    S, _ = affinity.update(affinity.init(first)[0], first, G, H, lam, 1.0)
    Y = X @ P
    rough = np.einsum("ijq,ijq->ij", G[:, None] - G[None], H[:, None] - H[None])
    u, d = cdist(Y, Y, "sqeuclidean"), lam / (4 * alpha) * rough
    expected = np.stack([by_sorting(u[i], d[i], i) for i in range(40)])
    np.testing.assert_allclose(S, expected, atol=1e-9 if offset == 0 else 1e-3)


@pytest.mark.parametrize("mu", [0.1, 1.0])
def test_the_projection_ends_where_the_lagrangian_is_stationary(mu):
    X, alpha = normal(0, 40, 6), 0.3
    affinity, points, P = projected(X, 3, alpha)
    T = X @ orthonormal(1, 6, 3) + 0.1 * normal(2, 40, 3)
    S, _ = affinity.init(X @ P)
    for _ in range(400):
        P, _ = points.update(P, lambda: S, lambda: T, mu)
    slope = 4 * alpha * dense_scatter(S, X) @ P + mu * X.T @ (X @ P - T)
    along = slope - P @ (P.T @ slope + slope.T @ P) / 2  # what is left within the orthonormal ones
    assert np.linalg.norm(along) <= 1e-2 * np.linalg.norm(slope)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_value_is_its_term_of_the_objective(offset):
    X = normal(0, 40, 6)
    affinity, points, P = projected(X + offset, 3, 0.7)
    G = ortho_group.rvs(40, random_state=2)[:, :3]
    first = (X + offset) @ P
    S, term = affinity.update(affinity.init(first)[0], first, G, np.maximum(G, 0), 3.0, 1.0)
    turned, placed = points.update(P, lambda: S, lambda: first, 1.0)
    Y = X @ turned
    expected = 0.7 * np.sum(S**2 * cdist(Y, Y, "sqeuclidean"))
    value = term.value + placed.value
    assert value == pytest.approx(expected, rel=1e-9 if offset == 0 else 1e-3)


def test_the_loop_begins_with_the_points_where_neighbours_differ_least():
    X = normal(0, 40, 6) + 3
    sizes = Sizes.from_parameters(40, 3, 5)
    problem = prepare(ManifoldInput(X, 1.0, sizes), leading_axes, np.random.RandomState(0), SERIAL)
    first = projected_points(APMF(3, n_components=2), problem)
    np.testing.assert_allclose(first.X, (X - X.mean(axis=0)) @ first.state, atol=1e-12)
    W = symmetrize(simplex_graph(find_neighbors(X, 11), 5)).toarray()
    scatter = first.X.T @ (np.diag(W.sum(axis=0)) - W) @ first.X
    whole = X.T @ (np.diag(W.sum(axis=0)) - W) @ X
    np.testing.assert_allclose(np.trace(scatter), np.linalg.eigvalsh(whole)[:2].sum())


# What a fit gives


def projected_basis(model, X):
    """Return the basis of the centred and projected points."""
    G, F = paper_factors(model)
    return (F - np.outer(G.sum(axis=0), X.mean(axis=0))) @ model.projection_


def raw_objective(model, X, lam, alpha):
    """Evaluate the objective of a fit in the units of the data, from its fitted attributes alone."""
    S, (G, _), W = model.representation_.T, paper_factors(model), model.projection_
    Y = (X - X.mean(axis=0)) @ W
    loss = np.linalg.norm(Y - G @ projected_basis(model, X), axis=1).sum()
    rough = (S * cdist(G, G, "sqeuclidean")).sum() / 2
    return loss + lam * rough + alpha * np.sum(S**2 * cdist(Y, Y, "sqeuclidean"))


@MAY_BE_EMPTY
@pytest.mark.filterwarnings("ignore:APMF did not converge")  # which does not matter here
@pytest.mark.parametrize("penalty", ["auto", 0.1])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("wide", [False, True])
def test_given_weights_are_those_of_the_objective_in_raw_units(blobs, penalty, unit, wide):
    X = (normal(0, 30, 50) if wide else blobs[0]) * unit
    lam, alpha = 2.0 * unit, 0.02 / unit
    options = {"penalty": penalty if penalty == "auto" else penalty / unit, "random_state": 0}
    model = APMF(3, manifold_weight=lam, projection_weight=alpha, **options).fit(X)
    assert model.objective_ == pytest.approx(raw_objective(model, X, lam, alpha), rel=1e-7)


@pytest.mark.parametrize("unit", [1e-150, 1e-6, 1e6, 1e90])
def test_weights_in_raw_units_change_with_the_unit(blobs, unit):
    plain, scaled = (
        APMF(3, manifold_weight=2.0 * factor, projection_weight=0.02 / factor, random_state=0).fit(
            blobs[0] * factor
        )
        for factor in (1.0, unit)
    )
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)
    np.testing.assert_allclose(scaled.embedding_, plain.embedding_, atol=1e-6)
    np.testing.assert_allclose(scaled.representation_, plain.representation_, atol=1e-6)
    np.testing.assert_allclose(scaled.objective_ / unit, plain.objective_, rtol=1e-6)


SHAPES = {
    "tall": normal(0, 60, 12),
    "wide": normal(1, 25, 60),
    "square": normal(2, 30, 30),
    "low rank": normal(3, 60, 4) @ normal(4, 4, 12),
    "wide and positive": np.random.default_rng(5).random((25, 60)),
}


@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("name", SHAPES)
def test_the_projection_is_orthonormal_and_not_degenerate(name, share):
    X = SHAPES[name]
    model = APMF(3, n_components=share, random_state=0).fit(X)
    W = model.projection_
    assert W.shape == (X.shape[1], model.n_components_)
    np.testing.assert_allclose(W.T @ W, np.eye(model.n_components_), atol=1e-8)
    # Components lie where the projected points do.
    centred = X - X.mean(axis=0)
    G, F = paper_factors(model)
    F = F - np.outer(G.sum(axis=0), X.mean(axis=0))
    np.testing.assert_allclose(F @ W @ W.T, F, atol=1e-8 * np.abs(model.components_).max())
    assert np.linalg.norm(centred @ W) > 0.02 * np.linalg.norm(centred)


def test_constraints_hold_at_the_end(blobs):
    model = APMF(3, random_state=0).fit(blobs[0])
    (G, _), S = paper_factors(model), model.representation_.T
    assert model.converged_
    np.testing.assert_allclose(G.T @ G, np.eye(3), atol=1e-8)
    assert G.min() > -1e-2 * np.abs(G).max()
    np.testing.assert_allclose(S.sum(axis=1), 1, atol=1e-8)
    assert S.min() >= 0
    assert (S.diagonal() == 0).all()
    np.testing.assert_allclose(model.affinity_, (S + S.T) / 2, atol=1e-12)
    assert len(model.objective_history_) == model.n_iter_
    # The basis is near the best one for the projected points.
    Y = (blobs[0] - blobs[0].mean(axis=0)) @ model.projection_
    best = np.linalg.lstsq(G, Y, rcond=None)[0]
    loss, least = (np.sum((Y - G @ F) ** 2) for F in (projected_basis(model, blobs[0]), best))
    assert loss <= 1.5 * least


def test_clusters_hidden_among_noise_are_found(blobs):
    X, y = blobs
    assert adjusted_rand_score(y, APMF(3, random_state=0).fit(X).labels_) > 0.9


@pytest.mark.parametrize(("share", "count"), [(0.5, 6), (0.2, 2), (1.0, 12), (1e-3, 1), (1, 1), (12, 12)])
def test_components_are_a_share_or_a_count(blobs, share, count):
    assert APMF(3, n_components=share, random_state=0).fit(blobs[0]).n_components_ == count


@pytest.mark.parametrize(
    ("X", "count", "limit"),
    [(normal(0, 30, 8), 9, "8"), (normal(0, 10, 40), 11, "the")],
    ids=["tall", "wide"],
)
def test_too_many_components_are_refused(X, count, limit):
    model = APMF(3, n_components=count)
    before = set(vars(model))
    with pytest.raises(ValueError, match=f"n_components={count} is more than .*{limit}.* share") as raised:
        model.fit(X)
    assert "\n" not in str(raised.value)
    assert set(vars(model)) == before


def test_too_many_components_are_refused_before_a_number_is_drawn():
    generator = np.random.RandomState(0)
    model = APMF(3, n_components=9, init="kmeans", random_state=generator)
    with pytest.raises(ValueError, match="n_components=9 is more than"):
        model.fit(normal(0, 30, 8))
    assert generator.randint(10**9) == np.random.RandomState(0).randint(10**9)


@pytest.mark.parametrize("wide", [False, True])
def test_the_papers_settings_run(wide):
    X = load_wine().data[::3]
    if wide:
        X = np.hstack([X, np.abs(normal(0, len(X), 100))])
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    settings = APMF.paper_settings()
    assert settings["penalty_growth"] == 1.5
    model = APMF(3, **settings, random_state=0).fit(X)
    assert model.n_iter_ == 30
    assert model.objective_ == pytest.approx(raw_objective(model, X, 0.01, 0.01), rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(200, 6), (40, 60)], ids=str)
@pytest.mark.parametrize("offset", [0, 1e3, 1e5])
def test_the_origin_does_not_hide_the_clusters(shape, offset, dtype):
    X, y = make_blobs(*shape, centers=3, random_state=1)
    model = APMF(3, random_state=0).fit((X + offset).astype(dtype))
    assert adjusted_rand_score(y, model.labels_) == 1.0


@pytest.mark.filterwarnings("ignore::smrmf.inspection.ColumnsWarning")
def test_single_precision_projects_to_as_many_coordinates():
    X = load_wine().data  # features of very different units, none of them dependent
    wide, narrow = APMF(3, random_state=0).fit(X), APMF(3, random_state=0).fit(X.astype(np.float32))
    assert narrow.n_components_ == wide.n_components_ == 6


def test_without_a_manifold_term_neighbours_count_by_distance(blobs):
    X, _ = blobs
    model = APMF(3, manifold_weight=0, random_state=0, max_iter=5, tol=0).fit(X)
    S = model.representation_.T
    assert np.isfinite(model.objective_)
    np.testing.assert_allclose(S.sum(axis=1), 1)


def test_no_more_than_four_square_arrays_are_held():
    n = 1500
    X, _ = make_blobs(n, 10, centers=5, random_state=0)
    model = APMF(5, random_state=0, tol=1e-2).fit(X[:300])  # compiles what is needed
    tracemalloc.start()
    try:
        model.fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Four are what it asks the memory for; the rest are blocks.
    assert peak <= 4.3 * n * n * X.itemsize


DATA = normal(0, 30, 4)
ODD = {
    "constant": np.ones((20, 3)),
    "constant, many features": np.ones((20, 40)),
    "all zero": np.zeros((20, 3)),
    "all zero, many features": np.zeros((50, 40)),
    "one feature": np.linspace(0, 1, 25)[:, None],
    "duplicates": np.repeat(DATA[:8], 5, axis=0),
    "two groups of duplicates": np.repeat([[0.0, 1.0], [4.0, 5.0]], 15, axis=0),
    "as many points as clusters": DATA[:3],
    "integers": np.arange(60).reshape(20, 3) % 7,
    "far from the origin": DATA + 1e6,
    "very far from the origin": DATA + 1e8,
    "one huge outlier": np.vstack([DATA, [[1e9, 0, 0, 0]]]),
    "wide": normal(1, 12, 400),
    "boolean": DATA > 0,
}


@MAY_BE_EMPTY
@pytest.mark.filterwarnings("ignore:APMF did not converge")  # points all alike have nothing to settle
@pytest.mark.filterwarnings("ignore:Only . of 3 clusters were found, as X has only")
@DTYPES
@pytest.mark.parametrize("name", ODD)
def test_odd_data_work(name, dtype):
    data = ODD[name].astype(dtype)
    model = APMF(3, random_state=0).fit(data)
    np.testing.assert_array_equal(np.unique(model.labels_), np.arange(min(3, len(np.unique(data, axis=0)))))
    for attribute in ("embedding_", "components_", "objective_history_", "exemplar_scores_", "projection_"):
        assert np.isfinite(getattr(model, attribute)).all(), attribute
    assert model.objective_history_.min() >= 0  # a sum of lengths and squares
    np.testing.assert_allclose(model.representation_.sum(axis=0), 1, rtol=1e-5)
    assert np.isfinite(model.transform(data)).all()
