"""Identical rows and their labels."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from smrmf._arrays import finite_array
from smrmf.graph.duplicates import agreeing_labels, distinct_rows
from smrmf.graph.groups import sums_of_groups
from smrmf.graph.labels import consecutive_labels, empty_columns_last

# Few values, so that rows are often alike or have the same sum; 1e20 hides the others in a sum.
VALUES = st.sampled_from([0.0, -0.0, 1.0, 2.0, -1.0, 0.1, 1e20, 1e308])
TABLES = st.integers(1, 5).flatmap(
    lambda m: st.lists(st.lists(VALUES, min_size=m, max_size=m), min_size=1, max_size=30)
)


@given(TABLES)
@pytest.mark.parametrize("form", [np.array, sp.csr_array, sp.csr_matrix], ids=["dense", "array", "matrix"])
def test_groups_are_those_of_equal_rows(form, rows):
    X = np.array(rows)
    groups = distinct_rows(form(X))
    equal = (X[:, None] == X[None]).all(axis=2)
    np.testing.assert_array_equal(groups[:, None] == groups[None], equal)
    firsts = [np.argmax(groups == group) for group in range(groups.max() + 1)]
    assert firsts == sorted(firsts)


def test_sparse_rows_in_another_order_and_with_stored_zeros_are_equal():
    # Sums depend on the order: 0.1 + 0.2 + 0.3 is not 0.3 + 0.2 + 0.1.
    data, indices = [0.1, 0.2, 0.3, 0.3, 0.2, 0.1, 0.0], [0, 2, 3, 3, 2, 0, 1]
    X = sp.csr_array((data, indices, [0, 3, 7]), shape=(2, 4))
    checked = finite_array(None, X, copy=True)
    np.testing.assert_array_equal(distinct_rows(checked), [0, 0])
    np.testing.assert_array_equal(X.indices, indices)  # the caller's stays as it was
    assert checked.nnz == 7


def test_long_rows_that_are_far_apart_in_the_table_have_equal_sums():
    X = np.random.default_rng(0).normal(size=(501, 333))
    X[[0, 77, 500]] = X[250]
    groups = distinct_rows(X)
    assert len(np.unique(groups)) == 498
    assert len(set(groups[[0, 77, 250, 500]])) == 1


def test_the_majority_of_a_group_decides():
    groups = np.array([0, 0, 0, 1, 2, 2])
    np.testing.assert_array_equal(agreeing_labels(np.array([2, 2, 0, 1, 0, 0]), groups), [2, 2, 2, 1, 0, 0])
    # What has lost all its points leaves no gap.
    np.testing.assert_array_equal(agreeing_labels(np.array([2, 2, 1, 0, 0, 0]), groups), [1, 1, 1, 0, 0, 0])


def test_an_empty_cluster_gets_all_points_of_a_group():
    G = np.array([[3.0, 0.0, 0.1], [3.0, 0.0, 0.3], [2.0, 0.0, 0.2], [0.0, 1.0, 0.0]])
    labels, moved = consecutive_labels(G, np.array([0, 0, 1, 2]))
    np.testing.assert_array_equal(labels, [2, 2, 0, 1])
    assert moved == [0]
    np.testing.assert_array_equal(sums_of_groups(G, np.array([0, 0, 1, 2]))[0], [6.0, 0.0, 0.4])


def test_with_fewer_groups_than_columns_the_empty_ones_come_last():
    G = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0], [0.0, 1.0, 0.5]])
    labels, moved = consecutive_labels(G, np.array([0, 0, 1]))
    assert moved == []
    order, labels = empty_columns_last(labels, 3)
    np.testing.assert_array_equal(order, [1, 2, 0])
    np.testing.assert_array_equal(labels, [1, 1, 0])
    np.testing.assert_array_equal(G[:, order].argmax(axis=1), labels)
