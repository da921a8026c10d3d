"""AMRMF: the first graph, exact rows of S, a Lagrangian that never rises, and weights in raw units."""

from __future__ import annotations

import warnings

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from paper_factors import paper_factors
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group
from sklearn.datasets import load_digits, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from smrmf._parallel import SERIAL
from smrmf.factorization._closed_form import AdaptiveAffinity, ClosedFormAffinity
from smrmf.factorization._dissimilarity import InputSpace, RoughnessDissimilarity
from smrmf.factorization._loop import IN_PLACE
from smrmf.factorization.amrmf import AMRMF
from smrmf.graph.exemplars import Neighborhoods
from smrmf.graph.graphs import Laplacian
from smrmf.graph.neighbors import center_points, find_neighbors
from smrmf.kernels.prox import least_squares_basis

N, K, C = 60, 6, 3
DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@pytest.fixture(scope="module")
def points():
    """Three overlapping groups of points without negative entries."""
    X, _ = make_blobs(N, 5, centers=C, cluster_std=3.0, random_state=1)
    return X - X.min(axis=0)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, 5, centers=4, cluster_std=1.5, random_state=3)


def adaptive(X, k=K, beta=1.0, candidates=None):
    """Return the affinity of AMRMF for some points; usually with twice the neighbours as candidates."""
    candidates = min(2 * k if candidates is None else candidates, len(X) - 1)
    neighbors = find_neighbors(X, min(candidates + 1, len(X) - 1))
    dissimilarity = RoughnessDissimilarity.from_space(InputSpace(center_points(X), neighbors, k, SERIAL))
    hoods = Neighborhoods(None, k, "mass")
    return AdaptiveAffinity(ClosedFormAffinity(dissimilarity, hoods, beta, None, candidates))


def after_update(affinity, X, G, H, lam):
    """Return the state and its term of the objective after one update of the first state."""
    state, term = affinity.update(affinity.init(X)[0], X, G, H, lam, 1.0)
    return state, term


def scaled_distances(affinity):
    return affinity.columns.dissimilarity.dense().astype(float)


def gammas(d, k):
    """Return CAN's gamma of every point, (5.2), from all squared distances."""
    near = np.sort(np.where(np.eye(len(d), dtype=bool), np.inf, d), axis=1)
    return (k * near[:, k] - near[:, :k].sum(axis=1)) / 2


def rows_by_sorting(costs, alpha):
    """Minimise ``c's + alpha ||s||^2`` over the simplex without s_ii, all rows, by sorting."""
    n = len(costs)
    S = np.zeros((n, n))
    for i in range(n):
        others = np.arange(n) != i
        v = -costs[i, others] / (2 * alpha)
        u = np.sort(v)[::-1]
        excess = np.cumsum(u) - 1
        r = np.flatnonzero(u * np.arange(1, n) > excess)[-1]
        S[i, others] = np.maximum(v - excess[r] / (r + 1), 0)
    return S


def roughness(G, H):
    """Return the coefficient of s_ij in tr(G' L_S H), from the differences of all pairs."""
    return np.einsum("ijq,ijq->ij", G[:, None] - G[None], H[:, None] - H[None]) / 2


# The graph


@pytest.mark.parametrize("k", [1, 3, 12])
@DTYPES
def test_the_first_graph_is_that_of_can(points, k, dtype):
    affinity = adaptive(points.astype(dtype), k)
    S = affinity.representation(affinity.init(points)[0]).toarray()
    d = cdist(points, points, "sqeuclidean")
    near = np.sort(np.where(np.eye(N, dtype=bool), np.inf, d), axis=1)
    expected = np.maximum(near[:, k, None] - d, 0) / (2 * gammas(d, k))[:, None]
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal((S > 0).sum(axis=1), k)
    np.testing.assert_allclose(S, expected, atol=1e-10 if dtype is np.float64 else 1e-4)
    np.testing.assert_allclose(S.sum(axis=1), 1, rtol=1e-5)


def test_the_first_graph_of_tied_points_is_finite():
    grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    for X, k in ((grid, 4), (np.repeat(grid[:6], 4, axis=0), 3), (grid[:6], 5), (np.ones((9, 2)), 3)):
        affinity = adaptive(X, k)
        S = affinity.representation(affinity.init(X)[0]).toarray()
        np.testing.assert_allclose(S.sum(axis=1), 1)
        assert S.min() >= 0
        assert (S.diagonal() == 0).all()


