"""Nearest neighbours, neighbour graphs and their Laplacians."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from smrmf._parallel import thread_pool
from smrmf.graph.graphs import Laplacian, neighbor_graph, symmetrize
from smrmf.graph.neighbors import find_neighbors

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
SEEDS = st.integers(0, 2**32 - 1)


def normal(seed, *shape, dtype=float):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def brute_force(X, k, queries=None):
    """Sort all distances, ties by index; return indices and squared distances."""
    X = X.astype(float)
    D = cdist(X if queries is None else queries.astype(float), X, "sqeuclidean")
    if queries is None:
        np.fill_diagonal(D, np.inf)
    order = np.argsort(D, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(D, order, axis=1)


def assert_nearest(X, k, queries=None, rtol=1e-9):
    """Check the distances against brute force, and that they belong to the indices."""
    found = find_neighbors(X, k, queries)
    expected = brute_force(X, k, queries)[1]
    assert found.squared.dtype == X.dtype
    assert_allclose(found.squared, expected, rtol=rtol)
    D = cdist((X if queries is None else queries).astype(float), X.astype(float), "sqeuclidean")
    assert_allclose(np.take_along_axis(D, found.indices, axis=1), expected, rtol=rtol)
    assert all(len(set(row)) == k for row in found.indices)
    if queries is None:
        assert np.all(found.indices != np.arange(len(X))[:, None])


def random_graph(seed, n, dtype=float):
    W = sp.random_array((n, n), density=0.1, rng=np.random.default_rng(seed), dtype=dtype)
    return (W + W.T).tocsr()


# Neighbours


@given(SEEDS, st.integers(2, 60), st.integers(1, 5), st.data())
def test_neighbors_are_those_of_brute_force(seed, n, n_features, data):
    assert_nearest(normal(seed, n, n_features), data.draw(st.integers(1, n - 1)))


@DTYPES
@pytest.mark.parametrize("k", [1, 10, 1099])
def test_neighbors_across_tiles(dtype, k):
    assert_nearest(normal(0, 1100, 3, dtype=dtype), k, rtol=1e-4 if dtype == np.float32 else 1e-9)


@DTYPES
@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_neighbors_far_from_the_origin(dtype, offset):
    X = (8 * normal(0, 300, 3) + offset).astype(dtype)
    assert_nearest(X, 6, rtol=1e-4 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e12, 1e150])
def test_neighbors_do_not_depend_on_the_scale(scale):
    X = normal(0, 60, 3)
    assert_array_equal(find_neighbors(scale * X, 5).indices, find_neighbors(X, 5).indices)


@pytest.mark.parametrize(("dtype", "far"), [(np.float32, 1e6), (np.float64, 1e12)])
def test_one_distant_point_does_not_spoil_the_neighbors_of_the_others(dtype, far):
    X = normal(0, 200, 3, dtype=dtype)
    X[0] = far
    assert_nearest(X, 5, rtol=1e-4 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize(("dtype", "gap"), [(np.float32, 1e4), (np.float64, 1e8)])
def test_distant_clusters_keep_their_neighbors(dtype, gap):
    X = normal(0, 400, 3)
    X[200:] += gap
    assert_nearest(X.astype(dtype), 5, rtol=1e-4 if dtype == np.float32 else 1e-9)


@given(arrays(float, st.tuples(st.integers(2, 20), st.integers(1, 3)), elements=st.integers(0, 2).map(float)))
def test_ties_on_a_small_grid_go_to_the_lower_index(X):
    for k in (1, min(5, len(X) - 1), len(X) - 1):
        indices, squared = brute_force(X, k)
        found = find_neighbors(X, k)
        assert_array_equal(found.squared, squared)
        assert_array_equal(found.indices, indices)


@pytest.mark.parametrize("n_features", [2, 3, 4])
def test_many_ties_go_to_the_lower_index(n_features):
    X = np.random.default_rng(0).integers(0, 3, size=(79, n_features)).astype(float)
    assert_array_equal(find_neighbors(X, 8).indices, brute_force(X, 8)[0])


@DTYPES
def test_duplicates_are_at_distance_zero_and_nobody_is_its_own_neighbor(dtype):
    X = np.repeat(1000 + normal(0, 4, 3, dtype=dtype), 10, axis=0)
    found = find_neighbors(X, 9)
    assert_array_equal(found.squared, np.zeros((40, 9)))
    for i, row in enumerate(found.indices):
        assert_array_equal(row, [j for j in range(i // 10 * 10, i // 10 * 10 + 10) if j != i])


@DTYPES
def test_one_feature_on_a_line(dtype):
    found = find_neighbors(np.array([[0], [1], [3], [7]], dtype), 2)
    assert_array_equal(found.indices, [[1, 2], [0, 2], [1, 0], [2, 1]])
    assert_array_equal(found.squared, [[1, 9], [1, 4], [4, 9], [16, 36]])


@pytest.mark.parametrize(("n", "n_queries"), [(50, 1), (50, 20), (50, 50), (5, 23), (1, 4), (200, 500)])
def test_queries_see_every_point(n, n_queries):
    X, queries = normal(0, n, 3), normal(1, n_queries, 3)
    for k in {1, min(n, 4), n}:
        assert_nearest(X, k, queries)


def test_queries_that_are_points_find_themselves_first():
    X = normal(0, 40, 2)
    found = find_neighbors(X, 3, X.copy())
    assert_array_equal(found.indices[:, 0], np.arange(40))
    assert_array_equal(found.squared[:, 0], np.zeros(40))


@DTYPES
def test_neighbors_on_one_and_two_threads_are_identical(dtype):
    X = normal(0, 700, 20, dtype=dtype)
    answers = []
    for n_jobs in (1, 2):
        with thread_pool(n_jobs) as pool:
            answers.append((*find_neighbors(X, 9, pool=pool), *find_neighbors(X, 9, X[::2], pool=pool)))
    for one, two in zip(*answers, strict=True):
        assert_array_equal(one, two)


# Graphs


@pytest.mark.parametrize("n_columns", [None, 9])
def test_neighbor_graph_holds_the_lists(n_columns):
    indices = np.array([[2, 1], [0, 2], [1, 0]])
    weights = np.arange(1, 10, dtype=np.float32).reshape(3, 3)[:, :2]
    W = neighbor_graph(indices, weights, n_columns)
    dense = np.zeros((3, n_columns or 3))
    np.put_along_axis(dense, indices, weights, axis=1)
    assert W.dtype == np.float32
    assert_array_equal(W.toarray(), dense)


@DTYPES
@pytest.mark.parametrize("density", [0.0, 0.05, 1.0])
def test_symmetrize_averages_and_drops_the_diagonal(dtype, density):
    W = sp.random_array((30, 30), density=density, rng=np.random.default_rng(0), dtype=dtype).tocsr()
    before = W.toarray()
    S = symmetrize(W)
    expected = (before + before.T) / 2
    np.fill_diagonal(expected, 0)
    assert S.format == "csr"
    assert S.dtype == dtype
    assert_array_equal(S.toarray(), expected)
    assert np.all(S.data != 0)
    assert_array_equal(W.toarray(), before)


def test_symmetrize_leaves_nothing_of_a_diagonal():
    assert symmetrize(sp.eye_array(4, format="csr")).nnz == 0


@DTYPES
@pytest.mark.parametrize("width", [1, 3])
def test_laplacian_is_degrees_minus_weights(dtype, width):
    W = random_graph(0, 40, dtype)
    W.setdiag(0.5)  # loops cancel
    G = normal(1, 40, width, dtype=dtype)
    dense = W.toarray().astype(float)
    product = Laplacian(W) @ G
    assert product.dtype == dtype
    expected = (np.diag(dense.sum(axis=1)) - dense) @ G
    assert_allclose(product, expected, rtol=0, atol=1e-5 if dtype == np.float32 else 1e-13)


@given(SEEDS, st.sampled_from([1.0, 1e-150, 1e150]))
def test_laplacian_measures_roughness(seed, scale):
    W, g = random_graph(seed, 15) * scale, normal(seed, 15, 1)
    laplacian = Laplacian(W)
    assert_allclose(laplacian @ np.ones((15, 2)), 0, rtol=0, atol=1e-14 * 30 * scale)
    edges = W.toarray() * (g - g.T) ** 2
    assert_allclose(np.vdot(g, laplacian @ g), edges.sum() / 2, rtol=1e-10, atol=1e-12 * scale)


def test_laplacian_ignores_isolated_points():
    W = sp.csr_array((np.ones(2), ([0, 1], [1, 0])), shape=(3, 3))
    assert_array_equal(Laplacian(W) @ np.array([[1.0], [2.0], [5.0]]), [[-1], [1], [0]])


def test_laplacian_on_one_and_two_threads_is_identical():
    W, G = random_graph(0, 3000), normal(1, 3000, 16)
    answers = []
    for n_jobs in (1, 2):
        with thread_pool(n_jobs) as pool:
            answers.append(Laplacian(W, pool) @ G)
    assert_array_equal(*answers)
    assert_allclose(answers[0], W.sum(axis=1)[:, None] * G - W @ G, rtol=0, atol=1e-10)
