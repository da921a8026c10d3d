"""Starts: the simplex graph, spectral labels on awkward graphs, NNDSVD against scikit-learn."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import load_digits, make_blobs, make_circles
from sklearn.decomposition._nmf import _initialize_nmf
from sklearn.metrics import adjusted_rand_score

from smrmf import RMNMF, nndsvd
from smrmf._parallel import SERIAL
from smrmf._validation import Sizes, check_init
from smrmf.factorization._points import ManifoldInput, prepare, reduce_features
from smrmf.factorization._start import (
    PENALTY_TO_EXPLORE,
    PENALTY_TO_REFINE,
    FirstIndicator,
    FirstPoints,
    check_weight,
    first_indicator,
    is_indicator,
    weigh,
)
from smrmf.graph.components import Components, components_of
from smrmf.graph.graphs import simplex_graph, symmetrize
from smrmf.graph.labels import indicator, relabel_by_size
from smrmf.graph.neighbors import find_neighbors
from smrmf.graph.spectrum import smoothest


def spectral(X, c, k=10):
    given = ManifoldInput(X, 1.0, Sizes.from_parameters(len(X), c, k))
    problem = prepare(given, reduce_features, np.random.RandomState(0), SERIAL)
    return first_indicator("spectral", "auto", problem).G.argmax(axis=1)


def test_simplex_graph_gives_every_point_exactly_k_neighbours():
    X = np.random.default_rng(0).normal(size=(80, 4))
    graph = simplex_graph(find_neighbors(X, 8), 7)
    np.testing.assert_array_equal((graph.toarray() > 0).sum(axis=1), 7)
    np.testing.assert_allclose(graph.sum(axis=1), 1)


def test_clusters_that_are_components_are_found_exactly():
    # Four groups without an edge between them: the eigenvalue one has multiplicity four.
    sizes = [400, 200, 60, 25]
    X, y = make_blobs(sizes, 10, centers=np.eye(4, 10) * 40, random_state=0)
    assert adjusted_rand_score(y, spectral(X, 4)) == 1


def test_fewer_components_than_clusters_are_split():
    X, y = make_circles(300, noise=0.02, factor=0.4, random_state=0)
    W = symmetrize(simplex_graph(find_neighbors(X, 11), 10))
    assert connected_components(W)[0] == 2
    labels = spectral(X, 4)
    assert len(np.unique(labels)) == 4
    # No cluster mixes the two rings.
    assert all(len(np.unique(y[labels == label])) == 1 for label in range(4))


def test_one_component_too_many_joins_its_nearest():
    rng = np.random.default_rng(0)
    sizes, places = (40, 30, 15), (0.0, 100.0, 120.0)
    X = np.concatenate([place + rng.normal(size=(n, 2)) for n, place in zip(sizes, places, strict=True)])
    np.testing.assert_array_equal(spectral(X, 2), np.repeat([1, 0], [40, 45]))


def test_more_components_than_clusters_are_joined_to_their_nearest():
    centers = [[0, 0], [0, 50], [1000, 0], [1000, 60], [5000, 0]]
    X, y = make_blobs([50, 20, 50, 20, 60], centers=centers, random_state=0)
    groups = np.array([0, 0, 1, 1, 2])[y]
    assert adjusted_rand_score(groups, spectral(X, 3)) == 1


def test_the_embedding_spans_the_leading_eigenvectors():
    X = np.random.default_rng(1).normal(size=(90, 3))
    W = symmetrize(simplex_graph(find_neighbors(X, 11), 10))
    embedding = smoothest(W, components_of(W), 4, np.random.RandomState(0)).embedding(4, 5)
    scale = 1 / np.sqrt(W.sum(axis=1))
    values, vectors = np.linalg.eigh(W.toarray() * scale[:, None] * scale[None, :])
    expected = vectors[:, -4:] * values[-4:] ** 5
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(embedding @ embedding.T, expected @ expected.T, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(embedding, axis=1), 1)


def test_clusters_are_numbered_by_size_and_then_by_their_first_points():
    labels = np.array([2, 2, 0, 1, 1, 1])
    np.testing.assert_array_equal(relabel_by_size(labels, 3), [1, 1, 2, 0, 0, 0])
    np.testing.assert_array_equal(relabel_by_size(np.array([2, 0, 2, 0, 3]), 4), [0, 1, 0, 1, 2])


def test_indicator_is_orthonormal():
    G = indicator(np.array([0, 0, 2, 2, 2]), 3, np.float64)
    np.testing.assert_allclose(G.T @ G, np.diag([1, 0, 1]), atol=1e-15)


def test_nndsvd_is_that_of_scikit_learn():
    X = load_digits().data[:300]
    W, _ = _initialize_nmf(X, 6, init="nndsvd", random_state=0)
    np.testing.assert_allclose(nndsvd(X, 6), W, atol=1e-3)


def test_the_public_start_is_that_of_a_fit():
    X = load_digits().data[:100]
    named, given = (RMNMF(4, init=init, max_iter=5, tol=0.0).fit(X) for init in ("nndsvd", nndsvd(X, 4)))
    np.testing.assert_array_equal(named.embedding_, given.embedding_)
    assert nndsvd(X.astype(np.float32), 4).dtype == np.float32
    np.testing.assert_array_equal(nndsvd(X.astype(int).tolist(), 4), nndsvd(X, 4))


@pytest.mark.parametrize(
    ("X", "n_clusters", "says"),
    [
        (-np.eye(3), 2, r"passed to nndsvd: the smallest is -1\b"),
        (np.eye(3), 4, r"n_clusters=4 .* at most min\(n_samples, n_features\)=3"),
        (np.eye(3), 0, r"n_clusters=0 must be at least 1"),
        (np.full((3, 3), np.nan), 2, "X contains NaN"),
    ],
)
def test_nndsvd_refuses_in_one_sentence(X, n_clusters, says):
    with pytest.raises(ValueError, match=says) as refusal:
        nndsvd(X, n_clusters)
    assert "\n" not in str(refusal.value)


def test_the_first_penalty_depends_on_whether_the_start_is_a_clustering():
    X, y = make_blobs(60, 4, centers=3, random_state=0)
    labels = indicator(y, 3, X.dtype)
    mixed = np.random.default_rng(0).random((60, 3))
    assert is_indicator(labels)
    assert not is_indicator(mixed)
    assert not is_indicator(-labels)
    for G, strength in ((labels, PENALTY_TO_REFINE), (mixed, PENALTY_TO_EXPLORE)):
        weights = weigh(FirstPoints(X), FirstIndicator(G), "auto", "auto", 1.0, SERIAL)
        rest = X - G @ np.linalg.lstsq(G, X, rcond=None)[0]
        residual = np.median(np.linalg.norm(rest, axis=1)) / weights.scale
        assert weights.mu == pytest.approx(strength / residual)
        assert weights.lam == pytest.approx(residual * 60 / 3)


@pytest.mark.parametrize("dtype", [np.int64, np.float16, np.float32, np.longdouble])
def test_a_start_may_have_any_precision_of_its_own(dtype):
    X = load_digits().data[:100]
    G = nndsvd(X, 4).round()
    plain = RMNMF(4, init=G, max_iter=5, tol=0.0).fit(X)
    size = {np.float16: 2000, np.float32: 1e30, np.longdouble: 1e300}.get(dtype, 1)
    given = RMNMF(4, init=(G * size).astype(dtype), max_iter=5, tol=0.0).fit(X)
    np.testing.assert_allclose(given.embedding_, plain.embedding_, atol=1e-6 if size == 1 else 1e-3)


def test_paper_weights_are_left_alone():
    X = np.random.default_rng(0).random((20, 3))
    start = weigh(FirstPoints(X), FirstIndicator(X), 0.3, 0.1, 1.0, SERIAL)
    assert (start.scale, start.lam, start.mu) == (1.0, 0.3, 0.1)
    np.testing.assert_array_equal(start.scaled, X)


def test_the_limit_that_a_refusal_names_is_accepted():
    rng = np.random.default_rng(0)
    for _ in range(300):
        low, unit = 10 ** rng.uniform(-150, 0), 10 ** rng.uniform(-150, 150)
        limits = low, low * 10 ** rng.uniform(0, 150)
        for outside in (low / 3, limits[1] * 3):
            with pytest.raises(ValueError, match="leaves the range") as raised:
                check_weight("penalty", outside * unit, outside, limits, unit)
            advised = float(re.search(r"(?:raise|lower) it to (\S+),", str(raised.value))[1])
            assert check_weight("penalty", advised, advised / unit, limits, unit) == pytest.approx(
                np.clip(outside, *limits), rel=0.1
            )


@pytest.mark.parametrize(
    ("name", "unit"), [("penalty", 1e-320), ("selection_weight", 1e-250), ("penalty", np.inf)]
)
def test_a_limit_that_the_parameter_cannot_have_is_not_named(name, unit):
    with pytest.raises(ValueError, match=f"other weights: use {name}='auto'"):
        check_weight(name, 1e-100, 1e30, (1e-10, 1e-10), unit)


def test_limits_of_a_start_are_accepted():
    X = np.random.default_rng(0).random((20, 3))
    for dtype in (np.float32, np.float64):
        model = RMNMF(2, init=np.full((20, 2), 1e-200), penalty=0.1, max_iter=1, tol=0)
        with pytest.raises(ValueError, match="init has entries") as raised:
            model.fit(X.astype(dtype))
        low, high = re.search(r"between (\S+) and (\S+):", str(raised.value)).groups()
        for size in (float(low), float(high)):
            check_init(np.full((20, 2), size), X.astype(dtype), 2, 0.1)


def test_given_weights_are_meant_for_the_data_as_they_came():
    rng = np.random.default_rng(0)
    X, G = rng.random((40, 3)), rng.random((40, 2))
    plain = RMNMF(2, init=G, manifold_weight=2.0).fit(X)
    huge = RMNMF(2, init=G, manifold_weight=2.0e100).fit(X * 1e100)
    assert huge.objective_ / 1e100 == pytest.approx(plain.objective_, rel=1e-6)


def test_a_graph_with_few_eigenvalues_has_one_embedding():
    """A star of 100 points: the Lanczos iterations run out of directions and go on in random ones."""
    star = np.zeros((100, 100))
    star[0, 1:] = star[1:, 0] = 1
    first, *others = (
        smoothest(sp.csr_array(star), Components(1, np.zeros(100, int)), 4, np.random.RandomState(0)).vectors
        for _ in range(6)
    )
    assert all(np.array_equal(other, first) for other in others)
