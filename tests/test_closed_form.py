"""The graphs in the slot: certified columns, widened lists, frozen blocks, dissimilarities."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from oracle.projections import water_filling
from scipy.spatial.distance import cdist

from smrmf import SMRMF, FastSMRMF
from smrmf._parallel import SERIAL
from smrmf.factorization._closed_form import ClosedFormAffinity
from smrmf.factorization._dissimilarity import (
    EuclideanDissimilarity,
    InputSpace,
    KernelDissimilarity,
    ListBlock,
    RoughnessDissimilarity,
)
from smrmf.graph.exemplars import Neighborhoods
from smrmf.graph.neighbors import center_points, find_neighbors

N, K = 70, 5


@pytest.fixture(scope="module")
def space():
    X = np.random.default_rng(0).normal(size=(N, 3)) + 100
    return InputSpace(center_points(X), find_neighbors(X, 2 * K + 1), K, SERIAL)


@pytest.fixture(scope="module")
def latent():
    rng = np.random.default_rng(1)
    return rng.normal(size=(N, 2)) / N, rng.random((N, 2)) / N


def dissimilarities(space):
    return {
        "distances": EuclideanDissimilarity.from_space(space, 1),
        "squared": EuclideanDissimilarity.from_space(space, 2),
        "kernel": KernelDissimilarity(space, "distance", False),
        "mean kernel": KernelDissimilarity(space, "distance", True),
        "roughness": RoughnessDissimilarity.from_space(space),
    }


def dense_latent(dissimilarity, G, H):
    target = np.zeros((len(G), len(G)))
    dissimilarity.add_latent(G, H, dissimilarity.measure_latent(G, H), 1.0, target)
    return target


NAMES = ["distances", "squared", "kernel", "mean kernel", "roughness"]


@pytest.mark.parametrize("name", NAMES)
def test_input_terms_match_their_definition(space, name):
    d = cdist(space.points.X, space.points.X)
    kth = np.sort(d, axis=1)[:, K]
    expected = {
        "distances": d / d.max(),
        "squared": d**2 / np.mean(np.sort(d, axis=1)[:, K + 1] ** 2),
    }
    expected["roughness"] = expected["squared"]
    K_ = np.exp(-(d**2) / (2 * kth[:, None] ** 2))
    expected["kernel"] = expected["mean kernel"] = -(K_ + K_.T) / 2
    D = dissimilarities(space)[name].dense()
    np.testing.assert_allclose(D, expected[name], atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_dense_latent_terms_and_lists_agree(space, latent, name):
    G, H = latent
    dissimilarity = dissimilarities(space)[name]
    measured = dissimilarity.measure_latent(G, H)
    block = dense_latent(dissimilarity, G, H)[10:25]
    indptr = np.arange(0, 15 * N + 1, N)
    indices = np.tile(np.arange(N), 15)
    lists = np.empty(15 * N)
    dissimilarity.latent_lists(G, H, measured, ListBlock(indptr, indices, 10), lists)
    np.testing.assert_allclose(lists.reshape(15, N), block, atol=1e-12)
    assert block.min() >= measured.floor - 1e-12


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("smoothness", [None, 0.05, 2.0, 200.0])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 40.0])
@pytest.mark.parametrize("list_size", [2 * K, N])
def test_every_column_is_the_solution_of_the_whole_column(space, latent, name, smoothness, ratio, list_size):
    G, H = latent
    dissimilarity = dissimilarities(space)[name]
    hoods = Neighborhoods(10, K, "mass")
    affinity = ClosedFormAffinity(dissimilarity, hoods, 1.0, smoothness, list_size)
    state, _ = affinity.update(affinity.init(None)[0], None, G, H, ratio, 1.0)
    Dhat = dissimilarity.dense()
    if ratio > 0:
        Dhat = Dhat + ratio * dense_latent(dissimilarity, G, H)
    if smoothness is None:
        np.fill_diagonal(Dhat, np.inf)
    Zt = affinity.representation(state).toarray()
    for j in range(N):
        inside = np.isfinite(Dhat[j])
        whole = np.zeros(N)
        whole[inside] = water_filling(Dhat[j, inside], state.delta[j])
        np.testing.assert_allclose(Zt[j], whole, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_dense_latent_terms_match_their_definition(name):
    rng = np.random.default_rng(2)
    n = 300  # more than one tile
    X, G, H = rng.normal(size=(n, 2)), rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    space = InputSpace(center_points(X), find_neighbors(X, 2 * K + 1), K, SERIAL)
    d2 = cdist(G, H, "sqeuclidean")
    others = np.where(np.eye(n, dtype=bool), np.inf, d2)
    gamma = np.sqrt(np.sort(others, axis=1)[:, K - 1])
    if name == "mean kernel":
        gamma = np.full(n, gamma.mean())
    kernel = np.exp(-d2 / (2 * gamma[:, None] ** 2))
    expected = -(kernel + kernel.T) / 2 if "kernel" in name else d2.T
    if name == "roughness":  # the coefficient of z_ij in tr(G' L_Z H)
        P = G @ H.T
        expected = (np.diag(P)[:, None] + np.diag(P)[None, :] - P - P.T) / 2
    np.testing.assert_allclose(dense_latent(dissimilarities(space)[name], G, H), expected, atol=1e-12)


def test_lists_grow_only_where_they_must(space, latent):
    G, H = latent
    affinity = ClosedFormAffinity(
        EuclideanDissimilarity.from_space(space, 2), Neighborhoods(10, K, "mass"), 1.0, None, 2 * K
    )
    first, _ = affinity.init(None)
    np.testing.assert_array_equal(np.diff(first.lists.indptr), 2 * K)
    pushed = H.copy()
    pushed[0] += 5  # one column whose near space have all become unlike
    later, _ = affinity.update(first, None, G, pushed, 10.0, 1.0)
    lengths = np.diff(later.lists.indptr)
    assert lengths[0] > 2 * K
    assert np.median(lengths) == 2 * K


def test_value_is_the_objective_of_the_columns(space):
    affinity = ClosedFormAffinity(
        EuclideanDissimilarity.from_space(space, 2), Neighborhoods(10, K, "mass"), 3.0, 0.7, 2 * K
    )
    state, term = affinity.init(None)
    Zt, D = affinity.representation(state).toarray(), affinity.dissimilarity.dense()
    assert term.value == pytest.approx(3.0 * (np.sum(D * Zt) + 0.7 / 2 * np.sum(Zt**2)))


@pytest.mark.parametrize("kind", [SMRMF, FastSMRMF])
def test_frozen_blocks_stay_as_they_are(kind):
    X = np.random.default_rng(0).normal(size=(40, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short, long = (
            kind(3, random_state=0, freeze_tol=10.0, tol=0, max_iter=rounds).fit(X) for rounds in (8, 15)
        )
        free = kind(3, random_state=0, tol=0, max_iter=15).fit(X)
    short, long, free = (as_array(model.representation_) for model in (short, long, free))
    np.testing.assert_array_equal(short, long)
    assert np.abs(free - long).max() > 1e-6


def test_a_copy_of_z_that_repeats_does_not_freeze_it():
    # With one exemplar and a small penalty, Z is the identity and C the same to the last bit for a long time,
    # while the multiplier grows until Z gives way.
    X = np.random.default_rng(0).random((30, 3))
    model = SMRMF(3, random_state=0, dissimilarity="euclidean", exemplars=1, manifold_weight=0)
    model.set_params(selection_weight=1.0, penalty=1e-3, penalty_growth=1, tol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        early, late = (model.set_params(max_iter=rounds).fit(X).representation_ for rounds in (10, 400))
    np.testing.assert_array_equal(early, np.eye(30))
    assert np.trace(late) < 20


def as_array(Z):
    return Z.toarray() if sp.issparse(Z) else Z
