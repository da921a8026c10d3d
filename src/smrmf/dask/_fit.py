"""The fit on points in parts: search, start, loop and results, as in memory but for where rows lie."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from smrmf._estimator import Warnings, convergence_warnings
from smrmf._validation import ParameterError, Sizes
from smrmf.dask._affinity import BlockColumns
from smrmf.dask._blocks import Blocks, added, rows_by_number, settled
from smrmf.dask._halo import Halo
from smrmf.dask._input import Input, taken_in
from smrmf.dask._largest import median
from smrmf.dask._new_points import Clusters
from smrmf.dask._operations import InParts
from smrmf.dask._results import certainty, embedding_part, exemplars, labelled
from smrmf.dask._search import Found, search
from smrmf.dask._start import (
    Points,
    in_plane_of_means,
    kmeans_clusters,
    spectral_labels,
    sums_in_part,
    weigh_in_parts,
)
from smrmf.factorization._dissimilarity import balanced_ratio_of_squares, selection_weight
from smrmf.factorization._loop import Solution, Status, factorize
from smrmf.factorization._manifold import way_back_in_range
from smrmf.factorization._plane import saves_coordinates
from smrmf.factorization._slots import FixedPoints, OutOfRangeError, RankedExemplars, Slots
from smrmf.factorization._start import Start
from smrmf.graph.dense_points import CENTER_SAMPLE
from smrmf.graph.membership import NEAR
from smrmf.graph.search import MOST_EXACT

# Parts of fewer points and of fewer bytes are not worth a task.
FEWEST_ROWS, FEWEST_BYTES = 1000, 2**25
# What is said of parameters that only rows in memory can have.
ONLY: dict[str, tuple[Any, ...]] = {
    "neighbors": ("auto", "approximate"),
    "smoothness": ("auto",),
    "dissimilarity": ("sqeuclidean",),
    "neighborhoods": ("affinity",),
    "init": ("spectral", "kmeans"),
}


class Fitted(NamedTuple):
    """What a fit in parts has found: results by public names, and what new points ask."""

    attributes: dict[str, Any]
    blocks: dict[str, Blocks]
    warnings: Warnings


def check_supported(model: Any) -> None:
    """Refuse parameters that need all rows in one memory."""
    for name, values in ONLY.items():
        given = getattr(model, name)
        if not (isinstance(given, str) and given in values):
            shown = f"{name}={given!r}" if isinstance(given, str | float | int) else name
            raise ParameterError(
                f"{shown} needs all points in one memory: use {' or '.join(map(repr, values))}, or "
                "smrmf.FastSMRMF."
            )
    if model.freeze_tol != 0:
        raise ParameterError(f"freeze_tol={model.freeze_tol:g} needs all points in one memory: use 0.")


def fit_in_parts(model: Any, X: Any) -> Fitted:
    """Fit a model to a Dask array."""
    check_supported(model)
    given = taken_in(X, model.metric)
    n = sum(given.chunk_sizes)
    sizes = Sizes.from_parameters(n, model.n_clusters, model.n_neighbors, model.exemplars)
    worth = max(n // FEWEST_ROWS, n * given.row_bytes // FEWEST_BYTES)
    n_parts = max(1, min(len(given.chunk_sizes), worth))
    random_state = check_random_state(model.random_state)
    wanted = min(2 * sizes.n_neighbors + 1, n - 1)
    found = search(given, wanted, n_parts)
    numbers, squared = settled((found.lists[0], found.lists[1]))
    halo = Halo.of(numbers, found.placed.starts)
    places = halo.places(numbers).persist()
    X_parts = found.placed.X
    center = center_of(X_parts, found.placed.starts)
    points = Points(X_parts, halo, places, squared, sizes.n_neighbors, sizes.n_clusters, center)
    stability, votes = None, None
    if model.init == "spectral":
        labels, stability, votes = spectral_labels(points, random_state)
    else:
        labels = kmeans_clusters(points, random_state)
    start, basis = started(model, points, labels, given)
    solution, affinity = looped(model, points, start, sizes)
    outcome = Outcome(given, found, points, start, basis, solution, affinity, votes, stability, sizes)
    return results(model, outcome)


def center_of(X: Blocks, starts: np.ndarray) -> np.ndarray:
    """Return the median of some points, about which distances are measured."""
    numbers = np.unique(np.linspace(0, int(starts[-1]) - 1, CENTER_SAMPLE).astype(int))
    sample = rows_by_number(X, starts, numbers)
    center: np.ndarray = np.median(sample, axis=0).astype(sample.dtype)
    return center


def started(model: Any, points: Points, labels: Blocks, given: Input) -> tuple[Start, np.ndarray | None]:
    """Return the start of the loop, and what carries its basis back to the features, if that is needed."""
    c, X, basis = points.n_clusters, points.X, None
    if points.n_samples > MOST_EXACT and saves_coordinates(c, given.n_columns):
        sums, sizes, _ = (
            X.map(sums_in_part, labels, center=points.center, n_clusters=c).total(added).compute()
        )
        means = sums / np.maximum(sizes, 1)[:, None] + points.center
        X, basis = in_plane_of_means(X, labels, means.astype(given.dtype))
    weights = model.manifold_weight, model.penalty
    start = weigh_in_parts(X, points.n_samples, labels, c, weights, given.magnitude, given.dtype)
    return start, basis


def looped(model: Any, points: Points, start: Start, sizes: Sizes) -> tuple[Solution, BlockColumns]:
    """Do the loop."""
    squared = points.squared.map(first_zero, n_neighbors=sizes.n_neighbors).total(sum).compute()
    scale = squared / points.n_samples
    ratio = balanced_ratio_of_squares(sizes.n_samples, sizes.n_clusters)
    affinity = BlockColumns.of(
        points.places,
        points.squared,
        points.halo,
        scale if scale > 0 else 1.0,
        n_exemplars=sizes.n_exemplars,
        n_neighbors=sizes.n_neighbors,
        beta=selection_weight(model.selection_weight, ratio, start),
        rule=model.exemplar_rule,
    )
    # Exemplars are ranked with the results.
    slots = Slots(affinity, FixedPoints(), RankedExemplars(model.exemplar_rule, sizes.n_reported))
    limits = {"rho": model.penalty_growth, "max_iter": model.max_iter, "tol": model.tol}
    try:
        return factorize(slots, start, ops=InParts(), **limits), affinity
    except OutOfRangeError as error:
        raise ParameterError(f"{error}: {way_back_in_range(model)}.") from error


def first_zero(squared: np.ndarray, n_neighbors: int) -> float:
    """Add up the squared distances to the neighbours after the k-th."""
    return float(squared[:, : n_neighbors + 1][:, -1].sum(dtype=np.float64))


class Outcome(NamedTuple):
    """All that the results depend on."""

    given: Input
    found: Found
    points: Points
    start: Start
    basis: np.ndarray | None
    solution: Solution
    affinity: BlockColumns
    votes: Blocks | None
    stability: float | None
    sizes: Sizes


def results(model: Any, o: Outcome) -> Fitted:
    """Name the results of a finished loop, in the order in which the points came."""
    state, points, placed = o.solution.state, o.points, o.found.placed
    mine = labelled(state.G, points.halo)
    F = state.F if o.basis is None else state.F @ o.basis
    components = (
        o.start.unit * F[mine.order][:, : o.given.n_features] / np.sqrt(np.maximum(mine.sizes, 1))[:, None]
    )
    n_found = int(np.count_nonzero(mine.sizes))
    votes = None if o.votes is None else o.votes.map(columns_in_order, order=mine.order)
    k = o.sizes.n_neighbors
    graph = points.representation(k).symmetrized()
    known = mine.labels, votes, graph, points.places, points.squared
    sure = certainty(*known, points.n_samples, k, n_found, o.given.dtype)
    Z = o.affinity.representation(state.affinity_state).transposed()
    ranked = exemplars(Z, mine.labels, placed, mine.sizes[:n_found], o.sizes.n_reported, model.exemplar_rule)
    sums = points.X.map(sums_in_part, mine.labels, center=points.center, n_clusters=n_found).total(added)
    total, counts, lengths = sums.compute()
    clusters = Clusters(counts, total / np.maximum(counts, 1)[:, None], lengths, points.center)
    embedding = state.G.map(embedding_part, order=mine.order, sizes=mine.sizes)
    blocks = {"labels_": mine.labels, "embedding_": embedding, **sure}
    blocks = settled(blocks)
    attributes = {
        "components_": components.astype(o.given.dtype),
        "exemplar_indices_": ranked.rows,
        "exemplar_scores_": ranked.scores,
        "exemplar_labels_": ranked.labels,
        "objective_": state.history[-1] * o.start.unit,
        "objective_history_": np.asarray(state.history) * o.start.unit,
        "n_iter_": state.n_iter,
        "converged_": o.solution.status is Status.CONVERGED,
        "neighbor_recall_": o.found.recall,
        "neglected_share_": 0.0,
        "n_features_in_": o.given.n_features,
    } | ({} if o.stability is None else {"stability_": o.stability})
    warnings: Warnings = []
    if o.solution.status not in (Status.CONVERGED, Status.STOPPED) and model.tol > 0:
        warnings = convergence_warnings(type(model).__name__, state.n_iter, o.solution.status.value)
    for_new_points = {
        "_fit_placed": placed,
        "_fit_clusters": clusters,
        "_fit_neighbors": k,
        "_fit_ways": o.found.ways,
        "_fit_least": NEAR * float(median(blocks["reach"], points.n_samples).compute()),
        "_fit_input": (model.metric, o.given.n_columns, o.given.magnitude),
    }
    return Fitted(attributes | for_new_points, blocks, warnings)


def columns_in_order(votes: np.ndarray, order: np.ndarray) -> np.ndarray:
    return votes[:, order]
