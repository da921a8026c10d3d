"""Neighbours of one's own: a graph, two arrays or a transformer; they count, and what is wrong is said."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from many_points import sheets
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors, RadiusNeighborsTransformer

from smrmf import AMRMF, APMF, RMNMF, SMRMF, FastSMRMF, SelectiveRMNMF
from smrmf.graph.given_neighbors import given_neighbors

X, GROUPS = make_blobs(90, 4, centers=3, cluster_std=2.0, random_state=2)
N = len(X)
FOUND = NearestNeighbors(n_neighbors=21).fit(X)
DISTANCES, INDICES = FOUND.kneighbors()
MODEL = FastSMRMF(3, random_state=0, n_jobs=1)


def with_self(indices, distances):
    own = np.arange(N)[:, None]
    return np.hstack([own, indices]), np.hstack([np.zeros((N, 1)), distances])


FORMS = {
    "graph": lambda: FOUND.kneighbors_graph(mode="distance"),
    "graph with self": lambda: KNeighborsTransformer(n_neighbors=21).fit_transform(X),
    "array": lambda: sp.csr_array(FOUND.kneighbors_graph(mode="distance")),
    "coo": lambda: FOUND.kneighbors_graph(mode="distance").tocoo(),
    "pair": lambda: (INDICES, DISTANCES),
    "list": lambda: [INDICES.astype(np.int32), DISTANCES.astype(np.float32)],
    "pair with self": lambda: with_self(INDICES, DISTANCES),
    "out of order": lambda: (INDICES[:, ::-1], DISTANCES[:, ::-1]),
    "unfitted transformer": lambda: KNeighborsTransformer(n_neighbors=21),
    "fitted transformer": lambda: KNeighborsTransformer(n_neighbors=21).fit(X),
    "radius": lambda: RadiusNeighborsTransformer(radius=100.0),
    "NearestNeighbors": lambda: NearestNeighbors(n_neighbors=21),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_lists(form):
    found = given_neighbors(FORMS[form](), X, 21, 10)
    assert not found.exact
    assert_array_equal(found.indices, INDICES)
    assert_allclose(found.squared, DISTANCES**2, rtol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_a_fit_on_ones_own_search_is_that_on_ours(form):
    ours = clone(MODEL).fit(X)
    theirs = clone(MODEL).set_params(neighbors=FORMS[form]()).fit(X)
    assert_array_equal(theirs.labels_, ours.labels_)
    assert_allclose(theirs.confidence_, ours.confidence_, atol=1e-5)
    assert_allclose(theirs.outlier_scores_, ours.outlier_scores_, atol=1e-5)
    assert ours.neighbor_recall_ == 1
    assert not hasattr(theirs, "neighbor_recall_")


@pytest.mark.parametrize("owner", [AMRMF, APMF, RMNMF, SMRMF, SelectiveRMNMF])
def test_every_method_of_the_loop_takes_them(owner):
    ours = owner(3, random_state=0, n_jobs=1).fit(X)
    theirs = owner(3, random_state=0, n_jobs=1, neighbors=(INDICES, DISTANCES)).fit(X)
    assert_array_equal(theirs.labels_, ours.labels_)


def test_neighbors_of_another_measure_decide_the_clusters():
    # Of two kinds of points in one place, told apart by what X does not have.
    rng = np.random.default_rng(0)
    seen, hidden = rng.normal(size=(80, 2)), np.repeat([0.0, 50.0], 40)[:, None]
    near = NearestNeighbors(n_neighbors=21).fit(np.hstack([seen, hidden + rng.normal(size=(80, 1))]))
    found = FastSMRMF(2, neighbors=near.kneighbors_graph(mode="distance"), random_state=0).fit(seen)
    assert adjusted_rand_score(found.labels_, hidden[:, 0]) == 1
    assert_array_equal(found.predict(seen), found.labels_)


def test_the_unit_of_distances_does_not_matter():
    given = [(INDICES, unit * DISTANCES) for unit in (1.0, 1e-200, 1e200)]
    models = [clone(MODEL).set_params(neighbors=pair).fit(X) for pair in given]
    for other in models[1:]:
        assert_array_equal(other.labels_, models[0].labels_)


def test_lists_of_different_lengths_are_cut_to_the_shortest():
    graph = FOUND.kneighbors_graph(mode="distance").tolil()
    graph[7, INDICES[7, 14:]] = 0
    found = given_neighbors(graph.tocsr(), X, 21, 10)
    assert found.indices.shape == (N, 14)
    assert_array_equal(found.indices, INDICES[:, :14])


def test_a_copy_at_no_distance_is_a_neighbor():
    rows = np.repeat(np.arange(4), 2)
    graph = sp.csr_array((np.zeros(8), ([*rows], [1, 2, 0, 3, 3, 0, 2, 1])), shape=(4, 4))
    assert_array_equal(
        given_neighbors(graph, np.zeros((4, 2)), 2, 1).indices, [[1, 2], [0, 3], [0, 3], [1, 2]]
    )


def test_nothing_that_is_given_changes():
    graph = KNeighborsTransformer(n_neighbors=21).fit_transform(X)
    before = [part.copy() for part in (graph.data, graph.indices, graph.indptr)]
    transformer = KNeighborsTransformer(n_neighbors=21)
    for given in (graph, transformer):
        clone(MODEL).set_params(neighbors=given).fit(X)
    for part, earlier in zip((graph.data, graph.indices, graph.indptr), before, strict=True):
        assert_array_equal(part, earlier)
    assert not hasattr(transformer, "n_samples_fit_")


def changed(place, value, what):
    parts = [INDICES.copy(), DISTANCES.copy()]
    parts[what][place] = value
    return tuple(parts)


REFUSED = [
    (FOUND.kneighbors_graph(mode="distance")[:50], r"shape \(50, 90\), but must have shape .*\(90, 90\)"),
    (
        (INDICES[:50], DISTANCES[:50]),
        r"\(50, 21\) and \(50, 21\), but both must be \(n_samples, n\)=\(90, n\)",
    ),
    ((INDICES, DISTANCES[:, :5]), r"\(90, 21\) and \(90, 5\)"),
    ((DISTANCES, INDICES), "indices of type float64.*give the indices first"),
    (changed((3, 2), 90, 0), "names point 90 as a neighbour of point 3.*between 0 and 89"),
    (changed((3, 2), -1, 0), "names point -1"),
    (changed((5, 1), -0.5, 1), "the distance -0.5 between points 5"),
    (changed((5, 1), np.nan, 1), "the distance nan"),
    (changed((5, 1), np.inf, 1), "the distance inf"),
    (
        (INDICES[:, :6], DISTANCES[:, :6]),
        "6 neighbours of point 0, itself not counted.*n_neighbors=10.*lower",
    ),
    (KNeighborsTransformer(n_neighbors=4), "4 neighbours of point 0"),
    (KNeighborsTransformer(mode="connectivity"), "gives no distances: use mode='distance'"),
    ((INDICES, DISTANCES.astype(str)), "distances of type"),
    ("close", "neighbors='close' is not valid"),
    (7, "neighbors=7 is not valid"),
    (KNeighborsTransformer, "is not valid"),
]


@pytest.mark.parametrize(("given", "sentence"), REFUSED)
def test_what_is_no_neighborhood_is_refused(given, sentence):
    model = FastSMRMF(3, neighbors=given)
    with pytest.raises(ValueError, match=sentence):
        model.fit(X)
    assert not hasattr(model, "labels_")


def test_approximate_neighbors_of_others_serve_as_well():
    # Those that another library has found, of which some are missing.
    Y, groups = sheets(600, n_sheets=3)
    distances, indices = NearestNeighbors(n_neighbors=30).fit(Y).kneighbors()
    kept = np.sort(np.argsort(np.random.default_rng(0).random(indices.shape), axis=1)[:, :25], axis=1)
    given = (np.take_along_axis(indices, kept, 1), np.take_along_axis(distances, kept, 1))
    assert adjusted_rand_score(FastSMRMF(3, neighbors=given, random_state=0).fit(Y).labels_, groups) > 0.99
