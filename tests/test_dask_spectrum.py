"""The smoothest functions in parts, by way of a coarse graph, against solvers that see the whole graph."""

from __future__ import annotations

from typing import NamedTuple

import dask
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from many_points import overlapping, sheets
from numpy.testing import assert_allclose, assert_array_equal
from parts import cut, graph_in_memory, graph_in_parts, joined
from scipy.sparse.linalg import eigsh

from smrmf._parallel import SERIAL
from smrmf.dask import _spectrum
from smrmf.dask._graph import BlockGraph
from smrmf.dask._halo import Halo
from smrmf.dask._spectrum import Joined, smoothed, smoothest_in_parts
from smrmf.graph.coarse import Walk, best_combinations, chebyshev_filter
from smrmf.graph.graphs import simplex_graph, symmetrize
from smrmf.graph.neighbors import find_neighbors

N, COUNT, FEW = 1500, 6, 300
# Unequal parts, one of a single point.
STARTS = np.array([0, 500, 501, 1100, N])


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


class Whole(NamedTuple):
    """Points, their graph in parts, and the same put together."""

    X: np.ndarray
    graph: BlockGraph
    W: sp.csr_array

    @classmethod
    def of(cls, X):
        near = find_neighbors(X, 11)
        Zt = simplex_graph(near, 10)
        graph = graph_in_parts(Zt, Halo.of(cut(near.indices, STARTS), STARTS)).symmetrized()
        return cls(X, graph, symmetrize(Zt))

    @property
    def degrees(self):
        return np.asarray(self.W.sum(axis=1)).ravel()

    def normalized(self):
        scale = sp.diags_array(1 / np.sqrt(self.degrees.astype(np.float64)))
        return scale @ self.W.astype(np.float64) @ scale

    def leading_pairs(self, count):
        """Return the largest eigenvalues and their eigenvectors, the largest first."""
        values, vectors = eigsh(self.normalized(), k=count, which="LA", v0=np.ones(N))
        return values[::-1], vectors[:, ::-1]


def one_sheet(n, dtype):
    return sheets(n, n_sheets=1, dtype=dtype)


@pytest.fixture(params=[(one_sheet, np.float64), (one_sheet, np.float32), (overlapping, np.float64)])
def whole(request):
    table, dtype = request.param
    return Whole.of(table(N, dtype=dtype)[0])


def found_in_parts(whole, monkeypatch):
    monkeypatch.setattr(_spectrum, "MANY_POINTS", FEW)
    small = Joined.of(whole.graph, lambda numbers: whole.X[numbers], COUNT)
    assert small.components.number == 1
    assert small.W.shape[0] <= FEW
    return smoothest_in_parts(whole.graph, small, COUNT, np.random.RandomState(0))


def test_the_graph_put_together_is_that_of_the_points(whole):
    assert abs(graph_in_memory(whole.graph) - whole.W).max() < 1e-6


def test_eigenvalues_are_nearly_those_of_the_whole_graph(whole, monkeypatch):
    found = found_in_parts(whole, monkeypatch)
    expected, _ = whole.leading_pairs(COUNT)
    # Ritz values are never above the eigenvalues. Without a filter the last one is lower by 0.06 and more.
    assert (found.values <= expected + 1e-6).all()
    assert_allclose(found.values, expected, atol=0.003)


def test_eigenvectors_are_orthonormal_and_have_the_eigenvalues_told(whole, monkeypatch):
    found = found_in_parts(whole, monkeypatch)
    vectors = joined(found.vectors).astype(np.float64)
    assert_allclose(vectors.T @ vectors, np.eye(COUNT), atol=1e-4)
    assert_allclose(np.diag(vectors.T @ (whole.normalized() @ vectors)), found.values, atol=1e-4)


def test_eigenvectors_span_those_of_the_whole_graph(whole, monkeypatch):
    found = found_in_parts(whole, monkeypatch)
    values, vectors = whole.leading_pairs(COUNT + 1)
    # As many as are well apart from what follows.
    apart = 1 + int(np.argmax(values[1:-1] - values[2:])) + 1
    own = joined(found.vectors)[:, :apart].astype(np.float64)
    angles = scipy.linalg.subspace_angles(own, vectors[:, :apart])
    assert np.degrees(angles.max()) < 10


@pytest.mark.parametrize("rounds", [1, 2])
def test_the_filter_in_parts_is_that_in_memory(whole, rounds):
    least, dtype = 0.7, whole.X.dtype
    functions = np.random.default_rng(0).normal(size=(N, COUNT)).astype(dtype)
    found = smoothed(whole.graph, cut(functions, STARTS), least, COUNT, rounds)
    walk = Walk(whole.W, 1 / whole.degrees)
    for _ in range(rounds):
        functions = chebyshev_filter(walk, functions.copy(), least, SERIAL)
    values, best = best_combinations(walk, functions, COUNT, SERIAL)
    assert_allclose(found.values, values, atol=1e-4 if dtype == np.float32 else 1e-10)
    if dtype == np.float64:
        expected = best * np.sqrt(whole.degrees)[:, None]
        assert_allclose(np.abs(np.sum(joined(found.vectors) * expected, axis=0)), 1, atol=1e-8)


def test_few_points_are_not_made_coarse(whole):
    graph = Joined.of(whole.graph, lambda numbers: whole.X[numbers], COUNT)
    assert_array_equal(graph.coarse.first, np.arange(N))
    found = smoothest_in_parts(whole.graph, graph, COUNT, np.random.RandomState(0))
    assert_allclose(found.values, whole.leading_pairs(COUNT)[0], atol=1e-4)
