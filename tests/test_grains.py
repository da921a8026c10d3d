"""Grains: what no clustering parts is one, and its graph cuts as that of the points does."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from smrmf.graph.grains import find_grains, graph_of_grains
from smrmf.graph.graphs import simplex_graph, symmetrize
from smrmf.graph.neighbors import find_neighbors
from smrmf.graph.partitions import shares_between


def draw(seed, n=30, n_partitions=4, n_clusters=3):
    rng = np.random.default_rng(seed)
    partitions = list(rng.integers(n_clusters, size=(n_partitions, n)))
    return partitions, symmetrize(simplex_graph(find_neighbors(rng.normal(size=(n, 2)), 6), 5))


@given(st.integers(0, 2**31 - 1), st.integers(1, 6))
def test_points_are_in_one_grain_where_all_partitions_join_them(seed, n_partitions):
    partitions, _ = draw(seed, n_partitions=n_partitions)
    grains = find_grains(partitions)
    together = np.all([labels[:, None] == labels for labels in partitions], axis=0)
    np.testing.assert_array_equal(grains[:, None] == grains, together)
    assert sorted(set(grains)) == list(range(grains.max() + 1))
    assert (np.diff(np.unique(grains, return_index=True)[1]) > 0).all()  # numbered by their first points


@given(st.integers(0, 2**31 - 1))
def test_names_of_clusters_do_not_matter(seed):
    partitions, _ = draw(seed)
    rng = np.random.default_rng(seed)
    renamed = [rng.permutation(labels.max() + 1)[labels] for labels in partitions]
    np.testing.assert_array_equal(find_grains(renamed), find_grains(partitions))


@given(st.integers(0, 2**31 - 1))
def test_a_clustering_of_the_grains_cuts_what_it_cuts_among_the_points(seed):
    partitions, W = draw(seed)
    grains = find_grains(partitions)
    coarse = graph_of_grains(W, grains)
    np.testing.assert_allclose(coarse.sum(), W.sum())
    labels = np.random.default_rng(seed).integers(2, size=grains.max() + 1)
    np.testing.assert_allclose(
        shares_between(coarse, labels, 2), shares_between(W, labels[grains], 2), atol=1e-12
    )


def test_many_partitions_of_many_clusters_have_numbers_enough():
    partitions = [np.arange(5000) % 4999 for _ in range(20)]
    assert find_grains(partitions).max() == 4998
