"""How many clusters: found where there are some, and no answer where there are none."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_blobs, make_circles, make_moons
from sklearn.metrics import adjusted_rand_score, silhouette_score

from smrmf._parallel import SERIAL
from smrmf.graph.graphs import simplex_graph, symmetrize
from smrmf.graph.halves import Half, compare, nested_labels
from smrmf.graph.neighbors import find_neighbors
from smrmf.inspection import ColumnsWarning, suggest_n_clusters
from smrmf.inspection._suggestion import decide, gap_beyond_continuum, silhouettes

CENTERS = [[0, 0], [12, 0], [0, 12], [12, 12], [6, 25]]


@pytest.mark.parametrize("c", [2, 3, 5])
def test_blobs_are_counted(c):
    X, _ = make_blobs(60 * c, centers=CENTERS[:c], random_state=c)
    found = suggest_n_clusters(X, range(2, 9), random_state=0)
    assert found.n_clusters == c
    assert found.ranked[0] == c
    assert f"{c} clusters" in found.reason
    assert found.reason in str(found)


@pytest.mark.parametrize("make", [make_moons, partial(make_circles, factor=0.4)])
def test_shapes_are_counted(make):
    X, _ = make(600, noise=0.05, random_state=0)
    assert suggest_n_clusters(X, range(2, 9), random_state=0).n_clusters == 2


def test_small_clusters_beside_a_large_one_are_counted():
    X, _ = make_blobs([400, 80, 40], centers=CENTERS[:3], cluster_std=[1.5, 0.6, 0.6], random_state=0)
    assert suggest_n_clusters(X, random_state=0).n_clusters == 3


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ["gaussian", "stretched", "uniform", "line"])
def test_nothing_is_no_clear_answer(kind, seed):
    draws = np.random.default_rng(seed)
    X = {
        "gaussian": draws.normal(size=(400, 3)),
        "stretched": draws.normal(size=(400, 3)) * [4, 1, 1],
        "uniform": draws.random((400, 2)),
        "line": draws.random((400, 1)),
    }[kind]
    found = suggest_n_clusters(X, random_state=seed)
    assert found.n_clusters is None
    assert found.reason.startswith("No clear answer")
    assert sorted(found.ranked) == list(range(2, 21))


def test_digits_have_about_ten():
    found = suggest_n_clusters(load_digits().data, random_state=0)
    assert found.n_clusters in (9, 10, 11, 12)
    place = list(found.table["n_clusters"]).index(10)
    assert found.table["stability"][place] > 0.75


def test_answers_do_not_depend_on_the_unit_but_on_the_seed_alone():
    X, _ = make_blobs(200, centers=4, cluster_std=2.5, random_state=3)
    one, two, large = (suggest_n_clusters(x, range(2, 7), random_state=4) for x in (X, X, X * 1024))
    for name, column in one.table.items():
        np.testing.assert_array_equal(two.table[name], column)
        np.testing.assert_allclose(large.table[name], column, atol=1e-9)


def test_tables_come_back_as_they_came():
    X, _ = make_blobs(120, centers=3, random_state=0)
    found = suggest_n_clusters(pd.DataFrame(X, columns=["a", "b"]), [2, 3, 4], random_state=0)
    assert isinstance(found.table, pd.DataFrame)
    assert list(found.table["n_clusters"]) == [2, 3, 4]


def test_sparse_points_and_cosine_are_taken():
    draws = np.random.default_rng(0)
    topics = np.kron(np.eye(3), np.ones((40, 120))) * (draws.random((120, 360)) < 0.1)
    noise = draws.random((120, 360)) < 0.01
    found = suggest_n_clusters(sp.csr_array(topics + noise), range(2, 7), metric="cosine", random_state=0)
    assert found.n_clusters == 3


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([1, 2], "n_clusters has 1"),
        ([2, 40], "from 2 to 25"),
        ([], "is empty"),
        ([2.5], "n_clusters has 2.5"),
    ],
)
def test_numbers_that_cannot_be_compared_are_refused(numbers, said):
    with pytest.raises(ValueError, match=said):
        suggest_n_clusters(np.random.default_rng(0).normal(size=(200, 2)), numbers)


def test_few_points_are_refused():
    with pytest.raises(ValueError, match=r"n_samples=15.*at least 16 points"):
        suggest_n_clusters(np.arange(15.0)[:, None])
    with pytest.raises(ValueError, match="metric='no'"):
        suggest_n_clusters(np.eye(20), metric="no")


@pytest.mark.parametrize("n_distinct", [2, 3, 8])
def test_few_distinct_rows_are_no_obstacle(n_distinct):
    draws = np.random.default_rng(n_distinct)
    X = draws.normal(size=(n_distinct, 3))[np.arange(120) % n_distinct]
    found = suggest_n_clusters(X, random_state=0)
    assert found.n_clusters == n_distinct
    flags = (draws.random((300, 3)) < 0.3).astype(float)
    assert max(suggest_n_clusters(flags, random_state=0).ranked) == 20


def test_columns_in_other_units_are_said():
    X = np.random.default_rng(0).normal(size=(100, 3)) * [1, 1, 500]
    with pytest.warns(ColumnsWarning, match="'x2'") as caught:
        suggest_n_clusters(X, [2, 3], random_state=0)
    assert caught[0].filename == __file__


# The evidence


def test_silhouettes_are_those_of_scikit_learn():
    X, y = make_blobs(90, centers=3, random_state=0)
    found = silhouettes(X, [y, np.zeros(90, int)], np.random.RandomState(0))
    assert found[0] == pytest.approx(silhouette_score(X, y))
    assert np.isnan(found[1])


def test_a_half_that_is_all_has_the_weights_of_the_whole_graph():
    X = np.random.default_rng(0).normal(size=(60, 3))
    neighbors = find_neighbors(X, 12)
    half = Half.of(neighbors, np.arange(60))
    expected = symmetrize(simplex_graph(neighbors, 4))
    np.testing.assert_allclose(half.graph.toarray(), expected.toarray(), atol=1e-12)


def test_the_nearest_few_are_asked():
    X = np.r_[np.zeros(1), np.linspace(1, 1.01, 5), np.linspace(1.5, 1.6, 15)][:, None]
    neighbors = find_neighbors(X, 20)
    votes, heard = Half.of(neighbors, np.arange(1, 21)).votes_on(neighbors, np.array([0]))
    assert heard.all()
    np.testing.assert_array_equal(np.flatnonzero(votes.toarray()), np.arange(5))


def test_a_line_has_no_gap_and_components_have_a_whole_one():
    evenly = 1 - (np.arange(8) * 0.01) ** 2
    for number in range(2, 8):
        assert gap_beyond_continuum(evenly, number) == pytest.approx(0, abs=1e-9)
    parts = np.array([1, 1, 1, 0.5, 0.4])
    assert [gap_beyond_continuum(parts, number) for number in (2, 3)] == [0, 1]
    assert np.isnan(gap_beyond_continuum(parts, 5))


def test_the_larger_of_equal_numbers_is_chosen():
    evidence = {
        "stability": np.array([1.0, 0.99, 0.7, 0.9]),
        "weakest": np.array([1.0, 0.98, 0.6, 0.2]),
        "eigengap": np.array([0.5, 0.5, -0.5, np.nan]),
    }
    ranked, chosen, reason = decide([2, 3, 4, 5], evidence)
    assert chosen == 3
    assert ranked == (3, 2, 4, 5)
    assert "also clear: 2." in reason
    evidence["eigengap"] = np.array([0.5, 0.5, 0.3, np.nan])
    assert "also clear: 2, 4." in decide([2, 3, 4, 5], evidence)[2]
    assert decide([5], {name: column[3:] for name, column in evidence.items()})[1] is None
    # Where nothing is clear, the best of each kind of evidence is said, and no number, as these may differ.
    evidence |= {"stability": np.array([0.48, 0.49, 0.7, 0.6]), "weakest": np.array([0.6, 0.5, 0.1, 0.0])}
    ranked, chosen, reason = decide([2, 3, 4, 5], evidence | {"eigengap": np.zeros(4)})
    assert (ranked[0], chosen) == (2, None)
    assert (
        "any number of clusters from 2 to 5 (stability at most 0.70, weakest cluster at most 60%)" in reason
    )


def test_agreement_is_that_of_the_best_matching():
    there = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    found = compare(np.array([1, 1, 1, 0, 0, 0, 0, 0]), there, 2)
    assert found.rand == pytest.approx(adjusted_rand_score([1, 1, 1, 0, 0, 0, 0, 0], there))
    assert found.weakest == 0.75
    assert compare(1 - there, there, 2) == (1.0, 1.0)


def test_a_half_asks_and_answers_by_near_points():
    X, y = make_blobs([80, 60], centers=[[0, 0], [20, 0]], random_state=0)
    neighbors = find_neighbors(X, 21)
    half = Half.of(neighbors, np.arange(0, 140, 2))
    assert (np.asarray(half.graph.sum(axis=1)).ravel() > 0).all()
    assert abs(half.graph - half.graph.T).max() == 0
    votes, heard = half.votes_on(neighbors, np.arange(1, 140, 2))
    assert heard.all()
    assert votes.shape == (70, 70)
    said = (votes @ np.eye(2)[y[half.rows]]).argmax(axis=1)
    np.testing.assert_array_equal(said, y[1::2])


def test_a_point_without_neighbours_in_its_half_is_left_out():
    X = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 5, 5.1, 5.2])[:, None]
    neighbors = find_neighbors(X, 2)
    half = Half.of(neighbors, np.array([0, 1, 2, 5]))
    np.testing.assert_array_equal(half.rows, [0, 1, 2])


def test_nested_labels_have_every_number():
    X, y = make_blobs(240, centers=CENTERS[:4], random_state=0)
    W = symmetrize(simplex_graph(find_neighbors(X, 11), 10))
    found = nested_labels(X, W, [2, 4, 7], np.random.RandomState(0), SERIAL)
    assert {number: len(np.unique(labels)) for number, labels in found.labels.items()} == {2: 2, 4: 4, 7: 7}
    assert adjusted_rand_score(y, found.labels[4]) == 1
    assert len(found.values) == 8
