"""The loop on rows in parts: the same iterations as in memory, however the rows are cut."""

from __future__ import annotations

import numpy as np
import pytest
from many_points import overlapping
from numpy.testing import assert_allclose, assert_array_equal
from parts import cut, graph_in_memory, graph_in_parts, joined

from smrmf._parallel import SERIAL
from smrmf.dask._affinity import BlockColumns
from smrmf.dask._blocks import Blocks, Each, Groups, blocks_of, settled, value
from smrmf.dask._graph import BlockLaplacian
from smrmf.dask._halo import Halo
from smrmf.dask._largest import largest
from smrmf.dask._operations import InParts
from smrmf.factorization._closed_form import ClosedFormAffinity
from smrmf.factorization._dissimilarity import EuclideanDissimilarity, InputSpace
from smrmf.factorization._loop import IN_PLACE, factorize
from smrmf.factorization._slots import FixedAffinity, FixedPoints, RankedExemplars, Slots
from smrmf.factorization._start import FirstIndicator, FirstPoints, weigh
from smrmf.graph.exemplars import Neighborhoods, largest_places
from smrmf.graph.graphs import Laplacian, simplex_graph, symmetrize
from smrmf.graph.labels import indicator
from smrmf.graph.neighbors import center_points, find_neighbors

N_CLUSTERS, N_NEIGHBORS, N_EXEMPLARS = 5, 6, 60
# Several unequal parts, one of a single point, and one part alone.
CUTS = {"unequal": [0, 130, 131, 400, 520, 600], "two": [0, 300, 600], "one": [0, 600]}


@pytest.fixture(params=CUTS, scope="module")
def starts(request):
    return np.array(CUTS[request.param])


@pytest.fixture(scope="module")
def problem():
    """Points, the approximate lists of their neighbours, and a start."""
    X, truth = overlapping(600)
    near = find_neighbors(X, 2 * N_NEIGHBORS + 1)._replace(exact=False)
    found = FirstIndicator(indicator(truth, N_CLUSTERS, X.dtype))
    return X, near, weigh(FirstPoints(X), found, "auto", "auto", 1.0, SERIAL)


def start_in_parts(start, starts):
    return start._replace(scaled=cut(start.scaled, starts), G=cut(start.G, starts))


def halo_of(near, starts):
    return Halo.of(cut(near.indices, starts), starts)


def slots_with(affinity):
    return Slots(affinity, FixedPoints(), RankedExemplars("mass", 3))


def assert_same_run(one, two):
    assert_allclose(two.history, one.history, rtol=1e-9)
    for name in ("G", "H", "E", "L1", "L2"):
        assert_allclose(joined(getattr(two, name)), getattr(one, name), atol=1e-8)
    assert_allclose(two.F, one.F, atol=1e-8)
    assert two.status is one.status


# The pieces


def test_parts_are_mapped_totalled_and_settled_in_one_round():
    A = blocks_of([np.arange(4.0), np.arange(2.0), np.arange(3.0)])
    doubled = A.map(np.multiply, 2)
    assert_array_equal(joined(doubled), [0, 2, 4, 6, 0, 2, 0, 2, 4])
    assert A.map(len).total(sum).compute() == 9
    assert_array_equal(joined(A.map(np.multiply, value(max, 2, 3))), 3 * joined(A))
    assert A.map(scaled, Each([1, 2, 3])).map(len).compute() == [4, 2, 3]
    assert A.map(together, Groups(A, [[1, 2], [], [0]])).compute() == [4 + 2 + 3, 2, 3 + 4]
    kept, number, rest = settled((doubled, doubled.map(np.sum).total(sum), {"as it was": [1.5, None]}))
    assert isinstance(kept, Blocks)
    assert (number, rest) == (20.0, {"as it was": [1.5, None]})
    assert_array_equal(joined(kept), joined(doubled))


def scaled(part, factor):
    return factor * part


def together(part, others):
    return len(part) + sum(map(len, others))


def test_many_parts_are_added_up_in_their_order():
    A = blocks_of([np.array([i]) for i in range(300)])
    assert_array_equal(A.total(np.concatenate).compute(), np.arange(300))


