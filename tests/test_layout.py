"""Graphs in the plane: finite, repeatable, neighbours near, clusters apart, components side by side."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import make_blobs
from sklearn.neighbors import kneighbors_graph
from threadpoolctl import threadpool_limits

from smrmf.graph import layout
from smrmf.graph.layout import layout_graph
from smrmf.graph.packing import PLACED, pack_discs


def near_graph(X, k=8):
    W = sp.csr_array(kneighbors_graph(X, k))
    return W.maximum(W.T).tocsr()


def purity(places, labels):
    """Return the share of points whose nearest one in the plane has their label."""
    nearest = kneighbors_graph(places, 1).tocsr().indices
    return np.mean(labels[nearest] == labels)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(400, centers=4, n_features=6, cluster_std=2.5, random_state=0)


def of_edges(n, *edges):
    W = np.zeros((n, n))
    for i, j in edges:
        W[i, j] = W[j, i] = 1
    return sp.csr_array(W)


ODD = {
    "nothing": of_edges(0),
    "one point": of_edges(1),
    "two apart": of_edges(2),
    "two": of_edges(2, (0, 1)),
    "three and two alone": of_edges(5, (0, 1), (1, 2)),
    "all alike": sp.csr_array(np.ones((30, 30))),
    "a star": of_edges(300, *((0, i) for i in range(1, 300))),
    "single": sp.csr_array(np.ones((9, 9), np.float32)),
    "weights next to nothing": sp.csr_array(np.full((9, 9), 1e-300)),
    "large weights": sp.csr_array(np.full((9, 9), 1e300)),
    "zeros stored": sp.csr_array((np.zeros(4), ([0, 1, 2, 0], [1, 0, 0, 2])), shape=(3, 3)),
}


@pytest.mark.parametrize("W", ODD.values(), ids=ODD.keys())
def test_any_graph_has_finite_places_all_different(W):
    places = layout_graph(W, random_state=0)
    assert places.shape == (W.shape[0], 2)
    assert np.isfinite(places).all()
    assert len(np.unique(places, axis=0)) == W.shape[0]


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 40), st.floats(0, 0.3))
def test_random_graphs_have_finite_places_around_zero(seed, n, density):
    half = sp.random_array((n, n), density=density, rng=np.random.default_rng(seed))
    places = layout_graph(sp.csr_array(half + half.T), random_state=seed)
    assert np.isfinite(places).all()
    np.testing.assert_allclose(places.mean(axis=0), 0, atol=1e-9 * (1 + np.abs(places).max()))


def test_the_same_seed_gives_the_same_places_on_any_number_of_threads(blobs):
    W = near_graph(blobs[0])
    first = layout_graph(W, random_state=3)
    with threadpool_limits(1):
        np.testing.assert_array_equal(layout_graph(W, random_state=3), first)
    assert not np.allclose(layout_graph(W, random_state=4), first)


def test_the_unit_of_the_weights_does_not_count(blobs):
    W = near_graph(blobs[0])
    np.testing.assert_allclose(layout_graph(W * 4, random_state=0), layout_graph(W, random_state=0))


def test_the_diagonal_does_not_count(blobs):
    W = near_graph(blobs[0])
    with_loops = sp.csr_array(W + sp.eye_array(W.shape[0]))
    np.testing.assert_array_equal(layout_graph(with_loops, random_state=0), layout_graph(W, random_state=0))


def test_neighbours_are_near_and_clusters_apart(blobs):
    X, y = blobs
    W = near_graph(X)
    places = layout_graph(W, random_state=0)
    edges = sp.coo_array(W)
    others = np.random.default_rng(0).permutation(len(X))[edges.col % len(X)]
    linked = np.linalg.norm(places[edges.row] - places[edges.col], axis=1)
    drawn = np.linalg.norm(places[edges.row] - places[others], axis=1)
    assert np.median(linked) < 0.2 * np.median(drawn)
    # The blobs overlap: the plane cannot tell more of them apart than the data do.
    assert purity(X, y) < 1
    assert purity(places, y) > purity(X, y) - 0.03


def test_a_path_is_laid_out_in_its_order():
    n = 60
    path = sp.csr_array(sp.diags_array([np.ones(n - 1)] * 2, offsets=[1, -1]))
    places = layout_graph(path, random_state=0)
    step = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert np.linalg.norm(places[0] - places[-1]) > 5 * np.median(step)


def test_a_large_graph_begins_at_its_cells(monkeypatch, blobs):
    X, y = blobs
    monkeypatch.setattr(layout, "FEW_POINTS", 100)
    W = near_graph(X, 20)
    assert connected_components(W)[0] == 1
    # The start itself: pulls and pushes would mend a wrong one.
    start = layout._start(W, np.random.RandomState(0))
    edges = sp.coo_array(W)
    linked = np.linalg.norm(start[edges.row] - start[edges.col], axis=1)
    drawn = np.linalg.norm(start[edges.row] - start[edges.col[::-1]], axis=1)
    assert np.median(linked) < 0.5 * np.median(drawn)
    assert purity(layout_graph(W, random_state=0), y) > 0.95


def test_cells_are_connected_parts(blobs):
    W = near_graph(blobs[0], 20)
    assert connected_components(W)[0] == 1
    cells = layout._cells(W, np.random.RandomState(0))
    assert cells.max() + 1 == W.shape[0] // layout.CELL_SIZE
    for cell in range(cells.max() + 1):
        members = np.flatnonzero(cells == cell)
        assert connected_components(W[members][:, members])[0] == 1


def test_components_stay_together_side_by_side():
    sizes = [120, 60, 30, 5, 1, 1]
    W = sp.csr_array(sp.block_diag([np.ones((size, size)) for size in sizes]))
    owner = np.repeat(np.arange(len(sizes)), sizes)
    places = layout_graph(W, random_state=0)
    assert purity(places[owner < 4], owner[owner < 4]) == 1
    wide, high = np.ptp(places, axis=0)
    assert 1 / 3 < wide / high < 3
    # No gap is wider than all components together.
    middles = np.array([places[owner == part].mean(axis=0) for part in range(len(sizes))])
    radii = [np.linalg.norm(places[owner == p] - middles[p], axis=1).max() for p in range(len(sizes))]
    assert np.linalg.norm(middles - middles[0], axis=1).max() < 4 * sum(radii)


@pytest.mark.parametrize("size", [5, 40, 120])
def test_components_do_not_run_away_from_each_other(size):
    # In a complete graph pushes are many: if only one of two points moved by each, their sum would carry all.
    one, two = (sp.csr_array(sp.block_diag([np.ones((size, size))] * count)) for count in (1, 2))
    alone, both = (np.ptp(layout_graph(W, random_state=0), axis=0).max() for W in (one, two))
    assert both < 5 * alone


def test_components_whose_means_are_near_begin_near_each_other():
    # Six complete parts; the means of 0 and 5 are near each other, all others are far from both.
    W = sp.csr_array(sp.block_diag([np.ones((20, 20))] * 6))
    middles = np.repeat(np.eye(6) * 10, 20, axis=0)
    middles[100:] = middles[0] + 0.1
    for points in (middles, sp.csr_array(middles)):
        places = layout_graph(W, points, random_state=0)
        centers = places.reshape(6, 20, 2).mean(axis=1)
        distances = np.linalg.norm(centers[:5] - centers[5], axis=1)
        assert distances[0] < 0.8 * distances[1:].mean()


def test_the_longest_axis_lies_first(blobs):
    places = layout_graph(near_graph(blobs[0]), random_state=0)
    spread = places.T @ places
    assert spread[0, 0] >= spread[1, 1]
    assert abs(spread[0, 1]) < 1e-8 * spread[0, 0]


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=25), st.integers(0, 3))
def test_discs_do_not_overlap(radii, seed):
    radii = -np.sort(-np.array(radii))
    ties = None if seed == 0 else np.random.default_rng(seed).random((len(radii), len(radii)))
    centers = pack_discs(radii, ties)
    gaps = np.linalg.norm(centers[:, None] - centers, axis=2) - radii[:, None] - radii
    np.fill_diagonal(gaps, 0)
    assert gaps.min() > -1e-6
    if len(radii) > 1:
        np.fill_diagonal(gaps, np.inf)
        assert gaps.min(axis=1)[1:].max() < 1e-6 + 2 * radii[0]


@pytest.mark.parametrize("friend", range(6))
def test_a_disc_touches_the_one_that_it_is_tied_to(friend):
    ties = np.full((7, 7), 0.01)
    ties[6, friend] = 1
    centers = pack_discs(np.ones(7), ties)
    # One with others all around it has no side left, and the next best place is beyond them.
    assert np.linalg.norm(centers[6] - centers[friend]) < 3.5


def test_many_discs_go_around_the_first_ones():
    radii = np.ones(4 * PLACED)
    centers = pack_discs(radii)
    gaps = np.linalg.norm(centers[:, None] - centers, axis=2)
    np.fill_diagonal(gaps, np.inf)
    assert gaps.min() > 1.5
    # About as much room as so many squares have.
    assert np.ptp(centers, axis=0).max() < 2.2 * np.sqrt(4 * len(radii))
