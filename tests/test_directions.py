"""Points of equal length: which cluster they are most like by angles."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import normalize

from smrmf._parallel import SERIAL
from smrmf.graph.dense_points import center_points
from smrmf.graph.directions import are_directions
from smrmf.graph.means import ClusterMeans, settle_by_means, votes_of_means
from smrmf.graph.neighbors import find_neighbors
from smrmf.graph.sparse_points import SparsePoints

FAR = 1e9  # of all points from their neighbours: everything listens to means


def measured(X, sparse):
    return SparsePoints.of(sp.csr_array(X)) if sparse else center_points(X)


def lengths_and_middle(X):
    return (X.astype(float) ** 2).sum(axis=1), X.mean(axis=0, dtype=float)


def pairs(group):
    """The mean product of two different points."""
    products = group @ group.T
    return (products.sum() - np.trace(products)) / (len(group) * (len(group) - 1))


def likeness(x, others, group):
    """The mean product with points over the root of that of pairs, if these are more than noise."""
    return (others @ x).mean() / np.sqrt(pairs(group)) if pairs(group) > 1 / len(group) else -np.inf


def texts(rng, topics, n_each, n_words):
    """Draw texts of some topics, as directions."""
    counts = [rng.multinomial(n_words, topic) for topic in topics for _ in range(n_each)]
    return normalize(np.array(counts, dtype=float)), np.repeat(np.arange(len(topics)), n_each)


def test_what_directions_are():
    rng = np.random.default_rng(0)
    X = normalize(rng.normal(size=(200, 30)))
    assert are_directions(*lengths_and_middle(X))
    assert are_directions(*lengths_and_middle(X.astype(np.float32)))
    assert are_directions(*lengths_and_middle(7 * X))
    assert are_directions(*lengths_and_middle(abs(X)))
    assert are_directions(*lengths_and_middle(np.vstack([X, np.zeros((9, 30))])))
    assert are_directions(*lengths_and_middle(X * rng.uniform(0.9999, 1.0001, size=(200, 1))))
    assert not are_directions(*lengths_and_middle(X + 1e4))
    for dtype, offset in ((np.float64, 1e8), (np.float64, 1e9), (np.float32, 1e6), (np.float32, 1.3e7)):
        assert not are_directions(
            *lengths_and_middle((np.eye(30)[np.arange(200) % 30] + offset).astype(dtype))
        )
        beside = np.column_stack([X, np.full(200, offset)]).astype(dtype)
        assert not are_directions(*lengths_and_middle(beside))
    assert not are_directions(*lengths_and_middle(X * rng.uniform(0.99, 1.01, size=(200, 1))))
    assert not are_directions(*lengths_and_middle(rng.normal(size=(200, 3000))))
    assert not are_directions(*lengths_and_middle(np.zeros((5, 3))))


@given(st.integers(0, 2**31 - 1), st.integers(2, 4), st.booleans())
def test_points_join_the_cluster_that_they_are_most_like(seed, c, sparse):
    rng = np.random.default_rng(seed)
    X = normalize(rng.random((24, 9)) * (rng.random((24, 9)) < 0.7) + 1e-3)
    labels = np.r_[np.tile(np.arange(c), 3), rng.integers(c, size=24 - 3 * c)]
    points = measured(X, sparse)
    settled = settle_by_means(points, labels, c, np.full(24, FAR), SERIAL)
    expected = labels.copy()
    groups = [X[labels == label] for label in range(c)]
    for i in range(24):
        others = [X[(labels == label) & (np.arange(24) != i)] for label in range(c)]
        found = [likeness(X[i], *both) for both in zip(others, groups, strict=True)]
        if np.isfinite(found[labels[i]]):
            expected[i] = np.argmax(found)
    if len(np.unique(expected)) < c:  # no cluster may vanish
        expected = labels
    np.testing.assert_array_equal(settled, expected)


@given(st.integers(0, 2**31 - 1), st.booleans())
def test_new_points_have_the_vote_of_the_cluster_that_they_are_most_like(seed, sparse):
    rng = np.random.default_rng(seed)
    X, new = (normalize(rng.random((n, 60)) * (rng.random((n, 60)) < 0.1) + 1e-3) for n in (30, 10))
    labels = np.arange(30) % 3
    points = measured(X, sparse)
    queries = sp.csr_array(new) if sparse else new
    nearest = find_neighbors(points.X, 1, queries, points=points).squared[:, 0]
    found = votes_of_means(ClusterMeans.of(points, labels, 3), queries, nearest)
    heard = found.sum(axis=1) > 0
    groups = [X[labels == label] for label in range(3)]
    alike = np.array([[likeness(x, group, group) for group in groups] for x in new])
    heard &= np.isfinite(alike).any(axis=1)
    np.testing.assert_array_equal(found.argmax(axis=1)[heard], alike.argmax(axis=1)[heard])


@pytest.mark.parametrize("sparse", [False, True])
def test_texts_in_doubt_do_not_go_where_all_kinds_of_texts_are(sparse):
    rng = np.random.default_rng(0)
    common = np.full(400, 1 / 400)
    special = np.eye(4).repeat(100, axis=1) / 100
    # Three topics with words of their own, and a cluster of texts about anything.
    topics = [0.3 * common + 0.7 * topic for topic in special[:3]] + [common]
    X, y = texts(rng, topics, 60, 20)
    doubtful, truth = texts(rng, [0.5 * common + 0.5 * topic for topic in special[:3]], 15, 20)
    X, y = np.vstack([X, doubtful]), np.r_[y, truth]
    labels = np.where(np.arange(len(y)) < 240, y, 3)
    points = measured(X, sparse)
    settled = settle_by_means(points, labels, 4, np.full(len(y), FAR), SERIAL)
    means = np.array([X[labels == label].mean(axis=0) for label in range(4)])
    by_distance = ((doubtful[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    right = np.mean(settled[240:] == truth)
    assert right > np.mean(by_distance == truth) + 0.1
    assert right > 0.8
    assert np.mean(settled[:180] == y[:180]) > 0.95
    assert np.mean(settled[180:240] == 3) > 0.75


HALF = normalize(np.random.default_rng(1).normal(size=(10, 40)))
WITHOUT_DIRECTION = {
    "opposite": np.vstack([HALF, -HALF]),
    "nearly at right angles": normalize(np.eye(20, 40) + 1e-6),
}


@pytest.mark.parametrize("kind", WITHOUT_DIRECTION)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_cluster_without_a_direction_is_neither_joined_nor_left(kind, sparse):
    directed = normalize(np.random.default_rng(2).normal(size=(20, 40)) + 1)
    points, labels = measured(np.vstack([directed, WITHOUT_DIRECTION[kind]]), sparse), np.repeat([0, 1], 20)
    settled = settle_by_means(points, labels, 2, np.full(40, FAR), SERIAL)
    np.testing.assert_array_equal(settled, labels)


@pytest.mark.parametrize("s", [2, 3, 5])
def test_a_few_texts_about_anything_attract_no_others(s):
    rng = np.random.default_rng(0)
    common = np.full(400, 1 / 400)
    X, y = texts(rng, [0.6 * common + 0.4 * topic for topic in np.eye(4).repeat(100, axis=1) / 100], 50, 20)
    few, _ = texts(rng, [common], s, 20)
    labels = np.r_[y, np.full(s, 4)]
    points = measured(np.vstack([X, few]), sparse=True)
    settled = settle_by_means(points, labels, 5, np.full(len(labels), FAR), SERIAL)
    np.testing.assert_array_equal(np.flatnonzero(settled == 4), np.flatnonzero(labels == 4))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_without_words_stay_where_they_are(sparse, dtype):
    rng = np.random.default_rng(2)
    # Without zeros, so that the middle of the points is not the origin.
    X = np.vstack([normalize(rng.random((60, 30)) + 0.1), np.zeros((30, 30))]).astype(dtype)
    labels = np.arange(90) % 3
    settled = settle_by_means(measured(X, sparse), labels, 3, np.full(90, FAR), SERIAL)
    np.testing.assert_array_equal(settled[60:], labels[60:])
    assert (settled[:60] != labels[:60]).any()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_at_right_angles_to_all_others_stay_where_they_are(dtype):
    rng = np.random.default_rng(3)
    X = np.zeros((90, 60))
    X[:60, :30], X[60:, 30:] = normalize(rng.random((60, 30)) + 0.1), np.eye(30)
    labels = np.arange(90) % 3
    settled = settle_by_means(measured(X.astype(dtype), False), labels, 3, np.full(90, FAR), SERIAL)
    np.testing.assert_array_equal(settled[60:], labels[60:])
