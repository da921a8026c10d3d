"""Neighbours in cells: nearly all are found, distances are exact, and the recall told is the true one."""

from __future__ import annotations

import numpy as np
import pytest
from many_points import overlapping, sheets
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from smrmf._parallel import SERIAL, thread_pool
from smrmf.graph import approximate
from smrmf.graph.approximate import CellSearch, Sample, asked_by_points, cells_to_ask, find_in_cells
from smrmf.graph.candidates import Neighbors
from smrmf.graph.cells import Cells, train_cells
from smrmf.graph.neighbors import find_neighbors
from smrmf.graph.search import MOST_EXACT, InCells, SearchAmong, is_searched_in_cells, nearest

K = 15


def of_queries(X, queries, known=None):
    """Return the nearest rows of X to queries, as a search in cells finds them."""
    return SearchAmong.prepare(X, K, "approximate", SERIAL, known).nearest(queries, SERIAL)


def true_recall(found, X, queries=None):
    exact = find_neighbors(X, K, queries)
    return np.mean(found.squared <= exact.squared[:, -1:])


def spread(found):
    """Return how many points a row of the sample stands for, at the least."""
    return len(found.indices) / (2 * approximate.SAMPLE)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("table", [sheets, overlapping])
def test_nearly_all_neighbors_are_found_and_the_recall_is_told(table, dtype):
    X, _ = table(4000, dtype=dtype)
    found = nearest(X, K, how="approximate")
    assert not found.exact
    recall = true_recall(found, X)
    assert recall >= 0.95
    # A sample of 256 lists, whose entries are not independent.
    assert found.recall == pytest.approx(recall, abs=0.02)


@pytest.mark.parametrize("table", [sheets, overlapping])
def test_lists_are_of_other_points_nearest_first_at_exact_distances(table):
    X, _ = table(3000)
    found = nearest(X, K, how="approximate")
    rows = np.arange(len(X))[:, None]
    assert (found.indices != rows).all()
    assert (np.diff(found.squared, axis=1) >= 0).all()
    assert all(len(set(row)) == K for row in found.indices.tolist())
    assert_allclose(found.squared, np.sum((X[rows] - X[found.indices]) ** 2, axis=2), rtol=1e-12)


def test_distances_are_those_of_the_exact_search_to_the_last_bit():
    X, _ = sheets(3000, dtype=np.float32)
    found, exact = nearest(X, K, how="approximate"), find_neighbors(X, K)
    same = found.indices == exact.indices
    assert same.mean() > 0.8
    assert_array_equal(found.squared[same], exact.squared[same])


def test_all_cells_together_hold_the_nearest_of_all_points():
    X, _ = overlapping(2500)
    cells = Cells.of(X, *train_cells(X, SERIAL))
    found = CellSearch(cells, cells.map.number).nearest(asked_by_points(cells), K, SERIAL)
    exact = find_neighbors(X, K)
    assert_array_equal(found.indices, exact.indices)
    assert_array_equal(found.squared, exact.squared)


def test_cells_part_the_points_by_the_nearest_center():
    X, _ = overlapping(2500)
    centers, of_point = train_cells(X, SERIAL)
    assert_array_equal(of_point, cdist(X, centers).argmin(axis=1))
    cells = Cells.of(X, centers, of_point)
    assert_array_equal(np.sort(cells.places), np.arange(len(X)))
    for cell in range(cells.map.number):
        assert (of_point[cells.members(cell)] == cell).all()
    assert_array_equal(cells.map.near, np.argsort(cdist(centers, centers), axis=1, kind="stable"))


@pytest.mark.parametrize("table", [sheets, overlapping])
def test_the_answer_does_not_depend_on_the_number_of_threads(table):
    X, _ = table(3000, dtype=np.float32)
    answers = []
    for n_jobs in (1, 2, 3):
        with thread_pool(n_jobs) as pool:
            answers.append(nearest(X, K, how="approximate", pool=pool))
    for other in answers[1:]:
        assert_array_equal(answers[0].indices, other.indices)
        assert_array_equal(answers[0].squared, other.squared)
        assert answers[0].recall == other.recall


def test_queries_find_their_copies():
    X, _ = sheets(4000)
    found = of_queries(X, X[::3].copy())
    assert_array_equal(found.indices[:, 0], np.arange(0, len(X), 3))
    assert_array_equal(found.squared[:, 0], 0)


def test_new_points_find_nearly_all_of_their_neighbors():
    X, _ = sheets(5000)
    found = of_queries(X[:4000], X[4000:] + 0.01)
    assert not found.exact
    assert true_recall(found, X[:4000], X[4000:] + 0.01) >= 0.95


def test_what_a_query_finds_does_not_depend_on_the_others():
    X, _ = overlapping(4000)
    queries = X[3000:] + 0.01
    together = of_queries(X[:3000], queries)
    for some in (slice(0, 1), slice(10, 400)):
        apart = of_queries(X[:3000], queries[some])
        assert_array_equal(apart.indices, together.indices[some])
        assert_array_equal(apart.squared, together.squared[some])


def test_cells_that_are_known_are_searched_as_deep_as_is_known():
    X, _ = sheets(5000)
    cells = InCells(*train_cells(X, SERIAL))
    anew = of_queries(X, X[::7] + 0.01)
    asked = [of_queries(X, X[::7] + 0.01, cells._replace(n_asked=n)) for n in (1, anew.n_asked)]
    assert true_recall(asked[0], X, X[::7] + 0.01) < true_recall(asked[1], X, X[::7] + 0.01)
    assert_array_equal(asked[1].indices, anew.indices)
    # All of them where most cells had to be asked.
    assert of_queries(X, X[::7], cells._replace(n_asked=0)).exact


