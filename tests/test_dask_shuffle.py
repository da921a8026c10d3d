"""Rows move to the parts for which they are meant, and back, whatever the number of rounds that takes."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")

from smrmf.dask import _shuffle  # noqa: E402
from smrmf.dask._blocks import blocks_of  # noqa: E402
from smrmf.dask._shuffle import Sent, delivered, place  # noqa: E402


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="sync"):
        yield


def cut(values, sizes):
    return [values[end - size : end] for size, end in zip(sizes, np.cumsum(sizes), strict=True)]


@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=30),
    n_parts=st.integers(1, 50),
    most=st.integers(2, 7),
    seed=st.integers(0, 99),
)
def test_all_rows_arrive_in_their_order(sizes, n_parts, most, seed):
    to = np.random.default_rng(seed).integers(0, n_parts, sum(sizes))
    numbers = np.arange(len(to))
    pairs = zip(cut(to, sizes), cut(numbers, sizes), strict=True)
    sent = blocks_of([Sent(aims, (rows,)) for aims, rows in pairs])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_shuffle, "MOST_PIECES", most)
        arrived = delivered(sent, n_parts).compute()
    assert len(arrived) == n_parts
    for part, rows in enumerate(arrived):
        assert_array_equal(rows.what[0], numbers[to == part])
        assert (rows.to == part).all()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_parts", [1, 3, 40])
def test_rows_are_placed_by_their_cells_and_returned(form, n_parts):
    draw = np.random.default_rng(0)
    sizes = draw.integers(1, 60, 45).tolist()
    X, cells = draw.normal(size=(sum(sizes), 3)), draw.integers(0, 90, sum(sizes))
    table = blocks_of([form(rows) for rows in cut(X, sizes)])
    placed = place(table, blocks_of(cut(cells, sizes)), 100, n_parts)
    parts, origins = placed.X.compute(), placed.origin.compute()
    assert len(parts) == len(placed.bounds) - 1 <= n_parts
    for part, origin in enumerate(origins):
        assert (np.diff(origin.cell) >= 0).all()
        assert placed.bounds[part] <= origin.cell.min()
        assert origin.cell.max() < placed.bounds[part + 1]
        came = np.cumsum([0, *sizes])[origin.chunk] + origin.row
        assert abs(parts[part] - form(X)[came]).max() == 0
        assert_array_equal(cells[came], origin.cell)
    back = placed.returned(placed.X).compute()
    for mine, came in zip(back, cut(X, sizes), strict=True):
        assert_array_equal(mine.toarray() if sp.issparse(mine) else mine, came)


def test_tasks_are_few_times_the_parts():
    """All pairs of 1,000 parts would be a million."""
    sent = blocks_of([Sent(np.zeros(1, int), (np.zeros(1),))] * 1000)
    assert len(delivered(sent, 1000).graph.to_dict()) < 1000 * 3 * _shuffle.MOST_PIECES
