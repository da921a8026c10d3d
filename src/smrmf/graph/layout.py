"""A graph in the plane: neighbours near each other, clusters apart, all of it in one picture.

Points begin at the smoothest functions of the graph. Then every edge pulls its two ends together, as often
as it weighs, and every pulled point is pushed away from a few points drawn at random: in the mean the
gradient of a likelihood, as in UMAP and LargeVis, at a cost that grows with the edges only. A large graph
begins at the layout of its cells, parts of some twenty points. Components of the graph begin side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra
from sklearn.utils import check_random_state

from smrmf._numba import kernel
from smrmf._parallel import thread_pool
from smrmf.graph.components import Components, components_of
from smrmf.graph.grains import graph_of_grains
from smrmf.graph.graphs import divide_rows, without_diagonal
from smrmf.graph.groups import membership
from smrmf.graph.packing import PLACED, pack_discs
from smrmf.graph.spectrum import smoothest
from smrmf.kernels.distances import squared_distances, squared_norms

# Up to so many points a start is spectral, above it comes from cells of so many points each.
FEW_POINTS, CELL_SIZE = 2500, 20
# Rounds over the edges: fewer where cells have found the way.
ROUNDS, ROUNDS_AFTER_CELLS = 400, 100
# Points that an end of an edge is pushed away from, for each pull.
N_PUSHES = 3
# Radius of a component at the start, for each cube root of a point, and what is left free around it.
SPREAD, MARGIN = 0.5, 0.5
# Squared distance at which a pull has half its strength: neighbours do not collapse, and a cluster shows
# how many points it has.
SOFT_CORE = 2.0
# Squared distance beyond which nothing is pushed: clusters go apart so far, not more, and fill the picture.
FAR = 16.0
# Squared distance below which a push grows no more, and the longest step of either.
SMALLEST, LONGEST_STEP = 1e-3, 4.0


def layout_graph(
    W: sp.csr_array, points: Any = None, random_state: int | np.random.RandomState | None = None
) -> np.ndarray:
    """Place the points of a graph in the plane, neighbours near each other and clusters apart.

    Parameters
    ----------
    W : CSR matrix of shape (n_points, n_points)
        Symmetric weights of the edges, at least 0; only their ratios at each point count.
    points : array or CSR matrix of shape (n_points, n_features) or None, default=None
        Where the points are: components of the graph whose means are near begin near each other.
    random_state : int, RandomState or None, default=None
        Seed; with the same one the layout is the same on any number of threads.

    Returns
    -------
    places : array of shape (n_points, 2)
        Places with mean zero, the longest axis of the picture first.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> ring = sp.csr_array(sp.diags_array([[1.0] * 9, [1.0], [1.0] * 9, [1.0]], offsets=[1, 9, -1, -9]))
    >>> layout_graph(ring, random_state=0).shape
    (10, 2)
    """
    W = without_diagonal(sp.csr_array(W))
    with thread_pool(1):  # linear algebra on several threads has other last digits
        return _upright(_place(W, points, check_random_state(random_state)))


def _place(W: sp.csr_array, points: Any, random_state: np.random.RandomState) -> np.ndarray:
    """Return the places of all points, in no particular position."""
    likeness = _likeness(W)
    components = components_of(likeness)
    sizes = np.bincount(components.of_point, minlength=components.number)
    order = np.argsort(-sizes, kind="stable")
    radii = SPREAD * np.cbrt(sizes) + MARGIN
    centers = np.empty((components.number, 2))
    centers[order] = pack_discs(radii[order], _ties(points, components, order[:PLACED]))
    places = centers[components.of_point]
    # Enough to part points that begin at one place, and all of the start of tiny components.
    places += random_state.normal(scale=0.1 * radii[components.of_point, None], size=places.shape)
    for label in order[:PLACED][sizes[order[:PLACED]] > 3]:
        members = np.flatnonzero(components.of_point == label)
        part = likeness if components.number == 1 else likeness[members][:, members]
        places[members] += _start(part, random_state)
    rounds = ROUNDS if len(places) <= FEW_POINTS else ROUNDS_AFTER_CELLS
    upper = sp.coo_array(sp.triu(likeness, 1))
    # An edge with the weight w has its turn in every (1/w)-th round.
    wait = 1 / np.maximum(upper.data, 1 / (2 * rounds))
    seed = random_state.randint(np.iinfo(np.int32).max)
    _pull_and_push(places, upper.row, upper.col, wait, wait.copy(), rounds, seed)
    return places


def _likeness(W: sp.csr_array) -> sp.csr_array:
    """Return symmetric weights of at most 1, ``a + b - a b`` of both ends, the largest of a point being 1."""
    shares = divide_rows(W, W.max(axis=1).toarray()) if W.nnz else W
    return sp.csr_array(shares + shares.T - shares * shares.T, dtype=np.float64)


def _ties(points: Any, components: Components, chosen: np.ndarray) -> np.ndarray | None:
    """Return how near each other some components should be, by the distances of their means."""
    if points is None or len(chosen) < 3:
        return None
    means = divide_rows(
        membership(components.of_point, components.number, np.float64)[chosen],
        np.bincount(components.of_point)[chosen, None],
    )
    means = means @ points
    means = means.toarray() if sp.issparse(means) else means
    norms = squared_norms(means)
    squared = squared_distances(means, means, norms, norms)
    typical = np.median(squared) or 1.0
    return np.exp(-2 * squared / typical)


def _start(W: sp.csr_array, random_state: np.random.RandomState) -> np.ndarray:
    """Return where the points of a connected graph begin, around zero, within the usual radius or so."""
    n = W.shape[0]
    if n <= FEW_POINTS:
        spectrum = smoothest(W, Components(1, np.zeros(n, np.intp)), 3, random_state)
        # Over the first, which is the root of the degrees: the same for the points of a cluster, hubs or not.
        places = spectrum.vectors[:, 1:] / spectrum.vectors[:, [0]]
    else:
        cells = _cells(W, random_state)
        places = _place(without_diagonal(graph_of_grains(W, cells)), None, random_state)[cells]
    places = places - places.mean(axis=0)
    # Two axes of equal length, but one of outliers does not press all others together.
    places /= np.sqrt((places**2).mean(axis=0))
    return np.clip(places, -3, 3) * (0.6 * SPREAD * np.cbrt(n))


def _cells(W: sp.csr_array, random_state: np.random.RandomState) -> np.ndarray:
    """Return the cell of every point of a connected graph: the nearest of some random points."""
    seeds = random_state.choice(W.shape[0], W.shape[0] // CELL_SIZE, replace=False)
    _, _, nearest = dijkstra(W, indices=seeds, unweighted=True, min_only=True, return_predecessors=True)
    return np.unique(nearest, return_inverse=True)[1]


def _upright(places: np.ndarray) -> np.ndarray:
    """Return the places around zero, the longest axis first, and more on the right and the upper side."""
    if not len(places):
        return places
    centered = places - places.mean(axis=0)
    axes = np.linalg.eigh(centered.T @ centered)[1][:, ::-1]
    turned = centered @ axes
    # The sign of an axis is free: the side with the longer tail is the positive one.
    return turned * np.where((turned**3).sum(axis=0) < 0, -1, 1)


@kernel
def _pull_and_push(
    places: np.ndarray,  # IN, OUT
    heads: np.ndarray,  # IN
    tails: np.ndarray,  # IN
    wait: np.ndarray,  # IN
    due: np.ndarray,  # IN, OUT
    rounds: int,  # IN
    seed: int,  # IN
) -> None:
    """Climb the likelihood by single edges: ends are pulled together, and pushed away from random points."""
    n = places.shape[0]
    state = np.uint64(seed)
    for turn in range(rounds):
        rate = 1 - turn / rounds
        for e in range(heads.shape[0]):
            if due[e] > turn:
                continue
            due[e] += wait[e]
            i, j = heads[e], tails[e]
            if turn % 2:  # each end is pushed in every other round
                i, j = j, i
            x, y = places[i, 0] - places[j, 0], places[i, 1] - places[j, 1]
            squared = x * x + y * y
            strength = -2 * squared / ((SOFT_CORE + squared) * (1 + squared))
            x, y = rate * _step(strength * x), rate * _step(strength * y)
            places[i, 0] += x
            places[i, 1] += y
            places[j, 0] -= x
            places[j, 1] -= y
            for _ in range(N_PUSHES):
                # A linear congruential generator modulo 2^64 (Knuth's), whose upper digits are random enough.
                state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
                k = np.intp(((state >> np.uint64(33)) * np.uint64(n)) >> np.uint64(31))
                x, y = places[i, 0] - places[k, 0], places[i, 1] - places[k, 1]
                squared = x * x + y * y
                if squared > FAR:
                    continue
                strength = 2 / ((SMALLEST + squared) * (1 + squared))
                # Both move, by the same: a component that only flees would run away from the others.
                x, y = rate * _step(strength * x), rate * _step(strength * y)
                places[i, 0] += x
                places[i, 1] += y
                places[k, 0] -= x
                places[k, 1] -= y


@kernel
def _step(length: float) -> float:
    """Return a step that is not too long."""
    return min(max(length, -LONGEST_STEP), LONGEST_STEP)
