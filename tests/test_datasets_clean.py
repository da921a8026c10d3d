"""What cleaning keeps, drops and scales, on dense and sparse tables."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from smrmf.datasets import clean

# Few values, so that equal rows and constant features are common.
tables = arrays(
    np.float64,
    st.tuples(st.integers(2, 9), st.integers(1, 4)),
    elements=st.sampled_from([-2.0, -0.0, 0.0, 0.5, 3]),
)


def varying(X):
    return X[:, X.min(axis=0) < X.max(axis=0)]


def first_of_equal(X):
    return np.sort(np.unique(X, axis=0, return_index=True)[1])


@given(tables)
def test_the_order_of_the_steps(X):
    assume(varying(X).shape[1] > 0)
    kept = first_of_equal(varying(X))
    expected = varying(X)[kept]
    expected = (expected - expected.min(axis=0)) / np.ptp(expected, axis=0)
    has_direction = expected.any(axis=1)
    expected = expected[has_direction]
    expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    cleaned, rows = clean(X, np.arange(len(X)))
    assert_array_equal(rows, kept[has_direction])
    assert_allclose(cleaned, expected, rtol=1e-14)


@given(tables)
def test_rows_are_directions_between_0_and_1(X):
    assume(varying(X).shape[1] > 0)
    cleaned, _ = clean(X, np.zeros(len(X)))
    assert cleaned.min() >= 0
    assert_allclose(np.linalg.norm(cleaned, axis=1), 1, rtol=1e-14)


@given(tables)
def test_equal_rows_and_constant_features_change_nothing(X):
    assume(varying(X).shape[1] > 0)
    y = np.arange(len(X))
    once, kept = clean(X, y)
    padded, kept_of_padded = clean(
        np.column_stack([np.full(2 * len(X), 7.0), np.vstack([X, X])]), np.tile(y, 2)
    )
    assert_array_equal(kept_of_padded, kept)
    assert_array_equal(padded, once)


@given(tables, st.sampled_from([0.25, 2.0, 1024.0]), st.sampled_from([-8.0, 0.0, 4.0]))
def test_the_unit_of_a_feature_does_not_matter(X, scale, shift):
    assume(varying(X).shape[1] > 0)
    once, kept = clean(X, np.arange(len(X)))
    other, kept_of_other = clean(X * scale + shift, np.arange(len(X)))
    assert_array_equal(kept_of_other, kept)
    assert_allclose(other, once, rtol=1e-12, atol=1e-14)


@given(tables)
def test_sparse_tables_give_the_same(X):
    X = abs(X)
    assume(varying(X).shape[1] > 0)
    y = np.arange(len(X))
    dense, kept = clean(X, y)
    for kind in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        sparse, kept_of_sparse = clean(kind(X), y)
        assert isinstance(sparse, sp.csr_array)
        assert_array_equal(kept_of_sparse, kept)
        assert_allclose(sparse.toarray(), dense, rtol=1e-14)


def test_stored_zeros_and_the_order_of_entries_do_not_hide_equal_rows():
    X = sp.csr_array(
        (np.array([1.0, 2.0, 0.0, 2.0, 1.0, 5.0]), np.array([0, 1, 2, 1, 0, 2]), np.array([0, 3, 5, 6])),
        shape=(3, 3),
    )
    before = X.toarray()
    _, kept = clean(X, [0, 1, 2])
    assert_array_equal(kept, [0, 2])
    assert_array_equal(X.toarray(), before)
    assert X.nnz == 6


def test_twice_is_not_once():
    X = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.5, 0.0, 1.0], [0.5, 0.5, 0.0]])
    once, y = clean(X, np.arange(4))
    assert_array_equal(once[0], once[3])  # they differed in length only
    twice, _ = clean(once, y)
    assert len(twice) == 3
    assert not np.allclose(twice, once[:3])


def test_input_is_left_alone():
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    X.flags.writeable = False
    clean(X, [0, 1])


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.ones((3, 2)), [0, 1, 2], "No feature of X varies"),
        (np.eye(3), [0, 1], r"X of shape \(3, 3\) needs one class per row, but y has shape \(2,\)"),
        (np.array([[1.0, np.nan], [0.0, 1.0]]), [0, 1], "NaN or infinity"),
        (sp.csr_array(np.array([[1.0, -1.0], [0.0, 1.0]])), [0, 1], "must not be negative"),
    ],
)
def test_refusals(X, y, words):
    with pytest.raises(ValueError, match=words):
        clean(X, y)
