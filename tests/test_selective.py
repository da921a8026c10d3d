"""SelectiveRMNMF: its graph is RMNMF's, without the rows of points that were not selected."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from smrmf import DS3, ESC, IPM, KDPP, RMNMF, SelectiveRMNMF
from smrmf.factorization._manifold import way_back_in_range
from smrmf.factorization.selective_rmnmf import represented_by


class Chosen(BaseEstimator):
    """A selector of others: the rows it is told."""

    def __init__(self, rows=None):
        self.rows = rows

    def fit(self, X, y=None):
        self.exemplar_indices_ = np.arange(len(X)) if self.rows is None else np.asarray(self.rows)
        return self


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(80, 4, centers=3, cluster_std=1.5, random_state=0)[0]


@pytest.mark.parametrize("init", ["spectral", "kmeans"])
def test_a_selector_that_picks_everything_makes_it_rmnmf(blobs, init):
    plain = RMNMF(3, init=init, random_state=0).fit(blobs)
    for selector in (Chosen(), IPM(exemplars=80), KDPP(exemplars=80)):
        model = SelectiveRMNMF(3, selector=selector, init=init, random_state=0).fit(blobs)
        assert_array_equal(model.labels_, plain.labels_)
        assert_array_equal(model.affinity_.toarray(), plain.affinity_.toarray())
        assert_allclose(model.embedding_, plain.embedding_, atol=1e-10)
        assert_allclose(model.objective_history_, plain.objective_history_)


def test_edges_belong_to_selected_points(blobs):
    rows = [3, 40, 41]
    model = SelectiveRMNMF(3, selector=Chosen(rows), n_neighbors=4, random_state=0).fit(blobs)
    plain = RMNMF(3, n_neighbors=4, random_state=0).fit(blobs)
    edges = model.affinity_.tocoo()
    assert np.isin(edges.row, rows).astype(int).sum() + np.isin(edges.col, rows).sum() >= edges.nnz
    # Every selected point keeps its four neighbours, and no weight exceeds RMNMF's.
    assert (np.diff(model.affinity_.indptr)[rows] >= 4).all()
    assert (plain.affinity_ - model.affinity_).toarray().min() >= 0


@pytest.mark.parametrize("selector", [None, IPM(), KDPP(), DS3(), ESC()])
def test_any_selector_serves(blobs, selector):
    model = SelectiveRMNMF(3, selector=selector, random_state=0).fit(blobs)
    assert_array_equal(model.exemplar_indices_, model.selector_.exemplar_indices_)
    assert_array_equal(model.exemplar_scores_, model.selector_.exemplar_scores_)
    assert_allclose(model.representation_.sum(axis=0), 1)
    assert_array_equal(model.predict(blobs), model.labels_)


def test_the_seed_reaches_a_selector_without_one(blobs):
    picks = [
        SelectiveRMNMF(3, selector=KDPP(), random_state=seed).fit(blobs).exemplar_indices_
        for seed in (0, 0, 1)
    ]
    assert_array_equal(picks[0], picks[1])
    assert set(picks[0]) != set(picks[2])
    own = [
        SelectiveRMNMF(3, selector=KDPP(random_state=5), random_state=seed).fit(blobs).exemplar_indices_
        for seed in (0, 1)
    ]
    assert_array_equal(own[0], own[1])


def test_the_given_selector_is_not_touched(blobs):
    selector = IPM()
    SelectiveRMNMF(3, selector=selector, random_state=0).fit(blobs)
    assert not hasattr(selector, "exemplar_indices_")


def test_points_in_no_neighbourhood_represent_themselves():
    import scipy.sparse as sp

    W = sp.csr_array(np.array([[0, 2.0, 0], [0, 0, 0], [0, 0, 0]]))
    assert_allclose(represented_by(W).toarray(), [[1, 0, 0], [1, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize(
    "selector", [KMeans(2, n_init=1), Chosen([80]), Chosen([-1]), Chosen([0.5]), Chosen([])]
)
def test_a_selector_that_selects_no_rows_is_refused(blobs, selector):
    with pytest.raises(ValueError, match=r"does not set exemplar_indices_ to rows of X.* from 0 to 79"):
        SelectiveRMNMF(3, selector=selector).fit(blobs)


def test_something_else_than_a_selector_is_refused(blobs):
    with pytest.raises(ValueError, match=r"selector='ipm' is not valid.*a selector such as IPM\(\)"):
        SelectiveRMNMF(3, selector="ipm").fit(blobs)


def test_a_failing_selector_leaves_the_old_fit(blobs):
    model = SelectiveRMNMF(3, selector=Chosen([1, 2, 3]), random_state=0).fit(blobs)
    before = model.embedding_
    model.set_params(selector=IPM(exemplars=999))
    with pytest.raises(ValueError, match="exemplars=999"):
        model.fit(blobs)
    assert model.embedding_ is before


class Weighted(Chosen):
    """A selector with a weight of its own that is no number."""

    def __init__(self, rows=None, sample_weight=None):
        super().__init__(rows)
        self.sample_weight = sample_weight


def test_weights_of_the_selector_are_none_of_the_models(blobs):
    model = SelectiveRMNMF(3, selector=Weighted([0, 40]), manifold_weight=2.0)
    assert way_back_in_range(model).startswith("use 'auto' instead of manifold_weight=2, or scale the data")
