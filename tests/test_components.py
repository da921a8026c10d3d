"""More components than clusters: near ones are joined first, whatever their form, storage and number."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from smrmf import FastSMRMF
from smrmf._parallel import SERIAL
from smrmf.graph import components
from smrmf.graph.components import components_of, join_components
from smrmf.graph.graphs import simplex_graph, symmetrize
from smrmf.graph.neighbors import find_neighbors
from smrmf.metrics import clustering_accuracy


def arcs(rng):
    """Return two moons of three pieces each; nearest pieces belong together, middles do not tell."""
    points, kinds = [], []
    for kind in range(2):
        for piece in range(3):
            angle = (piece + 0.1 + 0.6 * rng.random(rng.integers(40, 150))) / 3 * np.pi
            x, y = (np.cos(angle), np.sin(angle)) if kind == 0 else (1 - np.cos(angle), 0.3 - np.sin(angle))
            points.append(10 * np.column_stack([x, y]) + rng.normal(size=(len(angle), 2)) * 0.12)
            kinds += [kind] * len(angle)
    return np.vstack(points), np.array(kinds), 2


def pairs(rng):
    """Return three pairs of blobs of any size."""
    middles = np.array([[0, 0], [6, 0], [30, 0], [36, 0], [0, 30], [6, 30]])
    sizes = rng.integers(15, 300, size=6)
    kinds = np.repeat(np.arange(6), sizes)
    return middles[kinds] + 0.7 * rng.normal(size=(len(kinds), 2)), kinds // 2, 3


def graph_of(X, k=10):
    return symmetrize(simplex_graph(find_neighbors(X, k + 1), k))


@pytest.mark.parametrize("draw", [arcs, pairs])
def test_near_components_are_one_cluster(draw):
    for seed in range(3):
        X, kinds, c = draw(np.random.default_rng(seed))
        labels = FastSMRMF(c, random_state=0, max_iter=20, tol=0).fit_predict(X)
        assert clustering_accuracy(kinds, labels) == 1


def test_a_few_points_apart_take_no_cluster_from_many():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(n, 2)) * 0.5 + [x, 0] for n, x in ((150, 0), (150, 9), (15, 20))])
    W, joined = join_components(X, graph_of(X), 2, SERIAL)
    assert components_of(graph_of(X)).number == 3
    np.testing.assert_array_equal(joined.of_point, np.repeat([0, 1], [150, 165]))
    assert joined.number == components_of(W).number == 2


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_as_many_are_left_as_wanted_and_edges_stay(limit):
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(40, 3)), 12, axis=0)
    before = graph_of(X, 5)
    W, joined = join_components(X, before, limit, SERIAL)
    assert components_of(before).number == 40
    assert joined.number == components_of(W).number == limit
    assert abs(W - W.T).max() == 0
    assert (W - before).min() >= 0


def test_of_very_many_the_small_ones_follow_the_nearest(monkeypatch):
    rng = np.random.default_rng(2)
    middles = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 40])
    sizes = np.where(np.arange(60) % 6, 7, 20)
    X = np.repeat(middles, sizes, axis=0)
    monkeypatch.setattr(components, "COMPARED", 10)
    monkeypatch.setattr(components, "SAMPLED", 20)
    _, joined = join_components(X, graph_of(X, 5), 2, SERIAL)
    np.testing.assert_array_equal(joined.of_point, np.repeat([0, 1], [sizes[:30].sum(), sizes[30:].sum()]))


def test_of_very_many_points_some_are_tied_and_no_component_is_left_out(monkeypatch):
    rng = np.random.default_rng(4)
    middles = np.vstack([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 40])
    sizes = np.where(np.arange(80) % 40 < 2, 60, 7)
    X = np.repeat(middles, sizes, axis=0) + 1e-3 * rng.normal(size=(sizes.sum(), 2))
    before = graph_of(X, 5)
    _, expected = join_components(X, before, 2, SERIAL)
    monkeypatch.setattr(components, "MOST_TIED", 25)
    W, joined = join_components(X, before, 2, SERIAL)
    np.testing.assert_array_equal(joined.of_point, expected.of_point)
    # A point of each of the other 78, and 25 more of either group.
    assert (W - before).nnz / 2 <= components_of(before).number + 2 * 25


def test_sparse_points_are_joined_as_dense_ones():
    rng = np.random.default_rng(3)
    rows = sp.random_array((24, 400), density=0.02, rng=rng, format="csr")
    X = sp.csr_array(sp.vstack([rows] * 8))
    W = graph_of(X, 5)
    sparse, dense = (join_components(data, W, 3, SERIAL)[1] for data in (X, X.toarray()))
    np.testing.assert_array_equal(sparse.of_point, dense.of_point)
