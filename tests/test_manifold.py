"""The methods of the one loop as users meet them: starts, settings of the paper, and what they say."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.callback import ProgressBar
from sklearn.datasets import load_digits, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split

from smrmf import RMNMF, SMRMF, FastSMRMF, SelectiveRMNMF
from smrmf.graph.labels import consecutive_labels
from smrmf.metrics import clustering_accuracy

KINDS = [FastSMRMF, RMNMF, SMRMF]
X = np.random.default_rng(0).normal(size=(30, 4))


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(120, 5, centers=4, cluster_std=1.5, random_state=3)


def test_new_digits_are_predicted_as_well_as_training_digits_are_clustered():
    data, y = load_digits(return_X_y=True)
    train, test, y_train, y_test = train_test_split(data, y, random_state=0)
    model = FastSMRMF(10, random_state=0).fit(train)
    at_home = clustering_accuracy(y_train, model.labels_)
    abroad = clustering_accuracy(y_test, model.predict(test))
    assert abroad > at_home - 0.05


def test_distant_clusters_are_represented_in_single_precision():
    rng = np.random.default_rng(0)
    data = np.vstack([rng.normal(size=(60, 3)) + shift for shift in (0, 1e4, -1e4)])
    wide, narrow = (SMRMF(3, random_state=0).fit(data.astype(kind)) for kind in (np.float64, np.float32))
    np.testing.assert_allclose(narrow.representation_, wide.representation_, atol=0.05)


def test_curved_clusters_are_found():
    data, y = make_moons(400, noise=0.06, random_state=0)
    assert adjusted_rand_score(y, FastSMRMF(2, random_state=0).fit_predict(data)) > 0.99


def test_progress_bar_runs(blobs, capsys):
    FastSMRMF(4, random_state=0).set_callbacks(ProgressBar()).fit(blobs[0])
    assert "FastSMRMF" in capsys.readouterr().out


# Starts


@pytest.mark.parametrize("init", ["spectral", "nndsvd", "kmeans"])
def test_every_named_start_finds_separate_blobs(init):
    data, y = make_blobs(90, 4, centers=3, cluster_std=0.3, random_state=0)
    model = FastSMRMF(3, init=init, random_state=0).fit(data - data.min(axis=0))
    assert adjusted_rand_score(y, model.labels_) == 1.0


def test_a_given_start_is_used(blobs):
    data, y = blobs
    model = FastSMRMF(4, init=np.eye(4)[(y + 1) % 4]).fit(data)
    np.testing.assert_array_equal(model.labels_, (y + 1) % 4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("init", "words"),
    [
        (np.ones((30, 2)), ["(30, 2)", "(30, 3)"]),
        (np.full((30, 3), np.nan), ["nan at row 0, column 0", "init='spectral'"]),
        (np.full((30, 3), "a"), ["type <U1"]),
        ("nndsvd", ["negative", "init='spectral'"]),
    ],
    ids=["shape", "nan", "letters", "signs"],
)
def test_a_start_that_cannot_be_is_refused(kind, init, words):
    refused(kind(3, init=init), X, *words)


def test_too_many_clusters_for_nndsvd_point_to_another_start():
    refused(RMNMF(5, init="nndsvd"), np.abs(X), "n_clusters=5", "=4", "init='spectral'")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (SMRMF(3, selection="l1"), ["selection='l1'", "'linf'", "None"]),
        (SMRMF(3, selection="l2", exemplars=4), ["exemplars=4", "sqrt(n_samples)", "exemplars=6"]),
        (SMRMF(3, dissimilarity="cosine"), ["dissimilarity='cosine'", "'kernel'"]),
        (FastSMRMF(3, smoothness=0), ["smoothness=0", "at least 1e-30"]),
        (FastSMRMF(3, selection_weight=0), ["selection_weight=0", "at least 1e-100"]),
        (RMNMF(3, manifold_weight=-1.0), ["manifold_weight=-1.0", "at least 0", "'auto'"]),
        (RMNMF(3, exemplars=1.5), ["exemplars=1.5", "at most 1"]),
        (RMNMF(3, n_neighbors=0), ["n_neighbors=0", "'sqrt'"]),
        (RMNMF(3, init="random"), ["init='random'", "'spectral'", "'nndsvd'", "'kmeans'"]),
    ],
    ids=str,
)
def test_refusals_name_the_limit_and_the_way_out(model, words):
    refused(model, X, *words)


def refused(model, data, *words):
    """Fit, expect one sentence with these words, and no trace on the estimator."""
    before = set(vars(model))
    with pytest.raises(ValueError, match=r"^[^\n]*$") as raised:
        model.fit(data)
    for word in words:
        assert word in str(raised.value)
    assert set(vars(model)) == before


# What is said


def test_not_converged_says_which_guard_failed(blobs):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations.*raise max_iter"):
        RMNMF(4, max_iter=1, random_state=0, init="kmeans", penalty=1e-3).fit(blobs[0])


@pytest.mark.parametrize(
    ("model", "unit", "way_out"),
    [
        (FastSMRMF(3, dissimilarity="kernel", smoothness=1e-6), 1.0, {"smoothness": 1.0}),
        (SMRMF(3, dissimilarity="sqeuclidean", selection=None), 1.0, {"selection": "linf"}),
        (SMRMF(3, dissimilarity="sqeuclidean", exemplars=1.0), 1.0, {"exemplars": 0.1}),
        (RMNMF(3, bandwidth="squared-distance"), 1e-9, {"bandwidth": "distance"}),
        (SelectiveRMNMF(3, bandwidth="squared-distance"), 1e-9, {"bandwidth": "distance"}),
    ],
    ids=["FastSMRMF", "SMRMF-all", "SMRMF", "RMNMF", "SelectiveRMNMF"],
)
def test_empty_graph_is_said_with_a_way_out_that_helps(model, unit, way_out):
    data = make_blobs(60, 3, centers=3, random_state=0)[0] * unit
    with pytest.warns(UserWarning, match=f"graph is empty.*: .*{next(iter(way_out))}"):
        model.set_params(random_state=0).fit(data)
    assert model.set_params(**way_out).fit(data).affinity_.nnz > 0


def test_empty_clusters_get_the_points_nearest_to_them():
    G = np.array([[1.0, 0.0, 0.0], [0.9, 0.1, 0.5], [0.8, 0.3, 0.0], [0.7, 0.0, 0.1]])
    labels, moved = consecutive_labels(G, np.arange(len(G)))
    np.testing.assert_array_equal(labels, [0, 2, 1, 0])
    assert moved == [2, 1]


def test_empty_clusters_are_said():
    rng = np.random.default_rng(0)
    said = []
    for _ in range(50):  # single steps from random starts often leave a cluster empty
        data, G = rng.normal(size=(5, 2)), rng.random((5, 3))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = RMNMF(3, init=G, max_iter=2, penalty=0.5).fit(data)
        said += [str(w.message) for w in caught if "came out empty" in str(w.message)]
        np.testing.assert_array_equal(np.unique(model.labels_), np.arange(3))
    assert said
    assert "1 of 3 clusters" in said[0]
    assert "lower n_clusters" in said[0]


# The paper


@pytest.mark.parametrize("kind", KINDS)
def test_paper_settings_are_accepted_and_are_the_papers(kind):
    settings = kind.paper_settings()
    assert settings["n_neighbors"] == "sqrt"
    assert settings["init"] == "nndsvd"
    assert settings["penalty"] == 0.1
    data, _ = make_blobs(80, 4, centers=2, cluster_std=0.5, random_state=0)
    data = data - data.min(axis=0)
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    model = kind(2, **settings).fit(data)
    assert model.converged_
    assert len(model.exemplar_indices_) == 8
