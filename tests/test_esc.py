"""ESC against a plain search, on data whose clusters are known, and at its limits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from callbacks import Recorder
from numpy.testing import assert_allclose, assert_array_equal
from oracle import esc as plain
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from smrmf import ESC, _arrays


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def subspaces(sizes, dimension, m, seed=0, noise=0.0):
    """Draw points from random subspaces through the origin; return them, shuffled, and which is whose."""
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(n, dimension)) @ rng.normal(size=(dimension, m)) for n in sizes]
    X, y = np.vstack(parts), np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(len(X))
    return X[order] + noise * rng.normal(size=X.shape), y[order]


def with_multiples(seed):
    """Thirty directions, some of them more than once."""
    X = normal(seed, 30, 6)
    return np.vstack([X, -2 * X[:15], X[:10]])


DATA = {
    "gaussian": normal(0, 60, 8),
    "more features than points": normal(1, 40, 150),
    "more exemplars than features": normal(2, 50, 3),
    "coherent": normal(3, 60, 12) + 1.5,
    "digits": load_digits().data[:70],
    "sparse": np.where(np.abs(normal(4, 60, 25)) > 1.2, normal(5, 60, 25), 0.0) + np.eye(60, 25),
    "subspaces": subspaces([20, 20, 20], 3, 10)[0],
    "multiples": with_multiples(6),
}


@pytest.fixture(scope="module", params=DATA, ids=lambda name: name.replace(" ", "-"))
def searched(request):
    """A data set, the exemplars and costs of a plain search on it, and a model of the same start."""
    X = DATA[request.param]
    model = ESC(3, exemplars=12, random_state=0).fit(X)
    return X, plain.farthest_first(X, model.exemplar_indices_[0], 12, 100.0), model


# The search


def test_exemplars_are_those_of_the_plain_search(searched):
    _, (chosen, costs), model = searched
    assert_array_equal(model.exemplar_indices_, chosen)
    assert_allclose(model.exemplar_scores_, costs, rtol=2e-6)


def test_sparse_data_and_single_precision_have_the_same_exemplars(searched):
    X, (chosen, costs), model = searched
    for data in (sp.csr_array(X), sp.csr_matrix(X), X.astype(np.float32), sp.csr_array(X.astype(np.float32))):
        other = ESC(3, exemplars=12, random_state=0).fit(data)
        assert_array_equal(other.exemplar_indices_, chosen)
        assert_allclose(other.exemplar_scores_, costs, rtol=1e-4)
        assert_array_equal(other.labels_, model.labels_)
        assert other.coefficients_.dtype == other.affinity_.dtype == data.dtype
        assert_allclose(other.coefficients_.toarray(), model.coefficients_.toarray(), rtol=0, atol=1e-3)


def test_costs_start_at_half_the_fidelity_and_fall_to_that_of_an_exemplar(searched):
    scores = searched[2].exemplar_scores_
    assert scores[0] == 50.0
    assert (np.diff(scores) <= 2e-6 * scores[0]).all()
    assert scores[-1] >= (1 - 1 / 200) * (1 - 1e-12)


def test_coefficients_and_graph_are_the_plain_ones(searched):
    X, (chosen, _), model = searched
    C = plain.codes(X, chosen, 100.0)
    found = model.coefficients_.toarray()
    assert_allclose(found, C, rtol=0, atol=2e-3)
    if len(np.unique(np.round(plain.unit(X), 6), axis=0)) == len(X):  # else neighbours are ties
        assert_array_equal(model.affinity_.toarray(), plain.graph(X, found, 3))


@pytest.mark.parametrize("fidelity", [1.5, 10.0, 1e4])
def test_other_fidelities_find_the_plain_exemplars_too(fidelity):
    X = normal(9, 40, 6)
    model = ESC(3, exemplars=8, fidelity=fidelity, random_state=1).fit(X)
    chosen, costs = plain.farthest_first(X, model.exemplar_indices_[0], 8, fidelity)
    assert_array_equal(model.exemplar_indices_, chosen)
    assert_allclose(model.exemplar_scores_, costs, rtol=2e-6)


@pytest.mark.parametrize("name", ["subspaces", "digits"])
def test_bounds_spare_most_problems(name):
    X = load_digits().data if name == "digits" else subspaces([150, 150, 100], 4, 30, noise=0.02)[0]
    model = ESC(3, exemplars=100, random_state=0).fit(X)
    assert len(X) - 1 <= model.n_solves_ < 0.15 * 100 * len(X)


def test_no_point_is_left_worse_represented_than_the_last_exemplar_was():
    X = plain.unit(normal(0, 80, 10))
    model = ESC(3, exemplars=20, random_state=0).fit(X)
    E, C = X[model.exemplar_indices_], model.coefficients_.toarray()
    left = [plain.cost(x, E, c, 100.0) for x, c in zip(X, C, strict=True)]
    assert max(left) <= model.exemplar_scores_[-1] * (1 + 2e-6)


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1e200])
def test_only_directions_matter(scale):
    X = normal(0, 60, 8)
    model = ESC(3, exemplars=8, random_state=0).fit(X)
    lengths = np.random.default_rng(1).uniform(0.1, 10, size=(60, 1))
    turned = X @ np.linalg.qr(normal(2, 8, 8))[0]
    for data in (X * scale, X * scale * lengths, sp.csr_array(X * scale), turned * scale):
        other = ESC(3, exemplars=8, random_state=0).fit(data)
        assert_array_equal(other.exemplar_indices_, model.exemplar_indices_)
        assert_array_equal(other.labels_, model.labels_)


def test_lengths_may_differ_beyond_all_bounds():
    X = plain.unit(normal(0, 30, 5))
    mixed = X * np.repeat([1e-300, 1.0, 1e300], 10)[:, None]
    for data in (mixed, sp.csr_array(mixed)):
        assert_array_equal(ESC(3, random_state=0).fit(data).labels_, ESC(3, random_state=0).fit(X).labels_)


def test_the_seed_draws_the_first_exemplar():
    X = normal(0, 50, 6)
    firsts = [ESC(3, exemplars=3, random_state=seed).fit_select(X)[0] for seed in range(25)]
    assert len(set(firsts)) > 12


# Clusters


@pytest.mark.parametrize("sizes", [(150, 150, 150), (300, 120, 60)])
@pytest.mark.parametrize("seed", range(4))
def test_independent_subspaces_are_found(sizes, seed):
    X, y = subspaces(sizes, 4, 14, seed)
    model = ESC(3, exemplars=40, n_neighbors=5, random_state=seed).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    assert_array_equal(np.bincount(model.labels_), sizes)
    # Farthest-first covers a small subspace as well as a large one.
    assert np.bincount(y[model.exemplar_indices_]).min() >= 8


def test_noisy_subspaces_in_many_dimensions_are_found():
    X, y = subspaces((120, 100, 80, 80), 3, 200, noise=0.05)
    assert adjusted_rand_score(y, ESC(4, exemplars=40, random_state=0).fit_predict(X)) > 0.97


def test_an_outlier_joins_its_neighbours_by_cosine():
    # No other point has anything of the last direction, so only its exemplar is coded by it.
    X, y = subspaces((100, 100), 3, 8)
    outlier = np.append(X[np.flatnonzero(y == 1)[0]], 30.0)
    X = np.vstack([np.column_stack([X, np.zeros(200)]), outlier])
    model = ESC(2, exemplars=20, fidelity=1.2, random_state=0).fit(X)
    assert 200 in model.exemplar_indices_
    assert model.coefficients_[:, [list(model.exemplar_indices_).index(200)]].nnz == 1
    cosines = plain.unit(X) @ plain.unit(X)[200]
    assert_array_equal(np.sort(model.affinity_[[200]].nonzero()[1]), np.sort(np.argsort(-cosines)[1:4]))


def test_the_graph_is_symmetric_and_has_so_many_neighbours():
    X = normal(0, 70, 6)
    for n_neighbors in (1, 3, 10):
        A = ESC(3, n_neighbors=n_neighbors, random_state=0).fit(X).affinity_
        assert abs(A - A.T).max() == 0
        assert A.diagonal().max() == 0
        assert set(A.data) <= {1.0, 2.0}
        assert A.sum() == 2 * n_neighbors * len(X)


def test_points_without_coefficients_join_their_neighbours_by_cosine():
    rng = np.random.default_rng(0)
    X = np.zeros((30, 6))
    X[:20, :3] = rng.normal(size=(20, 3))
    X[20:, 3:] = [1.0, 0, 0] + 0.1 * rng.normal(size=(10, 3))
    seed = next(s for s in range(50) if ESC(2, exemplars=1, random_state=s).fit_select(X)[0] < 20)
    model = ESC(2, exemplars=1, random_state=seed).fit(X)
    assert model.coefficients_[20:].nnz == 0
    cosines = plain.unit(X) @ plain.unit(X).T - 2 * np.eye(30)
    for point in range(20, 30):
        nearest = np.argsort(-cosines[point], kind="stable")[:3]
        assert (model.affinity_[[point]].toarray()[0, nearest] > 0).all()
    assert_array_equal(model.labels_ == model.labels_[0], np.arange(30) < 20)
    assert_array_equal(ESC(2, exemplars=1, random_state=seed).fit_predict(sp.csr_array(X)), model.labels_)


# Odd data


def test_multiples_wait_until_all_directions_are_chosen():
    X = with_multiples(0)
    model = ESC(3, exemplars=40, random_state=0).fit(X)
    same = np.abs(plain.unit(X) @ plain.unit(X).T) > 1 - 1e-12
    direction = same.argmax(axis=1)
    assert len(set(direction[model.exemplar_indices_[:30]])) == 30
    assert_array_equal(np.sort(model.exemplar_indices_[30:]), model.exemplar_indices_[30:])
    assert_allclose(model.exemplar_scores_[30:], 1 - 1 / 200, rtol=1e-6)
    assert len(set(model.exemplar_indices_)) == 40
    # Also one that others could represent as well is represented by itself.
    assert_array_equal(model.coefficients_.toarray()[model.exemplar_indices_], (1 - 1 / 100) * np.eye(40))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_rows_of_zeros_change_nothing_for_the_others(make):
    X, _ = subspaces((30, 20, 10), 2, 7)
    empty = np.array([0, 9, 10, 40, 64])
    full = np.delete(np.arange(65), empty)
    padded = np.zeros((65, 7))
    padded[full] = X
    alone = ESC(3, exemplars=12, random_state=0).fit(X)
    model = ESC(3, exemplars=12, random_state=0).fit(make(padded))
    assert_array_equal(model.labels_[full], alone.labels_)
    assert_array_equal(model.labels_[empty], 0)
    assert_array_equal(model.exemplar_indices_, full[alone.exemplar_indices_])
    assert_allclose(model.coefficients_.toarray()[full], alone.coefficients_.toarray(), rtol=0, atol=1e-9)
    assert model.coefficients_[empty].nnz == model.affinity_[empty].nnz == 0


def test_rows_of_zeros_are_chosen_last():
    X = normal(0, 20, 4)
    X[[3, 8, 15]] = 0
    model = ESC(3, exemplars=19, random_state=0).fit(X)
    assert_array_equal(model.exemplar_indices_[17:], [3, 8])
    assert_array_equal(model.exemplar_scores_[17:], 0)
    assert model.exemplar_scores_[16] > 0.9
    assert model.coefficients_.shape == (20, 19)


def test_nothing_but_zeros_is_one_cluster():
    with pytest.warns(ConvergenceWarning, match="Only 1 of 2 .* 1 distinct row: lower n_clusters"):
        model = ESC(2, exemplars=3).fit(np.zeros((5, 4)))
    assert_array_equal(model.labels_, 0)
    assert_array_equal(model.exemplar_indices_, [0, 1, 2])
    assert model.coefficients_.shape == (5, 3)


def test_fewer_rows_with_a_direction_than_clusters():
    X = np.array([[0.0, 0], [1, 2], [0, 0], [-3, 1], [0, 0]])
    assert_array_equal(ESC(3, random_state=0).fit_predict(X), [2, 0, 2, 1, 2])
    with pytest.warns(ConvergenceWarning, match="Only 3 of 4 clusters .* 3 distinct rows"):
        ESC(4, random_state=0).fit(X)


def test_multiples_of_one_point_are_clustered_all_the_same():
    model = ESC(3, exemplars=4, random_state=0).fit(np.arange(1.0, 13)[:, None])
    assert len(set(model.exemplar_indices_)) == 4
    assert_allclose(model.exemplar_scores_[1:], 1 - 1 / 200, rtol=1e-6)
    assert model.labels_.shape == (12,)


@pytest.mark.parametrize(("n", "n_clusters"), [(2, 1), (2, 2), (3, 2), (4, 2), (5, 5)])
def test_tiny_data(n, n_clusters):
    model = ESC(n_clusters, random_state=0).fit(normal(0, n, 3))
    assert_array_equal(np.unique(model.labels_), np.arange(n_clusters))
    assert model.affinity_.sum() == 2 * n * min(3, n - 1)


def test_all_points_may_be_exemplars():
    X = normal(0, 25, 4)
    model = ESC(2, exemplars=1.0, random_state=0).fit(X)
    assert_array_equal(np.sort(model.exemplar_indices_), np.arange(25))
    assert_allclose(model.coefficients_.toarray()[model.exemplar_indices_], 0.99 * np.eye(25))


# Refusals


def test_what_would_not_fit_in_memory_is_refused(monkeypatch):
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 30_000)
    with pytest.raises(MemoryError, match=r"five arrays of 90 x 45 .*fewer than exemplars=0.5"):
        ESC(3, exemplars=0.5).fit(normal(0, 90, 3))
    ESC(3, exemplars=6).fit(normal(0, 90, 3))


# Threads, repetition, callbacks


def test_callbacks_see_every_exemplar_and_change_nothing():
    X = normal(0, 120, 6)
    recorder = Recorder()
    # So many clusters where there are none depend on every number drawn.
    quiet = ESC(12, exemplars=8, random_state=0).fit(X)
    model = ESC(12, exemplars=8, random_state=0).set_callbacks(recorder).fit(X)
    assert_array_equal([step["n_iter"] for step in recorder.steps], np.arange(1, 9))
    assert_allclose([step["objective"] for step in recorder.steps], model.exemplar_scores_)
    assert_array_equal(model.labels_, quiet.labels_)
    assert_array_equal(model.exemplar_scores_, quiet.exemplar_scores_)
    for size, seen in enumerate(recorder.models, 1):
        assert_array_equal(seen.exemplar_indices_, model.exemplar_indices_[:size])
        assert seen.labels_.shape == (120,)
    assert_array_equal(recorder.models[-1].labels_, model.labels_)


def test_a_callback_stops_the_search_and_what_is_there_is_clustered():
    X = normal(0, 60, 6)
    stopped = ESC(3, exemplars=8, random_state=0).set_callbacks(Recorder(stop_after=5)).fit(X)
    short = ESC(3, exemplars=5, random_state=0).fit(X)
    assert_array_equal(stopped.exemplar_indices_, short.exemplar_indices_)
    assert_array_equal(stopped.labels_, short.labels_)
    assert_allclose(stopped.coefficients_.toarray(), short.coefficients_.toarray(), rtol=0, atol=1e-12)
