"""Merging of cells: the best two each time, found plainly, and what no cell can spoil."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smrmf.graph.merging import merge_by_information, merge_tied
from smrmf.graph.partitions import information


def random_shares(m: int, seed: int) -> np.ndarray:
    """Return shares between cells; some pairs have no edges to each other, and one cell may have none."""
    rng = np.random.default_rng(seed)
    J = np.tril(rng.random((m, m)) * (rng.random((m, m)) > 0.3)) + np.eye(m) * rng.random(m)
    return (J + J.T) / (2 * J.sum())


def joined(J: np.ndarray, groups: list[set[int]]) -> np.ndarray:
    member = np.array([[cell in group for cell in range(len(J))] for group in groups], float)
    return member @ J @ member.T


def merge_plainly(J: np.ndarray, c: int, worth) -> set[frozenset[int]]:
    """Try all pairs each time, and merge the one that is worth most."""
    groups = [{cell} for cell in range(len(J))]
    while len(groups) > c:
        pairs = [(a, b) for a in range(len(groups)) for b in range(a + 1, len(groups))]
        a, b = max(pairs, key=lambda pair: worth(J, groups, *pair))
        groups[a] |= groups.pop(b)
    return {frozenset(group) for group in groups}


def tie(power):
    def worth(J, groups, a, b):
        between = joined(J, groups)
        shares = between.sum(axis=1)
        return between[a, b] / (shares[a] * shares[b]) ** power

    return worth


def told(power):
    def worth(J, groups, a, b):
        rest = [group for place, group in enumerate(groups) if place not in (a, b)]
        return information(joined(J, [*rest, groups[a] | groups[b]]), power)

    return worth


@pytest.mark.parametrize(("merge", "worth"), [(merge_tied, tie), (merge_by_information, told)])
@pytest.mark.parametrize("power", [0.75, 1.0])
@given(st.integers(0, 10_000), st.integers(2, 9), st.integers(2, 9))
def test_merging_takes_the_best_pair_each_time(merge, worth, power, seed, m, c):
    J = random_shares(m, seed)
    cluster = merge(J, min(c, m), power)
    found = {frozenset(np.flatnonzero(cluster == label)) for label in np.unique(cluster)}
    assert found == merge_plainly(J, min(c, m), worth(power))
    # Consecutive, so that they can be labels.
    assert set(cluster) == set(range(min(c, m)))


@pytest.mark.parametrize("merge", [merge_tied, merge_by_information])
def test_cells_that_nothing_ties_are_merged_last(merge):
    J = np.kron(np.eye(3), random_shares(4, 0) + 0.1)
    labels = merge(J / J.sum(), 3, 0.75)
    np.testing.assert_array_equal(labels, np.repeat([0, 1, 2], 4))


@pytest.mark.parametrize("merge", [merge_tied, merge_by_information])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_few_cells_are_left_alone_and_all_become_one(merge, m):
    J = random_shares(m, 1)
    np.testing.assert_array_equal(merge(J, 3, 0.75), np.arange(m))
    np.testing.assert_array_equal(merge(J, 1, 0.75), 0)


def test_the_shares_are_left_alone():
    J = random_shares(8, 0)
    before = J.copy()
    merge_tied(J, 3, 1.0)
    merge_by_information(J, 3, 0.75)
    np.testing.assert_array_equal(J, before)
