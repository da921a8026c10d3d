"""What every fit keeps: its data, its bits, its precision, and its result in other units and orders."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from cases import POINTS
from estimators import each, each_with
from odd_data import ODD, SOME, odd_fit
from paper_factors import paper_factors
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from support import (
    assert_close,
    assert_finite,
    assert_same,
    fitted,
    quietly,
    results,
    small_blocks,
)

from smrmf import nndsvd


def in_any_order(X):
    """Return X as a CSR matrix whose rows have their entries in another order each, the first one twice."""
    rng = np.random.default_rng(4)
    rows, m = np.indices(X.shape)[0].ravel(), X.shape[1]
    columns = np.concatenate([rng.permutation(m) for _ in X])
    # The entries of the first row in two halves, which add up to them.
    data = X[rows, columns] * np.where(rows == 0, 0.5, 1)
    starts = np.append(0, np.arange(2 * m, X.size + m + 1, m))
    parts = np.append(data[:m], data), np.append(columns[:m], columns), starts
    return sp.csr_array(parts, shape=X.shape)


FORMS = {
    "dense": np.array,
    "single": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csr in any order": in_any_order,
}


# Data, seeds and threads


@each()
@pytest.mark.parametrize("form", FORMS)
def test_the_data_are_left_alone_and_not_kept(case, form):
    X = FORMS[form](case.usual())
    before, stored = X.copy(), getattr(X, "indices", np.empty(0)).copy()
    parameters = case.make().get_params()
    model = case.make().fit(X)
    np.testing.assert_array_equal(getattr(X, "indices", np.empty(0)), stored)
    assert abs(X - before).max() == 0
    assert {name: repr(value) for name, value in model.get_params().items()} == {
        name: repr(value) for name, value in parameters.items()
    }
    if case.has("transform"):
        new = case.data(POINTS[:20] + 0.1)
        at_first = model.transform(new)
        X *= -3
        np.testing.assert_array_equal(model.transform(new), at_first)


@each("random_state")
def test_a_seed_gives_the_same_fit_again_and_so_does_its_generator(case):
    assert_same(fitted(case), case.make().fit(case.usual()))
    assert_same(fitted(case), case.make(random_state=np.random.RandomState(0)).fit(case.usual()))
    assert_finite(case.make(random_state=None).fit(case.usual()))


@each()
def test_the_number_of_threads_changes_no_bit(case, monkeypatch):
    X = case.data(make_blobs(100, 7, centers=4, cluster_std=3.0, random_state=0)[0])
    # Few iterations are enough, as different bits never become equal again.
    settings = {"max_iter": 4, "tol": 0} if case.has("max_iter") else {}
    models = [case.make(n_jobs=n_jobs, **settings) for n_jobs in (1, 2, 3)]
    small_blocks(monkeypatch, 256)
    for model in models:
        quietly(model.fit, X)
        assert_same(models[0], model)
        if case.has("transform"):
            np.testing.assert_array_equal(model.transform(X + 1), models[0].transform(X + 1))


# Precision, units, order, form


@each()
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_single_precision_stays_single_and_finds_the_same(case, form):
    X = form(case.usual().astype(np.float32))
    wide, narrow = results(fitted(case)), case.make().fit(X)
    found = results(narrow)
    assert found.keys() == wide.keys()
    for name in {name for name, value in wide.items() if value.dtype.kind == "f"} - {"objective_history_"}:
        assert found[name].dtype == np.float32 or found[name].ndim < 2, name
        size = np.abs(wide[name]).max()
        np.testing.assert_allclose(found[name], wide[name], atol=0.02 * size, err_msg=name)
    if case.has("transform"):
        assert narrow.transform(X).dtype == np.float32
    for unit in (2.0**-90, 2.0**90):
        found |= results(case.make().fit(X * np.float32(unit)))
        if case.has("labels_"):
            assert adjusted_rand_score(wide["labels_"], found["labels_"]) == 1.0
        if case.has("exemplar_indices_"):
            assert set(found["exemplar_indices_"]) == set(wide["exemplar_indices_"])


@each("exemplar_scores_", law="scores in single precision")
def test_scores_of_single_precision_are_single(case):
    model = case.make().fit(case.usual().astype(np.float32))
    assert model.exemplar_scores_.dtype == np.float32


# Powers of two, which change no digit; half of them for sparse data.
UNITS = {
    1024.0: sp.csr_array,
    2.0**-30: np.asarray,
    2.0**-500: sp.csr_array,
    2.0**490: np.asarray,
    2.0**-990: np.asarray,
    2.0**1000: sp.csr_array,
}


@each()
def test_the_unit_of_the_data_scales_the_result_and_changes_nothing_else(case):
    plain = results(fitted(case))
    powers = {name: {0, 1} for name in plain}
    for unit, form in UNITS.items():
        X = form(case.usual() * unit)
        model = case.make().fit(X)
        for name, value in results(model).items():
            powers[name] &= {p for p in powers[name] if scales(plain[name], value, unit, p)}
            assert powers[name], (name, unit)
        if case.has("predict"):
            np.testing.assert_array_equal(model.predict(X), plain["labels_"])


STARTS = ("spectral", "kmeans", "nndsvd", "array")


@each_with("start", STARTS, "init", "penalty")
def test_no_start_depends_on_the_unit_of_the_data(case, start):
    # Before anything else is decided, in one iteration; and in all of them, for one unit.
    X, c = abs(POINTS), 3

    def fit(unit, settings):
        # An array has the square root of the unit.
        init = nndsvd(X * unit, c) if start == "array" else start
        model = case.make(n_clusters=c, init=init, **settings)
        quietly(model.fit, X * unit)
        return model

    for settings, units in (({"max_iter": 1, "tol": 0}, (1024.0, 2.0**-40, 2.0**700)), ({}, (2.0**-40,))):
        plain = fit(1.0, settings)
        for unit in units:
            scaled = fit(unit, settings)
            np.testing.assert_array_equal(scaled.labels_, plain.labels_)
            np.testing.assert_allclose(scaled.embedding_, plain.embedding_, atol=1e-6)


@each("init", "penalty")
def test_the_size_of_a_given_start_does_not_matter(case):
    G = nndsvd(abs(POINTS), 3)
    small, large, named = (
        case.make(n_clusters=3, init=init, max_iter=3, tol=0).fit(abs(POINTS))
        for init in (G / 1000, G * 1000, "nndsvd")
    )
    np.testing.assert_allclose(large.embedding_, small.embedding_, atol=1e-6)
    np.testing.assert_allclose(named.embedding_, small.embedding_, atol=1e-6)


def scales(plain, scaled, unit, power):
    """Tell whether a result is the plain one times a power of the unit."""
    if plain.shape != scaled.shape:
        return False
    if plain.dtype.kind != "f":
        return power == 0 and bool((plain == scaled).all())
    back = scaled / unit**power
    size = np.abs(plain).max(initial=0)
    return bool(np.allclose(back, plain, rtol=1e-6, atol=1e-6 * size))


ORDER = np.random.default_rng(5).permutation(len(POINTS))


@each("fit_predict")
def test_the_order_of_the_points_does_not_change_the_partition(case):
    labels = case.make().fit_predict(case.data(POINTS[ORDER]))
    assert adjusted_rand_score(fitted(case).labels_[ORDER], labels) == 1.0


@each("exemplar_indices_", law="exemplars in any order")
def test_the_order_of_the_points_does_not_change_the_exemplars(case):
    model = case.make().fit(case.data(POINTS[ORDER]))
    assert set(ORDER[model.exemplar_indices_]) == set(fitted(case).exemplar_indices_)
    np.testing.assert_allclose(model.exemplar_scores_, fitted(case).exemplar_scores_, rtol=1e-3)


SCATTERED = np.where(abs(POINTS) > np.quantile(abs(POINTS), 0.2), POINTS, 0.0)


@each()
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, sp.coo_array], ids=lambda form: form.__name__)
def test_sparse_data_give_the_dense_result(case, form):
    X = case.data(SCATTERED)
    dense, sparse = case.make().fit(X), case.make().fit(form(X))
    assert_close(dense, sparse, 1e-6)
    if case.has("predict"):
        new = case.data(SCATTERED + 0.01)
        np.testing.assert_array_equal(sparse.predict(form(new)), dense.predict(new))
        np.testing.assert_allclose(sparse.transform(form(new)), dense.transform(new), rtol=1e-5, atol=1e-8)


# Odd data


MISSING = ("clusters came out empty", "clusters were found", "fewer than n_clusters")
UNSETTLED = ("did not converge", "Maximum number of iterations")
EXPECTED = (*MISSING, *UNSETTLED, "graph is empty")


def speaks_of(words, said):
    """Tell whether any of the words is in any of the sentences."""
    return any(word in sentence for word in words for sentence in said)


def assert_orthonormal(fit):
    G, _ = paper_factors(fit.model)
    np.testing.assert_allclose(G.T @ G, np.eye(G.shape[1]), atol=1e-5)
    # A cluster has one distinct point or more.
    wanted = min(fit.model.n_clusters, len(np.unique(fit.X, axis=0)))
    assert len(np.unique(fit.model.labels_)) == wanted


def assert_nonnegative(fit):
    model, X = fit.model, fit.X.astype(float)
    assert model.embedding_.min() >= 0
    # Components of nothing at all would leave all of X.
    size = np.abs(X).max() or 1.0
    left = np.linalg.norm(X / size - model.inverse_transform(model.embedding_.astype(float)) / size)
    assert left <= np.linalg.norm(X / size) * (1 + 1e-5)
    assert len(np.unique(model.labels_)) == model.n_clusters or speaks_of(MISSING, fit.said)


# Two kinds of factorisation. One has an orthonormal embedding, and then no cluster can stay empty. The other
# has an embedding without negative entries, and says so when a cluster is missing.
EMBEDDINGS = {"orthonormal": assert_orthonormal, "non-negative": assert_nonnegative}


@each()
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("dtype", [float, np.float32], ids=["double", "single"])
def test_odd_data_give_finite_results(case, odd, dtype):
    fit = odd_fit(case, odd, dtype)
    model, X, said = fit
    assert all(speaks_of(EXPECTED, [sentence]) for sentence in said), said
    assert_finite(model)
    if case.has("labels_"):
        labels = np.unique(model.labels_)
        np.testing.assert_array_equal(labels, np.arange(len(labels)))
    if case.has("representation_"):
        np.testing.assert_allclose(model.representation_.sum(axis=0), 1, rtol=1e-5)
    if case.has("exemplar_indices_"):
        assert len(set(model.exemplar_indices_)) == len(model.exemplar_indices_) >= 1
    if case.has("embedding_", "transform"):
        EMBEDDINGS[case.embedding](fit)
        assert np.isfinite(model.transform(X)).all()


@each_with("odd", ODD, "max_iter", law="settles on {}")
def test_odd_data_settle(case, odd):
    model, X, said = odd_fit(case, odd, float)
    settled = not speaks_of(UNSETTLED, said)
    # Beside the data an objective of rounding is zero; there it flickers, and settles by chance.
    assert settled or abs(model.objective_) <= 1e-12 * np.abs(X).max()


REPEATED = np.repeat(SOME[:8], [1, 9, 4, 4, 1, 6, 3, 2], axis=0)[np.random.default_rng(2).permutation(30)]


@each("labels_")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_distinct", [2, 3, 8])
def test_identical_points_have_one_label(case, form, n_distinct):
    X = case.data(np.repeat(SOME[:n_distinct], 4, axis=0)[::-1] if n_distinct < 8 else REPEATED)
    model = case.make(**{"n_clusters": 3} if case.has("n_clusters") else {})
    quietly(model.fit, form(X))
    _, groups = np.unique(X, axis=0, return_inverse=True)
    pairs = np.unique(np.stack([groups, model.labels_]), axis=1)
    assert pairs.shape[1] == n_distinct  # every group with one label
    if case.has("predict"):
        np.testing.assert_array_equal(model.predict(X), model.labels_)


@each("n_clusters", law="missing clusters are said")
@pytest.mark.parametrize("form", [np.asarray, in_any_order], ids=["dense", "sparse in any order"])
def test_fewer_distinct_points_than_clusters_are_said(case, form):
    X = form(case.data(np.repeat(SOME[:2], 5, axis=0)))
    model = case.make(n_clusters=3)
    said = [str(w.message) for w in quietly(model.fit, X)]
    assert speaks_of(["only 2 distinct rows: lower n_clusters"], said)
    np.testing.assert_array_equal(np.unique(model.labels_), [0, 1])
    if case.embedding == "orthonormal":  # where labels are columns, those without points come last
        together = [model.embedding_[model.labels_ == label].sum(axis=0).argmax() for label in (0, 1)]
        assert together == [0, 1]


@each("n_clusters")
def test_as_many_points_as_clusters_are_all_clusters(case):
    settings = {"exemplars": 1.0} if case.has("exemplars") else {}
    model = case.make(n_clusters=3, **settings)
    quietly(model.fit, case.data(SOME[:3]))
    np.testing.assert_array_equal(np.sort(model.labels_), np.arange(3))


@each("n_clusters")
def test_one_cluster_is_everything(case):
    model = case.make(n_clusters=1)
    quietly(model.fit, case.usual())
    np.testing.assert_array_equal(model.labels_, 0)
    if case.has("predict"):
        np.testing.assert_array_equal(model.predict(case.data(POINTS + 1)), 0)
