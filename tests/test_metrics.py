"""Scores against brute force."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smrmf.metrics import bad_neighbor_share, clustering_accuracy


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
