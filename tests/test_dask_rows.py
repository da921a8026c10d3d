"""Attributes of a fit on a Dask array: of the rows as they came, and in agreement with each other."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
from many_points import overlapping, sheets
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from smrmf.dask import FastSMRMF
from smrmf.graph.membership import mean_distances, outlyingness

N, K, N_CLUSTERS = 3000, 10, 5
# Unequal, one without rows, one of a single row.
CHUNKS = (1100, 0, 1, 1899)
FAR = np.array([3, 900, 1100, 1101, 2999])
OF_ROWS = ("labels_", "membership_", "confidence_", "outlier_scores_", "embedding_")


def chunked(X, chunks=CHUNKS):
    return da.from_array(X, chunks=(chunks, -1))


class Fit:
    """Rows, the cluster that each comes from, a model of them, and what it says of each."""

    def __init__(self, X, truth):
        self.X, self.truth = X, truth
        with dask.config.set(scheduler="threads", num_workers=2):
            self.model = FastSMRMF(N_CLUSTERS, n_neighbors=K, random_state=0).fit(chunked(X))
            self.of_rows = dict(zip(OF_ROWS, dask.compute(*self.lazy()), strict=True))

    def lazy(self):
        return [getattr(self.model, name) for name in OF_ROWS]

    @property
    def labels(self):
        return self.of_rows["labels_"]


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


@pytest.fixture(scope="module", params=[sheets, overlapping])
def fitted(request):
    return Fit(*request.param(N))


@pytest.fixture(scope="module")
def with_copies():
    """Return a fit to rows that came twice, mostly in different chunks, and of which row each is a copy."""
    once, truth = sheets(N // 2)
    of_row = np.random.default_rng(0).permutation(N) % (N // 2)
    return Fit(once[of_row], truth[of_row]), of_row


def neighbors_of_rows(X, count):
    """Return the nearest other rows of every row, and how far they are."""
    distances, rows = NearestNeighbors(n_neighbors=count + 1).fit(X).kneighbors(X)
    return rows[:, 1:], distances[:, 1:]


def test_there_is_an_entry_for_every_row_in_its_chunk(fitted):
    for name, array in zip(OF_ROWS, fitted.lazy(), strict=True):
        assert [size for size in array.chunks[0] if size > 0] == [size for size in CHUNKS if size > 0]
        known = fitted.of_rows[name]
        assert (array.shape, array.dtype) == (known.shape, known.dtype)
        assert_array_equal(array[1000:1200].compute(), known[1000:1200])


def test_labels_are_those_of_the_rows_as_they_came(fitted):
    assert adjusted_rand_score(fitted.truth, fitted.labels) > 0.96
    near, _ = neighbors_of_rows(fitted.X, K)
    assert np.mean(fitted.labels[near] == fitted.labels[:, None]) > 0.95
    means = np.stack([fitted.X[fitted.labels == label].mean(axis=0) for label in range(N_CLUSTERS)])
    assert_allclose(fitted.model.components_, means, atol=0.05 * np.abs(fitted.X).max())


def test_the_embedding_is_nearly_an_indicator_of_the_labels(fitted):
    embedding = fitted.of_rows["embedding_"]
    assert_array_equal(embedding.argmax(axis=1), fitted.labels)
    assert_allclose(embedding.max(axis=1).mean(), 1, atol=0.1)


def test_membership_and_confidence_agree_with_labels(fitted):
    membership, confidence = fitted.of_rows["membership_"], fitted.of_rows["confidence_"]
    assert_allclose(membership.sum(axis=1), 1)
    assert_array_equal(membership.argmax(axis=1), fitted.labels)
    own = membership[np.arange(N), fitted.labels]
    assert (confidence <= own + 1e-12).all()
    # Only where a label is against the neighbourhood is it favoured.
    assert np.mean(np.isclose(confidence, own)) > 0.97


def test_labels_against_the_neighborhood_have_the_largest_share_all_the_same():
    X = np.random.default_rng(0).normal(size=(N, 8))
    of_rows = Fit(X, np.zeros(N, int)).of_rows
    labels, membership = of_rows["labels_"], of_rows["membership_"]
    against = of_rows["confidence_"] < membership[np.arange(N), labels] - 1e-9
    assert 0.01 < against.mean() < 0.1
    assert_array_equal(membership.argmax(axis=1), labels)


@pytest.mark.parametrize("fitted", [overlapping], indirect=True)
def test_the_least_sure_rows_have_neighbors_of_other_labels(fitted):
    near, _ = neighbors_of_rows(fitted.X, K)
    agree = np.mean(fitted.labels[near] == fitted.labels[:, None], axis=1)
    sure = fitted.of_rows["confidence_"]
    assert np.corrcoef(agree, sure)[0, 1] > 0.6
    assert sure[agree == 1].mean() > sure[agree < 0.7].mean() + 0.1


def test_outlier_scores_are_those_of_the_true_neighbors(fitted):
    near, distances = neighbors_of_rows(fitted.X, K)
    reach = mean_distances(distances**2)
    scores = fitted.of_rows["outlier_scores_"]
    # Some lists miss a neighbour, which lies farther than most.
    assert np.mean(np.isclose(scores, outlyingness(reach, near, reach), atol=1e-3)) > 0.6
    assert np.corrcoef(scores, outlyingness(reach, near, reach))[0, 1] > 0.97


def test_rows_that_lie_apart_have_the_highest_scores():
    X, truth = sheets(N)
    X[FAR] += np.random.default_rng(0).choice([-30.0, 30.0], size=(len(FAR), X.shape[1]))
    scores = Fit(X, truth).of_rows["outlier_scores_"]
    assert_array_equal(np.sort(np.argsort(-scores)[: len(FAR)]), FAR)
    assert scores[FAR].min() > 0.8


def test_exemplars_are_rows_of_their_clusters(fitted):
    model = fitted.model
    rows, scores = model.exemplar_indices_, model.exemplar_scores_
    assert len(set(rows)) == len(rows)
    assert (np.diff(scores) <= 0).all()
    assert_array_equal(fitted.labels[rows], model.exemplar_labels_)
    assert set(model.exemplar_labels_) == set(range(N_CLUSTERS))
    # They stand for those around them: few are among the rows that lie apart.
    near, _ = neighbors_of_rows(fitted.X, K)
    assert np.mean(fitted.labels[near[rows]] == fitted.labels[rows, None]) > 0.95
    outlying = fitted.of_rows["outlier_scores_"]
    assert outlying[rows].mean() < outlying.mean()


def test_rows_are_predicted_to_be_where_they_are(fitted):
    for chunks in (CHUNKS, (1700, 1300)):
        found = fitted.model.predict(chunked(fitted.X, chunks)).compute()
        assert np.mean(found == fitted.labels) > 0.99


def test_a_row_is_predicted_as_itself_wherever_it_stands(fitted):
    order = np.random.default_rng(0).permutation(N)
    model, X = fitted.model, fitted.X
    again, other = model.predict(chunked(X)), model.predict(chunked(X[order], (500,) * 6))
    assert_array_equal(other.compute(), again.compute()[order])
    assert_allclose(
        model.predict_proba(chunked(X[order], (500,) * 6)).compute(),
        model.predict_proba(chunked(X)).compute()[order],
        atol=1e-9,
    )


# Rows that came more than once


def test_copies_in_different_chunks_are_told_the_same(with_copies):
    fitted, of_row = with_copies
    first, second = np.argsort(of_row, kind="stable").reshape(-1, 2).T
    chunk = np.repeat(np.arange(len(CHUNKS)), CHUNKS)
    assert np.count_nonzero(chunk[first] != chunk[second]) > 500
    assert_array_equal(fitted.labels[first], fitted.labels[second])
    for name in OF_ROWS:
        values = fitted.of_rows[name]
        # Lists of copies are not quite the same: each names the other.
        assert_allclose(values[first], values[second], atol=5e-3, err_msg=name)
    assert adjusted_rand_score(fitted.truth, fitted.labels) > 0.97


def test_copies_are_predicted_as_they_are_labelled(with_copies):
    fitted, _ = with_copies
    assert_array_equal(fitted.model.predict(chunked(fitted.X)).compute(), fitted.labels)
