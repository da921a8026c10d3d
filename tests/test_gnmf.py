"""GNMF and NMF as clusterings: updates that descend, graphs, scales, labels and odd data."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from smrmf._parallel import SERIAL
from smrmf.factorization._alternating import Multiplicative, unit_components
from smrmf.factorization.gnmf import GNMF, first_factors
from smrmf.factorization.nmf import NMFClustering
from smrmf.graph.graphs import either_neighbor_graph
from smrmf.graph.neighbors import find_neighbors
from smrmf.kernels.scaling import squared_frobenius_norm

KINDS = [GNMF, NMFClustering]
EITHER_FORM = pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
MAY_BE_EMPTY = pytest.mark.filterwarnings("ignore:.*clusters (came out empty|were found)")
# Multiplicative updates are slow, and most tests do not wait for them.
pytestmark = [
    pytest.mark.filterwarnings("ignore:GNMF did not converge"),
    pytest.mark.filterwarnings("ignore:Maximum number of iterations"),
]


@pytest.fixture(scope="module")
def blobs():
    """Four groups of non-negative points, a quarter of whose entries are zero, but no whole feature."""
    X, y = make_blobs(90, 8, centers=4, cluster_std=1.5, random_state=3)
    return np.maximum(X - np.quantile(X, 0.25, axis=0), 0), y


def short(kind, n_clusters=4, **options):
    """Return an estimator that does some hundred iterations at most."""
    return kind(n_clusters, **{"random_state": 0, "max_iter": 150} | options)


def refused(model, data, error, *words):
    """Fit, expect one sentence with these words, and no trace on the estimator."""
    before = set(vars(model))
    with pytest.raises(error) as raised:
        model.fit(data)
    message = str(raised.value)
    assert message.count("\n") == 0
    for word in words:
        assert word in message, message
    assert set(vars(model)) == before


def to_unit_points(X):
    """Return the length that GNMF divides by, and the points divided by it."""
    scale = np.sqrt((X**2).sum() / len(X))
    return scale, X / scale


def graph_of(X, k):
    """Link two points if either is among the k nearest of the other, by brute force."""
    d = cdist(X, X)
    np.fill_diagonal(d, np.inf)
    W = np.zeros_like(d)
    np.put_along_axis(W, np.argsort(d, axis=1, kind="stable")[:, :k], 1.0, axis=1)
    return np.maximum(W, W.T)


def objective(X, G, F, W, weight):
    """Evaluate the objective by its definition, the trace as a sum over pairs."""
    pairs = (W * cdist(G, G, "sqeuclidean")).sum() / 2
    return np.sum((X - G @ F) ** 2) + weight * pairs


def plain_gnmf(X, G, F, W, weight, iterations):
    """Run the multiplicative updates as printed, G first; return the factors and every objective."""
    history = []
    for _ in range(iterations):
        repelled = G @ F @ F.T + weight * W.sum(axis=1)[:, None] * G
        G = G * (X @ F.T + weight * W @ G) / np.maximum(repelled, 1e-10)
        F = F * (G.T @ X) / np.maximum(G.T @ G @ F, 1e-10)
        history.append(objective(X, G, F, W, weight))
    return G, F, history


# The iteration


nonnegative = arrays(
    float,
    array_shapes(min_dims=2, max_dims=2, min_side=4, max_side=9),
    elements=st.one_of(st.just(0.0), st.floats(1e-3, 100, allow_subnormal=False)),
)


@MAY_BE_EMPTY
@given(nonnegative, st.sampled_from([0, 0.01, 1, 100]), st.sampled_from(["auto", "random"]))
def test_no_iteration_raises_the_objective_of_dense_data(X, weight, init):
    model = GNMF(
        2,
        n_neighbors=2,
        manifold_weight=weight,
        init=init,
        labels="argmax",
        tol=0,
        max_iter=30,
        random_state=0,
    )
    history = model.fit(X).objective_history_
    # The scaled data have squared length n.
    assert (np.diff(history) <= 1e-11 * len(X)).all(), np.diff(history)


@pytest.mark.parametrize("weight", [0, 0.01, 1, 100])
@pytest.mark.parametrize("init", ["auto", "random"])
@EITHER_FORM
def test_no_iteration_raises_the_objective(blobs, weight, init, make):
    model = GNMF(4, manifold_weight=weight, init=init, tol=0, max_iter=200, random_state=0).fit(
        make(blobs[0])
    )
    assert model.n_iter_ == 200
    assert (np.diff(model.objective_history_) <= 1e-11 * len(blobs[0])).all()
    assert model.objective_history_[-1] < 0.9 * model.objective_history_[0]


@pytest.mark.parametrize("init", ["auto", "random"])
def test_without_the_graph_it_is_plain_nmf(blobs, init):
    X = blobs[0]
    scale, unit = to_unit_points(X)
    random_state = np.random.RandomState(5)
    random_state.randint(np.iinfo(np.int32).max)  # the seed of k-means is drawn first
    G, F = first_factors(unit, 3, init, random_state)
    for _ in range(40):
        G *= (unit @ F.T) / np.maximum(G @ (F @ F.T), 1e-10)
        F *= (G.T @ unit) / np.maximum((G.T @ G) @ F, 1e-10)
    F, G = unit_components(F, G)
    options = {"init": init, "tol": 0, "max_iter": 40, "random_state": 5}
    model = GNMF(3, manifold_weight=0, **options).fit(X)
    np.testing.assert_allclose(model.components_, F, atol=1e-9)
    np.testing.assert_allclose(model.embedding_, G * scale, rtol=1e-7, atol=1e-9 * scale)


@pytest.mark.parametrize("weight", [0.0, 3.0])
@EITHER_FORM
def test_the_history_is_the_objective_of_the_printed_updates(blobs, weight, make):
    X = blobs[0]
    scale, unit = to_unit_points(X)
    start = first_factors(make(unit), 3, "auto", np.random.RandomState(0))
    G, F, history = plain_gnmf(unit, *start, graph_of(X, 5), weight, 30)
    options = {"manifold_weight": weight, "tol": 0, "max_iter": 30, "random_state": 0}
    model = GNMF(3, **options).fit(make(X))
    np.testing.assert_allclose(model.objective_history_, history, rtol=1e-7)
    lengths = np.linalg.norm(F, axis=1)
    np.testing.assert_allclose(model.embedding_, G * lengths * scale, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.components_, F / lengths[:, None], atol=1e-6)
    assert model.objective_ == model.objective_history_[-1]


def test_without_the_graph_the_objective_is_that_of_the_result(blobs):
    X = blobs[0]
    scale, _ = to_unit_points(X)
    model = short(GNMF, manifold_weight=0).fit(X)
    direct = np.sum((X - model.inverse_transform(model.embedding_)) ** 2) / scale**2
    assert model.objective_ == pytest.approx(direct, rel=1e-9)


def method_of(X, W, weight):
    W = sp.csr_array(W)
    degrees = np.asarray(W.sum(axis=1)).ravel()
    return Multiplicative(X, squared_frobenius_norm(X), W, degrees, weight, SERIAL)


@pytest.mark.parametrize("weight", [0.0, 1.0, 100.0])
def test_the_update_stays_where_the_gradient_vanishes(weight):
    # G is constant on the two components of the graph, so its roughness is zero, and X = G F.
    member = np.repeat([0, 1], [6, 9])
    G = np.array([[2.0, 0.5], [0.25, 3.0]])[member]
    F = np.random.default_rng(0).uniform(0.2, 1, (2, 5))
    W = (member[:, None] == member[None, :]) - np.eye(15)
    method = method_of(G @ F, W, weight)
    start = method.with_products(G, F)
    assert method.objective(start) == pytest.approx(0, abs=1e-12)
    after = method.update(start)
    np.testing.assert_allclose(after.G, G, rtol=1e-12)
    np.testing.assert_allclose(after.F, F, rtol=1e-12)


@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_the_optimality_conditions_hold_in_the_end(weight):
    rng = np.random.default_rng(1)
    X = np.maximum(rng.normal(0.3, 0.5, (14, 5)), 0)
    W = graph_of(X, 3)
    method = method_of(X, W, weight)
    factors = method.with_products(*first_factors(X, 2, "auto", np.random.RandomState(0)))
    for _ in range(5000):
        factors = method.update(factors)
    G, F = factors.G, factors.F
    L = np.diag(W.sum(axis=1)) - W
    slope_G = G @ F @ F.T - X @ F.T + weight * L @ G
    slope_F = G.T @ G @ F - G.T @ X
    for values, slope in ((G, slope_G), (F, slope_F)):
        size = np.abs(slope).max() + 1
        assert slope.min() > -1e-4 * size  # no entry wants to grow
        np.testing.assert_allclose(values * slope, 0, atol=1e-4 * size)  # none that can shrink wants to


@pytest.mark.parametrize("init", ["auto", "random"])
def test_starts_are_positive_where_the_data_are(blobs, init):
    for X in (blobs[0], sp.csr_array(blobs[0])):
        G, F = first_factors(X, 4, init, np.random.RandomState(0))
        assert G.shape == (90, 4)
        assert F.shape == (4, 8)
        # A zero would never be left again.
        assert G.min() > 0
        assert F.min() > 0


def test_rounding_does_not_decide_the_start(blobs):
    # The singular vectors are zero in the empty feature, up to rounding.
    X = np.insert(blobs[0], 3, 0, axis=1)
    starts = [first_factors(X * (1 + part * 1e-15), 4, "auto", np.random.RandomState(0)) for part in range(5)]
    for G, F in starts[1:]:
        np.testing.assert_allclose(G, starts[0][0], rtol=1e-6)
        np.testing.assert_allclose(F, starts[0][1], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_data_are_never_made_dense(kind):
    rng = np.random.default_rng(0)
    shape = (120, 100_000)
    X = sp.random_array(shape, density=2e-4, rng=rng, format="csr")
    model = kind(3, random_state=0, max_iter=5)
    model.fit(X)
    tracemalloc.start()
    try:
        model.fit(X).predict(X)
        assert tracemalloc.get_traced_memory()[1] < shape[0] * shape[1] * 8 / 2
    finally:
        tracemalloc.stop()


# The graph


@EITHER_FORM
def test_the_graph_links_a_point_to_its_nearest_in_either_direction(blobs, make):
    X = blobs[0]
    expected = graph_of(X, 4)
    found = either_neighbor_graph(find_neighbors(make(X), 4)).toarray()
    np.testing.assert_array_equal(found, expected)
    model = short(GNMF, n_neighbors=4).fit(make(X))
    np.testing.assert_array_equal(model.affinity_.toarray(), expected)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_array, sp.csc_matrix, sp.lil_matrix])
def test_a_given_graph_equal_to_the_own_one_gives_the_same_result(blobs, form):
    X = blobs[0]
    own = short(GNMF).fit(X)
    W = form(own.affinity_.toarray())
    given_graph = short(GNMF, graph=W).fit(X)
    np.testing.assert_allclose(given_graph.embedding_, own.embedding_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(given_graph.affinity_.toarray(), own.affinity_.toarray())


def test_another_graph_gives_another_result(blobs):
    X, y = blobs
    same = (y[:, None] == y[None, :]).astype(float)
    model = short(GNMF, graph=same).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1.0
    # Linked points end alike.
    spread = max(np.ptp(model.embedding_[y == label], axis=0).max() for label in range(4))
    assert spread < 0.2 * np.ptp(model.embedding_, axis=0).max()


def test_of_weights_that_differ_by_direction_the_larger_counts(blobs):
    X = blobs[0]
    rng = np.random.default_rng(2)
    W = np.where(rng.random((90, 90)) < 0.1, rng.random((90, 90)), 0)
    symmetric = np.maximum(W, W.T)
    np.fill_diagonal(symmetric, 0)
    before = W.copy()
    one, two = (short(GNMF, graph=graph).fit(X) for graph in (W, symmetric))
    np.testing.assert_array_equal(one.affinity_.toarray(), symmetric)
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    np.testing.assert_array_equal(W, before)


def test_kinds_of_weights_do_not_matter(blobs):
    X = blobs[0]
    W = graph_of(X, 5)
    fits = [short(GNMF, graph=W.astype(kind)).fit(X) for kind in (float, np.float32, int, bool)]
    for model in fits[1:]:
        np.testing.assert_array_equal(model.embedding_, fits[0].embedding_)


def test_points_without_a_neighbour_are_allowed(blobs):
    W = graph_of(blobs[0], 5)
    W[:10] = W[:, :10] = 0
    model = short(GNMF, graph=W).fit(blobs[0])
    assert np.isfinite(model.embedding_).all()
    empty = short(GNMF, graph=sp.csr_array((90, 90))).fit(blobs[0])
    plain = short(GNMF, manifold_weight=0).fit(blobs[0])
    np.testing.assert_allclose(empty.embedding_, plain.embedding_)


def spoilt(value):
    W = np.zeros((90, 90))
    W[3, 7] = value
    return W


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (np.ones((90, 89)), ["(90, 89)", "(90, 90)", "graph"]),
        (np.ones((4, 4)), ["(4, 4)", "(90, 90)", "graph"]),
        (spoilt(-0.5), ["-0.5", "at least 0", "graph"]),
        (spoilt(np.nan), ["nan", "finite", "graph"]),
        (spoilt(np.inf), ["inf", "finite", "graph"]),
    ],
    ids=["oblong", "small", "negative", "nan", "infinite"],
)
def test_a_graph_that_cannot_be_is_refused(blobs, graph, words, form):
    refused(GNMF(4, graph=form(graph)), blobs[0], ValueError, *words)


@pytest.mark.parametrize(
    "graph",
    ["knn", 3, [[0, 1], [1, 0]], np.ones(90), np.full((90, 90), "a")],
    ids=["word", "number", "list", "one row", "letters"],
)
def test_what_is_not_a_graph_is_refused(blobs, graph):
    refused(GNMF(4, graph=graph), blobs[0], ValueError, "graph")


def test_a_given_graph_needs_no_neighbours():
    X = np.random.default_rng(0).random((4, 3))
    model = short(GNMF, 2, graph=np.ones((4, 4))).fit(X)
    np.testing.assert_array_equal(np.unique(model.labels_), [0, 1])


# The unit of the data, and kinds of numbers


def test_the_graph_has_the_precision_of_the_data(blobs):
    X = blobs[0].astype(np.float32)
    for graph in (None, graph_of(blobs[0], 5)):
        model = short(GNMF, graph=graph).fit(X)
        assert model.affinity_.dtype == np.float32
        assert model.embedding_.dtype == np.float32


def test_a_large_table_starts_in_either_precision():
    # Above 500 rows and columns the start takes a part of the SVD only.
    X = np.random.default_rng(0).random((520, 510)) + np.eye(3)[np.arange(520) % 3] @ np.ones((3, 510))
    wide, narrow = (
        GNMF(3, random_state=0, max_iter=20, tol=1e-3).fit(X.astype(t)) for t in (float, np.float32)
    )
    assert narrow.components_.dtype == np.float32
    np.testing.assert_allclose(narrow.components_, wide.components_, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("init", [None, "random"])
def test_same_seed_same_result(blobs, kind, init):
    options = {} if init is None else {"init": init}
    one, two = (short(kind, random_state=7, **options).fit(blobs[0]) for _ in range(2))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    np.testing.assert_array_equal(one.labels_, two.labels_)


def test_only_a_random_start_depends_on_the_seed(blobs):
    X = blobs[0]
    one, two = (short(GNMF, random_state=seed).fit(X) for seed in (0, 1))
    np.testing.assert_array_equal(one.embedding_, two.embedding_)
    one, two = (short(GNMF, init="random", random_state=seed).fit(X) for seed in (0, 1))
    assert np.abs(one.embedding_ - two.embedding_).max() > 1e-3


# What a fit gives


@pytest.mark.parametrize("kind", KINDS)
def test_low_rank_data_are_rebuilt(kind):
    rng = np.random.default_rng(0)
    X = np.maximum(rng.normal(size=(60, 3)), 0) @ np.maximum(rng.normal(size=(3, 12)), 0)
    options = {"manifold_weight": 0} if kind is GNMF else {}
    model = kind(3, tol=0, max_iter=3000, random_state=0, **options).fit(X)
    rebuilt = model.inverse_transform(model.embedding_)
    assert np.linalg.norm(rebuilt - X) < 1e-3 * np.linalg.norm(X)


@pytest.mark.parametrize("kind", KINDS)
def test_the_factors_are_not_negative_and_components_have_unit_length(blobs, kind):
    model = short(kind).fit(blobs[0])
    assert model.embedding_.min() >= 0
    assert model.components_.min() >= 0
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    assert model.embedding_.shape == (90, 4)
    assert model.components_.shape == (4, 8)
    assert model.n_features_in_ == 8


@MAY_BE_EMPTY
@pytest.mark.parametrize("kind", KINDS)
def test_argmax_labels_are_the_largest_entries(blobs, kind):
    X = blobs[0]
    options = {"manifold_weight": 0.001} if kind is GNMF else {}
    model = kind(4, labels="argmax", random_state=0, **options).fit(X)
    largest = model.embedding_.argmax(axis=1)
    assert len(np.unique(largest)) == 4  # so that no label was changed
    np.testing.assert_array_equal(model.labels_, largest)


def test_a_cluster_without_a_point_gets_one_and_this_is_said(blobs):
    W = np.ones((90, 90))  # one graph for all: one column wins everywhere
    with pytest.warns(ConvergenceWarning, match=r"of 4 clusters came out empty.*lower n_clusters") as said:
        model = short(GNMF, graph=W, manifold_weight=100.0, labels="argmax").fit(blobs[0])
    np.testing.assert_array_equal(np.unique(model.labels_), np.arange(4))
    assert said[0].filename == __file__


@pytest.mark.parametrize("kind", KINDS)
def test_kmeans_labels_are_a_clustering_of_the_embedding(blobs, kind):
    model = short(kind).fit(blobs[0])
    G = model.embedding_
    centers = np.stack([G[model.labels_ == label].mean(axis=0) for label in range(4)])
    nearest = cdist(G, centers, "sqeuclidean")
    np.testing.assert_array_equal(nearest.argmin(axis=1), model.labels_)
    reference = KMeans(4, n_init=10, random_state=1).fit(G).inertia_
    assert nearest.min(axis=1).sum() <= reference * 1.001


def test_the_graph_helps_on_digits():
    X, y = load_digits(n_class=3, return_X_y=True)
    models = [GNMF(3, manifold_weight=weight, random_state=0).fit(X) for weight in (0, 10)]
    plain, smooth = (adjusted_rand_score(y, model.labels_) for model in models)
    assert smooth > plain + 0.05


@EITHER_FORM
def test_close_points_far_away_find_themselves(make):
    # Their products agree to all digits but the last ones.
    rng = np.random.default_rng(0)
    X = make(np.vstack([rng.random((40, 3)) * 1e-3 + 1e5, rng.random((20, 3)) * 1e5]))
    model = GNMF(3, random_state=0).fit(X)
    np.testing.assert_allclose(model.transform(X), model.embedding_, rtol=1e-9)


@MAY_BE_EMPTY
def test_all_iterations_are_done_if_the_tolerance_is_zero():
    # The objective of zeros is zero from the start, and stays so.
    assert GNMF(2, tol=0, max_iter=7, random_state=0).fit(np.zeros((20, 4))).n_iter_ == 7


# NMF


@pytest.mark.parametrize("options", [{}, {"init": "random"}, {"solver": "mu"}, {"init": "nndsvdar"}], ids=str)
@EITHER_FORM
def test_nmf_is_that_of_scikit_learn(blobs, options, make):
    # Its starts depend on the unit of the data, so they get the one that the estimator gives them.
    unit = to_unit_points(blobs[0])[1]
    X = make(unit)
    reference = NMF(4, max_iter=1000, random_state=3, **options)
    product = reference.fit_transform(X) @ reference.components_
    model = NMFClustering(4, random_state=3, **options).fit(X)
    np.testing.assert_allclose(model.inverse_transform(model.embedding_), product, atol=1e-5)
    assert model.reconstruction_err_ == pytest.approx(reference.reconstruction_err_, rel=1e-6)
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(unit - product), rel=1e-5)
    assert model.n_iter_ == reference.n_iter_


def test_nmf_passes_other_warnings_of_scikit_learn_on(blobs):
    with pytest.warns(UserWarning, match="cannot update zeros"):
        NMFClustering(4, init="nndsvd", solver="mu", random_state=0).fit(blobs[0])


def test_more_clusters_than_features_for_a_singular_start_are_refused_by_their_name(blobs):
    refused(NMFClustering(7, init="nndsvd"), blobs[0][:, :3], ValueError, "n_clusters=7", "'nndsvd'", "3")


# Bad and odd data


@pytest.mark.parametrize("kind", KINDS)
@EITHER_FORM
def test_negative_data_are_refused(blobs, kind, make):
    X = blobs[0].copy()
    X[5, 2] = -0.25
    refused(kind(4), make(X), ValueError, kind.__name__, "-0.25", "at least 0")


DATA = np.random.default_rng(0).random((30, 6))


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_clusters_as_points_are_all_points(kind):
    model = kind(30, random_state=0).fit(DATA)
    np.testing.assert_array_equal(np.sort(model.labels_), np.arange(30))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_sparse_table_of_low_rank_has_one_result():
    # Lanczos iterations run out of directions here, and go on in random ones.
    X = sp.csr_array(np.full((37, 264), 3.0))
    first, *others = (GNMF(3, max_iter=3, tol=0, random_state=0) for _ in range(4))
    first.fit(X)
    for other in others:
        assert np.array_equal(other.fit(X).embedding_, first.embedding_)
