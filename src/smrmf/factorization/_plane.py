"""Few numbers for every point of the loop: its place in the plane of the means, and its distance from it.

The loop keeps several arrays of the points. Of very many points with many coordinates these are most of its
memory and of its time. But the basis F stays close to the means of the clusters of the start, and how far a
point is from anything in their plane, the span of the means, depends on two things only: its place in the
plane, and its distance from it. So a point has as many coordinates as there are means, and one more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg

from smrmf._parallel import row_blocks
from smrmf.factorization._points import Problem, Reduction
from smrmf.kernels.distances import squared_norms
from smrmf.kernels.prox import least_squares_basis

# It must save at least half of the coordinates.
SAVED = 0.5


def in_plane_of_means(problem: Problem, G: np.ndarray) -> Problem:
    """Return the problem with points in the plane of the means of the clusters of G, if that saves much.

    What is lost is how far F would leave the plane: at the start not at all, as the mean of what the points
    of a cluster have off the plane is zero.
    """
    X = problem.reduced
    if not (problem.many and saves_coordinates(G.shape[1], X.shape[1])):
        return problem
    basis = basis_of_plane(least_squares_basis(G, X, problem.pool)).astype(X.dtype)
    places = np.empty((len(X), len(basis) + 1), X.dtype)
    problem.pool.map(lambda rows: write_places(X[rows], basis, places[rows]), row_blocks(*X.shape))
    # To one side of the plane and to the other in turn: as before, the mean of a cluster lies in it.
    places[:, -1] *= alternating(G.argmax(axis=1)).astype(X.dtype)
    return replace(
        problem, reduced=places, reduction=Reduction(with_distance(basis)).after(problem.reduction)
    )


def basis_of_plane(means: np.ndarray) -> np.ndarray:
    """Return orthonormal directions, as rows, that span the means."""
    basis: np.ndarray = scipy.linalg.orth(means.T.astype(np.float64)).T
    return basis


def write_places(X: np.ndarray, basis: np.ndarray, out: np.ndarray) -> None:
    """Write the places of points in a plane, and behind them their distances from it."""
    out[:, :-1] = X @ basis.T
    out[:, -1] = np.sqrt(squared_norms(X - out[:, :-1] @ basis))


def with_distance(basis: np.ndarray) -> np.ndarray:
    """Return what carries such coordinates back to the features."""
    # What F has along the last coordinate, next to nothing, is no direction in the features.
    return np.vstack([basis, np.zeros_like(basis[:1])])


def saves_coordinates(n_clusters: int, n_features: int) -> bool:
    """Tell whether the plane has so few dimensions that it is worth the trouble."""
    return n_clusters + 1 <= SAVED * n_features


def alternating(labels: np.ndarray) -> np.ndarray:
    """Return 1 and -1 in turn for the points of every cluster."""
    order = np.argsort(labels, kind="stable")
    starts = np.cumsum(np.bincount(labels)) - np.bincount(labels)
    signs = np.empty(len(labels))
    signs[order] = 1 - 2 * ((np.arange(len(labels)) - starts[labels[order]]) % 2)
    return signs
