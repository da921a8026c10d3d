"""The search across parts: true neighbours at true distances, and every row finds its way back."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
from many_points import overlapping, sheets
from numpy.testing import assert_allclose, assert_array_equal
from parts import cut, joined
from sklearn.neighbors import NearestNeighbors

from smrmf.dask._input import taken_in
from smrmf.dask._search import search
from smrmf.dask._shuffle import place

K, N_PARTS = 15, 3
# Unequal, one without rows, one of a single row.
CHUNKS = (700, 0, 1, 2299, 1000)


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


class Searched:
    """What a search has found, put together: rows in the order of the parts, and lists of their numbers."""

    def __init__(self, X, chunks=CHUNKS):
        given = taken_in(da.from_array(X, chunks=(chunks, -1)), "euclidean")
        found = search(given, K, N_PARTS)
        self.placed, self.lists, self.recall = found.placed, found.lists, found.recall
        before = np.concatenate([[0], np.cumsum(found.placed.chunk_sizes)])
        origins = found.placed.origin.compute()
        self.row = np.concatenate([before[origin.chunk] + origin.row for origin in origins])
        self.X = joined(found.placed.X)
        self.numbers, self.squared = joined(found.lists[0]), joined(found.lists[1])


def squared_lengths(differences):
    return np.sum(differences.astype(np.float64) ** 2, axis=-1)


def share_found(squared, X):
    """Return which share of the lists' entries are as near as the true neighbours."""
    distances, _ = NearestNeighbors(n_neighbors=K + 1).fit(X).kneighbors(X)
    return np.mean(squared <= distances[:, -1:] ** 2 * (1 + 1e-5))


@pytest.fixture(
    scope="module", params=[(sheets, np.float64), (overlapping, np.float64), (sheets, np.float32)]
)
def searched(request):
    table, dtype = request.param
    X, _ = table(4000, dtype=dtype)
    with dask.config.set(scheduler="threads", num_workers=2):
        return X, Searched(X)


def test_the_rows_of_the_parts_are_those_that_came(searched):
    X, found = searched
    assert len(found.placed.X) == N_PARTS
    assert_array_equal(np.sort(found.row), np.arange(len(X)))
    assert_array_equal(found.X, X[found.row])


def test_lists_name_other_points_once_and_nearest_first(searched):
    X, found = searched
    assert found.numbers.shape == (len(X), K)
    assert found.numbers.min() >= 0
    assert found.numbers.max() < len(X)
    assert (found.numbers != np.arange(len(X))[:, None]).all()
    assert all(len(set(row)) == K for row in found.numbers.tolist())
    assert (np.diff(found.squared, axis=1) >= 0).all()


def test_distances_are_those_of_the_points_named(searched):
    X, found = searched
    assert found.squared.dtype == X.dtype
    expected = squared_lengths(found.X[:, None] - found.X[found.numbers])
    assert_allclose(found.squared, expected, rtol=1e-5 if X.dtype == np.float32 else 1e-12)


def test_nearly_all_neighbors_are_found_and_the_recall_is_told(searched):
    _, found = searched
    share = share_found(found.squared, found.X.astype(np.float64))
    assert share >= 0.95
    # A sample of 256 lists, whose entries are not independent.
    assert found.recall == pytest.approx(share, abs=0.03)


def test_neighbors_are_found_in_other_parts(searched):
    _, found = searched
    part_of = np.repeat(np.arange(N_PARTS), np.diff(found.placed.starts))
    assert np.mean(part_of[found.numbers] != part_of[:, None]) > 0.01


def test_lists_return_to_the_chunks_in_which_the_rows_came(searched):
    X, found = searched
    returned = found.placed.returned(found.lists[0]).compute()
    assert [len(part) for part in returned] == [size for size in CHUNKS if size > 0]
    rows, squared = np.concatenate(returned), joined(found.placed.returned(found.lists[1]))
    expected = squared_lengths(X[:, None] - X[found.row[rows]])
    assert_allclose(squared, expected, rtol=1e-5 if X.dtype == np.float32 else 1e-12)
    assert_array_equal(joined(found.placed.returned(found.placed.X)), X)


def test_a_row_finds_its_copy_in_another_chunk_and_not_itself():
    once, _ = sheets(1500)
    order = np.random.default_rng(0).permutation(3000)
    X = np.vstack([once, once])[order]
    found = Searched(X, (1200, 1700, 100))
    assert (found.numbers != np.arange(3000)[:, None]).all()
    copy = order[found.row] % 1500
    assert_array_equal(copy[found.numbers[:, 0]], copy)
    assert_array_equal(found.squared[:, 0], 0)
    assert (found.squared[:, 1] > 0).all()


# Chunks without rows, and cells without points


def test_rows_are_placed_and_returned_by_empty_chunks_and_cells():
    rng = np.random.default_rng(0)
    X, cell_of = rng.normal(size=(900, 4)), rng.choice([0, 1, 2, 5, 6, 9, 13, 14], size=900)
    starts = np.array([0, 400, 400, 401, 900])
    placed = place(cut(X, starts), cut(cell_of, starts), 16, 40)
    assert_array_equal(placed.sizes, np.bincount(cell_of, minlength=16))
    assert (placed.bounds[0], placed.bounds[-1], placed.starts[-1]) == (0, 16, len(X))
    assert [len(part) for part in placed.X.compute()] == np.diff(placed.starts).tolist()
    assert min(np.diff(placed.starts)) > 0
    for found, expected in ((placed.X, X), (placed.origin[0], cell_of)):
        chunks = placed.returned(found).compute()
        assert [len(chunk) for chunk in chunks] == placed.chunk_sizes == [400, 0, 1, 499]
        assert_array_equal(np.concatenate(chunks), expected)
