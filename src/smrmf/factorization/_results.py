"""From the state of the loop to what a fit gives: labels, factors in the unit of the data, certainty."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from smrmf._estimator import Warnings
from smrmf.factorization._certainty import certainty
from smrmf.factorization._loop import LoopState, Solution, Status
from smrmf.factorization._points import Problem
from smrmf.factorization._slots import GraphTerm, Slots, check_pair
from smrmf.factorization._start import Start
from smrmf.graph.cells import means_of_cells
from smrmf.graph.columns import ColumnsWarning, column_notes, numbered_names
from smrmf.graph.exemplars import Matrix
from smrmf.graph.labels import consecutive_labels, empty_columns_last


class Outcome(NamedTuple):
    """What the results need of a finished loop; the rest of its state is most of the memory, and can go."""

    F: np.ndarray
    G: np.ndarray
    points_state: Any
    graph: GraphTerm
    Zt: Matrix
    n_iter: int
    history: list[float]
    status: Status

    @classmethod
    def of(cls, solution: Solution, slots: Slots) -> Self:
        """Take what is needed, and Z while what it is made of is there."""
        state = solution.state
        Zt = slots.affinity.representation(state.affinity_state)
        of_loop = (state.F, state.G, state.points_state, state.graph)
        return cls(*of_loop, Zt, state.n_iter, state.history, solution.status)


def factors(
    problem: Problem, start: Start, slots: Slots, state: LoopState | Outcome
) -> tuple[dict[str, Any], list[int]]:
    """Name what an iteration has found: labels, factors, and how sure they are.

    The second result lists the points that were moved into empty clusters. Rows that were left out as copies
    have what was found for the first of them.
    """
    # Outermost last: the projection of APMF is undone first, then the reduction of the features.
    restored = slots.points.restore(state.points_state, state.F)
    F, own = check_pair(restored, (dict,), slots.points, "restore")
    if F.shape != (wanted := (len(state.F), problem.reduced.shape[1])):
        owner = type(slots.points).__name__
        raise ValueError(f"{owner}.restore returned an F of shape {F.shape}, but it must be {wanted}.")
    F = problem.reduction.restore_basis(F, state.G, start.scale)
    # The largest entry of each row of G (paper note 14).
    labels, moved = consecutive_labels(state.G, problem.groups())
    # Clusters stay empty where there are fewer distinct points; then labels without gaps need another order.
    order, labels = empty_columns_last(labels, state.G.shape[1])
    # Columns of an orthonormal G have entries of about 1/sqrt(s) where s points are. Times sqrt(s) a row is
    # nearly that of an indicator, and the components are typical points of the clusters.
    sizes = np.sqrt(np.maximum(np.bincount(labels, minlength=len(order)), 1)).astype(F.dtype)
    votes = None if start.votes is None else start.votes[:, order]
    k, copies = problem.sizes.n_neighbors, problem.copies
    # Who lies among copies lies among many.
    near = copies.neighbors(problem.measured, k)
    certain = certainty(labels, problem.graph(), near, k, votes)
    return own | {name: copies.rows(found) for name, found in certain.items()} | {
        "labels_": copies.rows(labels),
        "embedding_": copies.rows(state.G[:, order] * sizes),
        # G is orthonormal in any unit, so F alone carries the unit of the data.
        "components_": start.unit * F[order] / sizes[:, None],
        "neglected_share_": float(problem.reduction.neglected),
    }, copies.places(np.array(moved, dtype=int)).tolist()


def for_new_points(problem: Problem, last: bool = False) -> dict[str, Any]:
    """Name what new points need: the points of the fit, how they are compared, and how many are asked.

    The ``last`` ones may be written to the place of the problem's own.
    """
    data = problem.in_file
    if data is None:
        data = problem.copies.table(problem.data) if last else problem.copies.rows(problem.data)
    return {
        "_fit_data": data,
        "_fit_metric": problem.metric,
        "_magnitude": problem.magnitude,
        "_fit_neighbors": problem.sizes.n_neighbors,
    } | fitted_cells(problem, data)


def fitted_cells(problem: Problem, data: Any) -> dict[str, Any]:
    """Name the cells in which new points look for their neighbours among all points of the fit, if any."""
    if problem.cells is None:
        return {"_fit_centers": None, "_fit_cell_of": None, "_fit_asked": None}
    centers, of_point, n_asked = problem.cells
    of_row = problem.copies.rows(of_point)
    if centers.shape[1] != data.shape[1]:  # found in other coordinates
        centers = means_of_cells(data, of_row, len(centers))
    return {"_fit_centers": centers, "_fit_cell_of": of_row, "_fit_asked": n_asked}


def rows_without_direction(problem: Problem) -> str:
    """Say that rows of zeros cannot be compared by direction; they have ones in the last column."""
    count = int(problem.copies.rows(problem.data[:, [-1]]).sum())
    rows = "1 row of X is zeros and has" if count == 1 else f"{count} rows of X are zeros and have"
    return f"{rows} no direction, so metric='cosine' sets them apart: drop them, or use metric='euclidean'."


def column_warnings(problem: Problem, names: np.ndarray | None) -> Warnings:
    """Return the warnings that few columns rule the distances of dense points compared as they are."""
    data = problem.data
    if sp.issparse(data) or problem.metric != "euclidean":
        return []
    names = numbered_names(data.shape[1]) if names is None else names
    k, magnitude = problem.sizes.n_neighbors, problem.magnitude
    notes = column_notes(data, problem.measured, k, names, magnitude)
    return [(note, ColumnsWarning) for note in notes]