def test_alpha_is_the_mean_of_all_gammas(points):
    affinity = adaptive(points)
    state, _ = affinity.init(points)
    expected = gammas(scaled_distances(affinity), K).mean()
    np.testing.assert_allclose(state.delta, 2 * expected, rtol=1e-9)


@pytest.mark.parametrize("ratio", [0.01, 1.0, 50.0, 5000.0])
@pytest.mark.parametrize("gap", [0.0, 0.1, 3.0])
@DTYPES
def test_every_row_of_s_solves_its_problem(points, ratio, gap, dtype):
    rng = np.random.default_rng(2)
    G = ortho_group.rvs(N, random_state=3)[:, :C]
    H = np.maximum(G + gap * rng.normal(size=G.shape) / np.sqrt(N), 0) if gap else G
    affinity = adaptive(points.astype(dtype), beta=2.0)
    state, _ = after_update(affinity, points, G.astype(dtype), H.astype(dtype), 2.0 * ratio)
    costs = scaled_distances(affinity) + ratio * roughness(G, H)
    expected = rows_by_sorting(costs, state.delta.mean().astype(float) / 2)
    S = affinity.representation(state).toarray()
    tol = 1e-9 if dtype is np.float64 else 1e-3
    np.testing.assert_allclose(S, expected, atol=tol)


def test_without_a_manifold_term_the_rows_still_have_the_common_alpha(points):
    affinity = adaptive(points)
    G = ortho_group.rvs(N, random_state=3)[:, :C]
    state, _ = after_update(affinity, points, G, G, 0.0)
    expected = rows_by_sorting(scaled_distances(affinity), state.delta[0] / 2)
    np.testing.assert_allclose(affinity.representation(state).toarray(), expected, atol=1e-9)


def test_a_vanishing_manifold_weight_is_none(points):
    # S does not depend on G any more, and must not jump.
    none, little = (
        AMRMF(C, manifold_weight=weight, selection_weight=1.0, random_state=0).fit(points)
        for weight in (0, 1e-12)
    )
    np.testing.assert_allclose(none.representation_.toarray(), little.representation_.toarray(), atol=1e-6)


def test_rows_are_the_same_from_short_lists_and_from_long_ones(points):
    G = ortho_group.rvs(N, random_state=3)[:, :C]
    H = np.maximum(G, 0)
    affinities = [adaptive(points, candidates=size) for size in (K + 1, N - 1)]
    states = [after_update(affinity, points, G, H, 100.0)[0] for affinity in affinities]
    short, long = (a.representation(state).toarray() for a, state in zip(affinities, states, strict=True))
    np.testing.assert_allclose(short, long, atol=1e-12)


def test_the_value_is_its_term_of_the_objective(points):
    affinity = adaptive(points, beta=3.0)
    G = ortho_group.rvs(N, random_state=3)[:, :C]
    state, term = after_update(affinity, points, G, np.maximum(G, 0), 30.0)
    S, d = affinity.representation(state).toarray(), scaled_distances(affinity)
    alpha = gammas(d, K).mean()
    assert term.value == pytest.approx(3.0 * np.sum(d * S + alpha * S**2))


def test_all_of_s_is_the_graph(points):
    affinity = adaptive(points)
    state, term = affinity.init(points)
    S = affinity.representation(state).toarray()
    np.testing.assert_allclose(term.weights.toarray(), (S + S.T) / 2)


latent = arrays(float, (5, 2), elements=st.floats(-3, 3, allow_subnormal=False))


@given(latent, latent)
def test_the_latent_floor_is_below_all_latent_terms(G, H):
    affinity = adaptive(np.random.default_rng(0).normal(size=(5, 2)), 2)
    assert roughness(G, H).min() >= affinity.columns.dissimilarity.measure_latent(G, H).floor - 1e-12


# The iteration


def lagrangian(X, E, F, G, H, S, L1, L2, lam, beta, alpha, d, mu):
    """Evaluate the whole augmented Lagrangian, points as rows, in plain NumPy."""
    W = (S + S.T) / 2
    L = np.diag(W.sum(axis=1)) - W
    value = np.linalg.norm(E, axis=1).sum() + lam * np.trace(G.T @ L @ H)
    value += beta * np.sum(d * S + alpha * S**2)
    value += mu / 2 * np.sum((X - G @ F - E + L1 / mu) ** 2)
    return value + mu / 2 * np.sum((G - H + L2 / mu) ** 2)


