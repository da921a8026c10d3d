"""The loop: exact updates, constraints at the end, and Algorithm 1 as an independent oracle."""

from __future__ import annotations

import warnings

import numpy as np
import oracle
import pytest
from paper_factors import paper_factors
from parts import PLACES
from scipy.stats import ortho_group
from sklearn.datasets import make_blobs

from smrmf import RMNMF, SMRMF, FastSMRMF
from smrmf._parallel import SERIAL
from smrmf.factorization._loop import (
    LARGEST_PENALTY,
    Status,
    factorize,
)
from smrmf.factorization._points import reduce_features
from smrmf.factorization._slots import FixedAffinity, FixedPoints, RankedExemplars, Slots
from smrmf.factorization._start import FirstIndicator, FirstPoints, weigh
from smrmf.graph.graphs import Laplacian, neighbor_graph, symmetrize
from smrmf.graph.neighbors import find_neighbors

N_CLUSTERS = 3


@pytest.fixture(scope="module")
def points():
    """Three overlapping groups of unit-length points without negative entries."""
    X, _ = make_blobs(45, 6, centers=3, cluster_std=2.0, random_state=1)
    X = X - X.min(axis=0)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def start(points):
    return np.random.default_rng(0).uniform(0.1, 1, (len(points), N_CLUSTERS))


def lagrangian(X, E, F, G, H, L1, L2, L, lam, mu):
    """Evaluate (3.5) without the terms of Z."""
    value = np.linalg.norm(E, axis=1).sum() + lam * np.vdot(G, L @ H)
    value += mu / 2 * np.sum((X - G @ F - E + L1 / mu) ** 2)
    return value + mu / 2 * np.sum((G - H + L2 / mu) ** 2)


@pytest.fixture(params=PLACES)
def place(request):
    """Where rows lie, and the operations on them."""
    return PLACES[request.param]


@pytest.mark.parametrize("lam", [0.0, 0.3, 20.0])
@pytest.mark.parametrize("mu", [0.05, 1.0, 50.0])
def test_no_update_raises_the_augmented_lagrangian(points, lam, mu, place):
    rng = np.random.default_rng(2)
    X, (n, m), c = points, points.shape, N_CLUSTERS
    ops, put, get = place.ops, place.cut, place.joined
    near = find_neighbors(X, 5)
    W = symmetrize(neighbor_graph(near.indices, np.exp(-near.squared)))
    L, laplacian = Laplacian(W), ops.laplacian(place.graph(W, near.indices))
    G = ortho_group.rvs(n, random_state=3)[:, :c]
    F, H, E = rng.normal(size=(c, m)), rng.uniform(size=(n, c)), rng.normal(size=(n, m))
    L1, L2 = rng.normal(size=(n, m)), rng.normal(size=(n, c))
    for _ in range(5):
        values = [lagrangian(X, E, F, G, H, L1, L2, L, lam, mu)]
        E, Y = map(get, ops.shrink(put(X), ops.product(put(G), F), put(L1), mu, put(E)))
        values.append(lagrangian(X, E, F, G, H, L1, L2, L, lam, mu))
        F = get(ops.basis(put(G), put(Y)))
        values.append(lagrangian(X, E, F, G, H, L1, L2, L, lam, mu))
        LG = laplacian.times(put(G), put(np.empty_like(G)))
        H = get(ops.nonnegative(put(G), LG, put(L2), lam, mu, None))
        values.append(lagrangian(X, E, F, G, H, L1, L2, L, lam, mu))
        LH = laplacian.times(put(H), put(np.empty_like(H)))
        G = get(ops.indicator(put(H), LH, put(L2), put(Y), F, lam, mu))
        values.append(lagrangian(X, E, F, G, H, L1, L2, L, lam, mu))
        rises = np.diff(values)
        assert (rises <= 1e-9 * np.abs(values[0])).all(), rises
        # Line 16, and what is measured with it.
        _, L1_next, loss, gap = ops.ascend(put(X), put(G), F, put(E), mu, put(L1.copy()), put(G @ F))
        L2_next, split = ops.ascend_split(put(G), put(H), mu, put(L2.copy()))
        np.testing.assert_allclose(get(L1_next), L1 + mu * (X - G @ F - E), atol=1e-9 * mu)
        np.testing.assert_allclose(get(L2_next), L2 + mu * (G - H), atol=1e-9 * mu)
        assert get(loss) == pytest.approx(np.linalg.norm(X - G @ F, axis=1).sum())
        assert get(gap) == pytest.approx(np.linalg.norm(X - G @ F - E), abs=1e-9)
        assert get(split) == pytest.approx(np.abs(G - H).max() / np.abs(G).max())
        assert get(ops.inner(put(G), put(L @ G))) == pytest.approx(np.vdot(G, L @ G))
        L1, L2 = L1 + mu * (X - G @ F - E), L2 + mu * (G - H)


