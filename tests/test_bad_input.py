"""Bad input gets one clear sentence; odd but legal input works."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from smrmf import RMNMF, SMRMF, FastSMRMF, _validation

KINDS = [FastSMRMF, RMNMF, SMRMF]
X = np.random.default_rng(0).normal(size=(30, 4))


def refused(model, data, error, *words):
    """Fit, expect one sentence with these words, and no trace on the estimator."""
    before = set(vars(model))
    with pytest.raises(error) as raised:
        model.fit(data)
    message = str(raised.value)
    assert message.count("\n") == 0
    for word in words:
        assert word in message, message
    assert set(vars(model)) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity")])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_not_finite_says_where(kind, value, name, make):
    data = X.copy()
    data[17, 2] = value
    refused(kind(3), make(data), ValueError, name, "row 17, column 2", "1 such values")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_clusters": 31}, ["n_clusters=31", "n_samples=30"]),
        ({"n_clusters": 0}, ["n_clusters=0", "at least 1"]),
        ({"n_clusters": 2.5}, ["n_clusters=2.5", "integer"]),
        ({"n_clusters": True}, ["n_clusters=True", "integer"]),
        ({"n_clusters": "three"}, ["n_clusters='three'", "integer"]),
        ({"n_neighbors": 30}, ["n_neighbors=30", "n_samples=30"]),
        ({"n_neighbors": 0}, ["n_neighbors=0", "'sqrt'"]),
        ({"exemplars": 31}, ["exemplars=31", "n_samples=30"]),
        ({"exemplars": 0}, ["exemplars=0", "at least 1"]),
        ({"exemplars": 0.0}, ["exemplars=0.0", "above 0"]),
        ({"exemplars": 1.5}, ["exemplars=1.5", "at most 1"]),
        ({"manifold_weight": -1.0}, ["manifold_weight=-1.0", "at least 0", "'auto'"]),
        ({"manifold_weight": "big"}, ["manifold_weight='big'", "'auto'"]),
        ({"penalty": 0}, ["penalty=0", "above 0"]),
        ({"penalty_growth": 0.9}, ["penalty_growth=0.9", "at least 1"]),
        ({"max_iter": 0}, ["max_iter=0", "at least 1"]),
        ({"tol": np.nan}, ["tol=nan", "at least 0"]),
        ({"init": "random"}, ["init='random'", "'spectral'", "'nndsvd'", "'kmeans'"]),
        ({"init": np.ones((30, 2))}, ["(30, 2)", "(30, 3)"]),
        ({"init": np.full((30, 3), np.nan)}, ["nan at row 0, column 0", "init='spectral'"]),
        ({"init": np.full((30, 3), "a")}, ["type <U1"]),
        ({"n_jobs": 0}, ["n_jobs=0"]),
        ({"max_iter": 10**400}, ["max_iter=1", "at most 1e+09"]),
        ({"init": "nndsvd"}, ["negative", "init='spectral'"]),
        ({"exemplar_rule": "best"}, ["exemplar_rule='best'", "'mass'"]),
        ({"random_state": "seed"}, ["random_state='seed'", "None"]),
        ({"n_jobs": 1.5}, ["n_jobs=1.5", "integer"]),
    ],
    ids=str,
)
def test_parameters_out_of_range_name_value_limit_and_way_out(kind, parameters, words):
    refused(kind(**{"n_clusters": 3} | parameters), X, ValueError, *words)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SMRMF(3, selection="l1"), ["selection='l1'", "'linf'", "None"]),
        (SMRMF(3, selection="l2", exemplars=4), ["exemplars=4", "sqrt(n_samples)", "exemplars=6"]),
        (SMRMF(3, dissimilarity="cosine"), ["dissimilarity='cosine'", "'kernel'"]),
        (SMRMF(3, bandwidth=2), ["bandwidth=2", "'distance'"]),
        (SMRMF(3, freeze_tol=-1), ["freeze_tol=-1"]),
        (FastSMRMF(3, smoothness=0), ["smoothness=0", "at least 1e-30"]),
        (FastSMRMF(3, selection_weight=0), ["selection_weight=0", "at least 1e-100"]),
        (FastSMRMF(3, neighborhoods="far"), ["neighborhoods='far'", "'input'"]),
    ],
    ids=str,
)
def test_parameters_of_one_variant(model, words):
    refused(model, X, ValueError, *words)


def test_too_many_clusters_for_nndsvd_points_to_another_start():
    refused(RMNMF(5, init="nndsvd"), np.abs(X), ValueError, "n_clusters=5", "=4", "init='spectral'")


def test_dense_model_refuses_what_would_not_fit_in_memory(monkeypatch):
    monkeypatch.setattr(_validation, "available_bytes", lambda: 5 * 30 * 30 * 8 - 1)
    refused(SMRMF(3), X, MemoryError, "5 arrays of 30 x 30", "FastSMRMF")
    SMRMF(3, random_state=0).fit(X.astype(np.float32))
    FastSMRMF(3, random_state=0).fit(X)


def test_sparse_data_that_would_not_fit_dense_are_refused(monkeypatch):
    monkeypatch.setattr(_validation, "available_bytes", lambda: 1000)
    refused(FastSMRMF(3), sp.csr_array(X), MemoryError, "30 x 4", "TruncatedSVD")


def test_the_memory_estimate_reads_this_machine():
    assert _validation.available_bytes() > 2**26


@pytest.mark.parametrize("kind", KINDS)
def test_unfitted_models_say_so(kind):
    for method in ("predict", "transform", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(kind(3), method)(X)


@pytest.mark.parametrize("kind", KINDS)
def test_another_number_of_features_is_refused(kind):
    model = kind(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4 features"):
        model.predict(X[:, :3])
    with pytest.raises(ValueError, match=r"\(30, 4\).*3 columns"):
        model.inverse_transform(X)
    with pytest.raises(ValueError, match="NaN"):
        model.inverse_transform(np.full((2, 3), np.nan))


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_refit_keeps_the_earlier_fit(kind):
    model = kind(3, random_state=0).fit(X)
    labels = model.labels_
    with pytest.raises(ValueError, match="n_neighbors=99"):
        model.set_params(n_neighbors=99).fit(np.ones((20, 7)))
    assert model.labels_ is labels
    assert model.n_features_in_ == 4


ODD = {
    "constant": np.ones((20, 3)),
    "all zero": np.zeros((20, 3)),
    "one feature": np.linspace(0, 1, 25)[:, None],
    "duplicates": np.repeat(X[:8], 5, axis=0),
    "two groups of duplicates": np.repeat([[0.0, 1.0], [4.0, 5.0]], 15, axis=0),
    "as many points as clusters": X[:3],
    "integers": np.arange(60).reshape(20, 3) % 7,
    "far from the origin": X + 1e6,
    "one huge outlier": np.vstack([X, [[1e9, 0, 0, 0]]]),
    "wide": np.random.default_rng(1).normal(size=(12, 400)),
    "tiny": X * 1e-300,
    "boolean": X > 0,
}


@pytest.mark.filterwarnings("ignore:.*clusters came out empty")
@pytest.mark.filterwarnings("ignore:The learned graph is empty")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ODD)
def test_odd_data_work(kind, name):
    data = ODD[name]
    model = kind(3, random_state=0).fit(data)
    np.testing.assert_array_equal(np.unique(model.labels_), np.arange(3))
    for attribute in ("embedding_", "components_", "objective_history_", "exemplar_scores_"):
        assert np.isfinite(getattr(model, attribute)).all(), attribute
    assert np.isfinite(model.transform(data)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_one_cluster_is_everything(kind):
    model = kind(1, random_state=0).fit(X)
    assert (model.labels_ == 0).all()
    assert model.predict(X + 1).tolist() == [0] * len(X)
