"""A2DM2 reaches the optimum of (4.14), whatever the ball and the dissimilarity."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracle.projections import sorted_l1inf, sorted_l12
from scipy.spatial.distance import cdist

from smrmf._parallel import SERIAL, thread_pool
from smrmf.factorization._row_sparse import a2dm2
from smrmf.kernels.balls import L1InfBall, L12Ball, Unconstrained, WeightedSum

DELTA = 0.01
N = 30
BALLS = [
    L1InfBall(2.0),
    L1InfBall(4.5),
    L1InfBall(1.0),
    L12Ball(6.6),
    L12Ball(11.0),
    Unconstrained(),
]


def blobs(seed, n=N):
    rng = np.random.default_rng(seed)
    centers = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 5.0]])
    return centers[np.arange(n) % 3] + rng.normal(size=(n, 2))


def euclidean(X):
    D = cdist(X, X)
    return D / D.max()


def kernel(X, k=4):
    D = cdist(X, X, "sqeuclidean")
    K = np.exp(-D / (2 * np.sort(D, axis=1)[:, k : k + 1]))
    return -(K + K.T) / 2


def norm(ball, Zt):
    """Evaluate the norm of the ball, whose groups are the columns of our storage."""
    if isinstance(ball, L1InfBall):
        return np.abs(Zt).max(axis=0).sum()
    return np.linalg.norm(Zt, axis=0).sum()


def optimum(D, ball):
    """Solve ``min <D,Z> + delta ||Z||^2`` over the simplex and the ball; return Z transposed."""
    Z = cp.Variable(D.shape)
    constraints = [Z >= 0, cp.sum(Z, axis=0) == 1]
    if isinstance(ball, L1InfBall):
        constraints.append(cp.sum(cp.max(Z, axis=1)) <= ball.radius)
    elif isinstance(ball, L12Ball):
        constraints.append(cp.sum(cp.norm(Z, 2, axis=1)) <= ball.radius)
    objective = cp.sum(cp.multiply(D, Z)) + DELTA * cp.sum_squares(Z)
    cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL)
    return Z.value.T


def objective(D, Zt):
    return np.vdot(D, Zt) + DELTA * np.sum(Zt**2)


@pytest.mark.parametrize("dissimilarity", [euclidean, kernel])
@pytest.mark.parametrize("ball", BALLS, ids=str)
def test_start_is_the_optimum_of_cvxpy(ball, dissimilarity):
    D = dissimilarity(blobs(0))
    start = a2dm2(D, ball, SERIAL, delta=DELTA, tol=1e-7, max_iter=20000)
    best = optimum(D, ball)
    assert start.converged
    assert objective(D, start.Z) == pytest.approx(objective(D, best), abs=1e-4)
    assert_allclose(start.Z, best, rtol=0, atol=5e-4)
    assert_allclose(start.C, start.Z, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dissimilarity", [euclidean, kernel])
@pytest.mark.parametrize("ball", BALLS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_z_is_on_the_simplex_and_c_in_the_ball(ball, dissimilarity, dtype):
    D = dissimilarity(blobs(1)).astype(dtype)
    start = a2dm2(D, ball, SERIAL, delta=DELTA)
    assert start.Z.dtype == start.C.dtype == dtype
    assert not start.multiplier.any()
    assert np.all(start.Z >= 0)
    assert_allclose(start.Z.sum(axis=1), 1, rtol=0, atol=1e-5)
    if not isinstance(ball, Unconstrained):
        assert norm(ball, start.C.astype(float)) <= ball.radius * (1 + 1e-5)


@pytest.mark.parametrize("ball", BALLS, ids=str)
@pytest.mark.parametrize("level", [0.0, 1.0, -1.0])
def test_equal_dissimilarities_spread_every_point_evenly(ball, level):
    start = a2dm2(np.full((N, N), level), ball, SERIAL, delta=DELTA, tol=1e-8, max_iter=5000)
    assert start.converged
    assert_allclose(start.Z, 1 / N, rtol=0, atol=1e-5)


def test_duplicates_share_one_exemplar_budget():
    D = euclidean(np.repeat(blobs(2, 3), 8, axis=0))
    ball = L1InfBall(3.0)
    start = a2dm2(D, ball, SERIAL, delta=DELTA, tol=1e-7, max_iter=5000)
    assert objective(D, start.Z) == pytest.approx(objective(D, optimum(D, ball)), abs=1e-5)
    for group in range(3):
        rows = start.Z[8 * group : 8 * group + 8, 8 * group : 8 * group + 8]
        assert_allclose(rows, 1 / 8, rtol=0, atol=1e-4)


def test_a_radius_of_one_leaves_every_column_the_same():
    Z = a2dm2(euclidean(blobs(3)), L1InfBall(1.0), SERIAL, tol=1e-7, max_iter=5000).Z
    assert_allclose(Z, np.broadcast_to(Z[0], Z.shape), rtol=0, atol=1e-5)


def test_a_single_point_is_its_own_exemplar():
    start = a2dm2(np.zeros((1, 1)), L1InfBall(1.0), SERIAL)
    assert_allclose(start.Z, 1)
    assert_allclose(start.C, 1, rtol=0, atol=1e-5)


def test_limit_of_iterations_is_reported():
    start = a2dm2(euclidean(blobs(0)), L1InfBall(4.5), SERIAL, tol=1e-12, max_iter=3)
    assert (start.n_iter, start.converged) == (3, False)
    assert_allclose(start.Z.sum(axis=1), 1)
    assert norm(L1InfBall(4.5), start.C) <= 4.5 * (1 + 1e-12)


def test_threads_agree_to_the_last_bit():
    D = euclidean(blobs(0, 450))
    starts = []
    for n_jobs in (1, 2):
        with thread_pool(n_jobs) as pool:
            starts.append(a2dm2(D, L1InfBall(20.0), pool, max_iter=15))
    assert_array_equal(starts[0].Z, starts[1].Z)
    assert_array_equal(starts[0].C, starts[1].C)


@pytest.mark.parametrize("warmed", [False, True])
@pytest.mark.parametrize("scale", [0.4, 1.0, 100.0])
@pytest.mark.parametrize(
    ("ball", "project"),
    [
        (L1InfBall(3.0), sorted_l1inf),
        (L12Ball(3.0), sorted_l12),
        (Unconstrained(), lambda Y, radius: Y),
    ],
    ids=["l1,inf", "l1,2", "whole space"],
)
def test_shrinkage_of_a_ball_is_its_projection(ball, project, scale, warmed):
    P, Q = np.random.default_rng(0).normal(size=(2, 12, 9))
    warm = ball.shrinkage(WeightedSum(P, Q, 0.1), 2.0, None, SERIAL) if warmed else None
    found = ball.shrinkage(WeightedSum(P, Q, 0.5), scale, warm, SERIAL)
    C = found.scale * np.clip(found.factor * (P + 0.5 * Q), -found.cap, found.cap)
    expected = project((scale * (P + 0.5 * Q)).T, getattr(ball, "radius", None)).T
    assert_allclose(C, expected, rtol=0, atol=1e-10 * scale)