PAPER = {"lam": 0.1, "beta": 0.05, "mu": 0.1, "rho": 1.05}


@pytest.mark.parametrize("iterations", [1, 25, 120])
@pytest.mark.parametrize(
    ("bandwidth", "first"),
    [("distance", "selected"), ("squared-distance", "selected"), ("distance", "single")],
)
def test_smrmf_follows_algorithm_1(points, start, iterations, bandwidth, first):
    exemplars, k = 5, 6
    squared, single = bandwidth == "squared-distance", first == "single"
    learner = oracle.RowSparse(points.T, exemplars, k, PAPER["beta"], squared, single)
    history, F, G, _ = oracle.algorithm_1(
        points.T, start, learner, exemplars, k, PAPER["lam"], PAPER["mu"], PAPER["rho"], iterations
    )
    settings = {"bandwidth": bandwidth, "exemplar_start": first}
    model = run(SMRMF, points, start, iterations, exemplars, k, **settings)
    np.testing.assert_allclose(model.objective_history_, history, rtol=1e-6)
    found_G, found_F = paper_factors(model)
    np.testing.assert_allclose(found_G, G, atol=1e-5)
    np.testing.assert_allclose(found_F, F.T, atol=1e-5)


@pytest.mark.parametrize("iterations", [1, 25, 120])
@pytest.mark.parametrize("delta", [0.3, 5.0])
def test_fast_smrmf_follows_algorithm_1(points, start, iterations, delta):
    exemplars, k = 5, 6
    learner = oracle.ClosedForm(points.T, k, PAPER["beta"], delta, False)
    history, _, G, _ = oracle.algorithm_1(
        points.T, start, learner, exemplars, k, PAPER["lam"], PAPER["mu"], PAPER["rho"], iterations
    )
    model = run(FastSMRMF, points, start, iterations, exemplars, k, smoothness=delta, dissimilarity="kernel")
    np.testing.assert_allclose(model.objective_history_, history, rtol=1e-6)
    np.testing.assert_allclose(paper_factors(model)[0], G, atol=1e-5)
    # Every column is certified, so the lists give what whole columns give.
    np.testing.assert_allclose(model.representation_.toarray(), learner.Z, atol=1e-6)