@pytest.mark.parametrize("ordered", [False, True])
def test_the_order_of_the_table_changes_no_list(ordered):
    # A point at two rows of the table: only its number is another one.
    X, _ = sheets(3000)
    centers, of_point = train_cells(X, SERIAL)
    found = find_in_cells(K, Cells.of(X, centers, of_point), SERIAL)
    order = np.argsort(of_point, kind="stable") if ordered else np.random.default_rng(0).permutation(3000)
    other = find_in_cells(K, Cells.of(X[order], centers, of_point[order]), SERIAL)
    # Another sample tells how many cells are asked.
    assert np.mean(other.squared == found.squared[order]) > 0.97
    same = other.squared == found.squared[order]
    assert_array_equal(order[other.indices][same], found.indices[order][same])


def test_what_would_have_to_be_compared_with_all_is_searched_exactly():
    # Of noise in 200 dimensions no cell is near.
    X = np.random.default_rng(0).normal(size=(2500, 200))
    assert find_in_cells(K, Cells.of(X, *train_cells(X, SERIAL)), SERIAL) is None
    found = nearest(X, K, how="approximate")
    assert found.exact
    assert_array_equal(found.indices, find_neighbors(X, K).indices)


def test_a_search_that_finds_too_few_goes_on_harder(monkeypatch):
    X, _ = overlapping(4000)
    asked = []
    search = CellSearch.nearest

    def counted(self, *args):
        asked.append(self.n_asked)
        return search(self, *args)

    monkeypatch.setattr(CellSearch, "nearest", counted)
    monkeypatch.setattr(approximate, "AIMED_RECALL", 0.3)
    monkeypatch.setattr(approximate, "LARGEST_SHARE", 1.0)
    found = nearest(X, K, how="approximate")
    # A sample, harder and harder, and then all.
    *tried, final = asked
    assert len(tried) > 1
    assert tried == [asked[0] * 2**step for step in range(len(tried))]
    assert final == tried[-1]
    assert found.recall >= approximate.PROMISED_RECALL
    assert true_recall(found, X) >= 0.93


def test_more_cells_are_asked_for_more_recall(monkeypatch):
    X, _ = overlapping(4000)
    cells = Cells.of(X, *train_cells(X, SERIAL))
    asking = asked_by_points(cells).part(np.arange(0, 4000, 20))
    sample = Sample(asking, CellSearch(cells, cells.map.number).nearest_of_few(asking, K, SERIAL))
    numbers = []
    for aimed in (0.5, 0.9, 1.0):
        monkeypatch.setattr(approximate, "AIMED_RECALL", aimed)
        of_neighbors = cells.of_point[sample.neighbors.indices]
        n_asked = cells_to_ask(cells.map, sample.questions, of_neighbors)
        numbers.append(n_asked)
        found = CellSearch(cells, n_asked).nearest(sample.questions, K, SERIAL)
        assert np.mean(found.squared <= sample.neighbors.squared[:, -1:]) >= aimed - 1e-12
    assert numbers[0] < numbers[1] < numbers[2]


def test_ties_count_as_found():
    sample = Sample(None, Neighbors(np.array([[4, 5]]), np.array([[1.0, 2.0]])))
    assert sample.found(np.array([[1.0, 2]])) == 1
    assert sample.found(np.array([[2.0, 3]])) == 0.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tight_clumps_far_from_each_other_and_from_the_origin(dtype):
    # A clump is far smaller than the numbers' distance to the origin, and single points lie nowhere.
    rng = np.random.default_rng(0)
    places = rng.uniform(-1000, 1000, (40, 6)) + 3000
    X = (places[rng.integers(40, size=3000)] + 0.5 * rng.normal(size=(3000, 6))).astype(dtype)
    X[::500] *= 3
    found, exact = nearest(X, K, how="approximate"), find_neighbors(X, K)
    assert np.isfinite(found.squared).all()
    assert np.mean(found.squared <= exact.squared[:, -1:]) >= 0.95


def test_lists_longer_than_the_cells_that_are_asked_are_filled():
    # Of 25 points each, with one cell asked, lists of 60 cannot be.
    X, _ = sheets(2500)
    cells = Cells.of(X, *train_cells(X, SERIAL))
    found = CellSearch(cells, 1).nearest(asked_by_points(cells), 200, SERIAL)
    assert np.isfinite(found.squared).all()
    assert all(len(set(row)) == 200 for row in found.indices.tolist())


def test_where_digits_are_lost_points_are_compared_by_differences(monkeypatch):
    X, _ = sheets(2500, dtype=np.float32)
    expected = nearest(X, K, how="approximate")
    monkeypatch.setattr(
        approximate, "lost_in_rounding", lambda norms, worst, kth: np.arange(len(kth)) % 7 == 0
    )
    found = nearest(X, K, how="approximate")
    assert np.mean(found.indices == expected.indices) > 0.999
    assert_allclose(found.squared, expected.squared, rtol=1e-5)


def test_which_tables_are_searched_in_cells():
    table = np.empty((MOST_EXACT + 1, 1))
    assert not is_searched_in_cells(table[:-1], "auto")
    assert is_searched_in_cells(table, "auto")
    assert is_searched_in_cells(table[:3000], "approximate")
    assert not is_searched_in_cells(table, "exact")
    # Too few for cells.
    assert not is_searched_in_cells(table[:1000], "approximate")
