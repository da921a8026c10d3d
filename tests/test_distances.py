"""Squared distances, the adaptive Gaussian kernel and its bandwidths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from smrmf._parallel import thread_pool
from smrmf.kernels.distances import (
    adaptive_gaussian,
    latent_kth_squared,
    neighbor_bandwidth,
    pair_squared_distances,
    squared_distances,
    squared_norms,
    symmetric_kernel_dissimilarity,
)

RTOL = {np.float32: 1e-5, np.float64: 1e-12}
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
RULES = pytest.mark.parametrize("rule", ["distance", "squared-distance"])

points = arrays(
    float,
    array_shapes(min_dims=2, max_dims=2, max_side=7),
    elements=st.one_of(st.integers(-2, 2).map(float), st.floats(-10, 10, allow_subnormal=False)),
)
widths = st.floats(1e-3, 1e3)


def normal(seed, *shape, dtype=float):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def listed(X, Y, neighbors, dtype=float):
    out = np.empty(neighbors.shape, dtype)
    pair_squared_distances(X, Y, neighbors, out)
    return out


def kth_by_brute_force(G, H, k):
    """Sort the distances of every g_i to all h_j but its own."""
    D = cdist(G, H, "sqeuclidean")
    return np.array([np.sort(np.delete(row, i))[k - 1] for i, row in enumerate(D)])


# Distances


@DTYPES
def test_squared_distances_of_all_pairs(dtype):
    X, Y = normal(0, 12, 5, dtype=dtype), normal(1, 7, 5, dtype=dtype)
    D = squared_distances(X, Y)
    assert D.dtype == dtype
    assert_allclose(D, cdist(X, Y, "sqeuclidean"), rtol=RTOL[dtype], atol=RTOL[dtype])


@given(points)
def test_squared_distances_are_never_negative(X):
    D = squared_distances(X, X)
    assert np.all(D >= 0)
    assert_allclose(D, cdist(X, X, "sqeuclidean"), rtol=0, atol=1e-14 * (1 + squared_norms(X).max()))


def test_squared_distances_use_the_norms_they_are_given():
    X, Y = normal(0, 6, 3), normal(1, 4, 3)
    D = squared_distances(X, Y, squared_norms(X) + 1, squared_norms(Y) + 2)
    assert_allclose(D, cdist(X, Y, "sqeuclidean") + 3, rtol=1e-12)


@DTYPES
def test_listed_distances_are_those_of_the_pairs(dtype):
    X, Y = normal(0, 9, 4, dtype=dtype), normal(1, 30, 4, dtype=dtype)
    neighbors = np.random.default_rng(2).integers(0, 30, size=(9, 5))
    expected = np.take_along_axis(cdist(X, Y, "sqeuclidean"), neighbors, axis=1)
    assert_allclose(listed(X, Y, neighbors, dtype), expected, rtol=RTOL[dtype])


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e12])
def test_listed_distances_do_not_cancel_far_from_the_origin(offset):
    steps = np.arange(8.0)[:, None] * [[1.0, 2.0]]
    neighbors = np.tile(np.arange(8), (8, 1))
    expected = 5 * (np.arange(8)[:, None] - np.arange(8)) ** 2
    assert_array_equal(listed(steps + offset, steps + offset, neighbors), expected)


@pytest.mark.parametrize("scale", [1e-150, 1e12, 1e150])
def test_listed_distances_of_huge_and_tiny_points(scale):
    X = normal(0, 6, 3)
    neighbors = np.array([[1], [2], [3], [4], [5], [5]])
    distances = listed(scale * X, scale * X, neighbors)
    assert_allclose(distances / scale**2, listed(X, X, neighbors), rtol=1e-12)
    assert distances[5, 0] == 0


# The kernel


def test_kernel_rows_use_their_own_bandwidth():
    D = np.array([[0.0, 8.0], [8.0, 0.0]])
    K = adaptive_gaussian(D, np.array([1.0, 2.0]))
    assert_allclose(K, [[1, np.exp(-4)], [np.exp(-1), 1]], rtol=1e-15)


@given(points, st.data())
def test_dissimilarity_is_minus_the_symmetric_kernel(X, data):
    width = data.draw(arrays(float, len(X), elements=widths))
    D = cdist(X, X, "sqeuclidean")
    K = np.exp(-D / (2 * width[:, None] ** 2))
    dissimilarity = symmetric_kernel_dissimilarity(D.copy(), width, width)
    assert_allclose(dissimilarity, -(K + K.T) / 2, rtol=1e-12, atol=1e-300)
    assert np.all((dissimilarity >= -1) & (dissimilarity <= 0))
    assert np.all(dissimilarity[D == 0] == -1)
    assert_array_equal(dissimilarity, dissimilarity.T)


@DTYPES
def test_dissimilarity_of_a_block_is_made_in_place(dtype):
    X = normal(0, 20, 3, dtype=dtype)
    D = cdist(X, X, "sqeuclidean").astype(dtype)
    width = np.random.default_rng(1).uniform(0.5, 2, 20).astype(dtype)
    block = D[4:9].copy()
    answer = symmetric_kernel_dissimilarity(block, width[4:9], width)
    assert answer is block
    assert answer.dtype == adaptive_gaussian(D, width).dtype == dtype
    K = adaptive_gaussian(D, width)
    assert_allclose(answer, -(K + K.T)[4:9] / 2, rtol=RTOL[dtype], atol=1e-30)


# Bandwidths


@DTYPES
def test_bandwidth_rules(dtype):
    kth = np.array([0.25, 1.0, 9.0], dtype)
    for rule, expected in [("distance", [0.5, 1, 3]), ("squared-distance", [0.25, 1, 9])]:
        width = neighbor_bandwidth(kth, rule)
        assert width.dtype == dtype
        assert_array_equal(width, expected)


@pytest.mark.parametrize("scale", [1e-100, 1e-6, 1e12, 1e150])
def test_distance_rule_does_not_see_the_scale_of_the_data(scale):
    D = cdist(*2 * [normal(0, 10, 3)], "sqeuclidean")
    kernels = [
        adaptive_gaussian(squared, neighbor_bandwidth(np.sort(squared)[:, 3], "distance"))
        for squared in (D, scale**2 * D)
    ]
    assert_allclose(*kernels, rtol=1e-10)


@DTYPES
@RULES
@pytest.mark.parametrize("far", [1.0, 100.0, 1e8])
def test_points_without_a_bandwidth_have_a_kernel_of_ones_and_zeros(dtype, rule, far):
    X = np.array([[0.0], [0.0], [0.0], [far], [far], [far]], dtype)
    D = cdist(X, X, "sqeuclidean").astype(dtype)
    width = neighbor_bandwidth(np.zeros(6, dtype), rule)
    same = (D == 0).astype(dtype)
    assert_array_equal(adaptive_gaussian(D, width), same)
    assert_array_equal(symmetric_kernel_dissimilarity(D.copy(), width, width), -same)


# Neighbours in the latent space


@DTYPES
@pytest.mark.parametrize("k", [1, 5, 29])
def test_latent_kth_distance_is_that_of_brute_force(dtype, k):
    G, H = normal(0, 30, 4, dtype=dtype), normal(1, 30, 4, dtype=dtype)
    kth = latent_kth_squared(G, H, k)
    assert kth.dtype == dtype
    assert_allclose(kth, kth_by_brute_force(G, H, k), rtol=10 * RTOL[dtype])


@given(arrays(float, st.tuples(st.integers(2, 8), st.integers(1, 3)), elements=st.integers(-1, 1).map(float)))
def test_latent_self_is_left_out_by_index_and_duplicates_count(G):
    for k in (1, len(G) - 1):
        assert_array_equal(latent_kth_squared(G, G.copy(), k), kth_by_brute_force(G, G, k))


def test_latent_kth_distance_on_two_threads_and_several_blocks():
    G, H = normal(0, 500, 3), normal(1, 500, 3)
    answers = []
    for n_jobs in (1, 2):
        with thread_pool(n_jobs) as pool:
            answers.append(latent_kth_squared(G, H, 7, pool))
    assert_array_equal(*answers)
    assert_allclose(answers[0], kth_by_brute_force(G, H, 7), rtol=1e-10)