@pytest.mark.parametrize("lam", [0.1, 5.0, 500.0])
@pytest.mark.parametrize("mu", [0.01, 1.0, 100.0])
def test_no_update_raises_the_augmented_lagrangian(points, lam, mu):
    X = points / np.linalg.norm(points, axis=1, keepdims=True)
    beta, rho = 0.7, 1.05
    affinity = adaptive(X, beta=beta)
    d = scaled_distances(affinity)
    state, term = affinity.init(X)
    alpha = gammas(d, K).mean()
    rng = np.random.default_rng(4)
    G, H = ortho_group.rvs(N, random_state=5)[:, :C], rng.random((N, C))
    F, E = rng.normal(size=(C, X.shape[1])), np.zeros_like(X)
    L1, L2 = np.zeros_like(X), np.zeros_like(G)

    def value():
        S = affinity.representation(state).toarray()
        return lagrangian(X, E, F, G, H, S, L1, L2, lam, beta, alpha, d, mu)

    for _ in range(40):
        values = [value()]
        L = Laplacian(term.weights)
        Y = G @ F
        IN_PLACE.shrink(X, Y, L1, mu, E)
        values.append(value())
        F = least_squares_basis(G, Y, SERIAL)
        values.append(value())
        H = IN_PLACE.nonnegative(G, L @ G, L2, lam, mu, None)
        values.append(value())
        G = IN_PLACE.indicator(H, L @ H, L2, Y, F, lam, mu)
        values.append(value())
        state, term = affinity.update(state, X, G, H, lam, mu)
        values.append(value())
        rises = np.diff(values)
        assert (rises <= 1e-7 * np.abs(values[0])).all(), rises
        L1 += mu * (X - G @ F - E)
        L2 += mu * (G - H)
        mu *= rho


class PlainAdaptive:
    """S of AMRMF as a learner of the oracle: Z is S transposed, on plain squared distances."""

    def __init__(self, X, k, beta):
        self.beta, self.D = beta, oracle.squared(X, X)
        own = gammas(self.D, k)
        self.alpha = own.mean()
        self.Z = np.stack([rows_by_sorting(self.D, gamma)[i] for i, gamma in enumerate(own)], axis=1)

    def update(self, G, H, lam, mu):
        self.Z = rows_by_sorting(self.D + lam / self.beta * roughness(G, H), self.alpha).T

    def value(self):
        return self.beta * np.sum(self.D * self.Z + self.alpha * self.Z**2)


@pytest.mark.parametrize(("lam", "beta"), [(0.1, 0.05), (2.0, 0.001)])
@pytest.mark.parametrize("iterations", [1, 20, 60])
def test_amrmf_follows_the_plain_iteration(points, lam, beta, iterations):
    X = points / np.linalg.norm(points, axis=1, keepdims=True)
    start = np.random.default_rng(0).uniform(0.1, 1, (N, C))
    learner = PlainAdaptive(X.T, K, beta)
    # As many exemplars and neighbours as points: all of Z is the graph.
    history, F, G, _ = oracle.algorithm_1(X.T, start, learner, N, N, lam, 0.1, 1.05, iterations)
    weights = {"manifold_weight": lam, "selection_weight": beta, "penalty": 0.1, "penalty_growth": 1.05}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = AMRMF(C, n_neighbors=K, init=start, max_iter=iterations, tol=0, **weights).fit(X)
    np.testing.assert_allclose(model.objective_history_, history, rtol=1e-6)
    found_G, found_F = paper_factors(model)
    np.testing.assert_allclose(found_G, G, atol=1e-5)
    np.testing.assert_allclose(found_F, F.T, atol=1e-5)
    np.testing.assert_allclose(model.representation_.toarray(), learner.Z, atol=1e-5)


def test_the_graph_adapts_to_the_clusters(points):
    first, later = (
        AMRMF(C, manifold_weight=weight, selection_weight=0.01, random_state=0).fit(points)
        for weight in (0.01, 100)
    )
    inside = []
    for model in (first, later):
        same = model.labels_[:, None] == model.labels_[None, :]
        inside.append((model.affinity_.toarray() * same).sum() / N)
    assert inside[1] > inside[0] + 0.01
    assert inside[1] > 0.99


# Units


def raw_objective(model, X, lam, beta, k):
    """Evaluate the objective of a fit in the units of the data, from its fitted attributes alone."""
    S, (G, F) = model.representation_.toarray().T, paper_factors(model)
    d = cdist(X, X, "sqeuclidean")
    loss = np.linalg.norm(X - G @ F, axis=1).sum()
    rough = (S * cdist(G, G, "sqeuclidean")).sum() / 2
    return loss + lam * rough + beta * np.sum(d * S + gammas(d, k).mean() * S**2)


