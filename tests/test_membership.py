"""How sure labels are, for points of the fit and new ones, and which points lie far from all others."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

from smrmf import GNMF, FastSMRMF, NMFClustering
from smrmf.graph.membership import favor_labels, outlyingness, voted_shares, walked_shares

CENTERS = [[0.0, 0], [5, 0], [0, 30]]


@pytest.fixture(scope="module")
def overlapping():
    X, _ = make_blobs([150, 150, 50], centers=CENTERS, cluster_std=1.2, random_state=0)
    return X, FastSMRMF(3, random_state=0).fit(X)


def test_votes_are_matched_to_the_labels():
    labels = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    renamed = np.array([2, 2, 2, 0, 0, 0, 1, 1, 1])
    one_differs = np.array([1, 1, 2, 2, 2, 2, 0, 0, 0])
    found = voted_shares(labels, [renamed, one_differs], 3, np.dtype(float))
    expected = np.eye(3)[labels]
    expected[2] = [0.5, 0.5, 0]
    np.testing.assert_allclose(found, expected)


@given(st.integers(2, 5), st.integers(0, 10**6))
def test_no_matching_of_a_vote_agrees_with_more_points(c, seed):
    draws = np.random.default_rng(seed)
    labels, voter = draws.integers(c, size=(2, 12))
    best = max(np.mean(np.array(p)[voter] == labels) for p in itertools.permutations(range(c)))
    shares = voted_shares(labels, [voter], c, np.dtype(float))
    assert shares[np.arange(12), labels].mean() == pytest.approx(best)


def test_a_walk_of_two_steps_is_a_product_of_shares():
    W = np.array([[0.0, 2, 0, 0], [2, 0, 6, 0], [0, 6, 0, 0], [0, 0, 0, 0]])
    start = np.array([[1.0, 0], [0.4, 0.6], [0, 1], [0.3, 0.7]])
    step = np.array([[0, 1, 0], [0.25, 0, 0.75], [0, 1, 0]])
    found = walked_shares(sp.csr_array(W), start)
    np.testing.assert_allclose(found[:3], step @ step @ start[:3])
    np.testing.assert_array_equal(found[3], start[3])  # which has no neighbours


@given(st.integers(1, 6), st.integers(0, 10**6))
def test_labels_have_the_largest_share_and_rows_sum_to_one(c, seed):
    draws = np.random.default_rng(seed)
    shares, labels = draws.dirichlet(np.full(c, 0.3), 20) + 1e-12, draws.integers(c, size=20)
    found = favor_labels(shares, labels)
    np.testing.assert_array_equal(found.argmax(axis=1), labels)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(favor_labels(found, labels), found, rtol=1e-12)
    agreed = shares.argmax(axis=1) == labels
    np.testing.assert_allclose(found[agreed], shares[agreed] / shares[agreed].sum(axis=1, keepdims=True))


def test_points_between_clusters_are_the_least_sure(overlapping):
    X, model = overlapping
    middle, apart = np.abs(X[:, 0] - 2.5) < 0.7, X[:, 1] > 15
    assert model.confidence_[middle & ~apart].mean() < model.confidence_[~middle & ~apart].mean() - 0.1
    assert model.confidence_[apart].min() > 0.99


def test_new_points_are_as_sure_as_their_neighbourhood(overlapping):
    _, model = overlapping
    clear, between = model.predict_proba([[0.0, 30]])[0], model.predict_proba([[2.5, 0]])[0]
    assert clear.max() > 0.99
    assert between.max() < 0.9
    assert between[model.predict([[0.0, 30]])[0]] < 0.01
    new = np.random.default_rng(1).uniform(-3, 8, (50, 2))
    np.testing.assert_array_equal(model.predict_proba(new).argmax(axis=1), model.predict(new))


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("make", [FastSMRMF, GNMF, NMFClustering])
def test_a_point_far_from_everything_is_said_to_be(make):
    X, _ = make_blobs(90, centers=3, center_box=(4, 9), cluster_std=0.3, random_state=0)
    model = make(3, random_state=0).fit(np.vstack([X, [[1e6, 1e6]]]))
    assert model.outlier_scores_[-1] > 0.9999
    assert model.outlier_scores_[:-1].max() < 0.8
    model.fit(X)
    assert model.outlier_scores([[1e6, 0.0]])[0] > 0.9999
    assert model.outlier_scores(X[:1] + 1e-9)[0] < 0.8


def test_training_points_have_their_scores_again():
    X, _ = make_blobs(80, centers=2, cluster_std=2, random_state=1)
    model = FastSMRMF(2, random_state=0).fit(X)
    assert model.outlier_scores_.max() > 0.2
    np.testing.assert_allclose(model.outlier_scores(X), model.outlier_scores_, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_a_point_beside_copies_is_not_far_from_all():
    blob = np.random.default_rng(0).normal(size=(60, 2)) + 5
    X = np.vstack([np.zeros((15, 2)), [[1e-3, 0]], blob])
    model = FastSMRMF(2, random_state=0, max_iter=5).fit(X)
    assert model.outlier_scores_[15] == 0


def test_a_label_against_its_neighbourhood_is_in_doubt():
    X, _ = make_blobs([60, 60], centers=[[0, 0], [6, 0]], random_state=0)
    model = NMFClustering(2, random_state=0).fit(X - X.min())
    against = model.confidence_ < 0.5
    np.testing.assert_array_equal(model.membership_.argmax(axis=1), model.labels_)
    own = model.membership_[np.arange(120), model.labels_]
    np.testing.assert_allclose(model.confidence_[~against], own[~against])
    assert (model.confidence_ <= own + 1e-9).all()


def test_a_point_twice_as_far_away_has_one_half():
    neighbors = np.array([[1, 2], [0, 2], [0, 1]])
    scores = outlyingness(np.array([2.0, 1, 0.5]), neighbors, np.array([1.0, 1, 1]))
    np.testing.assert_allclose(scores, [0.5, 0, 0])


@pytest.mark.filterwarnings("ignore:.*did not converge")  # nearly exact fits
def test_copies_of_one_point_lie_apart_from_nothing():
    X = np.repeat([[0.0, 1], [5, 5], [9, 0]], 20, axis=0)
    model = FastSMRMF(3, random_state=0, max_iter=5).fit(X)
    np.testing.assert_array_equal(model.outlier_scores_, 0)
    np.testing.assert_array_equal(model.outlier_scores(X), 0)
    np.testing.assert_allclose(model.confidence_, 1)


def test_no_graph_no_doubt_but_the_labels():
    X, _ = make_blobs(60, centers=3, center_box=(5, 20), random_state=0)
    model = GNMF(3, graph=np.zeros((60, 60)), random_state=0).fit(X)
    np.testing.assert_array_equal(model.confidence_, 1)
