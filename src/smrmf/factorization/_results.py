"""From the last iteration to fitted attributes, by their public names, and to warnings."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from smrmf._estimator import Fitted
from smrmf.factorization._loop import LoopState, Solution, Status
from smrmf.factorization._points import Problem
from smrmf.factorization._slots import Slots
from smrmf.graph.spectral import kmeans_labels

Warnings = list[tuple[str, type[Warning]]]


def consecutive_labels(G: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Return the largest column of every row; an empty cluster gets the point nearest to it.

    The second result lists the points so moved.
    """
    labels = G.argmax(axis=1)
    sizes = np.bincount(labels, minlength=G.shape[1])
    moved = []
    for empty in np.flatnonzero(sizes == 0):
        point = int(np.argmax(np.where(sizes[labels] > 1, G[:, empty], -np.inf)))
        sizes[labels[point]] -= 1
        sizes[empty] = 1
        labels[point] = empty
        moved.append(point)
    return labels, moved


def label_rows(
    G: np.ndarray, rule: str, n_clusters: int, random_state: np.random.RandomState
) -> tuple[np.ndarray, list[int]]:
    """Label the rows of an embedding by the named rule; also list the points moved to empty clusters."""
    if rule == "argmax":
        return consecutive_labels(G)
    return kmeans_labels(G, n_clusters, random_state), []


def empty_cluster_warnings(labels: np.ndarray, moved: list[int], n_clusters: int) -> Warnings:
    """Say that clusters came out empty, if any did."""
    found = int(labels.max()) + 1
    if moved:
        what = f"{len(moved)} of {n_clusters} clusters came out empty and were given one point each "
        what += f"(points {moved})"
    elif found < n_clusters:
        what = f"Only {found} of {n_clusters} clusters were found, the others have no points"
    else:
        return []
    return [(f"{what}: the data may have fewer clusters, lower n_clusters.", ConvergenceWarning)]


def convergence_warnings(name: str, n_iter: int, reason: str) -> Warnings:
    """Say that the iterations did not suffice."""
    message = f"{name} did not converge in max_iter={n_iter} iterations: {reason}."
    return [(message, ConvergenceWarning)]


def unit_of_objective(problem: Problem, slots: Slots) -> float:
    """Return what one unit of the loop's objective is in units of the data as they came."""
    return slots.start.scale * problem.magnitude


def loop_attributes(
    problem: Problem, slots: Slots, state: LoopState, labels: np.ndarray | None = None
) -> dict[str, Any]:
    """Return what an iteration has found: labels, factors, and what new points need."""
    points, scale = slots.points, slots.start.scale
    F = problem.reduction.restore_basis(points.restore(state.points, state.F), state.G, scale)
    return {
        "labels_": consecutive_labels(state.G)[0] if labels is None else labels,
        "embedding_": state.G,
        "components_": unit_of_objective(problem, slots) * F,
        "_fit_data": problem.data,
        "_magnitude": problem.magnitude,
        "_fit_neighbors": problem.sizes.n_neighbors,
    } | points.attributes(state.points)


def name_results(name: str, tol: float, problem: Problem, slots: Slots, solution: Solution) -> Fitted:
    """Name the results of a finished loop, and list what the user must know of them."""
    state, status = solution.state, solution.status
    labels, moved = consecutive_labels(state.G)
    Zt, W = slots.affinity.representation(state.affinity), state.graph.weights
    history = np.asarray(state.history) * unit_of_objective(problem, slots)
    attributes = loop_attributes(problem, slots, state, labels) | {
        "affinity_": W,
        "representation_": sp.csr_array(Zt.T) if sp.issparse(Zt) else Zt.T,
        "objective_": float(history[-1]),
        "objective_history_": history,
        "n_iter_": state.n_iter,
        "converged_": status is Status.CONVERGED,
    }
    warnings = empty_cluster_warnings(labels, moved, problem.sizes.n_clusters)
    if status not in (Status.CONVERGED, Status.STOPPED) and tol > 0:
        warnings += convergence_warnings(name, state.n_iter, status.value)
    if not (W != 0).sum():
        message = (
            "The learned graph is empty, every point represents only itself, so the manifold term "
            "has no effect: raise n_neighbors, exemplars, or (FastSMRMF) smoothness."
        )
        warnings += [(message, UserWarning)]
    return Fitted(attributes | slots.exemplars.attributes(Zt, labels), warnings)