def run(kind, X, start, iterations, exemplars, k, **options):
    """Fit with the paper's kind of weights for exactly so many iterations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(
            N_CLUSTERS,
            exemplars=exemplars,
            n_neighbors=k,
            manifold_weight=PAPER["lam"],
            selection_weight=PAPER["beta"],
            penalty=PAPER["mu"],
            penalty_growth=PAPER["rho"],
            exemplar_rule="norm",
            init=start,
            max_iter=iterations,
            tol=0,
            **options,
        ).fit(X)


ALL = [
    RMNMF(N_CLUSTERS),
    FastSMRMF(N_CLUSTERS),
    FastSMRMF(N_CLUSTERS, dissimilarity="kernel", smoothness=2.0),
    SMRMF(N_CLUSTERS),
    SMRMF(N_CLUSTERS, selection="l2", exemplars=0.5),
    SMRMF(N_CLUSTERS, dissimilarity="euclidean", neighborhoods="input"),
]


@pytest.mark.parametrize("model", ALL, ids=repr)
def test_constraints_hold_at_the_end(points, model):
    model = model.set_params(random_state=0).fit(points)
    (G, _), Z = paper_factors(model), model.representation_
    np.testing.assert_allclose(G.T @ G, np.eye(N_CLUSTERS), atol=1e-8)
    assert G.min() > -1e-2 * np.abs(G).max()
    np.testing.assert_allclose(Z.sum(axis=0), 1, atol=1e-8)
    assert Z.min() >= 0
    assert model.converged_


@pytest.mark.parametrize(("selection", "norm"), [("linf", np.inf), ("l2", 2)])
def test_smrmf_ends_inside_the_ball(points, selection, norm):
    count = 12
    model = SMRMF(N_CLUSTERS, exemplars=count, selection=selection, random_state=0, tol=1e-6).fit(points)
    total = np.linalg.norm(model.representation_, ord=norm, axis=1).sum()
    # Z meets the ball through C, so up to the feasibility of the split.
    assert total <= count * 1.02


def test_the_nonnegative_copy_is_nonnegative(points, start, place):
    solution = factorize(*plain_problem(points, start, place), ops=place.ops, **LIMITS)
    G, H = place.joined(solution.state.G), place.joined(solution.state.H)
    assert H.min() >= 0
    assert solution.status is Status.CONVERGED
    assert np.abs(G - H).max() <= 1e-2 * np.abs(G).max()


def test_the_penalty_grows_to_its_limit_and_no_further(points, start, place):
    slots, weighed = plain_problem(points, start, place)
    grown = factorize(slots, weighed, rho=1e4, max_iter=60, tol=0, ops=place.ops).state
    assert grown.mu == LARGEST_PENALTY
    assert np.isfinite(grown.F).all()
    assert np.isfinite(grown.history).all()
    assert all(np.isfinite(place.joined(part)).all() for part in (grown.G, grown.E, grown.L1, grown.L2))
    soft = factorize(slots, weighed, rho=1.05, max_iter=10, tol=0, ops=place.ops).state
    assert soft.mu == pytest.approx(weighed.mu * 1.05**10)


LIMITS = {"rho": 1.05, "max_iter": 1000, "tol": 1e-4}


def plain_problem(X, G, place):
    """Return slots with a plain neighbour graph and the points as they are, and the start."""
    near = find_neighbors(X, 5)
    W = place.graph(symmetrize(neighbor_graph(near.indices, np.ones_like(near.squared))), near.indices)
    slots = Slots(FixedAffinity(W, W), FixedPoints(), RankedExemplars("mass", 3))
    start = weigh(FirstPoints(X), FirstIndicator(G), 0.1, 0.1, 1.0, SERIAL)
    return slots, start._replace(scaled=place.cut(start.scaled), G=place.cut(start.G))


def short_run(kind, X, start):
    """Run some iterations in which everything still moves, too few for rounding to grow."""
    weights = {"manifold_weight": 0.1, "penalty": 0.1, "max_iter": 20, "tol": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(N_CLUSTERS, init=start, **weights).fit(X)


@pytest.mark.parametrize("kind", [RMNMF, FastSMRMF, SMRMF])
def test_permuting_the_points_permutes_the_result(points, start, kind):
    order = np.random.default_rng(5).permutation(len(points))
    one, two = short_run(kind, points, start), short_run(kind, points[order], start[order])
    np.testing.assert_allclose(two.embedding_, one.embedding_[order], atol=1e-7)
    np.testing.assert_allclose(two.components_, one.components_, atol=1e-7)
    np.testing.assert_array_equal(np.sort(order[two.exemplar_indices_]), np.sort(one.exemplar_indices_))


def lifted(points, start, shape):
    """Put the points into more features than they span; return them and a start."""
    rng = np.random.default_rng(6)
    if shape == "wide":
        return points @ np.linalg.qr(rng.normal(size=(60, 6)))[0].T, start
    noisy = np.repeat(points, 10, axis=0) + rng.normal(scale=0.01, size=(450, 6))
    return noisy @ np.linalg.qr(rng.normal(size=(200, 6)))[0].T, rng.uniform(0.1, 1, (450, N_CLUSTERS))


@pytest.mark.parametrize("kind", [RMNMF, FastSMRMF, SMRMF])
@pytest.mark.parametrize("shape", ["wide", "low rank"])
def test_shorter_coordinates_give_the_same_answer(points, start, kind, shape):
    X, G = lifted(points, start, shape)
    assert reduce_features(X)[0].shape[1] < X.shape[1]
    model = short_run(kind, X, G)
    basis = np.linalg.svd(X, full_matrices=False)[2][:6]
    direct = short_run(kind, X @ basis.T, G)
    np.testing.assert_allclose(model.embedding_, direct.embedding_, atol=1e-6)
    np.testing.assert_allclose(model.components_, direct.components_ @ basis, atol=1e-6)
    np.testing.assert_allclose(model.objective_, direct.objective_, rtol=1e-8)
