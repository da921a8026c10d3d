"""ESC-FFS against a search by least angle regression, on subspaces and awkward points."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.decomposition import sparse_encode
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from smrmf import ESC


def plain_costs(unit, exemplars, fidelity=100.0):
    """Return ``min_c ||c||_1 + fidelity/2 ||x - c E||^2`` of every row x, by least angle regression."""
    coefficients = sparse_encode(unit, exemplars, algorithm="lasso_lars", alpha=1 / fidelity)
    residuals = unit - coefficients @ exemplars
    return np.abs(coefficients).sum(axis=1) + fidelity / 2 * (residuals**2).sum(axis=1)


def plain_esc(X, n_exemplars, first, fidelity=100.0):
    """Choose exemplars farthest-first, from a given first one."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    picks = [int(first)]
    while len(picks) < n_exemplars:
        costs = plain_costs(unit, unit[picks], fidelity)
        costs[picks] = -np.inf
        # The lowest index among equals; equal up to rounding, as all that nothing expresses are.
        picks.append(int(np.flatnonzero(costs >= costs.max() * (1 - 1e-9))[0]))
    return picks


def subspaces(n_subspaces=3, n_points=40, dimension=2, n_features=12, seed=0):
    """Draw points from cones in subspaces: coefficients of opposite points would not be neighbours."""
    rng = np.random.default_rng(seed)
    parts = [
        rng.random(size=(n_points, dimension)) @ rng.normal(size=(dimension, n_features))
        for _ in range(n_subspaces)
    ]
    return np.vstack(parts), np.repeat(np.arange(n_subspaces), n_points)


DATA = {
    "random": np.random.default_rng(0).normal(size=(70, 6)),
    "non-negative": np.random.default_rng(1).random(size=(80, 10)),
    "wide": np.random.default_rng(2).normal(size=(40, 90)),
    "subspaces": subspaces()[0],
    "digits": load_digits().data[:120],
}


@pytest.mark.parametrize("fidelity", [5.0, 100.0])
@pytest.mark.parametrize("name", DATA)
def test_exemplars_are_those_of_the_plain_search(name, fidelity):
    X = DATA[name]
    model = ESC(2, exemplars=12, fidelity=fidelity, tol=1e-9, random_state=0).fit(X)
    assert model.exemplar_indices_.tolist() == plain_esc(X, 12, model.exemplar_indices_[0], fidelity)


def test_scores_are_the_costs_when_chosen():
    X = DATA["random"]
    model = ESC(2, exemplars=10, random_state=0).fit(X)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    picks = model.exemplar_indices_
    for t in range(1, 10):
        expected = plain_costs(unit[picks[t : t + 1]], unit[picks[:t]])[0]
        assert model.exemplar_scores_[t] == pytest.approx(expected, rel=1e-5)
    assert model.exemplar_scores_[0] == 50
    assert (np.diff(model.exemplar_scores_) <= 1e-6).all()


def test_laziness_saves_most_solutions():
    X = DATA["digits"]
    model = ESC(5, exemplars=20, random_state=0).fit(X)
    assert model.n_solves_ < 0.5 * len(X) * 20


def test_coefficients_solve_every_point():
    X = DATA["non-negative"]
    model = ESC(2, exemplars=9, random_state=0).fit(X)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    E = unit[model.exemplar_indices_]
    c = model.coefficients_.toarray()
    found = np.abs(c).sum(axis=1) + 50 * ((unit - c @ E) ** 2).sum(axis=1)
    assert_allclose(found, plain_costs(unit, E), rtol=1e-4)
    assert_allclose(c[model.exemplar_indices_], 0.99 * np.eye(9), atol=1e-12)


@pytest.mark.parametrize("sizes", [(40, 40, 40), (90, 20, 10)])
def test_subspaces_are_found(sizes):
    X, y = subspaces(n_points=90)
    kept = np.concatenate([np.flatnonzero(y == label)[:size] for label, size in enumerate(sizes)])
    model = ESC(3, exemplars=6, n_neighbors=6, random_state=0).fit(X[kept])
    assert adjusted_rand_score(y[kept], model.labels_) == 1


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1e200])
def test_neither_unit_nor_length_matters(unit):
    X, _ = subspaces()
    plain = ESC(3, random_state=0).fit(X)
    lengths = np.random.default_rng(5).uniform(0.1, 9, size=(len(X), 1))
    for other in (X * unit, X * lengths):
        model = ESC(3, random_state=0).fit(other)
        assert_array_equal(model.exemplar_indices_, plain.exemplar_indices_)
        assert_array_equal(model.labels_, plain.labels_)


