"""Row-wise shrinkage, the multiplier step and orthogonal Procrustes."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_allclose, assert_array_equal
from oracle.projections import shrink_l21
from scipy.optimize import minimize

from smrmf.kernels.prox import ascend_multiplier_rows, procrustes, shrink_residual_rows

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
RTOL = {np.float32: 1e-4, np.float64: 1e-11}

matrices = arrays(
    float,
    array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.one_of(st.integers(-2, 2).map(float), st.floats(-50, 50, allow_subnormal=False)),
)


def normal(seed, *shape, dtype=float):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def orthonormal(seed, n, c):
    return np.linalg.qr(normal(seed, n, c))[0]


def with_singular_values(values, n=40, dtype=float, seed=0):
    c = len(values)
    return ((orthonormal(seed, n, c) * values) @ orthonormal(seed + 1, c, c).T).astype(dtype)


def assert_orthonormal(G, tol):
    G = G.astype(float)
    assert_allclose(G.T @ G, np.eye(G.shape[1]), rtol=0, atol=tol)


def assert_polar_factor(G, N, rtol):
    """Check that ``G'N`` is symmetric and semidefinite, which makes G the nearest orthonormal matrix."""
    product = G.astype(float).T @ N.astype(float)
    size = np.linalg.norm(N.astype(float))
    assert_allclose(product, product.T, rtol=0, atol=rtol * size)
    assert np.linalg.eigvalsh((product + product.T) / 2)[0] >= -rtol * size


# Shrinkage


def shrink(B, threshold):
    """Shorten rows by the step of the loop: all of X is residual, and there is no multiplier."""
    E, Y, none = np.empty_like(B), np.empty_like(B), np.zeros_like(B)
    shrink_residual_rows(B, none, none, E, Y, 1 / float(threshold))
    return E


@given(matrices, st.sampled_from([1e-9, 0.5, 2.0, 1e3]))
def test_shrinkage_shortens_every_row_along_itself(B, threshold):
    E = shrink(B, threshold)
    norms = np.linalg.norm(B, axis=1)
    assert_allclose(np.linalg.norm(E, axis=1), np.maximum(norms - threshold, 0), rtol=0, atol=1e-12)
    assert_allclose(E * norms[:, None], B * np.linalg.norm(E, axis=1)[:, None], rtol=0, atol=1e-10)
    assert np.all(np.sum(E * B, axis=1) >= 0)


def test_shrinkage_agrees_with_cvxpy():
    B = normal(0, 6, 4)
    B[2] = 0
    E = cp.Variable(B.shape)
    loss = 1.5 * cp.sum(cp.norm(E, 2, axis=1)) + cp.sum_squares(E - B) / 2
    cp.Problem(cp.Minimize(loss)).solve(solver=cp.CLARABEL)
    assert_allclose(shrink(B, 1.5), E.value, rtol=0, atol=1e-5)


def test_no_step_from_the_shrunken_row_lowers_the_objective():
    b = normal(3, 5)
    e = shrink(b[None, :], 0.7)[0]

    def objective(x):
        return 0.7 * np.linalg.norm(x) + np.sum((x - b) ** 2) / 2

    assert minimize(objective, e + 0.1, method="BFGS").fun >= objective(e) - 1e-12


@DTYPES
def test_shrinkage_has_the_precision_of_its_rows(dtype):
    B = normal(0, 5, 4, dtype=dtype)
    assert_allclose(shrink(B, 1.0), shrink_l21(B.astype(float), 1.0), rtol=0, atol=RTOL[dtype])


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(np.float64, 1e-150), (np.float64, 1e12), (np.float64, 1e150), (np.float32, 1e-25), (np.float32, 1e25)],
)
def test_shrinkage_scales_with_its_rows(dtype, scale):
    B = normal(0, 5, 4)
    expected = shrink(B, 0.8)
    found = shrink((scale * B).astype(dtype), dtype(scale * 0.8)).astype(float) / scale
    assert_allclose(found, expected, rtol=0, atol=RTOL[dtype])


@DTYPES
@pytest.mark.parametrize("mu", [1e-3, 1.0, 40.0, 1e10])
@pytest.mark.parametrize("aliased", [False, True])
def test_residual_step_follows_its_formula(dtype, mu, aliased):
    X, GF, multiplier = normal(0, 3, 12, 5, dtype=dtype)
    GF[3] = X[3]
    multiplier[3] = 0
    exact = [A.astype(float) for A in (X, GF, multiplier)]
    B = exact[0] - exact[1] + exact[2] / mu
    E, Y = np.full_like(X, np.nan), GF if aliased else np.full_like(X, np.nan)
    shrink_residual_rows(X, GF, multiplier, E, Y, mu)
    expected = shrink_l21(B, 1 / mu)
    tol = RTOL[dtype] * (1 + 1 / mu)
    assert_allclose(E, expected, rtol=0, atol=tol)
    assert_allclose(Y, exact[0] - expected + exact[2] / mu, rtol=0, atol=tol)
    assert_array_equal(E[3], np.zeros(5))


