"""The estimators as users meet them: results, new points, dtypes, callbacks, reproducibility."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.callback import ProgressBar
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from smrmf import RMNMF, SMRMF, FastSMRMF, _parallel
from smrmf.factorization._results import consecutive_labels
from smrmf.metrics import clustering_accuracy

KINDS = [FastSMRMF, RMNMF, SMRMF]


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(120, 5, centers=4, cluster_std=1.5, random_state=3)


@pytest.mark.parametrize("kind", KINDS)
def test_fitted_attributes_have_the_promised_shapes(blobs, kind):
    X, _ = blobs
    model = kind(4, random_state=0).fit(X)
    n, m = X.shape
    np.testing.assert_array_equal(np.unique(model.labels_), np.arange(4))
    assert model.components_.shape == (4, m)
    assert model.embedding_.shape == (n, 4)
    assert model.exemplar_indices_.shape == model.exemplar_scores_.shape == (12,)
    assert (np.diff(model.exemplar_scores_) <= 1e-9).all()
    assert sp.issparse(model.affinity_)
    assert model.affinity_.shape == model.representation_.shape == (n, n)
    assert (abs(model.affinity_ - model.affinity_.T)).max() == 0
    assert len(model.objective_history_) == model.n_iter_
    assert model.objective_ == model.objective_history_[-1]
    assert model.n_features_in_ == m


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loader", [load_iris, load_wine, load_breast_cancer], ids=lambda f: f.__name__)
def test_predict_and_transform_reproduce_the_training_result(kind, loader):
    X = np.unique(StandardScaler().fit_transform(loader().data), axis=0)
    model = kind(3, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-12)
    np.testing.assert_allclose(
        model.inverse_transform(model.embedding_), model.embedding_ @ model.components_
    )


def test_new_digits_are_predicted_as_well_as_training_digits_are_clustered():
    X, y = load_digits(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = FastSMRMF(10, random_state=0).fit(train)
    at_home = clustering_accuracy(y_train, model.labels_)
    abroad = clustering_accuracy(y_test, model.predict(test))
    assert abroad > at_home - 0.05


def test_transform_is_continuous_where_a_point_leaves_its_place(blobs):
    X, _ = blobs
    model = FastSMRMF(4, random_state=0).fit(X)
    moved = model.transform(X + 1e-7)
    np.testing.assert_allclose(moved, model.embedding_, atol=1e-5)


def test_the_model_keeps_its_own_copy_of_the_points(blobs):
    X = blobs[0].copy()
    model = FastSMRMF(4, random_state=0).fit(X)
    before = model.predict(blobs[0] + 0.1)
    X *= -1
    np.testing.assert_array_equal(model.predict(blobs[0] + 0.1), before)


def test_points_far_beyond_the_data_are_predicted(blobs):
    model = FastSMRMF(4, random_state=0).fit(blobs[0])
    assert np.isfinite(model.transform(np.full((1, 5), 1e300))).all()


def test_distant_clusters_are_represented_in_single_precision():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60, 3)) + shift for shift in (0, 1e4, -1e4)])
    wide, narrow = (SMRMF(3, random_state=0).fit(X.astype(kind)) for kind in (np.float64, np.float32))
    np.testing.assert_allclose(narrow.representation_, wide.representation_, atol=0.05)


def test_curved_clusters_are_found():
    X, y = make_moons(400, noise=0.06, random_state=0)
    assert adjusted_rand_score(y, FastSMRMF(2, random_state=0).fit_predict(X)) > 0.99


@pytest.mark.parametrize("kind", KINDS)
def test_result_does_not_depend_on_the_number_of_threads(kind, monkeypatch):
    monkeypatch.setattr(_parallel, "BLOCK_ENTRIES", 4096)  # many blocks in every step
    X, _ = make_blobs(700, 30, centers=5, cluster_std=6.0, random_state=0)
    one, two = (kind(5, random_state=0, n_jobs=jobs, tol=1e-3).fit(X) for jobs in (1, 2))
    for name in ("labels_", "embedding_", "components_", "exemplar_indices_", "objective_history_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_result(blobs, kind):
    X, _ = blobs
    one, two = (kind(4, random_state=7).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_stays_single(blobs, kind):
    X, _ = blobs
    wide, narrow = kind(4, random_state=0).fit(X), kind(4, random_state=0).fit(X.astype(np.float32))
    for name in ("embedding_", "components_", "representation_", "affinity_"):
        assert getattr(narrow, name).dtype == np.float32, name
    assert narrow.transform(X.astype(np.float32)).dtype == np.float32
    assert adjusted_rand_score(wide.labels_, narrow.labels_) > 0.98


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", [1e-150, 1e-6, 1e6, 1e150])
def test_the_unit_of_the_data_does_not_matter(blobs, kind, unit):
    X, _ = blobs
    plain, scaled = kind(4, random_state=0).fit(X), kind(4, random_state=0).fit(X * unit)
    np.testing.assert_array_equal(plain.labels_, scaled.labels_)
    np.testing.assert_allclose(scaled.components_ / unit, plain.components_, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(scaled.objective_ / unit, plain.objective_, rtol=1e-4)
    np.testing.assert_array_equal(scaled.predict(X * unit), plain.labels_)


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_input_gives_the_dense_result(blobs, kind):
    X = np.where(np.abs(blobs[0]) > 4, blobs[0], 0)
    dense, sparse = kind(4, random_state=0).fit(X), kind(4, random_state=0).fit(sp.csr_array(X))
    np.testing.assert_allclose(dense.embedding_, sparse.embedding_, atol=1e-10)
    np.testing.assert_array_equal(sparse.predict(sp.csr_matrix(X)), dense.predict(X))


def test_feature_names_and_pandas_output():
    frame = load_iris(as_frame=True).data
    model = FastSMRMF(3, random_state=0).set_output(transform="pandas").fit(frame)
    np.testing.assert_array_equal(model.feature_names_in_, frame.columns)
    embedded = model.transform(frame.head())
    assert isinstance(embedded, pd.DataFrame)
    assert list(embedded.columns) == ["fastsmrmf0", "fastsmrmf1", "fastsmrmf2"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={frame.columns[0]: "other"}))


def test_works_in_a_pipeline_and_survives_pickling(blobs):
    X, _ = blobs
    pipeline = make_pipeline(StandardScaler(), FastSMRMF(4, random_state=0)).fit(X)
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(pipeline.predict(X), again.predict(X))
    assert clone(pipeline[-1]).get_params() == pipeline[-1].get_params()


class Recorder:
    """A callback that remembers what it saw and may stop or interrupt the fit."""

    def __init__(self, stop_after=None, interrupt_after=None):
        self.stop_after, self.interrupt_after = stop_after, interrupt_after
        self.objectives, self.torn_down, self.labels = [], False, None

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        self.torn_down = True

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, metadata=None, fitted_estimator=None):
        if context.task_name != "iteration":
            return False
        self.objectives.append(metadata["objective"])
        self.labels = fitted_estimator.predict(fitted_estimator._fit_data)
        if len(self.objectives) == self.interrupt_after:
            raise KeyboardInterrupt
        return len(self.objectives) == self.stop_after


@pytest.mark.parametrize("kind", KINDS)
def test_callbacks_see_every_iteration(blobs, kind):
    X, _ = blobs
    recorder = Recorder()
    model = kind(4, random_state=0).set_callbacks(recorder).fit(X)
    np.testing.assert_allclose(recorder.objectives, model.objective_history_)
    np.testing.assert_array_equal(recorder.labels, model.labels_)
    assert recorder.torn_down


def test_a_callback_can_stop_the_fit_early(blobs):
    X, _ = blobs
    model = FastSMRMF(4, random_state=0, tol=0).set_callbacks(Recorder(stop_after=5)).fit(X)
    assert model.n_iter_ == 5
    assert not model.converged_


def test_an_interrupted_fit_leaves_the_earlier_one_in_place(blobs):
    X, _ = blobs
    model = FastSMRMF(4, random_state=0).fit(X)
    before = {name: getattr(model, name) for name in vars(model)}
    recorder = Recorder(interrupt_after=2)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(tol=0).set_callbacks(recorder).fit(X[:60] * 2)
    assert recorder.torn_down
    assert model.labels_ is before["labels_"]
    np.testing.assert_array_equal(model.set_callbacks().predict(X), before["labels_"])


def test_progress_bar_runs(blobs, capsys):
    FastSMRMF(4, random_state=0).set_callbacks(ProgressBar()).fit(blobs[0])
    assert "FastSMRMF" in capsys.readouterr().out


@pytest.mark.parametrize("init", ["spectral", "nndsvd", "kmeans"])
def test_every_named_start_finds_separate_blobs(init):
    X, y = make_blobs(90, 4, centers=3, cluster_std=0.3, random_state=0)
    model = FastSMRMF(3, init=init, random_state=0).fit(X - X.min(axis=0))
    assert adjusted_rand_score(y, model.labels_) == 1.0


def test_a_given_start_is_used(blobs):
    X, y = blobs
    model = FastSMRMF(4, init=np.eye(4)[(y + 1) % 4]).fit(X)
    np.testing.assert_array_equal(model.labels_, (y + 1) % 4)


def test_not_converged_says_which_guard_failed(blobs):
    X, _ = blobs
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations.*raise max_iter"):
        RMNMF(4, max_iter=1, random_state=0, init="kmeans", penalty=1e-3).fit(X)


def test_empty_graph_is_said():
    X, _ = make_blobs(60, 3, centers=3, random_state=0)
    with pytest.warns(UserWarning, match=r"graph is empty.*raise n_neighbors.*smoothness"):
        FastSMRMF(3, dissimilarity="kernel", smoothness=1e-6, random_state=0).fit(X)


def test_empty_clusters_get_the_points_nearest_to_them():
    G = np.array([[1.0, 0.0, 0.0], [0.9, 0.1, 0.5], [0.8, 0.3, 0.0], [0.7, 0.0, 0.1]])
    labels, moved = consecutive_labels(G)
    np.testing.assert_array_equal(labels, [0, 2, 1, 0])
    assert moved == [2, 1]


def test_empty_clusters_are_said():
    rng = np.random.default_rng(0)
    said = []
    for _ in range(50):  # single steps from random starts often leave a cluster empty
        X, G = rng.normal(size=(5, 2)), rng.random((5, 3))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = RMNMF(3, init=G, max_iter=2, penalty=0.5).fit(X)
        said += [str(w.message) for w in caught if "came out empty" in str(w.message)]
        np.testing.assert_array_equal(np.unique(model.labels_), np.arange(3))
    assert said
    assert "1 of 3 clusters" in said[0]
    assert "lower n_clusters" in said[0]


def test_more_clusters_than_distinct_points_still_gives_all_labels():
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 10, axis=0)
    model = FastSMRMF(4, random_state=0).fit(X)
    np.testing.assert_array_equal(np.unique(model.labels_), np.arange(4))


@pytest.mark.parametrize("kind", KINDS)
def test_paper_settings_are_accepted_and_are_the_papers(kind):
    settings = kind.paper_settings()
    assert settings["n_neighbors"] == "sqrt"
    assert settings["init"] == "nndsvd"
    assert settings["penalty"] == 0.1
    X, _ = make_blobs(80, 4, centers=2, cluster_std=0.5, random_state=0)
    X = X - X.min(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    model = kind(2, **settings).fit(X)
    assert model.converged_
    assert len(model.exemplar_indices_) == 8
