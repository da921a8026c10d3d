"""Whom a point listens to: the means of the clusters, or its neighbours."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from smrmf import FastSMRMF
from smrmf._parallel import SERIAL
from smrmf.graph.dense_points import center_points
from smrmf.graph.means import settle_by_means, squared_to_means
from smrmf.graph.neighbors import search
from smrmf.graph.sparse_points import SparsePoints


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
    nearest_mean = squared_to_means(center_points(X), labels, np.bincount(labels), SERIAL).argmin(axis=1)
    assert nearest_mean[-1] == 0
    np.testing.assert_array_equal(settle(X, labels, 2), y)


@given(st.integers(2, 5), st.integers(0, 2**31 - 1), st.booleans(), st.sampled_from([np.float64, np.float32]))
def test_distances_to_means_are_those_of_the_definition(c, seed, sparse, dtype):
    rng = np.random.default_rng(seed)
    X = (rng.random((30, 6)) * (rng.random((30, 6)) < 0.5)).astype(dtype)
    labels = rng.integers(c, size=30)
    sizes = np.bincount(labels, minlength=c)
    points = SparsePoints.of(sp.csr_array(X)) if sparse else center_points(X)
    found = squared_to_means(points, labels, sizes, SERIAL)
    for label in np.flatnonzero(sizes):
        expected = ((X - X[labels == label].mean(axis=0)) ** 2).sum(axis=1)
        np.testing.assert_allclose(found[:, label], expected, atol=1e-12 if dtype == np.float64 else 1e-5)


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