@pytest.mark.parametrize("scale", [1e-150, 1e12, 1e150])
def test_residual_step_scales(scale):
    X, GF, multiplier = normal(0, 3, 6, 4)
    E, Y, small_E, small_Y = np.empty((4, 6, 4))
    shrink_residual_rows(X, GF, multiplier, small_E, small_Y, 2.0)
    shrink_residual_rows(scale * X, scale * GF, multiplier, E, Y, 2.0 / scale)
    assert_allclose(E / scale, small_E, rtol=0, atol=1e-12)
    assert_allclose(Y / scale, small_Y, rtol=0, atol=1e-12)


@DTYPES
def test_multiplier_step_and_its_measures(dtype):
    X, GF, E, multiplier = normal(0, 4, 15, 6, dtype=dtype)
    before, wide = multiplier.astype(float), [A.astype(float) for A in (X, GF, E)]
    residual = wide[0] - wide[1]
    loss, infeasible = ascend_multiplier_rows(X, GF, E, multiplier, 3.0)
    assert_allclose(multiplier, before + 3.0 * (residual - wide[2]), rtol=0, atol=10 * RTOL[dtype])
    assert loss == pytest.approx(np.linalg.norm(residual, axis=1).sum(), rel=RTOL[dtype])
    assert infeasible == pytest.approx(np.sum((residual - wide[2]) ** 2), rel=RTOL[dtype])


# Procrustes


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(0, 10))
def test_procrustes_beats_every_other_orthonormal_matrix(seed, c, extra):
    N = normal(seed, c + extra, c)
    G = procrustes(N)
    assert_orthonormal(G, 1e-10)
    assert_polar_factor(G, N, 1e-9)
    others = (orthonormal(seed + k, c + extra, c) for k in range(20))
    assert all(np.vdot(G, N) >= np.vdot(other, N) - 1e-12 for other in others)


@DTYPES
@pytest.mark.parametrize("smallest", [1.0, *np.geomspace(0.1, 1e-6, 11), 1e-12, 0.0])
def test_procrustes_of_ill_conditioned_matrices(dtype, smallest):
    tol = 1e-10 if dtype == np.float64 else 1e-4
    for seed in range(5):
        N = with_singular_values(np.append(np.linspace(1, 2, 9), smallest), 200, dtype, seed)
        G = procrustes(N)
        assert G.dtype == dtype
        assert_orthonormal(G, tol)
        assert_polar_factor(G, N, 10 * tol)


@pytest.mark.parametrize("values", [[1.0, 1.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
def test_procrustes_survives_lost_rank(values):
    N = with_singular_values(np.array(values))
    assert_orthonormal(procrustes(N), 1e-10)
    assert_polar_factor(procrustes(N), N, 1e-12)


def test_procrustes_of_equal_and_of_zero_columns():
    N = np.abs(normal(0, 20, 4))
    N[:, 1] = N[:, 0]
    N[:, 3] = 0
    assert_orthonormal(procrustes(N), 1e-10)
    assert_polar_factor(procrustes(N), N, 1e-12)


def test_procrustes_where_the_fast_driver_of_lapack_fails(monkeypatch):
    # On which matrices it does, 400 x 400 of rank 8 for one, depends on the processor: here on all.
    svd = scipy.linalg.svd

    def picky(X, lapack_driver="gesdd", **options):
        if lapack_driver == "gesdd":
            raise scipy.linalg.LinAlgError("SVD did not converge")
        return svd(X, lapack_driver=lapack_driver, **options)

    monkeypatch.setattr(scipy.linalg, "svd", picky)
    N = with_singular_values(np.array([3.0, 1.0, 0.0, 0.0]))
    assert_orthonormal(procrustes(N), 1e-10)
    assert_polar_factor(procrustes(N), N, 1e-12)


@DTYPES
def test_procrustes_leaves_an_orthonormal_matrix_alone(dtype):
    G = orthonormal(0, 30, 5).astype(dtype)
    assert_allclose(procrustes(G), G, rtol=0, atol=1e-6 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e12, 1e150, 1e250])
def test_procrustes_does_not_see_the_scale(scale):
    N = normal(0, 30, 5)
    with np.errstate(over="ignore", invalid="ignore"):  # as the loop does
        G = procrustes(scale * N)
    assert_allclose(G, procrustes(N), rtol=0, atol=1e-12)


def test_procrustes_takes_a_gram_matrix():
    N = normal(0, 30, 5)
    assert_allclose(procrustes(N, N.T @ N), procrustes(N), rtol=0, atol=1e-13)
