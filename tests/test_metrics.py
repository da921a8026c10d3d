"""Scores against brute force."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from smrmf.metrics import bad_neighbor_share, clustering_accuracy, kernel_neighborhoods


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_accuracy_is_the_best_over_all_matchings(pairs):
    y, p = np.array(pairs).T
    best = max(np.mean(np.array(order)[p] == y) for order in permutations(range(4)))
    assert clustering_accuracy(y, p) == pytest.approx(best)


def test_accuracy_with_more_clusters_than_classes():
    assert clustering_accuracy([0, 0, 0, 1], [0, 1, 2, 3]) == 0.5


def test_accuracy_refuses_different_lengths():
    with pytest.raises(ValueError, match="inconsistent"):
        clustering_accuracy([0, 1], [0])


def test_bad_neighbor_share_refuses_too_many_neighbours():
    with pytest.raises(ValueError, match=r"n_neighbors=10 .* n_samples=4"):
        bad_neighbor_share(np.eye(4), np.arange(4), n_neighbors=10)


def test_bad_neighbor_share_counts_other_labels():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 3, 50)
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1)[:, :7]  # 7 = floor(sqrt(50))
    expected = (y[nearest] != y[:, None]).mean(axis=1)
    np.testing.assert_allclose(bad_neighbor_share(X, y), expected)


@pytest.mark.parametrize("bandwidth", ["distance", "squared-distance"])
def test_kernel_neighborhoods_are_those_of_the_definition(bandwidth):
    rng = np.random.default_rng(0)
    X, y = rng.random((40, 3)), rng.integers(0, 2, 40)
    d, k = cdist(X, X), 6
    width = np.sort(d, axis=1)[:, k] ** (1 if bandwidth == "distance" else 2)
    K = np.exp(-(d**2) / (2 * width[:, None] ** 2))
    K = (K + K.T) / 2
    np.fill_diagonal(K, -1)
    nearest = np.argsort(-K, axis=1)[:, :k]
    mismatch = np.array([np.mean(y[row] != y[i]) for i, row in enumerate(nearest)])
    similar = np.array([K[i, row].mean() for i, row in enumerate(nearest)])
    found = kernel_neighborhoods(X, y, bandwidth)
    bad = mismatch > 0.5
    assert found["bad_nn"] == pytest.approx(mismatch.mean())
    assert found["bad_nbh"] == pytest.approx(bad.mean())
    assert found["sim_good"] == pytest.approx(similar[~bad].mean())
    assert found["sim_bad"] == pytest.approx(similar[bad].mean())


def test_half_a_neighborhood_is_not_yet_bad_and_none_is_reported_as_none():
    X = np.array([[0.0], [1.0], [2.1], [3.3], [4.6]])  # k = 2
    found = kernel_neighborhoods(X, np.array([0, 0, 1, 1, 1]), "distance")
    assert found["bad_nbh"] == 0
    assert found["sim_bad"] is None
    assert kernel_neighborhoods(X, np.arange(5), "distance")["sim_good"] is None


def test_kernel_neighborhoods_do_not_depend_on_how_points_and_classes_are_given():
    X = np.random.default_rng(0).integers(0, 3, (600, 5))  # two blocks of rows, with duplicates
    y = X[:, 0]
    expected = kernel_neighborhoods(X.astype(float), y, "distance")
    names = np.array(["a", "b", "c"])[y]
    for points in (X, X.tolist(), np.asfortranarray(X, dtype=float), sp.csr_array(X), sp.csc_array(X)):
        assert kernel_neighborhoods(points, list(names), "distance") == expected
    single = kernel_neighborhoods(X.astype(np.float32), y, "distance")
    assert single == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("points", "classes", "bandwidth", "says"),
    [
        (np.eye(4), np.arange(4), "wide", r"bandwidth='wide' .* 'distance' or 'squared-distance'"),
        (np.eye(4), np.arange(4), None, r"bandwidth=None .* 'distance' or 'squared-distance'"),
        (np.eye(1), np.arange(1), "distance", r"1 sample.* minimum of 2"),
        (sp.csr_array(np.eye(1)), np.arange(1), "distance", r"1 sample.* minimum of 2"),
        (np.eye(4), np.arange(3), "distance", r"inconsistent numbers of samples: \[4, 3\]"),
        (np.full((4, 2), np.nan), np.arange(4), "distance", "NaN"),
    ],
)
def test_kernel_neighborhoods_refuse_in_one_sentence(points, classes, bandwidth, says):
    with pytest.raises(ValueError, match=says):
        kernel_neighborhoods(points, classes, bandwidth)


MEASURES = {
    "clustering_accuracy": clustering_accuracy,
    "other way round": lambda true, pred: clustering_accuracy(pred, true),
    "bad_neighbor_share": lambda true, pred: bad_neighbor_share(np.eye(4), true, 1),
    "kernel_neighborhoods": lambda true, pred: kernel_neighborhoods(np.eye(4), true, "distance"),
}
NO_LABELS = {
    "empty": ([], r"shape \(0,\)"),
    "a table": (np.zeros((4, 2)), r"shape \(4, 2\)"),
    "a column": (np.zeros((4, 1)), r"shape \(4, 1\)"),
    "a number": (3, r"shape \(\)"),
    "None": (None, r"shape \(\)"),
    "NaN": ([0, 1, np.nan, 1], "nan at position 2"),
    "a missing one": (np.array(["a", "b", "a", None], dtype=object), "None at position 3"),
}


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
@pytest.mark.parametrize(("labels", "says"), NO_LABELS.values(), ids=NO_LABELS)
def test_what_is_no_list_of_labels_is_refused_in_one_sentence(measure, labels, says):
    with pytest.raises(ValueError, match=rf"^labels_(true|pred) has [^\n]*{says}[^\n]*\.$"):
        measure(labels, [0, 1, 0, 1])


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_labels_may_be_of_any_kind(measure):
    numbers, other = [1, 0, 1, 1], [0, 1, 0, 1]
    expected = measure(numbers, other)
    kinds = (["yes", "no", "yes", "yes"], [True, False, True, True], [0.5, 0.1, 0.5, 0.5])
    mixed = np.array(["a", 1, "a", "a"], dtype=object)
    for labels in (*kinds, mixed):
        np.testing.assert_equal(measure(labels, other), expected)


@pytest.mark.parametrize("n_neighbors", [0, -1, 1.5, True, "a", float("nan")])
def test_bad_neighbor_share_refuses_what_is_no_count(n_neighbors):
    with pytest.raises(ValueError, match=rf"^n_neighbors={n_neighbors!r} .* an integer of at least 1\.$"):
        bad_neighbor_share(np.eye(4), np.arange(4), n_neighbors)
