"""Fits on approximate neighbours: as good as exact ones, in the order of rows, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from callbacks import Recorder
from many_points import overlapping, sheets
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from smrmf import AMRMF, RMNMF, SMRMF, FastSMRMF, SelectiveRMNMF, load, save
from smrmf._parallel import SERIAL
from smrmf._validation import Sizes
from smrmf.factorization._closed_form import CandidateLists
from smrmf.factorization._plane import alternating, in_plane_of_means
from smrmf.factorization._points import ManifoldInput, prepare, reduce_features
from smrmf.graph import labels, search, spectrum
from smrmf.graph.labels import indicator
from smrmf.inspection import suggest_n_clusters


def fit(X, how="approximate", n_clusters=5, owner=FastSMRMF, **parameters):
    return owner(n_clusters, neighbors=how, random_state=0, **parameters).fit(X)


@pytest.fixture
def coarse(monkeypatch):
    """Let also graphs of few points be made coarse, and k-means see a sample."""
    monkeypatch.setattr(spectrum, "MANY_POINTS", 800)
    monkeypatch.setattr(labels, "MOST_ROWS", 800)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("table", [sheets, overlapping])
@pytest.mark.usefixtures("coarse")
def test_clusters_are_those_of_exact_neighbors(table, dtype, monkeypatch):
    X, truth = table(3000, dtype=dtype)
    found = fit(X)
    monkeypatch.undo()
    exact = fit(X, "exact")
    assert found.neighbor_recall_ < exact.neighbor_recall_ == 1
    assert adjusted_rand_score(found.labels_, exact.labels_) > 0.97
    assert adjusted_rand_score(found.labels_, truth) > adjusted_rand_score(exact.labels_, truth) - 0.02
    assert found.embedding_.dtype == found.components_.dtype == dtype


@pytest.mark.parametrize("owner", [AMRMF, RMNMF, SMRMF, SelectiveRMNMF])
def test_every_method_of_the_loop_can_do_it(owner):
    X, truth = sheets(2100)
    assert adjusted_rand_score(fit(X, owner=owner, max_iter=20, tol=1).labels_, truth) > 0.97


def test_results_are_in_the_order_of_the_rows():
    X, truth = sheets(2500)
    found = fit(X)
    assert_array_equal(found._fit_data, X)
    assert_array_equal(found.predict(X), found.labels_)
    assert_allclose(found.transform(X), found.embedding_, atol=1e-12)
    # The mean of every cluster is near its component, and an exemplar is a point of its cluster.
    for label in range(5):
        mean = X[found.labels_ == label].mean(axis=0)
        assert np.linalg.norm(found.components_[label] - mean) < 0.1 * np.linalg.norm(mean)
    assert_array_equal(found.labels_[found.exemplar_indices_], found.exemplar_labels_)
    # A point is represented by near points, and tied to them.
    for W in (found.representation_, found.affinity_):
        rows, columns = W.nonzero()
        linked = np.linalg.norm(X[rows] - X[columns], axis=1)
        assert np.median(linked) < 0.5 * np.median(np.linalg.norm(X[rows] - X[np.roll(columns, 7)], axis=1))
    assert_allclose(found.representation_.sum(axis=0), 1)
    assert (abs(found.affinity_ - found.affinity_.T) > 1e-12).nnz == 0
    assert_array_equal(found.kept_indices_, np.sort(found.kept_indices_))
    assert adjusted_rand_score(found.labels_, truth) > 0.99


def test_another_order_of_the_rows_gives_the_same_clusters():
    X, _ = overlapping(2500)
    order = np.random.default_rng(0).permutation(len(X))
    assert adjusted_rand_score(fit(X).labels_[order], fit(X[order]).labels_) > 0.97


@pytest.mark.usefixtures("coarse")
def test_the_result_does_not_depend_on_the_number_of_threads():
    X, _ = overlapping(2500, dtype=np.float32)
    one, two = fit(X, n_jobs=1), fit(X, n_jobs=2)
    for name in (
        "labels_",
        "embedding_",
        "components_",
        "confidence_",
        "objective_history_",
        "exemplar_indices_",
    ):
        assert_array_equal(getattr(one, name), getattr(two, name))


def test_the_table_of_the_caller_stays_as_it_is():
    X, _ = sheets(2200)
    before = X.copy()
    fit(X)
    assert_array_equal(X, before)
    X.flags.writeable = False
    fit(X)


def test_rows_that_are_there_many_times_have_one_label():
    X, truth = sheets(2600)
    times = np.r_[np.repeat(np.arange(40), 20), np.arange(40, 2600)]
    found = fit(X[times])
    assert adjusted_rand_score(found.labels_, truth[times]) > 0.99
    assert (found.labels_[:800].reshape(40, 20) == found.labels_[:800:20, None]).all()
    assert_array_equal(found._fit_data, X[times])


def test_pairs_of_copies_have_one_label():
    # Too few of each to be left out.
    X, _ = overlapping(1200)
    found = fit(np.vstack([X, X]))
    assert_array_equal(found.labels_[:1200], found.labels_[1200:])


def test_few_coordinates_and_a_table_of_fewer_dimensions():
    X, truth = sheets(2200, m=20, dimension=2)
    wide = X @ np.linalg.qr(np.random.default_rng(0).normal(size=(150, 20)))[0].T
    found = fit(wide)
    assert adjusted_rand_score(found.labels_, truth) > 0.97
    assert found.components_.shape == (5, 150)
    mean = wide[found.labels_ == 0].mean(axis=0)
    assert np.linalg.norm(found.components_[0] - mean) < 0.1 * np.linalg.norm(mean)


def test_by_direction():
    X, truth = sheets(2200)
    lengths = np.random.default_rng(0).uniform(0.1, 10, (len(X), 1))
    assert adjusted_rand_score(fit(lengths * X, metric="cosine").labels_, truth) > 0.9


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_sparse_points_are_compared_with_all():
    X = sp.random_array((2100, 400), density=0.02, rng=np.random.default_rng(0), format="csr")
    assert fit(X, max_iter=2, tol=1).neighbor_recall_ == 1


def test_an_interrupted_fit_leaves_the_earlier_one():
    X, _ = sheets(2200)
    model = fit(X)
    earlier = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.set_params(n_clusters=4).set_callbacks(Recorder(interrupt_after=2)).fit(X)
    assert all(vars(model)[name] is value for name, value in earlier.items() if name.endswith("_"))


def test_the_number_of_clusters_is_found_among_many_points(monkeypatch):
    monkeypatch.setattr(search, "MOST_EXACT", 2000)
    X, _ = sheets(2500, n_sheets=4)
    assert suggest_n_clusters(X, range(2, 8), random_state=0).n_clusters == 4


# New points


ANSWERS = ("predict", "transform", "predict_proba", "outlier_scores")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_answer_for_a_point_does_not_depend_on_the_others(dtype):
    X, _ = overlapping(3000, dtype=dtype)
    model, new = fit(X[:2400]), X[2400:]
    assert model.neighbor_recall_ < 1
    for name in ANSWERS:
        together = getattr(model, name)(new)
        apart = np.concatenate([getattr(model, name)(new[rows]) for rows in (slice(0, 7), slice(7, None))])
        # Products of matrices of other sizes round otherwise.
        assert_allclose(apart, together, rtol=1e-3, atol=1e-4 if dtype == np.float32 else 1e-10)


def test_new_points_are_looked_for_in_the_cells_of_the_fit(monkeypatch, tmp_path):
    X, _ = overlapping(2500)
    model = fit(X)
    save(model, tmp_path / "model.smrmf")
    loaded, found = load(tmp_path / "model.smrmf"), model.predict_proba(X + 0.01)
    monkeypatch.setattr(search, "train_cells", None)
    assert_array_equal(model.predict_proba(X + 0.01), found)
    assert_array_equal(loaded.predict_proba(X + 0.01), found)


def test_a_table_of_fewer_dimensions_has_cells_in_its_own_columns():
    X, _ = sheets(2500, m=20, dimension=2)
    wide = X @ np.linalg.qr(np.random.default_rng(0).normal(size=(150, 20)))[0].T
    model, plain = fit(wide[:2200]), fit(X[:2200])
    assert model._fit_centers.shape == (plain._fit_centers.shape[0], 150)
    for c, center in enumerate(model._fit_centers):
        assert_allclose(center, wide[:2200][model._fit_cell_of == c].mean(axis=0), atol=1e-9)
    one, other = model.outlier_scores(wide[2200:]), plain.outlier_scores(X[2200:])
    assert np.mean(np.abs(one - other) < 1e-6) > 0.97


def test_a_fit_of_few_points_forgets_the_cells_of_an_earlier_one():
    X, _ = sheets(2500)
    model = fit(X)
    model.fit(X[:500])
    assert model._fit_centers is model._fit_cell_of is model._fit_asked is None
    assert_array_equal(model.predict(X), fit(X[:500]).predict(X))


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_where_all_points_were_compared_new_ones_are_too():
    # Of noise in 200 dimensions no cell is near.
    X = np.random.default_rng(0).normal(size=(2600, 200))
    model = fit(X[:2500], max_iter=2, tol=1)
    assert model.neighbor_recall_ == 1
    assert model._fit_asked == 0
    exact = fit(X[:2500], "exact", max_iter=2, tol=1)
    assert_allclose(model.outlier_scores(X[2500:]), exact.outlier_scores(X[2500:]), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_lists_of_many_points_are_never_made_longer(monkeypatch):
    # Of this noise all pairs are compared, and with few neighbours in a list others could matter.
    X = np.random.default_rng(0).normal(size=(2500, 200))
    longer, made = CandidateLists.widen, []
    monkeypatch.setattr(CandidateLists, "widen", lambda *args: made.append(1) or longer(*args))
    settings = {"n_neighbors": 2, "manifold_weight": 10.0, "selection_weight": 0.01, "max_iter": 3, "tol": 0}
    fit(X, **settings)
    assert not made
    fit(X, "exact", **settings)
    assert made


# The plane of the means


def in_plane(X, truth, n_clusters):
    sizes = Sizes.from_parameters(len(X), n_clusters, 10, 0.1)
    given = ManifoldInput(X.copy(), 1.0, sizes, search="approximate")
    problem = prepare(given, reduce_features, np.random.RandomState(0), SERIAL)
    G = indicator(truth[problem.copies.first], n_clusters, X.dtype)
    return problem, G, in_plane_of_means(problem, G)


def test_distances_to_all_of_the_plane_are_kept():
    X, truth = overlapping(2200)
    problem, G, placed = in_plane(X, truth, 5)
    assert placed.reduced.shape == (2200, 6)
    means = (G.T @ problem.reduced) / G.sum(axis=0)[:, None]
    at = (G.T @ placed.reduced) / G.sum(axis=0)[:, None]
    # The last coordinate of the means is next to nothing.
    assert np.abs(at[:, -1]).max() < 0.02 * placed.reduced[:, -1].std()
    mixed = np.random.default_rng(0).normal(size=(7, 5))
    expected = np.linalg.norm(problem.reduced[:, None] - (mixed @ means), axis=2)
    at[:, -1] = 0
    assert_allclose(np.linalg.norm(placed.reduced[:, None] - (mixed @ at), axis=2), expected, rtol=1e-9)
    assert_allclose(placed.reduction.carry_back(at), means, atol=1e-9)


def test_points_that_would_save_little_stay_as_they_are():
    X, truth = sheets(2200, m=11)
    problem, _, placed = in_plane(X, truth, 5)
    assert placed is problem


def test_signs_alternate_in_every_cluster():
    found = alternating(np.array([2, 0, 2, 2, 0, 1, 2]))
    assert_array_equal(found, [1, 1, -1, 1, -1, 1, -1])
