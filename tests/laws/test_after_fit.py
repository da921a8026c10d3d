"""What a fitted estimator offers: new points, copies, names of features, other forms of output."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cases import POINTS
from estimators import each, each_of
from odd_data import odd_fit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from support import assert_finite, assert_same, fitted, quietly, results

SHORTCUTS = {"fit_predict": "labels_", "fit_transform": "embedding_", "fit_select": "exemplar_indices_"}


@each()
def test_a_fit_has_finite_results(case):
    assert_finite(fitted(case))
    assert fitted(case).n_features_in_ == case.usual().shape[1]


@each()
def test_a_fit_sets_what_is_documented_and_nothing_else(case):
    public = {name for name in vars(fitted(case)) if name.endswith("_") and not name.startswith("_")}
    # The names of features are those of a table, and the usual data are an array.
    absent = {"feature_names_in_"}
    if case.estimator.get_params(deep=False).get("init") != "spectral":
        absent |= {"stability_"}
    assert public == case.attributes - absent


@each("labels_")
def test_labels_are_consecutive(case):
    labels = fitted(case).labels_
    assert labels.shape == (len(POINTS),)
    np.testing.assert_array_equal(np.unique(labels), np.arange(labels.max() + 1))


@each("n_clusters")
def test_there_are_as_many_clusters_as_asked_for(case):
    model = case.make(n_clusters=3).fit(case.usual())
    assert model.labels_.max() + 1 == 3


@each("components_", "embedding_")
def test_every_column_of_the_embedding_has_a_component(case):
    model = fitted(case)
    size = model.embedding_.shape[1]
    assert model.embedding_.shape == (len(POINTS), size)
    assert model.components_.shape == (size, case.usual().shape[1])


@each("exemplar_indices_", "exemplar_scores_")
def test_exemplars_are_distinct_points_with_a_score_each(case):
    chosen = fitted(case).exemplar_indices_
    assert chosen.shape == fitted(case).exemplar_scores_.shape
    assert len(set(chosen.tolist())) == len(chosen) >= 1
    assert 0 <= chosen.min() <= chosen.max() < len(POINTS)


@each("exemplar_scores_", law="best exemplars first")
def test_the_best_exemplars_come_first(case):
    for model in (fitted(case), odd_fit(case, "wide", float).model):
        assert (np.diff(model.exemplar_scores_) <= 1e-9).all()


@each("affinity_")
def test_the_graph_is_symmetric_and_not_negative(case):
    W = fitted(case).affinity_
    assert W.shape == (len(POINTS), len(POINTS))
    assert abs(W - W.T).max() == 0
    assert W.min() >= 0


@each("representation_")
def test_every_point_is_represented_in_full(case):
    Z = fitted(case).representation_
    np.testing.assert_allclose(Z.sum(axis=0), 1, rtol=1e-6)
    assert Z.min() >= 0


@each("representation_", "bandwidth")
@pytest.mark.parametrize("unit", [1e-4, 1e-2, 1.0, 1e2])
def test_every_point_is_represented_in_full_with_any_bandwidth(case, unit):
    model = case.make(bandwidth="squared-distance")
    quietly(
        model.fit, case.usual() * unit
    )  # where the kernel is too narrow the graph is empty, and said to be
    np.testing.assert_allclose(model.representation_.sum(axis=0), 1, rtol=1e-6)
    assert model.representation_.min() >= 0


@each("objective_history_")
def test_the_history_has_every_iteration_and_ends_with_the_objective(case):
    model = fitted(case)
    assert len(model.objective_history_) == model.n_iter_
    assert model.objective_ == model.objective_history_[-1]


@each_of("shortcut", SHORTCUTS)
def test_shortcuts_return_what_fit_sets(case, shortcut):
    model = case.make()
    np.testing.assert_array_equal(getattr(model, shortcut)(case.usual()), vars(model)[SHORTCUTS[shortcut]])
    assert_same(fitted(case), model)


# New points


@each("predict", "transform", "inverse_transform")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_training_points_are_found_again(case, form):
    X = form(case.usual())
    model = case.make().fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    size = np.abs(model.embedding_).max()
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-12 * size)
    rebuilt = model.inverse_transform(model.embedding_)
    np.testing.assert_allclose(rebuilt, model.embedding_ @ model.components_)


@each("predict_proba", "outlier_scores")
def test_how_sure_labels_are(case):
    X, model = case.usual(), fitted(case)
    shape = (len(POINTS), model.labels_.max() + 1)
    assert model.membership_.shape == shape
    np.testing.assert_array_equal(model.membership_.argmax(axis=1), model.labels_)
    np.testing.assert_allclose(model.membership_.sum(axis=1), 1, rtol=1e-6)
    assert (model.confidence_ <= model.membership_.max(axis=1) + 1e-9).all()
    assert model.confidence_.max() == pytest.approx(model.membership_.max())
    np.testing.assert_allclose(model.predict_proba(X), model.membership_, atol=1e-9)
    np.testing.assert_allclose(model.outlier_scores(X), model.outlier_scores_, atol=1e-9)
    new = X * 1.01 + 0.2
    shares, scores = model.predict_proba(new), model.outlier_scores(new)
    np.testing.assert_array_equal(shares.argmax(axis=1), model.predict(new))
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    assert 0 <= scores.min() <= scores.max() < 1


@each("exemplars_of")
def test_exemplars_of_a_cluster_are_its_own_and_as_many_as_asked_for(case):
    model = fitted(case)
    np.testing.assert_array_equal(model.exemplar_labels_, model.labels_[model.exemplar_indices_])
    members = np.flatnonzero(model.labels_ == 1)
    found = model.exemplars_of(1, n=3)
    assert 1 <= len(found) <= 3
    np.testing.assert_array_equal(model.exemplars_of(1, n=2), found[:2])
    every = model.exemplars_of(1, n=10**6)
    assert set(found) <= set(every) <= set(members)
    if len(every) >= 2:
        known = [i for i in model.exemplar_indices_ if model.labels_[i] == 1][:2]
        assert set(known) <= set(every)
    for wrong in ({"cluster": 99}, {"cluster": -1}, {"cluster": 0, "n": 0}):
        with pytest.raises(ValueError, match=r"(cluster|n)=-?\d+ is not valid for exemplars_of"):
            model.exemplars_of(**wrong)


@each("predict", "transform")
def test_new_points_are_like_their_neighbours(case):
    model = fitted(case)
    near = case.usual() + 1e-7
    np.testing.assert_array_equal(model.predict(near), model.labels_)
    size = np.abs(model.embedding_).max()
    np.testing.assert_allclose(model.transform(near), model.embedding_, atol=1e-4 * size)
    far = np.full((1, case.usual().shape[1]), 1e300)
    assert np.isfinite(model.transform(far)).all()
    assert 0 <= model.predict(far)[0] < 3


@each("predict", "transform")
def test_another_number_of_features_is_refused(case):
    model, X = fitted(case), case.usual()
    for method in (model.predict, model.transform):
        with pytest.raises(ValueError, match=f"X has 3 features, but .* is expecting {X.shape[1]} features"):
            method(X[:, :3])
    size = model.embedding_.shape[1]
    with pytest.raises(ValueError, match=rf"\(7, {size + 1}\).*{size} columns"):
        model.inverse_transform(np.ones((7, size + 1)))
    with pytest.raises(ValueError, match="NaN"):
        model.inverse_transform(np.full((2, size), np.nan))


@each("predict", "transform", "inverse_transform")
def test_who_is_not_fitted_says_so(case):
    for method in ("predict", "transform", "inverse_transform", "predict_proba", "outlier_scores"):
        with pytest.raises(NotFittedError, match=type(case.estimator).__name__):
            getattr(case.make(), method)(case.usual())


# Copies


@each()
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_are_the_same(case, duplicate):
    again = duplicate(fitted(case))
    assert_same(fitted(case), again)
    assert repr(again) == repr(fitted(case))
    if case.has("predict"):
        new = case.data(POINTS + 0.3)
        np.testing.assert_array_equal(again.predict(new), fitted(case).predict(new))
        np.testing.assert_array_equal(again.transform(new), fitted(case).transform(new))


@each()
def test_a_clone_has_the_parameters_and_nothing_else(case):
    new = clone(fitted(case))
    assert vars(new).keys() == new.get_params(deep=False).keys()
    assert repr(new.get_params()) == repr(fitted(case).get_params())
    assert_same(fitted(case), new.fit(case.usual()))


@each()
def test_a_second_fit_is_a_first_one(case):
    model = case.make().fit(case.data(POINTS[::2, :4] * 3))
    assert_same(fitted(case), model.fit(case.usual()))


# Tables with names


def named(X):
    return pd.DataFrame(X, columns=[f"feature {i}" for i in range(X.shape[1])])


@each()
def test_named_features_are_remembered_and_change_nothing(case):
    table = named(case.usual())
    model = case.make().fit(table)
    assert_same(fitted(case), model)
    np.testing.assert_array_equal(model.feature_names_in_, table.columns)
    if case.has("predict"):
        np.testing.assert_array_equal(model.predict(table), model.labels_)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(table.rename(columns={"feature 0": "another"}))
    model.fit(case.usual())
    assert not hasattr(model, "feature_names_in_")


@each("transform", "set_output")
def test_output_can_be_a_table(case):
    model = case.make().set_output(transform="pandas")
    table = model.fit(named(case.usual())).transform(named(case.usual()))
    assert isinstance(table, pd.DataFrame)
    prefix = type(model).__name__.lower()
    assert list(table.columns) == [f"{prefix}{i}" for i in range(len(model.components_))]
    np.testing.assert_allclose(table.to_numpy(), fitted(case).transform(case.usual()))
    assert list(model.get_feature_names_out()) == list(table.columns)


@each()
def test_it_is_the_end_of_a_pipeline(case):
    pipeline = make_pipeline(FunctionTransformer(), case.make()).fit(case.usual())
    assert_same(fitted(case), pipeline[-1])
    assert results(pipeline[-1])
