"""The start by consensus: the edges that many clusterings agree on, and the choice among what they find."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from smrmf import RMNMF, FastSMRMF
from smrmf._parallel import SERIAL
from smrmf.graph.consensus import (
    ENTROPY_POWER,
    consensus_labels,
    later_candidates,
    most_telling,
    trusted_graph,
)
from smrmf.graph.grains import graph_of_grains
from smrmf.graph.graphs import simplex_graph, symmetrize
from smrmf.graph.neighbors import find_neighbors
from smrmf.graph.partitions import information, leak, shares_between
from smrmf.graph.search import search


def graphs_of(X, *sizes):
    near = find_neighbors(X, max(sizes) + 1)
    return [symmetrize(simplex_graph(near, k)) for k in sizes]


def consensus(X, c, seed=0):
    points, near = search(X, 21, SERIAL)
    graphs = [symmetrize(simplex_graph(near, k)) for k in (10, 20)]
    return consensus_labels(points, near.squared[:, 0], graphs, c, np.random.RandomState(seed), SERIAL)


def uneven_blobs(seed):
    centers, widths = [[0, 0], [8, 0], [0, 8]], [2.0, 0.5, 0.5]
    return make_blobs([600, 60, 30], centers=centers, cluster_std=widths, random_state=seed)


@pytest.mark.parametrize("seed", range(3))
def test_blobs_of_very_unequal_size_are_found(seed):
    X, y = uneven_blobs(seed)
    assert adjusted_rand_score(y, FastSMRMF(3, random_state=0).fit_predict(X)) > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_noisy_moons_are_found(seed):
    X, y = make_moons(500, noise=0.1, random_state=seed)
    assert adjusted_rand_score(y, FastSMRMF(2, random_state=0).fit_predict(X)) > 0.9


def test_firm_clusters_are_said_to_be_firm():
    clear, _ = make_blobs(300, centers=4, cluster_std=0.5, random_state=2)
    noise = np.random.default_rng(0).normal(size=(300, 5))
    firm, doubtful = consensus(clear, 4), consensus(noise, 4)
    assert firm.stability > 0.99
    assert doubtful.stability < 0.7
    for found in (firm, doubtful):
        np.testing.assert_allclose(found.votes.sum(axis=1), 1)
    assert own_share(firm).min() > 0.9
    assert own_share(doubtful).mean() < own_share(firm).mean() - 0.1


def own_share(found):
    """Return the votes that every point has for its own label."""
    return found.votes[np.arange(len(found.labels)), found.labels]


def test_points_between_clusters_are_the_least_sure():
    X, _ = make_blobs([200, 200], centers=[[0, 0], [5, 0]], cluster_std=1.2, random_state=0)
    found = consensus(X, 2)
    middle = np.abs(X[:, 0] - 2.5) < 0.5
    assert own_share(found)[middle].mean() < own_share(found)[~middle].mean() - 0.02


def test_as_many_components_as_clusters_are_the_answer():
    X, y = make_blobs([50, 40, 30], centers=[[0, 0], [99, 0], [0, 99]], random_state=0)
    found = consensus(X, 3)
    np.testing.assert_array_equal(found.labels, y)
    assert found.stability == 1
    np.testing.assert_array_equal(own_share(found), 1)


def test_edges_keep_a_little_of_their_weight():
    W = sp.csr_array(np.array([[0.0, 2, 3], [2, 0, 0], [3, 0, 0]]))
    trusted = trusted_graph(W, np.array([0.0, 1.0, 0.0, 1.0])).toarray()
    np.testing.assert_allclose(trusted, [[0, 0.002, 3.003], [0.002, 0, 0], [3.003, 0, 0]])


def test_the_choice_cuts_little():
    X, y = uneven_blobs(0)
    (W,) = graphs_of(X, 10)
    # Halves of the large blob tell more of neighbours than the truth, but cut far more weight.
    halves = np.where(y == 0, (X[:, 0] > X[y == 0, 0].mean()).astype(int), 2)
    assert leak(shares_between(W, halves, 3)) > 2 * leak(shares_between(W, y, 3))
    np.testing.assert_array_equal(most_telling(W, [halves, y], 3), y)


def test_of_equal_cuts_the_more_telling_is_chosen():
    # Four equal cliques in a ring, tied by one light edge each: pairs are better than one against three.
    clique = np.ones((5, 5)) - np.eye(5)
    W = np.kron(np.eye(4), clique)
    for a in range(4):
        b = (a + 1) % 4
        W[5 * a, 5 * b + 1] = W[5 * b + 1, 5 * a] = 0.01
    pairs, lone = np.repeat([0, 0, 1, 1], 5), np.repeat([0, 1, 1, 1], 5)
    np.testing.assert_array_equal(most_telling(sp.csr_array(W), [lone, pairs], 2), pairs)


def test_fewer_clusters_than_wanted_are_no_answer():
    X, y = make_blobs(90, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    (W,) = graphs_of(X, 40)
    for fewer in (np.zeros(90, int), np.minimum(y, 1)):
        np.testing.assert_array_equal(most_telling(W, [fewer, y], 3), y)


def test_four_points_that_are_all_neighbours_are_told_apart():
    X = np.array([[0.0, 0], [0, 0.1], [9, 0], [9, 0.1]])
    labels = FastSMRMF(2, random_state=0).fit_predict(X)
    assert adjusted_rand_score([0, 0, 1, 1], labels) == 1


def test_later_candidates_keep_grains_together_and_tell_more_than_ties():
    X, _ = make_blobs(400, centers=8, cluster_std=2.2, random_state=1)
    (W,) = graphs_of(X, 10)
    grains = np.arange(400) // 2
    found = list(later_candidates(W, grains, 8, np.random.RandomState(0)))
    assert len(found) == 8  # two sets of cells, merged in three ways, and two of k-means
    for labels in found:
        np.testing.assert_array_equal(labels[::2], labels[1::2])
        assert set(labels) == set(range(8))
    coarse = graph_of_grains(W, grains)
    told = [information(shares_between(coarse, labels[::2], 8), ENTROPY_POWER) for labels in found]
    for first in (0, 4):
        assert told[first + 2] > max(told[first : first + 2])


def test_a_seed_decides_everything():
    X, _ = make_moons(200, noise=0.2, random_state=0)
    one, two = consensus(X, 3, seed=5), consensus(X, 3, seed=5)
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.votes, two.votes)
    assert one.stability == two.stability


def test_only_the_spectral_start_has_a_stability():
    X, _ = make_blobs(60, centers=3, random_state=0)
    model = RMNMF(3, random_state=0).fit(X)
    assert 0 <= model.stability_ <= 1
    model.set_params(init="kmeans").fit(X)
    assert not hasattr(model, "stability_")


@pytest.mark.parametrize("c", [2, 3, 5])
def test_fewer_distinct_points_than_clusters_are_all_the_clusters_there_are(c):
    X = np.repeat([[0.0, 0], [1, 0]], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="2 distinct rows") if c > 2 else nullcontext():
        labels = FastSMRMF(c, random_state=0).fit_predict(X)
    assert adjusted_rand_score(np.repeat([0, 1], 5), labels) == 1