def test_a_halo_has_those_who_know_each_other(problem, starts):
    _, near, _ = problem
    halo = halo_of(near, starts)
    knows = np.zeros((600, 600), dtype=bool)
    knows[np.arange(600)[:, None], near.indices] = True
    knows |= knows.T
    for part, numbers in enumerate(halo.numbers.compute()):
        first, last = starts[part : part + 2]
        known = np.flatnonzero(knows[first:last].any(axis=0))
        assert_array_equal(numbers, known[(known < first) | (known >= last)])
    values = np.random.default_rng(0).normal(size=(600, 2))
    for part, mine in enumerate(halo.gathered(cut(values, starts)).compute()):
        first, last = starts[part : part + 2]
        assert_array_equal(
            mine, values[np.concatenate([np.arange(first, last), halo.numbers.compute()[part]])]
        )


def test_a_graph_in_parts_is_transposed_and_has_a_laplacian(problem, starts):
    _, near, start = problem
    Zt = simplex_graph(near, N_NEIGHBORS)
    graph = graph_in_parts(Zt, halo_of(near, starts))
    assert abs(graph_in_memory(graph) - Zt).max() == 0
    assert abs(graph_in_memory(graph.transposed()) - Zt.T).max() == 0
    W = symmetrize(Zt)
    assert abs(graph_in_memory(graph.symmetrized()) - W).max() < 1e-15
    found = BlockLaplacian.of(graph.symmetrized()) @ cut(start.G, starts)
    assert_allclose(joined(found), Laplacian(W) @ start.G, atol=1e-12)


@pytest.mark.parametrize("count", [1, 7, 250, 600])
@pytest.mark.parametrize("kind", ["different", "tied", "equal"])
def test_the_largest_in_parts_are_the_largest(kind, count, starts):
    scores = np.random.default_rng(0).exponential(size=600) ** 3
    scores = {"different": scores, "tied": np.round(scores), "equal": np.ones(600)}[kind]
    found = joined(largest(cut(scores, starts), count))
    assert_array_equal(np.flatnonzero(found), largest_places(scores, count))


# The loop


@pytest.mark.parametrize("max_iter", [1, 30])
def test_the_loop_with_a_fixed_graph_is_that_in_memory(problem, starts, max_iter):
    _, near, start = problem
    Zt = simplex_graph(near, N_NEIGHBORS)
    graph = graph_in_parts(Zt, halo_of(near, starts)).symmetrized()
    limits = {"rho": 1.05, "max_iter": max_iter, "tol": 0}
    one = factorize(slots_with(FixedAffinity(symmetrize(Zt), Zt)), start, ops=IN_PLACE, **limits)
    affinity = FixedAffinity(graph, graph)
    two = factorize(slots_with(affinity), start_in_parts(start, starts), ops=InParts(), **limits)
    assert_same_run(one.state, two.state)


@pytest.mark.parametrize("max_iter", [1, 15])
def test_the_loop_with_columns_in_closed_form_is_that_in_memory(problem, starts, max_iter):
    X, near, start = problem
    space = InputSpace(center_points(X), near, N_NEIGHBORS, SERIAL)
    dissimilarity = EuclideanDissimilarity.from_space(space, 2)
    beta = start.lam / dissimilarity.balanced_ratio(600, N_CLUSTERS)
    in_memory = ClosedFormAffinity(
        dissimilarity, Neighborhoods(N_EXEMPLARS, N_NEIGHBORS, "mass"), beta, None, 2 * N_NEIGHBORS
    )
    limits = {"rho": 1.05, "max_iter": max_iter, "tol": 0}
    one = factorize(slots_with(in_memory), start, ops=IN_PLACE, **limits)
    halo = halo_of(near, starts)
    affinity = BlockColumns.of(
        halo.places(cut(near.indices, starts)),
        cut(near.squared, starts),
        halo,
        dissimilarity.scale,
        n_exemplars=N_EXEMPLARS,
        n_neighbors=N_NEIGHBORS,
        beta=beta,
    )
    two = factorize(slots_with(affinity), start_in_parts(start, starts), ops=InParts(), **limits)
    assert_same_run(one.state, two.state)
    assert abs(graph_in_memory(two.state.graph.weights) - one.state.graph.weights).max() < 1e-9
    Zt = affinity.representation(two.state.affinity_state)
    assert abs(graph_in_memory(Zt) - in_memory.representation(one.state.affinity_state)).max() < 1e-9
