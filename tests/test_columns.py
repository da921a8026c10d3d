"""Columns that rule the distances are named, by a check and by every fit; others are not."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from smrmf import FastSMRMF
from smrmf.inspection import ColumnsWarning, check_columns

DRAWS = np.random.default_rng(0)
PLAIN = DRAWS.normal(size=(600, 3))


def whole_numbers(share):
    """Return a table with a column of whole numbers, as wide as the others times a share."""
    steps = DRAWS.integers(0, 4, 600)
    return np.column_stack([PLAIN, steps * share])


def test_columns_in_another_unit_are_named():
    (note,) = check_columns(PLAIN * [1, 1, 500], feature_names=["mm", "cm", "gram"])
    assert "'gram' has a spread of" in note
    assert "2 of 3 columns" in note
    assert "StandardScaler" in note
    (note,) = check_columns(load_wine().data)
    assert "'x12'" in note


def test_columns_of_few_values_that_part_neighbours_are_named():
    (note,) = check_columns(whole_numbers(3.0), feature_names=["a", "b", "c", "table"])
    assert note.startswith("Column 'table' has few values")
    assert check_columns(whole_numbers(0.05)) == []


def test_an_id_and_a_category_are_named():
    rows = np.arange(600)
    (note,) = check_columns(np.column_stack([PLAIN, rows]), feature_names=["a", "b", "c", "id"])
    assert "'id'" in note
    assert "3 of 4 columns" in note
    category = np.eye(4)[DRAWS.integers(4, size=600)] * 3
    (note,) = check_columns(np.column_stack([PLAIN, category]))
    assert note.startswith("Columns 'x3', 'x4', 'x5' and others have few values")


def test_few_values_that_neighbours_do_not_share_are_left_alone():
    # As wide as the neighbourhoods, but these are wide in the other columns, too.
    assert check_columns(np.column_stack([PLAIN[:60] * 2, DRAWS.integers(0, 2, 60)])) == []
    # A narrow range, but no smaller spread than the others have.
    halves = np.column_stack([DRAWS.normal(size=600) ** 9, np.sign(PLAIN[:, 0]) * 30])
    assert all("spread" not in note for note in check_columns(halves))


def test_large_numbers_are_compared_as_small_ones():
    notes = [check_columns(PLAIN * [1, 1, 500] * size) for size in (1.0, 1e300)]
    assert len(notes[0]) == len(notes[1]) == 1
    assert "e+302" in notes[1][0]


@pytest.mark.parametrize("seed", range(2))
def test_tables_of_one_kind_are_left_alone(seed):
    draws = np.random.default_rng(seed)
    pixels = load_digits().data[:500]
    kinds = [
        load_iris().data,
        StandardScaler().fit_transform(load_wine().data),
        pixels,
        (pixels > 7).astype(float),  # all of few values
        draws.integers(0, 3, (300, 4)).astype(float),
        np.ones((20, 3)),
        draws.normal(size=(30, 1)) * 1e9,
        np.vstack([draws.normal(size=(99, 3)), [[1e9, 0, 0]]]),  # one point far off is no unit
    ]
    for X in kinds:
        assert check_columns(X) == []


def test_a_fit_says_the_same_once_and_can_be_told_not_to():
    table = pd.DataFrame(PLAIN[:100] * [1, 1, 500], columns=["mm", "cm", "gram"])
    with pytest.warns(ColumnsWarning, match="'gram'") as caught:
        FastSMRMF(2, random_state=0).fit(table)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ColumnsWarning)
        FastSMRMF(2, random_state=0).fit(table)


def test_directions_and_small_tables_have_no_such_columns():
    FastSMRMF(2, metric="cosine", random_state=0).fit(np.abs(PLAIN[:50]) * [1, 1, 500])
    assert check_columns(np.array([[1.0, 2.0]])) == []
    assert check_columns(PLAIN[:19] * [1, 1, 500]) == []
    assert len(check_columns(PLAIN[:20] * [1, 1, 500])) == 1