@pytest.mark.filterwarnings("ignore:AMRMF did not converge")  # which does not matter here
@pytest.mark.parametrize("penalty", ["auto", 0.1])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_given_weights_are_those_of_the_objective_in_raw_units(points, penalty, unit):
    X = points * unit
    lam, beta = 2.0 * unit, 0.02 / unit
    options = {"penalty": penalty if penalty == "auto" else penalty / unit, "max_iter": 60, "random_state": 0}
    model = AMRMF(C, n_neighbors=K, manifold_weight=lam, selection_weight=beta, **options).fit(X)
    assert model.objective_ == pytest.approx(raw_objective(model, X, lam, beta, K), rel=1e-8)


@pytest.mark.parametrize("unit", [1e-150, 1e-6, 1e6, 1e90])
def test_weights_in_raw_units_change_with_the_unit(points, unit):
    plain, scaled = (
        AMRMF(C, manifold_weight=2.0 * factor, selection_weight=0.02 / factor, random_state=0).fit(
            points * factor
        )
        for factor in (1.0, unit)
    )
    np.testing.assert_array_equal(scaled.labels_, plain.labels_)
    np.testing.assert_allclose(scaled.embedding_, plain.embedding_, atol=1e-6)
    np.testing.assert_allclose(scaled.representation_.toarray(), plain.representation_.toarray(), atol=1e-6)
    np.testing.assert_allclose(scaled.objective_ / unit, plain.objective_, rtol=1e-6)
    other = AMRMF(C, manifold_weight=2.0 * unit, selection_weight=2e3 / unit, random_state=0).fit(
        points * unit
    )
    assert np.abs(other.representation_.toarray() - plain.representation_.toarray()).max() > 1e-3


def test_the_origin_does_not_matter(blobs):
    X, _ = blobs
    plain, moved = AMRMF(4, random_state=0).fit(X), AMRMF(4, random_state=0).fit(X + 1e5)
    np.testing.assert_array_equal(moved.labels_, plain.labels_)
    np.testing.assert_allclose(moved.representation_.toarray(), plain.representation_.toarray(), atol=1e-2)


# What a fit gives


def test_constraints_hold_at_the_end(points):
    model = AMRMF(C, random_state=0).fit(points)
    (G, _), S = paper_factors(model), model.representation_.toarray().T
    assert model.converged_
    np.testing.assert_allclose(G.T @ G, np.eye(C), atol=1e-8)
    assert G.min() > -1e-2 * np.abs(G).max()
    np.testing.assert_allclose(S.sum(axis=1), 1, atol=1e-8)
    assert S.min() >= 0
    assert (S.diagonal() == 0).all()
    np.testing.assert_allclose(model.affinity_.toarray(), (S + S.T) / 2, atol=1e-12)
    assert len(model.objective_history_) == model.n_iter_
    assert model.exemplar_indices_.shape == model.exemplar_scores_.shape == (6,)


@pytest.mark.parametrize("init", ["spectral", "nndsvd", "kmeans"])
def test_every_named_start_finds_separate_blobs(init):
    X, y = make_blobs(90, 4, centers=3, cluster_std=0.3, random_state=0)
    model = AMRMF(3, init=init, random_state=0).fit(X - X.min(axis=0))
    assert adjusted_rand_score(y, model.labels_) == 1.0


@pytest.mark.parametrize("loader", [load_wine, lambda: load_digits(n_class=3)], ids=["wine", "digits"])
def test_the_papers_settings_run(loader):
    data = loader()
    X = data.data[:, np.ptp(data.data, axis=0) > 0]
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    X = np.unique(X / np.linalg.norm(X, axis=1, keepdims=True), axis=0)[::3]
    settings = AMRMF.paper_settings()
    assert settings["n_neighbors"] == "sqrt"
    assert settings["init"] == "nndsvd"
    assert settings["penalty"] == 0.1
    model = AMRMF(3, **settings, random_state=0).fit(X)
    assert model.converged_
    assert model.objective_ == pytest.approx(
        raw_objective(model, X, 0.1, 1.0, int(np.sqrt(len(X)))), rel=1e-8
    )


def test_permuting_the_points_permutes_the_result(points):
    order = np.random.default_rng(5).permutation(N)
    start = np.random.default_rng(6).uniform(0.1, 1, (N, C))
    options = {"manifold_weight": 2.0, "selection_weight": 0.02, "penalty": 0.1, "max_iter": 20, "tol": 0}
    one = AMRMF(C, init=start, **options).fit(points)
    two = AMRMF(C, init=start[order], **options).fit(points[order])
    np.testing.assert_allclose(two.embedding_, one.embedding_[order], atol=1e-7)
