"""Tables in which rows are there many times: answers to questions, counts, words."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from callbacks import Recorder
from sklearn.cluster import KMeans

from smrmf import AMRMF, APMF, RMNMF, SMRMF, FastSMRMF
from smrmf.graph.copies import Copies
from smrmf.graph.duplicates import distinct_rows
from smrmf.inspection import suggest_n_clusters
from smrmf.metrics import clustering_accuracy
from smrmf.plot import layout


def answers(seed, n=500, n_questions=4, n_kinds=3, highest=5):
    """Return answers from 1 to ``highest`` of several kinds of people, and the kinds."""
    rng = np.random.default_rng(seed)
    kinds, usual = rng.integers(n_kinds, size=n), rng.uniform(1, highest, size=(n_kinds, n_questions))
    return np.clip(np.rint(usual[kinds] + 0.6 * rng.normal(size=(n, n_questions))), 1, highest), kinds


def test_kinds_are_found_in_answers_as_by_the_means():
    ours, plain = [], []
    for seed in range(6):
        X, kinds = answers(seed)
        assert len(np.unique(X, axis=0)) < len(X) / 2
        model = FastSMRMF(3, random_state=0, max_iter=30, tol=0).fit(X)
        ours.append(clustering_accuracy(kinds, model.labels_))
        plain.append(clustering_accuracy(kinds, KMeans(3, n_init=10, random_state=0).fit_predict(X)))
    assert np.mean(ours) > np.mean(plain) - 0.05


@pytest.fixture(scope="module")
def repeated():
    """Return 120 distinct rows, and which one each of 600 is: the first one so often that lists are full."""
    rng = np.random.default_rng(1)
    middles = np.repeat([[0, 0, 0], [6, 0, 0], [0, 6, 0]], 40, axis=0)
    distinct = middles + rng.normal(size=(120, 3))
    groups = np.concatenate([np.zeros(30, int), np.arange(120), rng.integers(120, size=450)])
    return distinct, groups


def first_rows(groups):
    return np.unique(groups, return_index=True)[1]


@pytest.mark.parametrize("kind", [FastSMRMF, RMNMF, AMRMF, SMRMF, APMF])
def test_what_is_found_of_a_row_holds_for_its_copies(kind, repeated):
    distinct, groups = repeated
    once, model = (kind(3, random_state=0, max_iter=15, tol=0).fit(X) for X in (distinct, distinct[groups]))
    for name in ("labels_", "embedding_", "confidence_", "membership_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(once, name)[groups], err_msg=name)
    np.testing.assert_array_equal(model.components_, once.components_)
    first = first_rows(groups)
    others = np.setdiff1d(np.arange(len(groups)), first)
    if len(once.kept_indices_) < 120:
        np.testing.assert_array_equal(model.kept_indices_, first[once.kept_indices_])
    np.testing.assert_array_equal(model.predict(distinct[groups]), model.labels_)
    assert np.isin(model.exemplar_indices_, first).all()  # none twice
    Z, W = (sp.csr_array(found).toarray() for found in (model.representation_, model.affinity_))
    np.testing.assert_array_equal(Z[first], sp.csr_array(once.representation_).toarray()[:, groups])
    assert (Z[others] == 0).all()
    np.testing.assert_array_equal(W, W.T)
    assert (W.diagonal() == 0).all()
    assert (W[np.ix_(others, others)] == 0).all()


def test_who_lies_among_copies_lies_among_many(repeated):
    distinct, groups = repeated
    X = np.vstack([distinct[groups], distinct[0] + 1e-3, [90, 90, 90]])
    model = FastSMRMF(3, random_state=0, max_iter=3, tol=0).fit(X)
    alone = FastSMRMF(3, random_state=0, max_iter=3, tol=0, init="kmeans").fit(X)
    # The scores of a search among all rows.
    np.testing.assert_allclose(model.outlier_scores_, alone.outlier_scores_, atol=1e-9)
    np.testing.assert_allclose(model.outlier_scores(X), model.outlier_scores_, atol=1e-9)
    assert model.outlier_scores_[-2] == 0
    assert model.outlier_scores_[-1] > 0.9


def test_masses_count_all_rows_that_an_exemplar_stands_for(repeated):
    distinct, groups = repeated
    X = distinct[groups]
    model = FastSMRMF(3, random_state=0, max_iter=15, tol=0).fit(X)
    Z = model.representation_.toarray()
    for row, score in zip(model.exemplar_indices_, model.exemplar_scores_, strict=True):
        mine = (model.labels_ == model.labels_[row]) & (np.arange(len(X)) != row)
        assert score == pytest.approx(Z[row, mine].sum())


def test_sparse_rows_and_what_callbacks_see_have_all_rows(repeated):
    distinct, groups = repeated
    X = sp.csr_array(np.maximum(distinct, 0))[groups]
    record = Recorder()
    model = FastSMRMF(3, random_state=0, max_iter=3, tol=0).set_callbacks(record).fit(X)
    assert model._fit_data.shape == X.shape
    assert [len(seen.labels_) for seen in record.models] == [len(groups)] * 3


@pytest.mark.parametrize("init", ["kmeans", "nndsvd", "given"])
def test_other_starts_take_all_rows(init, repeated):
    distinct, groups = repeated
    X = np.abs(distinct)[groups]
    if init == "given":
        init = np.eye(3)[groups % 3]
    model = FastSMRMF(3, init=init, random_state=0, max_iter=3, tol=0).fit(X)
    assert (model.representation_.toarray()[150:] > 0).any()


def test_few_copies_and_few_distinct_rows_change_nothing():
    few = np.concatenate([np.arange(78), [0, 0]])
    assert Copies.to_leave_out(few, 6).first is None
    many = np.concatenate([np.arange(77), [0, 0, 0]])
    np.testing.assert_array_equal(Copies.to_leave_out(many, 6).first, np.arange(77))
    assert Copies.to_leave_out(many, 6, n_needed=77).first is None
    assert Copies.to_leave_out(np.arange(80) % 13, 6).first is None
    assert Copies.to_leave_out(np.arange(80) % 14, 6).first is not None


def test_copies_lie_around_their_point_on_a_map(repeated):
    distinct, groups = repeated
    places = layout(FastSMRMF(3, random_state=0, max_iter=3, tol=0).fit(distinct[groups]))
    once = layout(FastSMRMF(3, max_iter=3, tol=0).fit(distinct))
    first = first_rows(groups)
    np.testing.assert_allclose(places[first], once, atol=1e-6)
    apart = np.linalg.norm(once[:, None] - once, axis=2) + 1e9 * np.eye(120)
    away = np.linalg.norm(places - once[groups], axis=1)
    assert np.delete(away, first).min() > 0
    assert away.max() < 0.61 * np.median(apart.min(axis=1))
    assert len(np.unique(places.round(9), axis=0)) == len(groups)


def test_one_value_in_most_rows_takes_no_more_memory():
    # As days without rain: a list of all that are equal would have as many entries as pairs of them.
    rain = np.concatenate([np.zeros(3000), np.random.default_rng(0).gamma(0.5, 10, size=600).round(1)])
    model = FastSMRMF(2, random_state=0, max_iter=10, tol=0).fit(rain[:, None])
    assert model.representation_.nnz < 25 * len(rain)
    assert model.labels_[:3000].std() == 0
    assert distinct_rows(rain[:, None]).max() > 100


def test_the_number_of_clusters_does_not_hang_on_copies():
    rng = np.random.default_rng(0)
    blobs = np.repeat([[0, 0], [8, 0], [0, 8]], 50, axis=0) + rng.normal(size=(150, 2))
    for X, number in (
        (blobs[rng.integers(150, size=1200)], 3),
        (np.rint(2 * rng.normal(size=(999, 2))), None),
    ):
        assert suggest_n_clusters(X, range(2, 7), random_state=0).n_clusters == number


@pytest.mark.parametrize("n_distinct", [22, 30])
def test_more_numbers_than_halves_have_distinct_rows_are_compared(n_distinct):
    rng = np.random.default_rng(n_distinct)
    rows = rng.normal(size=(n_distinct, 3))
    X = np.vstack([rows, rows[rng.integers(n_distinct, size=300)]])
    assert suggest_n_clusters(X, random_state=0).ranked
