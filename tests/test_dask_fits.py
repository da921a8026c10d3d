"""Fits on Dask arrays by threads of this process: odd data, many points, new points; as in memory."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
from many_points import overlapping, sheets
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score

import smrmf
from smrmf.dask import FastSMRMF, _consensus, _fit, _results, _spectrum
from smrmf.dask._blocks import blocks_of
from smrmf.dask._halo import Halo


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def chunked(X, size=1000):
    return da.from_array(X, chunks=(size, -1))


def fit(X, n_clusters=5, **parameters):
    return FastSMRMF(n_clusters, random_state=0, **parameters).fit(chunked(X))


def in_memory(X, n_clusters=5, **parameters):
    return smrmf.FastSMRMF(n_clusters, random_state=0, neighbors="approximate", **parameters).fit(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("table", [sheets, overlapping])
def test_many_points_have_a_coarse_graph_and_a_plane(table, dtype, monkeypatch):
    X, truth = table(4000, dtype=dtype)
    here = in_memory(X)
    seen = []
    groups = _spectrum.groups_of_points
    monkeypatch.setattr(_spectrum, "MANY_POINTS", 800)
    monkeypatch.setattr(_consensus, "MOST_ROWS", 800)
    monkeypatch.setattr(_fit, "MOST_EXACT", 2000)
    monkeypatch.setattr(_spectrum, "groups_of_points", lambda W, share: seen.append(1) or groups(W, share))
    model = FastSMRMF(5, random_state=0).fit(chunked(X))
    # In four parts, one graph or two: where its components are the clusters, one is enough.
    assert len(seen) in (4, 8)
    labels = model.labels_.compute()
    assert adjusted_rand_score(labels, here.labels_) > 0.97
    assert adjusted_rand_score(labels, truth) > adjusted_rand_score(here.labels_, truth) - 0.02
    assert model.embedding_.dtype == model.components_.dtype == dtype
    assert model.membership_.compute().dtype == here.membership_.dtype == dtype
    assert model.confidence_.compute().dtype == here.confidence_.dtype
    for label in range(5):
        mean = X[labels == label].mean(axis=0)
        assert np.linalg.norm(model.components_[label] - mean) < 0.1 * np.linalg.norm(mean)


@pytest.mark.parametrize("n_features", [8, 600])
def test_components_beyond_the_clusters_are_joined_as_in_memory(n_features):
    # Nine groups far from each other, some of them near to another one; seen in few or in many directions.
    X, group = make_blobs(4000, 8, centers=9, center_box=(-100, 100), cluster_std=0.5, random_state=0)
    X = X @ np.linalg.qr(np.random.default_rng(0).normal(size=(n_features, 8)))[0].T
    there, here = fit(X, 4), in_memory(X, 4)
    assert adjusted_rand_score(there.labels_.compute(), here.labels_) == 1
    assert there.stability_ == here.stability_ == 1
    # No group is cut.
    assert all(len(set(there.labels_.compute()[group == g])) == 1 for g in range(9))


def test_an_empty_cluster_gets_the_point_nearest_to_it():
    G = np.zeros((6, 3))
    G[:3, 0], G[3:, 1] = 1, 1
    G[4, 2], G[0, 2] = 0.9, 0.5
    starts = np.array([0, 2, 6])
    lists = [np.array([[1], [0]]), np.array([[3], [2], [5], [4]])]
    found = _results.labelled(blocks_of([G[:2], G[2:]]), Halo.of(blocks_of(lists), starts))
    assert_array_equal(np.concatenate(found.labels.compute()), [0, 0, 0, 1, 2, 1])
    assert_array_equal(found.sizes, [3, 2, 1])
    assert found.moved == [4]


def test_where_most_cells_would_be_asked_all_are():
    X = np.random.default_rng(0).normal(size=(2500, 200))
    with pytest.warns(ConvergenceWarning):
        model = fit(X, max_iter=2, tol=1e-12)
    assert model.neighbor_recall_ == 1


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_no_unit_is_too_large_or_too_small(unit):
    X, _ = sheets(3000)
    one, other = fit(X), fit(X * unit)
    assert_array_equal(other.labels_.compute(), one.labels_.compute())
    assert_allclose(other.components_ / unit, one.components_, rtol=1e-6, atol=1e-9)
    assert_array_equal(other.predict(chunked(X * unit)).compute(), one.predict(chunked(X)).compute())


@pytest.fixture(scope="module")
def model():
    with dask.config.set(scheduler="threads", num_workers=2):
        return fit(sheets(3000)[0])


ANSWERS = ("predict", "predict_proba", "transform", "outlier_scores")


def test_one_row_is_enough_to_ask(model):
    X, _ = sheets(3000)
    assert_array_equal(model.predict(chunked(X[7:8])).compute(), model.labels_.compute()[7:8])


@pytest.mark.parametrize("name", ANSWERS)
def test_the_answer_for_a_row_does_not_depend_on_the_chunks(model, name):
    X = sheets(3000)[0][:900] + 0.01
    answers = [getattr(model, name)(chunked(X, size)).compute() for size in (900, 250)]
    assert_allclose(answers[0], answers[1], atol=1e-9)


@pytest.mark.parametrize("name", ANSWERS)
def test_rows_that_are_no_numbers_are_refused(model, name):
    X = sheets(50)[0]
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="contains NaN or infinity"):
        getattr(model, name)(chunked(X)).compute()
    with pytest.raises(ValueError, match="X has 3 features, but FastSMRMF was fitted to 12"):
        getattr(model, name)(chunked(X[:, :3]))


def test_points_beyond_all_numbers_lie_at_the_edge(model):
    X = np.full((3, 12), 1e300)
    assert np.isfinite(model.predict_proba(chunked(X)).compute()).all()
    assert model.outlier_scores(chunked(X)).compute().min() > 0.99


@pytest.mark.parametrize("name", ANSWERS)
def test_who_is_not_fitted_says_so(name):
    with pytest.raises(NotFittedError):
        getattr(FastSMRMF(3), name)(chunked(sheets(50)[0]))


def test_it_is_an_estimator():
    model = FastSMRMF(7, tol=0.5)
    assert clone(model).get_params() == model.get_params() == smrmf.FastSMRMF(7, tol=0.5).get_params()


def test_weights_out_of_range_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match="manifold_weight=1e\\+300 leaves the range of the numbers"):
        fit(sheets(3000)[0], manifold_weight=1e300)
