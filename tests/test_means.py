"""Whom a point listens to: the means of the clusters, or its neighbours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsClassifier

from smrmf import RMNMF, FastSMRMF
from smrmf._parallel import SERIAL
from smrmf.graph.dense_points import center_points
from smrmf.graph.means import ClusterMeans, settle_by_means, sums_by_cluster, votes_of_means
from smrmf.graph.neighbors import find_neighbors
from smrmf.graph.search import search
from smrmf.graph.sparse_points import SparsePoints
from smrmf.metrics import clustering_accuracy


def settle(X, labels, c):
    points, near = search(X, 1, SERIAL)
    return settle_by_means(points, labels, c, near.squared[:, 0], SERIAL)


def noisy_directions(sizes, n_features=800, spread=0.4, seed=0):
    """Draw clusters whose centers are nearer to each other than their points are."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    centers = spread * rng.normal(size=(len(sizes), n_features))
    return centers[y] + rng.normal(size=(len(y), n_features)), y


def with_errors(y, share, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(len(y)) < share, rng.integers(y.max() + 1, size=len(y)), y)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)])
def test_wrong_labels_of_noisy_points_are_mended_by_means(make):
    X, y = noisy_directions([60, 60, 60])
    wrong = with_errors(y, 0.4)
    assert np.mean(wrong != y) > 0.2
    np.testing.assert_array_equal(settle(make(X), wrong, 3), y)


@pytest.mark.parametrize("share", [0, 0.2])
def test_points_with_near_neighbours_do_not_listen_to_means(share):
    X, y = make_moons(400, noise=0.05, random_state=0)
    labels = with_errors(y, share)
    # Means lie between the moons, where hardly a point is alone.
    assert np.mean(settle(X, labels, 2) != labels) < 0.01


def test_a_small_cluster_keeps_its_points_though_its_mean_is_the_noisier():
    X, y = noisy_directions([300, 8], n_features=4000, spread=0.15)
    labels = np.where(np.arange(len(y)) == len(y) - 1, 0, y)  # one of the small ones is in the large cluster
    points = center_points(X)
    squared, _ = ClusterMeans.of(points, labels, 2).squared_distances(points.measured(), points.norms)
    assert squared[-1].argmin() == 0
    settled = settle(X, labels, 2)
    assert settled[-1] == 1
    assert np.mean(settled != y) < 0.02


@given(st.integers(2, 5), st.integers(0, 2**31 - 1), st.booleans(), st.sampled_from([np.float64, np.float32]))
def test_distances_to_means_are_those_of_the_definition(c, seed, sparse, dtype):
    rng = np.random.default_rng(seed)
    X = (rng.random((30, 6)) * (rng.random((30, 6)) < 0.5)).astype(dtype)
    labels = rng.integers(c, size=30)
    sizes = np.bincount(labels, minlength=c)
    points = SparsePoints.of(sp.csr_array(X)) if sparse else center_points(X)
    means = ClusterMeans.of(points, labels, c)
    found, doubt = means.squared_distances(points.measured(), points.norms)
    assert (doubt < 1e-3).all()
    for label in np.flatnonzero(sizes):
        expected = ((X - X[labels == label].mean(axis=0, dtype=np.float64)) ** 2).sum(axis=1)
        assert (np.abs(found[:, label] - expected) < doubt).all()


@given(st.integers(0, 2**31 - 1), st.integers(2, 6))
def test_clusters_do_not_vanish_and_copies_stay(seed, c):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(24, 40))
    X[1] = X[0]
    labels = rng.integers(c, size=24)
    settled = settle(X, labels, c)
    np.testing.assert_array_equal(settled[:2], labels[:2])
    assert set(settled) == set(labels)
    lone = np.bincount(labels, minlength=c)[labels] == 1
    np.testing.assert_array_equal(settled[lone], labels[lone])


