"""DS3 against linear and convex programs, its limits, and what it reads from Z."""

from __future__ import annotations

import re
from functools import partial
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from callbacks import Recorder
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, pairwise, pairwise_distances

from smrmf import DS3
from smrmf._parallel import SERIAL
from smrmf.kernels.balls import L1InfRegularizer, L12Regularizer, WeightedSum
from smrmf.selection._dissimilarities import METRICS, OF_TRUE_AND_FALSE, TAKE_SPARSE, dissimilarities
from smrmf.selection._prices import published_price, sufficient_price

EXACT = {"tol": 1e-6, "max_iter": 20000}


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(45, 2, centers=[[0, 0], [4, 0], [0, 4]], cluster_std=0.6, random_state=0)
    return X, y


def linear_program(D, *, tau=None, price=0.0):
    """Solve DS3 for p = infinity by HiGHS, with one variable for every row maximum."""
    m, n = D.shape
    below_peak = sp.hstack([sp.eye_array(m * n), sp.kron(-sp.eye_array(m), np.ones((n, 1)))])
    limits = np.zeros(m * n)
    if tau is not None:
        budget = np.concatenate([np.zeros(m * n), np.ones(m)])[None, :]
        below_peak, limits = sp.vstack([below_peak, budget]), np.append(limits, tau)
    sums = sp.hstack([sp.kron(np.ones((1, m)), sp.eye_array(n)), sp.csr_array((n, m))])
    costs = np.concatenate([D.ravel(), np.full(m, price)])
    return linprog(costs, below_peak.tocsr(), limits, sums.tocsr(), np.ones(n), method="highs").fun


def convex_program(D, *, tau=None, price=0.0):
    """Solve DS3 for p = 2 by cvxpy."""
    Z = cp.Variable(D.shape, nonneg=True)
    rows = cp.sum(cp.norm(Z, 2, axis=1))
    limits = [cp.sum(Z, axis=0) == 1] + ([] if tau is None else [rows <= tau])
    return cp.Problem(cp.Minimize(cp.sum(cp.multiply(D, Z)) + price * rows), limits).solve(solver="CLARABEL")


def refused(model, X, *words):
    with pytest.raises(ValueError, match=r"^[^\n]*\.$") as raised:
        model.fit(X)
    for word in words:
        assert word in str(raised.value)


def check_representation(Z):
    assert Z.min() >= 0
    assert_allclose(Z.sum(axis=0), 1, rtol=1e-9)


@pytest.mark.parametrize("tau", [1, 3, 6, 10])
def test_constrained_form_reaches_the_linear_program(blobs, tau):
    model = DS3(exemplars=tau, **EXACT).fit(blobs[0])
    check_representation(model.representation_)
    assert model.objective_ == pytest.approx(linear_program(pairwise_distances(blobs[0]), tau=tau), rel=1e-4)
    assert model.representation_.max(axis=1).sum() <= tau + 1e-3


@pytest.mark.parametrize("share", [0.03, 0.1, 0.6])
def test_regularised_form_reaches_the_linear_program(blobs, share):
    D = pairwise_distances(blobs[0])
    price = share * published_price(D.T / D.max(), "linf") * D.max()
    model = DS3(regularization=share, **EXACT).fit(blobs[0])
    check_representation(model.representation_)
    value = model.objective_ + price * model.representation_.max(axis=1).sum()
    assert value == pytest.approx(linear_program(D, price=price), rel=1e-4)


def test_l2_forms_reach_the_convex_program(blobs):
    X = blobs[0][:24]
    D = pairwise_distances(X)
    model = DS3(exemplars=4, norm="l2", **EXACT).fit(X)
    assert model.objective_ == pytest.approx(convex_program(D, tau=np.sqrt(4 * 24)), rel=1e-4)
    price = 0.1 * published_price(D.T / D.max(), "l2") * D.max()
    model = DS3(regularization=0.1, norm="l2", **EXACT).fit(X)
    value = model.objective_ + price * np.linalg.norm(model.representation_, axis=1).sum()
    assert value == pytest.approx(convex_program(D, price=price), rel=1e-4)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("seed", range(4))
