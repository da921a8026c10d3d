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
    basis = scipy.linalg.orth(least_squares_basis(G, X, problem.pool).T.astype(np.float64)).T.astype(X.dtype)
    places = np.empty((len(X), len(basis) + 1), X.dtype)

    def place_block(rows: slice) -> None:
        places[rows, :-1] = X[rows] @ basis.T
        places[rows, -1] = np.sqrt(squared_norms(X[rows] - places[rows, :-1] @ basis))

    problem.pool.map(place_block, row_blocks(*X.shape))
    # To one side of the plane and to the other in turn: as before, the mean of a cluster lies in it.
    places[:, -1] *= alternating(G.argmax(axis=1)).astype(X.dtype)
    # What F has along the last coordinate, next to nothing, is no direction in the features.
    wide = np.vstack([basis, np.zeros_like(basis[:1])])
    return replace(problem, reduced=places, reduction=Reduction(wide).after(problem.reduction))


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