def test_a_move_lowers_the_sum_of_squares_as_said():
    """By Hartigan's rule the best cluster is that by which the sum of squared distances falls most."""
    X, y = noisy_directions([9, 6, 4], n_features=50, spread=0.3, seed=3)
    labels = with_errors(y, 0.4, seed=1)

    def total(labels):
        groups = (X[labels == label] for label in range(3))
        return sum(((group - group.mean(axis=0)) ** 2).sum() for group in groups if len(group))

    # Everything is nearer than infinitely far.
    points = search(X, 1, SERIAL)[0]
    settled = settle_by_means(points, labels, 3, np.full(len(y), np.inf), SERIAL)
    for i in range(len(y)):
        totals = [total(np.where(np.arange(len(y)) == i, label, labels)) for label in range(3)]
        assert settled[i] == np.argmin(totals)
    assert (settled != labels).any()


def test_two_far_points_do_not_attract_what_lies_between_them():
    turn = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    ring = np.column_stack([2 + 8 * np.cos(turn), 8 * np.sin(turn)])
    X = np.vstack([[[0.0, 0.0]], ring, [[-40.0, -5.0], [40.0, -5.0]]])
    labels = np.r_[np.zeros(61, int), 1, 1]
    np.testing.assert_array_equal(settle(X, labels, 2), labels)


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 3e3), (np.float32, 1e4), (np.float64, 1e8)])
def test_rounding_moves_nothing_far_from_the_middle(dtype, offset):
    moons, y = make_moons(300, noise=0.05, random_state=0)
    X = np.vstack([np.random.default_rng(0).normal(size=(400, 2)), moons + offset]).astype(dtype)
    labels = np.r_[np.zeros(400, int), y + 1]
    np.testing.assert_array_equal(settle(X, labels, 3)[400:], labels[400:])


def test_where_rounding_could_choose_among_means_nothing_moves():
    far, y = noisy_directions([40, 40])
    X = np.vstack([np.random.default_rng(1).normal(size=(120, 800)), far + 110]).astype(np.float32)
    labels = np.r_[np.full(120, 2), with_errors(y, 0.4)]
    np.testing.assert_array_equal(settle(X, labels, 3)[120:], labels[120:])
    assert (settle(X.astype(np.float64), labels, 3)[120:] == y).all()


@pytest.mark.parametrize("copies", [1, 2])
def test_rounding_does_not_call_a_point_nearer_than_itself(copies):
    # The mean of a cluster of one point, or of copies of it, is that point.
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 3))
        X[:copies] = X[0]
        X[copies] = X[0] + 0.05 * rng.normal(size=3)
        labels = np.r_[np.zeros(copies, int), np.ones(40 - copies, int)]
        assert settle(X, labels, 2)[copies] == 1


def test_an_empty_cluster_attracts_nothing():
    X, y = noisy_directions([30, 30])
    labels = np.where(with_errors(y, 0.3) == 0, 0, 2)
    np.testing.assert_array_equal(settle(X, labels, 3), 2 * y)


def test_a_lone_point_stays_between_two_others():
    X = np.array([[0.0, 0.0], [-10.0, 0.5], [10.0, 0.5], [99.0, 99.0], [99.0, 98.0]])
    labels = np.array([0, 1, 1, 2, 2])
    np.testing.assert_array_equal(settle(X, labels, 3), labels)


def test_sums_of_many_single_numbers_keep_their_digits():
    X = np.tile(np.float32([[0.3], [0.7]]), (1_000_000, 1))
    dense = replace(center_points(X), centered=X)  # about the origin
    for points in (dense, SparsePoints.of(sp.csr_array(X))):
        sums = sums_by_cluster(points, np.zeros(len(X), int), 1)
        np.testing.assert_allclose(sums / len(X), 0.5, rtol=1e-7)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_the_data_does_not_matter(unit):
    X, y = noisy_directions([30, 20, 10])
    labels = with_errors(y, 0.3)
    np.testing.assert_array_equal(settle(unit * X, labels, 3), settle(X, labels, 3))


def test_noise_around_directions_is_seen_through_by_a_fit():
    X, y = noisy_directions([100, 60, 30], n_features=400, seed=2)
    X = X * (np.random.default_rng(0).random(X.shape) < 0.3)  # a third of the features of every point
    found = FastSMRMF(3, random_state=0).fit(sp.csr_array(X))
    assert adjusted_rand_score(y, found.labels_) > 0.8


# New points


