"""Exemplars: the graph of (3.6) against its definition, ranking, shares and ties."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_blobs

from smrmf import SMRMF, FastSMRMF
from smrmf.graph.exemplars import (
    Neighborhoods,
    best_first,
    cluster_quotas,
    exemplar_scores,
    rank_exemplars,
    with_copies_as_one,
)
from smrmf.metrics import bad_neighbor_share


@pytest.fixture(name="Z")
def make_z():
    """A representation whose columns sum to one."""
    rng = np.random.default_rng(0)
    Z = rng.random((30, 30)) * (rng.random((30, 30)) < 0.4)
    Z[0] += 1e-3
    return Z / Z.sum(axis=0)


def selected(Z, count, k, rule, neighbors=None):
    """Build the symmetrised Z-hat by its definition."""
    others = Z - np.diag(np.diag(Z))
    scores = np.linalg.norm(Z, axis=1) if rule == "norm" else others.sum(axis=1)
    Zhat = np.zeros_like(Z)
    for i in np.argsort(-scores)[:count]:
        row = others[i].copy()
        if neighbors is not None:
            row[np.setdiff1d(np.arange(len(Z)), neighbors[i])] = 0
        best = np.argsort(-row)[:k]
        Zhat[i, best] = row[best]
    return (Zhat + Zhat.T) / 2


@pytest.mark.parametrize("make", [np.ascontiguousarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("rule", ["mass", "norm"])
@pytest.mark.parametrize(("count", "k"), [(1, 1), (6, 4), (30, 29)])
def test_graph_is_that_of_the_best_rows(Z, make, rule, count, k):
    graph, _ = Neighborhoods(count, k, rule).graph(make(Z.T))
    np.testing.assert_allclose(graph.toarray(), selected(Z, count, k, rule), atol=1e-15)


@pytest.mark.parametrize("make", [np.ascontiguousarray, sp.csr_array], ids=["dense", "sparse"])
def test_input_neighbourhoods_keep_only_near_points(Z, make):
    neighbors = np.array([[(i + step) % 30 for step in (1, 2, 5, 9)] for i in range(30)])
    graph, _ = Neighborhoods(6, 4, "norm", neighbors).graph(make(Z.T))
    np.testing.assert_allclose(graph.toarray(), selected(Z, 6, 4, "norm", neighbors), atol=1e-15)


def test_of_those_to_look_at_each_stands_for_others():
    Z = np.zeros((60, 60))
    Z[[3, 7], :30] = 0.5
    Z[40:60, 40:60] = 0.05
    chosen, scores = rank_exemplars(sp.csr_array(Z.T), np.repeat([0, 1], 30), None, "mass")
    assert set(chosen[chosen < 30]) == {3, 7}
    assert len(chosen) == 2 + 3
    assert (scores > 0).all()
    # Where none stands for another, there is one all the same.
    assert len(rank_exemplars(sp.csr_array((60, 60)), np.repeat([0, 1], 30), None, "mass")[0]) == 2


def test_the_first_of_several_copies_stands_for_all_of_them():
    scores = with_copies_as_one(np.array([1.0, 2, 4, 8, 16, 32]), np.array([0, 1, 0, 2, 1, 0]))
    np.testing.assert_array_equal(scores, [37, 18, 0, 8, 0, 0])


def test_no_row_is_shown_twice():
    kinds = np.repeat(np.eye(6), [40, 30, 20, 40, 30, 20], axis=0) @ np.kron(np.eye(2), np.ones((3, 2)))
    X = kinds + np.repeat(np.arange(6) % 3, [40, 30, 20, 40, 30, 20])[:, None] * [0.1, 0, 0, 0]
    model = FastSMRMF(2, random_state=0, max_iter=30, tol=0).fit(X)
    assert len(np.unique(X[model.exemplar_indices_], axis=0)) == len(model.exemplar_indices_) == 6
    for cluster in range(2):
        rows = model.exemplars_of(cluster, n=5)
        assert len(np.unique(X[rows], axis=0)) == len(rows) == 3
    assert len(FastSMRMF(2, exemplars=10, random_state=0, max_iter=5, tol=0).fit(X).exemplar_indices_) == 10


def test_no_selection_keeps_everything(Z):
    graph, _ = Neighborhoods(None, 3, "mass").graph(Z.T)
    expected = (Z + Z.T) / 2
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(graph.toarray(), expected)


def test_identity_has_an_empty_graph():
    assert Neighborhoods(5, 3, "norm").graph(sp.eye_array(10, format="csr"))[0].nnz == 0


def test_entries_clipped_to_one_level_are_chosen_by_likeness_not_by_rounding():
    Zt = np.zeros((5, 5))
    Zt[1:, 0] = 0.5 + np.array([0, 1, 2, 3]) * 1e-15
    D = np.zeros((5, 5))
    D[1:, 0] = [0.4, 0.1, 0.2, 0.3]
    graph, _ = Neighborhoods(1, 2, "mass").graph(Zt, D)
    assert sorted(graph.nonzero()[1][graph.nonzero()[0] == 0]) == [2, 3]


def test_ties_go_to_the_lower_index():
    np.testing.assert_array_equal(best_first(np.array([1.0, 3.0, 3.0 - 1e-15, 2.0]), 3), [1, 2, 3])


@pytest.mark.parametrize("rule", ["mass", "norm"])
def test_scores_agree_between_dense_and_sparse(Z, rule):
    np.testing.assert_allclose(exemplar_scores(Z.T, rule), exemplar_scores(sp.csr_array(Z.T), rule))


@pytest.mark.parametrize("rule", ["mass", "norm"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_have_the_precision_of_z(Z, rule, form, dtype):
    Zt = form(Z.T.astype(dtype))
    assert exemplar_scores(Zt, rule).dtype == dtype
    assert rank_exemplars(Zt, np.arange(30) % 3, 5, rule)[1].dtype == dtype


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.data())
def test_quotas_share_the_count_fairly(sizes, data):
    sizes = np.array(sizes)
    count = data.draw(st.integers(1, int(sizes.sum())))
    quotas = cluster_quotas(sizes, count)
    assert quotas.sum() == count
    assert (quotas <= sizes).all()
    if count >= len(sizes):
        assert (quotas >= 1).all()
        free = quotas > 1  # clusters above the guaranteed one are within one of their share
        assert (quotas[free] <= count * sizes[free] / sizes.sum() + 1).all()


def test_ranking_counts_mass_inside_the_cluster_only():
    Zt = sp.csr_array(np.array([[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 1, 0, 0]], dtype=float))
    labels = np.array([0, 0, 1, 1])
    chosen, scores = rank_exemplars(Zt, labels, 4, "mass")
    # Point 1 represents 0, 2 and 3, but only 0 shares its cluster; 2 represents 1 of the other one.
    assert chosen[0] == 1
    np.testing.assert_allclose(scores, [1, 0, 0, 0])


def test_the_papers_rule_ranks_rows_by_norm(Z):
    chosen, scores = rank_exemplars(Z.T, np.zeros(30, int), 5, "norm")
    norms = np.linalg.norm(Z, axis=1)
    np.testing.assert_array_equal(chosen, np.argsort(-norms)[:5])
    np.testing.assert_allclose(scores, norms[chosen])


@pytest.mark.parametrize("count", [10, 40, 0.1])
def test_exemplars_of_digits_cover_all_clusters_and_are_purer_than_average(count):
    X, y = load_digits(return_X_y=True)
    model = FastSMRMF(10, exemplars=count, random_state=0).fit(X)
    chosen = model.exemplar_indices_
    assert len(np.unique(chosen)) == len(chosen)
    np.testing.assert_array_equal(np.unique(model.labels_[chosen]), np.arange(10))
    bad = bad_neighbor_share(X, y)
    assert bad[chosen].mean() < bad.mean()


def test_a_count_may_be_smaller_than_the_number_of_clusters():
    X = np.random.default_rng(0).normal(size=(60, 3))
    assert len(FastSMRMF(5, exemplars=2, random_state=0).fit(X).exemplar_indices_) == 2
    assert len(SMRMF(5, exemplars=2, random_state=0).fit(X).exemplar_indices_) == 2


@pytest.mark.parametrize("rule", ["mass", "norm"])
def test_a_few_exemplars_of_every_cluster_are_reported(rule):
    X, _ = make_blobs([200, 40, 6], centers=[[0, 0], [20, 0], [0, 20]], random_state=0)
    model = FastSMRMF(3, exemplar_rule=rule, random_state=0).fit(X)
    sizes = np.bincount(model.labels_)
    np.testing.assert_array_equal(
        np.bincount(model.exemplar_labels_), np.clip(np.rint(sizes / 10), 1, 5).astype(int)
    )
    assert len(model.kept_indices_) == 25  # a tenth of the points
    for cluster in range(3):
        listed = model.exemplar_indices_[model.exemplar_labels_ == cluster]
        np.testing.assert_array_equal(model.exemplars_of(cluster, len(listed)), listed)
