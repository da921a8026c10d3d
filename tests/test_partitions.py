"""Partitions of a graph: shares, leaks, information and agreement, against plain definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, mutual_info_score

from smrmf.graph.partitions import (
    adjusted_rand,
    information,
    joined_shares,
    leak,
    shares_between,
)


def random_graph(n: int, seed: int) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    dense = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.3), 1)
    dense[np.arange(n - 1), np.arange(1, n)] += 0.1
    return sp.csr_array(dense + dense.T)


seeds = st.integers(0, 10_000)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(2, 5))
def test_shares_are_sums_of_weights(seed, c):
    W, labels = random_graph(20, seed), np.random.default_rng(seed).integers(0, c, 20)
    J = shares_between(W, labels, c)
    S = np.eye(c)[labels]
    np.testing.assert_allclose(J, S.T @ W.toarray() @ S / W.sum(), atol=1e-12)
    assert J.sum() == pytest.approx(1)


def test_components_leak_nothing_and_tell_everything():
    blocks = sp.csr_array(sp.block_diag([random_graph(8, 0), random_graph(12, 1)]))
    J = shares_between(blocks, np.repeat([0, 1], [8, 12]), 2)
    shares = J.sum(axis=1)
    assert leak(J) == 0
    assert information(J, 1.0) == pytest.approx(1)
    assert information(J, 0.0) == pytest.approx(-np.sum(shares * np.log(shares)))


def test_an_empty_cluster_counts_for_nothing():
    J = shares_between(random_graph(10, 0), np.repeat([0, 2], 5), 3)
    filled = J[np.ix_([0, 2], [0, 2])]
    assert leak(J) == pytest.approx(leak(filled))
    assert information(J, 0.75) == pytest.approx(information(filled, 0.75))


def test_one_cluster_tells_nothing():
    assert information(np.array([[1.0]]), 0.75) == 0


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_information_is_that_of_labels_at_the_ends_of_edges(seed):
    rng = np.random.default_rng(seed)
    # Weights that are whole numbers: each edge so many times.
    upper = np.triu(rng.integers(0, 3, (15, 15)), 1)
    upper[0, 1] = 1
    W, labels = sp.csr_array((upper + upper.T).astype(float)), rng.integers(0, 3, 15)
    rows, columns = W.nonzero()
    times = W[rows, columns].astype(int)
    expected = mutual_info_score(labels[np.repeat(rows, times)], labels[np.repeat(columns, times)])
    assert information(shares_between(W, labels, 3), 0.0) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 4))
def test_joined_shares_count_partitions(seed, count):
    W = random_graph(12, seed)
    partitions = np.random.default_rng(seed).integers(0, 3, (12, count))
    rows = np.repeat(np.arange(12), np.diff(W.indptr))
    expected = (partitions[rows] == partitions[W.indices]).mean(axis=1)
    np.testing.assert_allclose(joined_shares(W, partitions), expected)


@settings(max_examples=30, deadline=None)
@given(seeds, st.integers(1, 4))
def test_agreement_is_scikit_learns(seed, c):
    first, second = np.random.default_rng(seed).integers(0, c, (2, 25))
    assert adjusted_rand(first, second, c) == pytest.approx(adjusted_rand_score(first, second))