def votes(X, labels, new):
    # Not measured_points: tables as small as these would be dense.
    points = SparsePoints.of(X) if sp.issparse(X) else center_points(X)
    nearest = find_neighbors(X, 1, new, points=points).squared[:, 0]
    means = ClusterMeans.of(points, labels, int(labels.max()) + 1)
    return votes_of_means(means, points.queries(new), nearest)


FORMS = [np.asarray, sp.csr_array, lambda X: X.astype(np.float32)]


@pytest.mark.parametrize("make", FORMS)
def test_new_points_in_noise_have_a_vote_of_the_right_mean(make):
    X, y = noisy_directions([120, 120, 40])
    found = votes(make(X[::2]), y[::2], make(X[1::2]))
    np.testing.assert_array_equal(found.argmax(axis=1), y[1::2])
    assert found.sum(axis=1).min() > 0.5
    assert ((found > 0).sum(axis=1) == 1).all()


@pytest.mark.parametrize("make", FORMS)
def test_training_points_and_those_next_to_them_do_not_ask_the_means(make):
    X, y = noisy_directions([30, 30])
    X, wrong = X / 1000, with_errors(y, 0.4)
    np.testing.assert_array_equal(votes(make(X), wrong, make(X)), 0)
    np.testing.assert_array_equal(votes(make(X), wrong, make(X * 1.001)), 0)


def test_on_a_curve_means_have_no_vote():
    X, y = make_moons(400, noise=0.05, random_state=0)
    new, _ = make_moons(400, noise=0.05, random_state=1)
    assert np.mean(votes(X, y, new).sum(axis=1) > 0) < 0.02


@given(st.integers(0, 2**31 - 1), st.integers(2, 4), st.booleans())
def test_votes_are_those_of_the_definition(seed, c, sparse):
    rng = np.random.default_rng(seed)
    X, new = (rng.normal(size=(n, 12)) * (rng.random((n, 12)) < 0.6) for n in (20, 9))
    labels = np.r_[np.arange(c), rng.integers(c, size=20 - c)]
    form = sp.csr_array if sparse else np.asarray
    found = votes(form(X), labels, form(new))
    for x, row in zip(new, found, strict=True):
        groups = [X[labels == label] for label in range(c)]
        # By how much the sum of squares of each group grows with the point; a single point is no group.
        growth = [scatter(np.vstack([group, x])) - scatter(group) for group in groups]
        growth = [grown if len(group) > 1 else np.inf for grown, group in zip(growth, groups, strict=True)]
        nearest = ((X - x) ** 2).sum(axis=1).min()
        expected, best = np.zeros(c), np.argmin(growth)
        if nearest > 0 and len(groups[best]) > 1:
            distance = ((x - groups[best].mean(axis=0)) ** 2).sum()
            expected[best] = np.clip(2 - 2 * distance / nearest, 0, 1)
        np.testing.assert_allclose(row, expected, atol=1e-9)


def test_clusters_of_one_point_each_have_no_vote():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(votes(X, np.arange(3), np.array([[0.4, 0.4], [0.01, 0.0], [9.0, 9.0]])), 0)


def scatter(group):
    return ((group - group.mean(axis=0)) ** 2).sum()


def test_no_vote_where_rounding_could_choose():
    far, y = noisy_directions([80, 80])
    X = np.vstack([np.random.default_rng(1).normal(size=(120, 800)), far[::2] + 110])
    labels, new = np.r_[np.full(120, 2), y[::2]], far[1::2] + 110
    np.testing.assert_array_equal(votes(X, labels, new).argmax(axis=1), y[1::2])
    np.testing.assert_array_equal(votes(X.astype(np.float32), labels, new.astype(np.float32)), 0)


@pytest.mark.parametrize("method", [FastSMRMF, RMNMF])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_new_points_in_noise_find_their_cluster_where_neighbours_alone_would_not(method, form):
    X, y = noisy_directions([200, 120, 80], n_features=400, spread=0.2, seed=3)
    old, new = form(X[::2]), form(X[1::2])
    model = method(3, random_state=0).fit(old)
    np.testing.assert_array_equal(model.predict(old), model.labels_)
    neighbours = KNeighborsClassifier(10).fit(old, model.labels_)
    right, of_neighbours = (clustering_accuracy(y[1::2], m.predict(new)) for m in (model, neighbours))
    assert right > of_neighbours + 0.1
    assert right > 0.9
