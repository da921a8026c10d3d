"""Deep semi-NMF: updates that descend, the printed fine-tuning, starts, layer sizes and odd data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import adjusted_rand_score

from smrmf._parallel import SERIAL
from smrmf.factorization import deep_semi_nmf
from smrmf.factorization._alternating import SemiNonnegative, pseudo_inverse
from smrmf.factorization.deep_semi_nmf import DeepSemiNMF, layer_sizes, semi_nmf, singular_start
from smrmf.kernels.scaling import squared_frobenius_norm

# Few distinct points give fewer clusters, which the estimator says.
MAY_BE_FEWER = pytest.mark.filterwarnings("ignore:.*clusters were found")
# An error on its way to zero never settles relative to itself.
TO_ZERO = pytest.mark.filterwarnings("ignore:DeepSemiNMF did not converge")


@pytest.fixture(scope="module")
def blobs():
    """Four groups of points of any sign."""
    return make_blobs(80, 24, centers=4, cluster_std=4.0, random_state=3)


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def best_error(X, rank):
    """Return the squared error of the best approximation of that rank."""
    return np.sum(np.linalg.svd(X.astype(float), compute_uv=False)[rank:] ** 2)


def error_of(X, G):
    """Return the squared error of the best basis for G."""
    return np.sum((X - G @ np.linalg.lstsq(G, X, rcond=None)[0]) ** 2)


def refused(model, data, *words):
    """Fit, expect one sentence with these words, and no trace on the estimator."""
    before = set(vars(model))
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        model.fit(data)
    message = str(raised.value)
    assert message.count("\n") == 0
    for word in words:
        assert word in message, message
    assert set(vars(model)) == before


# The updates


tables = arrays(
    float,
    array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=8),
    elements=st.one_of(st.integers(-2, 2).map(float), st.floats(-10, 10, allow_subnormal=False)),
)


@given(tables, st.integers(1, 4), st.sampled_from(["random", "singular"]), st.integers(0, 2**16))
def test_no_update_raises_the_error(X, rank, start, seed):
    X = X / max(np.sqrt((X**2).sum() / len(X)), 1e-3)
    rank = min(rank, *X.shape)
    method = SemiNonnegative(X, squared_frobenius_norm(X), SERIAL)
    G = singular_start(X, rank)
    if start == "random":
        G = np.random.default_rng(seed).uniform(0.1, 1, G.shape)
    slack = 1e-9 * max(squared_frobenius_norm(X), 1)
    factors = method.with_best_basis(G)
    for _ in range(12):
        before = factors
        factors = method.update(before)
        assert factors.G.min() >= 0
        of_start = np.sum((X - before.G @ before.F) ** 2)
        of_code = np.sum((X - factors.G @ before.F) ** 2)
        of_both = np.sum((X - factors.G @ factors.F) ** 2)
        assert of_code <= of_start + slack
        assert of_both <= of_code + slack
        assert method.objective(factors) == pytest.approx(of_both, abs=slack)


@pytest.mark.parametrize("shape", [(60, 20), (15, 40), (30, 30)], ids=str)
@pytest.mark.parametrize("sign", ["any", "positive"])
def test_the_fine_tuning_is_that_of_two_layers(shape, sign):
    X = normal(0, *shape) if sign == "any" else np.random.default_rng(0).random(shape)
    X /= np.sqrt((X**2).sum() / len(X))
    first = semi_nmf(X, 10, SERIAL, 40, 0)
    second = semi_nmf(first.factors.G, 4, SERIAL, 40, 0)
    start = second.factors.G
    # As printed: points are columns, two features Z and one code H that counts.
    A, H = X.T, start.T
    Z2 = second.factors.F.T
    for iterations in range(1, 7):
        Z1 = A @ scipy.linalg.pinv(Z2 @ H)
        Z2 = scipy.linalg.pinv(Z1) @ A @ scipy.linalg.pinv(H)
        Psi = Z1 @ Z2
        P, Q = Psi.T @ A, Psi.T @ Psi
        up, down = np.maximum(P, 0) + np.maximum(-Q, 0) @ H, np.maximum(-P, 0) + np.maximum(Q, 0) @ H
        H = H * np.sqrt(up / np.maximum(down, 1e-10))
        tuned = semi_nmf(X, start, SERIAL, iterations, 0)
        np.testing.assert_allclose(tuned.factors.G.T, H, rtol=1e-7, atol=1e-9 * H.max())
    # The features in the end are those of the next step.
    Psi = A @ scipy.linalg.pinv(H)
    np.testing.assert_allclose(tuned.factors.F.T, Psi, rtol=1e-6, atol=1e-6 * np.abs(Psi).max())


def test_the_estimator_runs_these_steps(blobs):
    X = blobs[0]
    scale = np.sqrt((X**2).sum() / len(X))
    first = semi_nmf(X / scale, 9, SERIAL, 30, 0)
    second = semi_nmf(first.factors.G, 5, SERIAL, 30, 0)
    tuned = semi_nmf(X / scale, second.factors.G, SERIAL, 30, 0)
    model = DeepSemiNMF(4, layers=(9, 5), max_iter=30, tol=0, random_state=0).fit(X)
    np.testing.assert_allclose(model.embedding_, tuned.factors.G, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.objective_history_, tuned.history, rtol=1e-9)


@pytest.mark.parametrize("digits", [False, True])
def test_no_iteration_raises_the_objective(blobs, digits):
    X = load_digits(n_class=3).data if digits else blobs[0]
    model = DeepSemiNMF(3, max_iter=100, tol=0, n_init=1, random_state=0).fit(X)
    assert model.n_iter_ == 100
    assert (np.diff(model.objective_history_) <= 1e-11 * len(X)).all()


@pytest.mark.filterwarnings("ignore:DeepSemiNMF did not converge")
@pytest.mark.parametrize("iterations", [1, 3, 1000])
def test_the_objective_is_that_of_the_result(blobs, iterations):
    X = blobs[0]
    model = DeepSemiNMF(4, max_iter=iterations, random_state=0).fit(X)
    squared = (X**2).sum() / len(X)
    rebuilt = model.inverse_transform(model.embedding_)
    assert model.objective_ == pytest.approx(np.sum((X - rebuilt) ** 2) / squared, rel=1e-6)
    assert model.objective_ == model.objective_history_[-1]
    assert model.n_iter_ == len(model.objective_history_) <= iterations


def test_the_error_comes_near_the_best_of_its_rank():
    X = load_digits(n_class=5).data
    model = DeepSemiNMF(5, random_state=0).fit(X)
    error = np.sum((X - model.inverse_transform(model.embedding_)) ** 2)
    assert error >= best_error(X, 10) * (1 - 1e-9)
    assert error <= best_error(X, 10) * 1.05


# The start


@pytest.mark.parametrize("rank", [1, 3, 8])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_start_of_positive_data_is_as_good_as_the_svd(rank, dtype):
    X = np.random.default_rng(0).random((40, 15)).astype(dtype)
    G = singular_start(X, rank)
    assert G.dtype == dtype
    assert G.min() >= 0
    assert G.shape == (40, rank)
    left = np.linalg.svd(X.astype(float), full_matrices=False)[0][:, :rank]
    tol = 1e-9 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(left @ (left.T @ G), G, atol=tol)
    assert np.linalg.matrix_rank(G.astype(float)) == rank


def with_rows(X, rows, factor):
    X = X.copy()
    X[rows] *= factor
    return X


POSITIVE = np.random.default_rng(1).random((40, 15))


@pytest.mark.parametrize(
    "X",
    [with_rows(POSITIVE, slice(5), 1e-3), with_rows(POSITIVE, slice(5), 0), np.round(POSITIVE * 0.7)],
    ids=["short points", "zero points", "counts"],
)
def test_short_or_empty_points_do_not_spoil_the_start(X):
    assert error_of(X, singular_start(X, 5)) <= best_error(X, 5) * (1 + 1e-3)


@given(tables, st.integers(1, 8))
def test_the_start_is_never_negative(X, rank):
    G = singular_start(X, rank)
    assert np.isfinite(G).all()
    assert G.min() >= 0
    assert G.shape == (len(X), min(rank, *X.shape))


def test_the_start_of_separate_blocks_is_not_negative():
    rng = np.random.default_rng(2)
    X = scipy.linalg.block_diag(rng.random((20, 8)), rng.random((15, 9)) * 3)
    for rank in (1, 2, 6, 17):
        G = singular_start(X, rank)
        assert G.min() >= 0
        assert np.isfinite(G).all()
        # Every point has a part in it, or multiplicative updates would never give it one.
        assert rank == 1 or (G.sum(axis=1) > 0).all()


# Layers


@pytest.mark.parametrize(
    ("n", "m", "c", "expected"),
    [
        (1000, 400, 5, (200, 20)),
        (1000, 400, 3, (200, 20)),
        (1000, 400, 15, (200, 30)),
        (1000, 20, 3, (10, 6)),
        (1000, 20, 8, (10, 10)),  # never more than the layer before
        (30, 400, 4, (30, 8)),  # never more than the points
        (5, 4000, 4, (5, 5)),
        (50, 1, 3, (1, 1)),
        (50, 2, 3, (1, 1)),
        (2, 2, 2, (1, 1)),
    ],
    ids=str,
)
def test_automatic_layers_are_the_papers_clamped(n, m, c, expected):
    assert layer_sizes("auto", n, m, c) == expected


@pytest.mark.parametrize(
    "layers",
    [(5, 6), (25, 3), (0, 0), (3, 0), (4,), (4, 3, 2), (4.0, 2), (True, 1), ("4", "2"), "deep", 4, None],
)
def test_wrong_layers_are_refused(blobs, layers):
    refused(DeepSemiNMF(4, layers=layers), blobs[0], f"layers={layers!r}", "'auto'")


def test_layers_larger_than_the_points_are_refused(blobs):
    refused(DeepSemiNMF(2, layers=(11, 3)), blobs[0][:10], "layers=(11, 3)", "=10")


@pytest.mark.parametrize("layers", [(6, 4), [6, 4], (np.int64(6), np.int32(4)), (24, 24), (1, 1)], ids=str)
def test_given_layers_are_used(blobs, layers):
    model = DeepSemiNMF(4, layers=layers, random_state=0, tol=1e-2).fit(blobs[0])
    first, second = layers
    assert model.embedding_.shape == (80, second)
    assert model.components_.shape == (second, 24)
    assert [Z.shape for Z in model.layer_components_] == [(first, 24), (second, first)]


@pytest.mark.parametrize("layers", ["auto", (20, 3), (5, 5)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_product_of_the_layers_is_the_components(blobs, layers, dtype):
    model = DeepSemiNMF(4, layers=layers, random_state=0).fit(blobs[0].astype(dtype))
    Z1, Z2 = model.layer_components_
    tol = 1e-4 if dtype is np.float32 else 1e-10
    np.testing.assert_allclose(Z2 @ Z1, model.components_, atol=tol * np.abs(model.components_).max())


@TO_ZERO
@MAY_BE_FEWER
@pytest.mark.parametrize("rank", [1, 2, 4])
@pytest.mark.parametrize("sign", [1, -1], ids=["positive", "any sign"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_product_of_the_layers_is_the_components_of_low_rank_data(rank, sign, dtype):
    rng = np.random.default_rng(4)
    X = (rng.uniform(min(sign, 0), 1, (40, rank)) @ rng.random((rank, 20))).astype(dtype)
    model = DeepSemiNMF(3, random_state=0).fit(X)
    Z1, Z2 = model.layer_components_
    assert np.isfinite(Z1).all()
    tol = 1e-3 if dtype is np.float32 else 1e-8
    size = np.abs(model.components_).max()
    np.testing.assert_allclose(Z2 @ Z1, model.components_, atol=tol * size)
    rebuilt = model.inverse_transform(model.embedding_)
    assert np.linalg.norm(rebuilt - X) <= 1e-2 * np.linalg.norm(X)


@TO_ZERO
@MAY_BE_FEWER
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_codes_that_repeat_each_other_do_not_break_the_fit(seed, dtype):
    # Of a code longer than the rank of the data, columns are alike, up to rounding.
    rng = np.random.default_rng(seed)
    rank = 1 + seed % 3
    X = (rng.random((38, rank)) @ rng.random((rank, 16))).astype(dtype)
    model = DeepSemiNMF(2, random_state=0, n_init=1).fit(X)
    Z1, Z2 = model.layer_components_
    for features in (model.components_, Z2 @ Z1):
        assert np.linalg.norm(model.embedding_ @ features - X) <= 1e-2 * np.linalg.norm(X)


def test_columns_that_differ_by_rounding_share_one_feature():
    rng = np.random.default_rng(0)
    X, column = rng.normal(size=(40, 3)).astype(np.float32), rng.uniform(0.5, 1, 40).astype(np.float32)
    rounding = 2 * np.finfo(np.float32).eps * (-1) ** np.arange(40)
    G = np.stack([column, (column * (1 + rounding)).astype(np.float32)], axis=1)
    F = SemiNonnegative(X, squared_frobenius_norm(X), SERIAL).with_best_basis(G).F
    alone = column @ X / (column @ column)
    np.testing.assert_allclose(F, [alone / 2, alone / 2], rtol=1e-4)


# What a fit gives


def test_the_code_is_not_negative_and_clusters():
    X, y = make_blobs(80, 24, centers=4, cluster_std=0.5, random_state=3)
    model = DeepSemiNMF(4, random_state=0).fit(X)
    assert model.embedding_.min() >= 0
    assert model.components_.min() < 0
    assert model.converged_
    np.testing.assert_array_equal(np.unique(model.labels_), np.arange(4))
    assert adjusted_rand_score(y, model.labels_) == 1.0
    G = model.embedding_
    centers = np.stack([G[model.labels_ == label].mean(axis=0) for label in range(4)])
    np.testing.assert_array_equal(cdist(G, centers).argmin(axis=1), model.labels_)


def test_only_kmeans_depends_on_the_seed(blobs):
    models = [DeepSemiNMF(4, random_state=seed).fit(blobs[0]) for seed in (0, 1, 1)]
    for name in ("embedding_", "components_", "objective_history_"):
        np.testing.assert_array_equal(getattr(models[0], name), getattr(models[1], name))
    np.testing.assert_array_equal(models[1].labels_, models[2].labels_)


@pytest.mark.parametrize("sign", ["any", "positive"])
def test_rounding_does_not_decide_the_result(blobs, sign):
    X = blobs[0] if sign == "any" else np.abs(blobs[0])
    one, two = (DeepSemiNMF(4, random_state=0).fit(X * factor) for factor in (1, 1 + 1e-12))
    np.testing.assert_allclose(two.embedding_, one.embedding_, atol=1e-3 * one.embedding_.max())


@pytest.mark.parametrize("spread", [1.0, 1e-2])
def test_single_precision_reports_no_error_below_the_best(spread):
    # Points that vary little are almost of rank one, and little error is left to measure.
    X = (1 + spread * np.random.default_rng(0).random((300, 20))).astype(np.float32)
    model = DeepSemiNMF(3, random_state=0).fit(X)
    squared = np.sum(X.astype(float) ** 2) / len(X)
    assert model.objective_ >= best_error(X, 6) / squared * (1 - 1e-2)
    assert model.objective_ <= best_error(X, 6) / squared * 1.5


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_with_few_entries_are_those_of_all(monkeypatch, dtype):
    X = sp.random(80, 60, 0.04, random_state=0, dtype=dtype).toarray()
    few = semi_nmf(X, 5, SERIAL, 30, 0.0)
    monkeypatch.setattr(deep_semi_nmf, "SPARSE_DATA_SHARE", 0.0)
    all_of_them = semi_nmf(X, 5, SERIAL, 30, 0.0)
    assert few.factors.G.dtype == dtype
    assert_allclose(few.history, all_of_them.history, rtol=np.sqrt(np.finfo(dtype).eps))


@pytest.mark.parametrize("rank", [0, 3, 6])
def test_the_pseudo_inverse_is_that_of_scipy(rank):
    A = np.random.default_rng(rank).normal(size=(6, rank))
    expected = scipy.linalg.pinvh(A @ A.T, rtol=1e-10)
    assert_allclose(pseudo_inverse(A @ A.T, 1e-10), expected, atol=1e-10 * np.abs(expected).max())


def test_more_features_than_points_can_be_turned():
    # The factorisation sees lengths and angles only.
    X = np.hstack([normal(1, 30, 5) * 3, np.zeros((30, 75))])
    turn = np.linalg.qr(normal(2, 80, 80))[0]
    one, two = (DeepSemiNMF(3, layers=(5, 4), random_state=0).fit(data) for data in (X, X @ turn))
    np.testing.assert_allclose(two.embedding_, one.embedding_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(two.components_ @ turn.T, one.components_, atol=1e-5)