def test_sparse_threads_and_precision_change_nothing():
    X = np.where(DATA["non-negative"] > 0.4, DATA["non-negative"], 0)
    plain = ESC(3, exemplars=10, random_state=0).fit(X)
    for other, jobs in ((sp.csr_array(X), -1), (X, 1), (X.astype(np.float32), 2)):
        model = ESC(3, exemplars=10, random_state=0, n_jobs=jobs).fit(other)
        assert_array_equal(model.exemplar_indices_, plain.exemplar_indices_)
        assert_array_equal(model.labels_, plain.labels_)
        assert model.coefficients_.dtype == other.dtype


def test_duplicates_come_last():
    X = np.random.default_rng(0).normal(size=(10, 4))
    X = np.vstack([X, X, -X[:2]])
    model = ESC(2, exemplars=22, random_state=0).fit(X)
    first = model.exemplar_indices_[:10] % 10
    assert len(np.unique(np.where(model.exemplar_indices_[:10] >= 20, first, first))) == 10
    assert_allclose(model.exemplar_scores_[10:], 1 - 1 / 200, rtol=1e-6)
    assert_array_equal(np.sort(model.exemplar_indices_), np.arange(22))


def test_points_at_the_origin_are_labelled_and_chosen_last():
    X = np.vstack([DATA["random"][:20], np.zeros((3, 6))])
    model = ESC(2, exemplars=23, random_state=0).fit(X)
    assert_array_equal(model.exemplar_indices_[-3:], [20, 21, 22])
    assert_array_equal(model.exemplar_scores_[-3:], 0)
    assert model.labels_.shape == (23,)
    with pytest.warns(ConvergenceWarning, match="ESC found 1 clusters, fewer than n_clusters=2"):
        assert_array_equal(ESC(2).fit(np.zeros((5, 2))).labels_, 0)


def test_points_that_nothing_expresses_follow_their_angle():
    # Two exemplars in the first plane; the second plane is orthogonal to it.
    rng = np.random.default_rng(0)
    X = np.zeros((40, 4))
    X[:20, :2], X[20:, 2:] = rng.random((20, 2)) + 0.1, rng.random((20, 2)) + 0.1
    model = ESC(2, exemplars=2, random_state=0).fit(X)
    assert adjusted_rand_score(np.arange(40) >= 20, model.labels_) == 1


class StopAfter:
    """A callback that remembers the costs it saw and stops."""

    def __init__(self, steps):
        self.steps, self.costs = steps, []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, metadata=None, fitted_estimator=None):
        if context.task_name != "iteration":
            return False
        self.costs.append(metadata["objective"])
        self.labels = fitted_estimator.labels_
        return len(self.costs) == self.steps


def test_a_callback_may_stop_the_search():
    full = ESC(3, exemplars=12, random_state=0).fit(DATA["random"])
    callback = StopAfter(5)
    stopped = ESC(3, exemplars=12, random_state=0).set_callbacks(callback).fit(DATA["random"])
    assert_array_equal(stopped.exemplar_indices_, full.exemplar_indices_[:5])
    assert_allclose(callback.costs, full.exemplar_scores_[:5])
    assert_array_equal(callback.labels, stopped.labels_)
    assert stopped.coefficients_.shape == (70, 5)


def test_bad_parameters_are_refused_in_one_sentence():
    X = DATA["random"]
    with pytest.raises(ValueError, match=r"n_clusters=71 needs at least 71 points, but X has n_samples=70"):
        ESC(71).fit(X)
    with pytest.raises(ValueError, match=r"exemplars=71 is more than n_samples=70"):
        ESC(3, exemplars=71).fit(X)
    with pytest.raises(ValueError, match=r"fidelity=1.0 is not valid for ESC: it must be a number above 1"):
        ESC(3, fidelity=1.0).fit(X)


def test_tiny_data_work():
    assert_array_equal(np.sort(ESC(2).fit([[1.0, 0.0], [0.0, 1.0]]).labels_), [0, 1])
    assert len(ESC(2).fit(DATA["random"][:3]).labels_) == 3
    with pytest.raises(ValueError, match="n_neighbors=50 must be less than n_samples=4"):
        ESC(2, n_neighbors=50).fit(DATA["random"][:4])
