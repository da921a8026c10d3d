"""The smoothest functions by way of a coarse graph, against those of a dense solver."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from many_points import overlapping, sheets
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_circles

from smrmf._parallel import SERIAL, thread_pool
from smrmf.graph import spectrum
from smrmf.graph.coarse import Walk, chebyshev_filter, closest_as_one, smooth
from smrmf.graph.components import components_of
from smrmf.graph.graphs import simplex_graph, symmetrize
from smrmf.graph.neighbors import find_neighbors


def graph_of(X, k=10):
    return symmetrize(simplex_graph(find_neighbors(X, k + 1), k))


def dense_pairs(W):
    """Return all eigenvalues of the normalised graph, the largest first, and their eigenvectors."""
    scale = 1 / np.sqrt(W.sum(axis=1))
    values, vectors = scipy.linalg.eigh(W.toarray() * np.outer(scale, scale))
    return values[::-1], vectors[:, ::-1]


def few_points(monkeypatch, count):
    """Let graphs of more points be made coarse first."""
    monkeypatch.setattr(spectrum, "MANY_POINTS", count)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [sheets, overlapping, lambda n: make_circles(n, noise=0.05, factor=0.5)])
def test_functions_that_clusters_need_are_found(make, dtype, monkeypatch):
    W = graph_of(make(1200)[0]).astype(dtype)
    count = components_of(W).number + 4
    expected, axes = dense_pairs(W.astype(float))
    few_points(monkeypatch, 300)
    random_state = np.random.RandomState(0)
    found = spectrum.smoothest(W, components_of(W), count, random_state)
    assert found.vectors.dtype == dtype
    # Ritz values are never above the eigenvalues.
    assert (found.values <= expected[:count] + 1e-5).all()
    assert_allclose(found.values, expected[:count], atol=0.02)
    # Those apart from what follows lie in the span of the eigenvectors.
    apart = int(np.argmax(expected[:count] - expected[1 : count + 1])) + 1
    inside = axes[:, :apart].T @ found.vectors[:, :apart].astype(float)
    assert (np.linalg.norm(inside, axis=0) > 0.98).all()


def test_the_answer_does_not_depend_on_the_number_of_threads(monkeypatch):
    W = graph_of(overlapping(1500)[0])
    few_points(monkeypatch, 200)
    answers = []
    for n_jobs in (1, 2):
        with thread_pool(n_jobs) as pool:
            found = spectrum.smoothest(W, components_of(W), 6, np.random.RandomState(0), pool)
            answers.append(found.vectors)
    assert_array_equal(*answers)


def test_components_stay_apart(monkeypatch):
    near, _ = sheets(700, n_sheets=1)
    W = graph_of(np.vstack([near, near + 100]))
    components = components_of(W)
    few_points(monkeypatch, 100)
    found = spectrum.smoothest(W, components, 4, np.random.RandomState(0))
    for label in range(2):
        own = components.of_point == label
        # Every function is of one component, and zero on the other.
        assert ((found.vectors[own] != 0).any(axis=0) ^ (found.vectors[~own] != 0).any(axis=0)).all()


def test_groups_are_closest_neighbors_and_all_points_have_one():
    W = graph_of(overlapping(800)[0])
    groups = closest_as_one(W)
    number = groups.max() + 1
    assert_array_equal(np.unique(groups), np.arange(number))
    assert number < len(groups) / 3
    # Every group hangs together in the graph.
    rows = np.repeat(np.arange(800), np.diff(W.indptr))
    inside = groups[rows] == groups[W.indices]
    kept = sp.csr_array((W.data[inside], (rows[inside], W.indices[inside])), shape=W.shape)
    assert components_of(kept).number == number


def test_points_without_edges_are_groups_of_their_own():
    W = sp.csr_array(np.array([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]))
    assert_array_equal(closest_as_one(W), [0, 0, 1, 2])


def test_the_filter_is_the_polynomial():
    W = graph_of(overlapping(300)[0])
    degrees = np.asarray(W.sum(axis=1))
    functions = np.random.default_rng(0).normal(size=(300, 3))
    values, vectors = dense_pairs(W)
    cut, degree = 0.6, 10
    found = chebyshev_filter(Walk(W, 1 / degrees), functions.copy(), cut, SERIAL)
    # Eigenfunction by eigenfunction: T_10 of the eigenvalues, -1 and the cut at its ends, 1 at the value 1.
    polynomial = np.polynomial.chebyshev.Chebyshev.basis(degree, domain=[-1, cut])
    coefficients = vectors.T @ (functions * np.sqrt(degrees)[:, None])
    expected = (vectors * (polynomial(values) / polynomial(1.0))) @ coefficients / np.sqrt(degrees)[:, None]
    assert_allclose(found, expected, atol=1e-10)


def test_ritz_functions_of_an_invariant_span_are_exact():
    W = graph_of(overlapping(300)[0])
    degrees = np.asarray(W.sum(axis=1))
    values, vectors = dense_pairs(W)
    mixed = (vectors[:, :5] / np.sqrt(degrees)[:, None]) @ np.random.default_rng(0).normal(size=(5, 5))
    found, functions = smooth(W, degrees, values[:6], mixed, 4, SERIAL)
    assert_allclose(found, values[:4], atol=1e-12)
    assert_allclose(functions.T @ (functions * degrees[:, None]), np.eye(4), atol=1e-9)
    assert_allclose(
        np.abs(np.sum(functions * vectors[:, :4] * np.sqrt(degrees)[:, None], axis=0)), 1, atol=1e-9
    )