def test_a_budget_of_one_is_the_best_single_source(norm, seed):
    """With "l2" no multiplier exists at this budget, the smallest there is: iterations would not end."""
    D = np.random.default_rng(seed).random((9, 11))
    seen = Recorder()
    model = DS3(exemplars=1, norm=norm, metric="precomputed", **EXACT).set_callbacks(seen).fit(D)
    assert model.converged_
    assert model.exemplar_indices_.tolist() == [D.sum(axis=1).argmin()]
    assert model.objective_ == pytest.approx(D.sum(axis=1).min())
    check_representation(model.representation_)
    assert len(seen.steps) == model.n_iter_ == 1
    assert_array_equal(seen.models[0].representation_, model.representation_)


@pytest.mark.parametrize(("budget", "seed"), [(2, 166), (3, 63), (3, 85)])
def test_the_penalty_adapts_where_a_constant_one_is_slow(budget, seed):
    """With a constant penalty these take thousands of iterations."""
    rng = np.random.default_rng(seed)
    D = pairwise_distances(rng.normal(size=(rng.integers(6, 13), rng.integers(1, 4))))
    model = DS3(exemplars=budget, norm="l2", metric="precomputed", tol=1e-6, max_iter=2000).fit(D)
    assert model.converged_
    tau = np.sqrt(budget * len(D))
    assert np.linalg.norm(model.representation_, axis=1).sum() <= tau + 1e-3
    assert model.objective_ == pytest.approx(convex_program(D, tau=tau), rel=1e-4)


def test_what_is_left_to_do_is_said(blobs):
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3 .* by up to (\S+), more than tol=1e-05") as said:
        model = DS3(exemplars=4, tol=1e-5, max_iter=3).fit(blobs[0])
    left = float(re.search(r"up to (\S+),", str(said[0].message))[1])
    assert 1e-5 < left <= 2
    assert not model.converged_


def test_what_is_left_after_the_first_iteration_is_a_number(blobs):
    recorder = Recorder()
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 .* by up to \d"):
        DS3(exemplars=4, max_iter=1).set_callbacks(recorder).fit(blobs[0])
    assert 1e-3 < recorder.steps[0]["change"] <= 2
    # The first Z has none before it to change from, whatever the tolerance.
    assert DS3(exemplars=4, tol=2.0).fit(blobs[0]).n_iter_ == 2
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations: one is never enough: raise max_iter"):
        DS3(exemplars=4, tol=2.0, max_iter=1).fit(blobs[0])


@pytest.mark.parametrize("negative", [False, True])
def test_sources_and_targets_may_differ(negative):
    D = np.random.default_rng(0).uniform(-1 if negative else 0, 1, size=(12, 30)) * 7
    model = DS3(exemplars=4, metric="precomputed", **EXACT).fit(D)
    assert model.labels_.shape == (30,)
    assert model.representation_.shape == (12, 30)
    assert model.exemplar_indices_.max() < 12
    assert model.objective_ == pytest.approx(linear_program(D, tau=4), rel=1e-4)


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("weight", [1.0, 50.0])
def test_a_large_weight_leaves_one_representative(blobs, norm, weight):
    X = blobs[0]
    model = DS3(regularization=weight, norm=norm).fit(X)
    assert len(model.exemplar_indices_) == 1
    assert model.exemplar_indices_[0] == pairwise_distances(X).sum(axis=0).argmin()
    assert_array_equal(model.labels_, 0)


