"""Sparse points: exact neighbours on their rows, few coordinates for the loop, and nothing dense between."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from smrmf._parallel import thread_pool
from smrmf.graph import neighbors
from smrmf.graph.dense_points import DensePoints
from smrmf.graph.neighbors import find_neighbors, measured_points
from smrmf.graph.sparse_points import SparsePoints
from smrmf.kernels import truncated_svd
from smrmf.kernels.nonnegative_svd import nonnegative_svd
from smrmf.kernels.truncated_svd import leading_coordinates

SEEDS = st.integers(0, 2**32 - 1)
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def texts(seed, n, m, density=0.05, dtype=float):
    """Return a table of whole numbers, in which rows are often equally far, some twice there, some empty."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, m)) < density, rng.integers(-2, 4, (n, m)), 0)
    X[rng.integers(n, size=n // 5)] = X[rng.integers(n, size=n // 5)]
    return X.astype(dtype)


def untidy(X):
    """Return the same table with entries out of order, in parts, and zeros among them."""
    n, m = X.shape
    rows, columns = np.nonzero(np.ones_like(X))
    order = np.random.default_rng(0).permutation(len(rows))
    rows, columns = rows[order], columns[order]
    by_row = np.argsort(rows, kind="stable")
    half = X[rows, columns][by_row] / 2
    parts = np.repeat(half, 2), np.repeat(columns[by_row], 2).astype(np.int64)
    return sp.csr_array((*parts, np.arange(0, 2 * n * m + 1, 2 * m, dtype=np.int64)), shape=X.shape)


def brute_force(X, k, queries=None):
    """Sort all distances, ties by index."""
    D = cdist(X if queries is None else queries, X, "sqeuclidean")
    if queries is None:
        np.fill_diagonal(D, np.inf)
    order = np.argsort(D, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(D, order, axis=1)


# Distances


@given(SEEDS, st.integers(2, 60), st.integers(30, 90), st.data())
def test_neighbors_of_sparse_rows_are_those_of_brute_force(seed, n, m, data):
    X, k = texts(seed, n, m), data.draw(st.integers(1, n - 1))
    assert isinstance(measured_points(sp.csr_array(X)), SparsePoints)
    found = find_neighbors(sp.csr_array(X), k)
    indices, squared = brute_force(X, k)
    # Whole numbers: distances and their ties are exact.
    assert_array_equal(found.squared, squared)
    assert_array_equal(found.indices, indices)


@given(SEEDS, st.integers(1, 40), st.integers(1, 25))
def test_neighbors_of_new_points_are_those_of_brute_force(seed, n, n_queries):
    X, queries = texts(seed, n, 60), texts(seed + 1, n_queries, 60)
    expected = brute_force(X, min(3, n), queries)
    for form in (np.asarray, sp.csr_array):
        found = find_neighbors(sp.csr_array(X), min(3, n), form(queries))
        assert_array_equal(found.indices, expected[0])
        assert_array_equal(found.squared, expected[1])


@DTYPES
def test_neighbors_do_not_depend_on_how_a_table_is_stored(dtype, monkeypatch):
    monkeypatch.setattr(neighbors, "is_cheap_dense", lambda X: False)  # all its zeros are stored
    X = texts(0, 40, 60, dtype=dtype)
    stored = untidy(X)
    before = stored.copy()
    found, expected = find_neighbors(stored, 5), find_neighbors(sp.csr_array(X), 5)
    assert found.squared.dtype == dtype
    assert_array_equal(found.indices, expected.indices)
    assert_array_equal(found.squared, expected.squared)
    # The table of the caller is as it was.
    assert_array_equal(stored.indices, before.indices)
    assert_array_equal(stored.data, before.data)


@DTYPES
def test_duplicates_are_at_distance_zero_far_from_the_origin(dtype):
    rng = np.random.default_rng(0)
    X = np.zeros((60, 100))
    X[:, :3] = 1e6 + rng.normal(size=(60, 3))
    X[30:] = X[:30]
    X = X.astype(dtype)
    found = find_neighbors(sp.csr_array(X), 4)
    assert (found.squared[:, 0] == 0).all()
    assert_array_equal(found.indices[:, 0], (np.arange(60) + 30) % 60)
    # Here the product form has lost all digits of single precision data, and most of double ones.
    assert_allclose(found.squared, brute_force(X.astype(float), 4)[1], rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-70, 1e70])
def test_neighbors_do_not_depend_on_the_unit(scale):
    X = sp.random_array((50, 80), density=0.05, format="csr", rng=np.random.default_rng(0))
    assert_array_equal(find_neighbors(scale * X, 5).indices, find_neighbors(X, 5).indices)


def test_the_number_of_threads_changes_nothing():
    X = sp.random_array((700, 900), density=0.02, format="csr", rng=np.random.default_rng(0))
    answers = []
    for n_jobs in (1, 2, 3):
        with thread_pool(n_jobs) as pool:
            answers.append(find_neighbors(X, 9, pool=pool))
    for other in answers[1:]:
        assert_array_equal(answers[0].indices, other.indices)
        assert_array_equal(answers[0].squared, other.squared)


@DTYPES
@pytest.mark.parametrize("rows", [slice(5, 20), np.array([30, 2, 2, 17])], ids=["slice", "list"])
def test_blocks_of_distances_are_exact_also_between_near_points(dtype, rows):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((40, 90)) < 0.1, rng.normal(size=(40, 90)), 0)
    X[17] = X[5]
    X[30] = X[5] * (1 + 1e-5)
    X = X.astype(dtype)
    block = measured_points(sp.csr_array(X)).squared_block(rows)
    assert block.dtype == dtype
    expected = cdist(X.astype(float), X.astype(float), "sqeuclidean")[rows]
    assert_allclose(block, expected, rtol=1e-6)
    assert (block[expected == 0] == 0).all()


def test_a_table_that_is_mostly_filled_is_measured_as_dense():
    X = sp.random_array((30, 40), density=0.7, format="csr", rng=np.random.default_rng(0))
    assert isinstance(measured_points(X), DensePoints)
    assert_allclose(find_neighbors(X, 4).squared, brute_force(X.toarray(), 4)[1], rtol=1e-9)


# Coordinates


def sparse_table(n=150, m=400, density=0.03, seed=0):
    return sp.random_array((n, m), density=density, format="csr", rng=np.random.default_rng(seed))


@pytest.fixture
def iterated(monkeypatch):
    """Find axes by iteration also for tables of few rows."""
    monkeypatch.setattr(truncated_svd, "FEW_ROWS", 0)


@pytest.mark.usefixtures("iterated")
@pytest.mark.parametrize("shape", [(150, 400), (400, 150)], ids=str)
@pytest.mark.parametrize("count", [1, 12, 40])
def test_the_neglected_share_is_that_of_the_singular_values(shape, count):
    X = sparse_table(*shape)
    values = np.linalg.svd(X.toarray(), compute_uv=False)
    found = leading_coordinates(X, count)
    assert found.points.shape == (shape[0], count)
    assert found.neglected == pytest.approx(1 - np.sum(values[:count] ** 2) / np.sum(values**2), abs=1e-12)
    axes = found.mixing @ found.table
    assert_allclose(axes @ axes.T, np.eye(count), atol=1e-10)
    # On orthonormal axes the coordinates are products with them, and their lengths the singular values.
    assert_allclose(found.points, X @ axes.T, atol=1e-10)
    assert_allclose(np.linalg.norm(found.points, axis=0), values[:count], rtol=1e-9)


def test_few_rows_keep_all_lengths_and_products():
    X = sparse_table()
    found = leading_coordinates(X, 5)
    assert found.neglected == 0
    assert found.points.shape == (150, 150)
    assert_allclose(found.points @ found.points.T, (X @ X.T).toarray(), atol=1e-12)
    assert_allclose(found.points @ (found.mixing @ found.table), X.toarray(), atol=1e-10)


def test_coordinates_of_few_rows_are_as_exact_as_each_row():
    X = sparse_table(20)
    lengths = 10.0 ** np.arange(-60, 60, 6)
    found = leading_coordinates(sp.csr_array(X * lengths[:, None]), 5)
    rebuilt = found.points @ (found.mixing @ found.table)
    assert_allclose(rebuilt / lengths[:, None], X.toarray(), atol=1e-12)


@pytest.mark.usefixtures("iterated")
def test_a_table_of_low_rank_loses_nothing():
    rng = np.random.default_rng(0)
    few = sp.random_array((6, 400), density=0.1, format="csr", rng=rng)
    X = sp.csr_array(few[rng.integers(6, size=150)])
    found = leading_coordinates(X, 20)
    assert found.neglected == 0
    assert found.points.shape == (150, 6)
    assert_allclose(found.points @ (found.mixing @ found.table), X.toarray(), atol=1e-10)


@pytest.mark.usefixtures("iterated")
@pytest.mark.parametrize("unit", [2.0**-230, 2.0**230])
def test_coordinates_have_the_unit_of_the_table(unit):
    X = sparse_table()
    expected, found = leading_coordinates(X, 7), leading_coordinates(sp.csr_array(X * unit), 7)
    assert found.neglected == expected.neglected
    assert_array_equal(found.points, unit * expected.points)


@pytest.mark.parametrize("few", [0, 1024], ids=["iterated", "exact"])
def test_zeros_have_coordinates_too(few, monkeypatch):
    monkeypatch.setattr(truncated_svd, "FEW_ROWS", few)
    found = leading_coordinates(sp.csr_array((30, 400)), 5)
    assert found.neglected == 0
    assert_array_equal(found.points @ (found.mixing @ found.table), np.zeros((30, 400)))


@pytest.mark.parametrize("few", [0, 1024], ids=["iterated", "exact"])
@pytest.mark.parametrize("n_columns", [1, 4, 9])
def test_the_nonnegative_svd_of_sparse_rows_is_that_of_dense_ones(few, n_columns, monkeypatch):
    monkeypatch.setattr(truncated_svd, "FEW_ROWS", few)
    X = sparse_table()
    assert_allclose(nonnegative_svd(X, n_columns), nonnegative_svd(X.toarray(), n_columns), atol=1e-8)


def test_the_nonnegative_svd_has_zeros_beyond_the_rank():
    X = sp.csr_array(np.repeat(sparse_table(3).toarray(), 10, axis=0))
    G = nonnegative_svd(X, 5)
    assert G.shape == (30, 5)
    assert_allclose(G, nonnegative_svd(X.toarray(), 5), atol=1e-6)
    assert not G[:, 3:].any()