def random_dissimilarities(seed):
    """Return dissimilarities of every kind: of any sign, not symmetric, with more sources or more targets."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(3, 12, 2)
    kinds = (rng.random, rng.standard_normal, partial(rng.pareto, 1.0), partial(rng.integers, -1, 2))
    return kinds[seed % 4](size=shape).astype(float)


@pytest.mark.parametrize("seed", range(16))
def test_the_sufficient_price_makes_one_source_the_optimum(seed):
    D = random_dissimilarities(seed)
    alone = D.sum(axis=1).min()
    price = sufficient_price(D.T, "linf")
    assert linear_program(D, price=price) == pytest.approx(alone + price, rel=1e-7, abs=1e-9)
    # By the linear program itself, the smallest such price is no much smaller one.
    low, high = 0.0, price
    for _ in range(20):
        middle = (low + high) / 2
        one = linear_program(D, price=middle) > alone + middle - 1e-9 * (1 + abs(alone))
        low, high = (low, middle) if one else (middle, high)
    assert price <= 3 * high


@pytest.mark.parametrize("seed", range(12))
def test_the_published_price_of_l2_makes_one_source_the_optimum(seed):
    D = random_dissimilarities(4 * seed)
    price = published_price(D.T, "l2")
    assert sufficient_price(D.T, "l2") == price
    alone = D.sum(axis=1).min() + price * np.sqrt(D.shape[1])
    assert convex_program(D, price=price) == pytest.approx(alone, rel=1e-6)


def test_the_published_price_of_linf_may_leave_more_than_one_and_a_larger_share_leaves_one():
    D = np.random.default_rng(1).random((4, 30))
    left = [
        len(DS3(regularization=share, metric="precomputed").fit(D).exemplar_indices_) for share in (1, 50)
    ]
    assert left[0] > left[1] == 1


@pytest.mark.parametrize("scale", [1.0, np.pi])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_totals_that_differ_by_rounding_alone_do_not_raise_the_price(scale, dtype):
    X = scale * np.linspace(0, 1, 10)[:, None].astype(dtype)  # the two in the middle have equal totals
    D = pairwise_distances(X)
    assert published_price(D / D.max(), "l2") < 100
    assert DS3(regularization=0.1, norm="l2").fit(X).converged_
    assert set(DS3(regularization=1, norm="l2").fit(X).exemplar_indices_) == {4, 5}


def test_a_small_weight_makes_every_point_its_own(blobs):
    model = DS3(regularization=1e-4).fit(blobs[0])
    assert_array_equal(np.sort(model.exemplar_indices_), np.arange(45))
    assert_array_equal(model.cluster_exemplars_[model.labels_], np.arange(45))


def test_clusters_are_found_and_each_has_its_exemplar(blobs):
    X, y = blobs
    for model in (DS3(exemplars=3), DS3(n_clusters=3), DS3(regularization=0.1)):
        model.fit(X)
        assert adjusted_rand_score(y, model.labels_) == 1
        assert len(model.cluster_exemplars_) == 3
        assert_array_equal(model.labels_[model.cluster_exemplars_], [0, 1, 2])


def test_exemplars_are_ranked_and_at_most_as_many_as_asked(blobs):
    model = DS3(exemplars=7).fit(blobs[0])
    assert len(model.exemplar_indices_) <= 7
    assert len(np.unique(model.exemplar_indices_)) == len(model.exemplar_indices_)
    assert (np.diff(model.exemplar_scores_) <= 1e-9).all()
    norms = np.linalg.norm(model.representation_, axis=1)
    assert_allclose(model.exemplar_scores_, norms[model.exemplar_indices_])


def test_sparse_points_and_precomputed_distances_give_the_same(blobs):
    X = np.maximum(blobs[0], 0)
    dense = DS3(exemplars=4).fit(X)
    assert_array_equal(DS3(exemplars=4).fit(sp.csr_array(X)).exemplar_indices_, dense.exemplar_indices_)
    given = DS3(exemplars=4, metric="precomputed").fit(pairwise_distances(X))
    assert_array_equal(given.exemplar_indices_, dense.exemplar_indices_)


def with_long_indices(X):
    X = sp.csr_array(X)
    return sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


def test_the_metrics_are_those_of_scikit_learn():
    assert {*METRICS} == {*pairwise._VALID_METRICS, "precomputed"} - {"wminkowski"}  # gone from SciPy


@pytest.mark.parametrize("metric", sorted({*METRICS} - {"precomputed"}))
def test_every_metric_works_or_is_refused_in_one_sentence(metric):
    X = np.random.default_rng(0).uniform(0, 1, (14, 2 if metric == "haversine" else 4))
    X[X < 0.4] = 0
    expected = pairwise_distances(X.astype(bool) if metric in OF_TRUE_AND_FALSE else X, metric=metric)
    others = ~np.eye(len(X), dtype=bool)
    for points in (X, X.astype(np.float32), sp.csr_array(X), with_long_indices(X)):
        if sp.issparse(points) and metric not in TAKE_SPARSE:
            refused(DS3(4, metric=metric), points, f"metric={metric!r}", "X.toarray()", "'euclidean'")
            continue
        D, scale = dissimilarities(points, metric, SERIAL)
        tol = 1e-3 if points.dtype == np.float32 else 1e-9
        assert_allclose(scale * D[others], expected[others], rtol=tol, atol=tol)
        assert DS3(4, metric=metric).fit(points).labels_.shape == (14,)


# Haversine takes angles, which have no other unit.
@pytest.mark.parametrize("metric", sorted({*METRICS} - {"precomputed", "haversine"}))
def test_no_metric_depends_on_the_unit_of_the_data(metric):
    X = np.random.default_rng(0).uniform(0, 1, (14, 4))
    X[X < 0.4] = 0
    expected, scale = dissimilarities(X, metric, SERIAL)
    others = ~np.eye(len(X), dtype=bool)
    degree = 0 if scale == dissimilarities(2 * X, metric, SERIAL)[1] else 2 if metric == "sqeuclidean" else 1
    forms = (np.asarray, sp.csr_array) if metric in TAKE_SPARSE else (np.asarray,)
    units = [(float, unit) for unit in (1e-300, 1e-170, 1e-16, 1e170, 1.7e308)]
    for (dtype, unit), form in product([*units, (np.float32, 1e-7), (np.float32, 1e30)], forms):
        D, found = dissimilarities(form((X * unit).astype(dtype)), metric, SERIAL)
        assert D.dtype == dtype
        tol = 1e-3 if dtype is np.float32 else 1e-9
        assert_allclose(D[others], expected[others], rtol=tol, atol=tol)
        # In logarithms, as a squared distance may be beyond all numbers.
        if np.isfinite(found) and found > 0:
            assert np.log10(found) == pytest.approx(np.log10(scale) + degree * np.log10(unit), abs=tol)


def test_squared_distances_beyond_all_numbers_are_refused(blobs):
    refused(DS3(2, metric="sqeuclidean"), blobs[0] * 1e170, "objective_ is infinite", "scale the data")


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_metrics_of_directions_do_not_depend_on_the_length_of_a_row(metric):
    X = np.random.default_rng(0).normal(size=(12, 4))
    lengths = np.array([1.0, 1e-16, 1e16, 1e-170, 1e170, 1e-300, 1e300, 0.1, 3.0, 1e5, 1e-5, 1.0])
    for form in (np.asarray, sp.csr_array) if metric in TAKE_SPARSE else (np.asarray,):
        D, expected = (dissimilarities(form(rows), metric, SERIAL)[0] for rows in (X * lengths[:, None], X))
        assert_allclose(D, expected, atol=1e-12)


def test_metrics_of_all_points_do_not_depend_on_blocks(blobs, monkeypatch):
    for metric in ("seuclidean", "mahalanobis"):
        D = dissimilarities(blobs[0], metric, SERIAL)[0]
        with monkeypatch.context() as patch:
            patch.setattr("smrmf._parallel.BLOCK_ENTRIES", 100)
            assert_array_equal(dissimilarities(blobs[0], metric, SERIAL)[0], D)


def test_a_callable_gets_a_source_and_a_target():
    X = np.random.default_rng(0).normal(size=(12, 2))

    def farther_uphill(source, target):
        return np.linalg.norm(source - target) + max(target[0] - source[0], 0)

    D = np.array([[farther_uphill(source, target) for target in X] for source in X])
    given, called = DS3(3, metric="precomputed").fit(D), DS3(3, metric=farther_uphill).fit(X)
    assert_allclose(called.representation_, given.representation_)
    partly = DS3(3, metric=partial(lambda power, a, b: (abs(a - b) ** power).sum(), 2)).fit(X)
    assert_allclose(partly.objective_, DS3(3, metric="sqeuclidean").fit(X).objective_)


CALLABLES = {
    "nan": (lambda a, b: np.nan if a[0] > 1 else 1.0, "gives nan for rows 2 and 0 of X"),
    "infinite": (lambda a, b: np.inf if a[0] > 1 else 1.0, "gives inf for rows 2 and 0 of X"),
    "a word": (lambda a, b: "far", "returned 'far'"),
    "None": (lambda a, b: None, "returned None"),
    "complex": (lambda a, b: 1j, "returned 1j"),
    "a vector": (lambda a, b: a - b, "returned array("),
}


@pytest.mark.parametrize(("metric", "says"), CALLABLES.values(), ids=CALLABLES)
def test_a_callable_that_returns_no_number_is_refused(metric, says):
    refused(DS3(1, metric=metric), np.array([[0.0, 1], [1, 1], [2, 1]]), "<lambda>", says)


def test_points_that_a_metric_does_not_take_are_refused(blobs):
    X = blobs[0]
    refused(DS3(2, metric="correlation"), np.ones((5, 3)), "'correlation'", "nan", "rows 0 and 0")
    refused(DS3(2, metric="haversine"), np.ones((5, 3)), "'haversine'", "2 features", "X has 3")
    refused(DS3(2, metric="mahalanobis"), np.column_stack([X, X]), "'mahalanobis'", "rank 2", "4 features")
    wide = sp.csr_array((np.ones(3), [0, 2**40, 5], [0, 1, 2, 3]), shape=(3, 2**41))
    refused(DS3(2, metric="manhattan"), wide, "'manhattan'", str(2**41))
    refused(DS3(2, metric="no such"), X, "metric='no such'", "DS3", "must be", "'euclidean'", "a callable")


def test_equal_points_are_no_trouble():
    model = DS3(exemplars=2).fit(np.ones((6, 2)))
    assert model.objective_ == 0
    assert len(model.exemplar_indices_) <= 2
    assert DS3(exemplars=1).fit(np.ones((1, 2))).labels_.tolist() == [0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("threshold", [0.0, 0.3, 2.0, 100.0])
def test_prices_on_rows_are_proximal_maps(seed, threshold):
    rng = np.random.default_rng(seed)
    P, Q = rng.normal(size=(9, 5)), rng.normal(size=(9, 5)).round()
    Y = P + 0.5 * Q
    for price, norm in ((L1InfRegularizer(threshold), "inf"), (L12Regularizer(threshold), 2)):
        factor, cap, scale = price.shrinkage(WeightedSum(P, Q, 0.5), 1.0, None, SERIAL)
        C = scale * np.clip(factor * Y, -cap, cap)
        V = cp.Variable(Y.shape)
        cost = threshold * cp.sum(cp.norm(V, norm, axis=0)) + cp.sum_squares(V - Y) / 2
        cp.Problem(cp.Minimize(cost)).solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12)
        assert_allclose(C, V.value, atol=1e-5)


def test_a_warm_start_of_the_levels_changes_nothing():
    rng = np.random.default_rng(5)
    P, Q = rng.normal(size=(40, 6)), rng.normal(size=(40, 6))
    price = L1InfRegularizer(3.0)
    cold = price.shrinkage(WeightedSum(P, Q, 0.5), 1.0, None, SERIAL)
    other = price.shrinkage(WeightedSum(Q, P, 0.1), 1.0, None, SERIAL)
    warm = price.shrinkage(WeightedSum(P, Q, 0.5), 1.0, other, SERIAL)
    assert_allclose(warm.cap, cold.cap, rtol=1e-12)
