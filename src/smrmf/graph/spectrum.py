"""The smoothest functions on a graph: points that the graph ties together have nearly the same values.

They are the leading eigenvectors of the normalised graph. Rounding must not mix the components of the graph,
which share the eigenvalue one, so each is solved by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from smrmf._parallel import Pool
from smrmf.graph.neighbors import find_neighbors

# Relative error of an eigenvalue: clusters do not depend on more digits, which take a third of the time.
TOLERANCE = 1e-6
# Up to so many points a dense solver is as fast as any.
FEW_POINTS = 256


class Components(NamedTuple):
    """How many components a graph has, and the one of every point."""

    number: int
    of_point: np.ndarray


class Spectrum(NamedTuple):
    """Leading eigenvalues, the largest first, and their eigenvectors as columns."""

    values: np.ndarray
    vectors: np.ndarray

    def embedding(self, n_columns: int, diffusion_steps: int = 0) -> np.ndarray:
        """Return points as rows of unit length; eigenvectors count by their eigenvalue to a power."""
        values = self.values[:n_columns]
        # Of a nearly complete graph only the first is positive, and alone it tells no two points apart: there
        # a walk that stays where it is every other step has the others, too.
        lazy = not (values[1:] > 0).any()
        weights = (np.maximum((1 + values) / 2, 0) if lazy else np.maximum(values, 0)) ** diffusion_steps
        rows = self.vectors[:, :n_columns] * weights
        # Rows of unit length, as in Ng, Jordan and Weiss 2002: k-means then compares directions.
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(norms > 0, norms, 1)


def components_of(W: sp.csr_array) -> Components:
    """Find the components of a symmetric graph."""
    return Components(*connected_components(W, directed=False))


def join_components(X: Any, W: sp.csr_array, limit: int, pool: Pool) -> tuple[sp.csr_array, Components]:
    """Tie every point of the surplus small components to its nearest point in the ``limit`` largest."""
    components = components_of(W)
    if components.number <= limit:
        return W, components
    sizes = np.bincount(components.of_point)
    kept = np.isin(components.of_point, np.argsort(-sizes, kind="stable")[:limit])
    inside, outside = np.flatnonzero(~kept), np.flatnonzero(kept)
    nearest = find_neighbors(X[outside], 1, X[inside], pool=pool).indices[:, 0]
    # Ties as heavy as an average edge, whatever the unit of the weights.
    ties = np.full(len(inside), W.data.mean(), W.dtype)
    bridge = sp.csr_array((ties, (inside, outside[nearest])), shape=W.shape)
    joined = (W + bridge + bridge.T).tocsr()
    return joined, components_of(joined)


def smoothest(
    W: sp.csr_array, components: Components, n_columns: int, random_state: np.random.RandomState
) -> Spectrum:
    """Find the leading eigenvectors of the normalised graph, fewer where it has fewer points.

    Each component is solved by itself: a Lanczos iteration on all at once can miss copies of the
    eigenvalue one that they share.
    """
    # M = D^(-1/2) W D^(-1/2). I - M is the normalised Laplacian: its smoothest functions lead in M.
    scale = 1 / np.sqrt(np.asarray(W.sum(axis=1)).ravel())
    M = (W * scale[:, None] * scale[None, :]).tocsr()
    parts = []
    for label in range(components.number):
        members = np.flatnonzero(components.of_point == label)
        # Each component has an eigenvalue one among those wanted: no single one can have more than the rest.
        count = min(n_columns - components.number + 1, len(members))
        part = M if components.number == 1 else M[members][:, members]
        parts.append((members, *_leading_pairs(part, count, random_state)))
    value = np.concatenate([values for _, values, _ in parts])
    owner = np.concatenate([np.full(len(values), place) for place, (_, values, _) in enumerate(parts)])
    within = np.concatenate([np.arange(len(values)) for _, values, _ in parts])
    order = np.argsort(-value, kind="stable")[:n_columns]
    vectors = np.zeros((W.shape[0], len(order)), W.dtype)
    for column, q in enumerate(order):
        members, _, found = parts[owner[q]]
        vectors[members, column] = found[:, within[q]]
    return Spectrum(value[order], vectors)


def _leading_pairs(
    M: sp.csr_array, count: int, random_state: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues of a connected graph, and their eigenvectors."""
    n = M.shape[0]
    if n <= max(2 * count, FEW_POINTS):
        return scipy.linalg.eigh(M.toarray(), subset_by_index=[n - count, n - 1])
    # Positive, as the leading eigenvector is: the start is never orthogonal to it.
    first = random_state.uniform(0.5, 1, n).astype(M.dtype)
    # A graph with few eigenvalues leaves it no direction, and it goes on in a random one: by a seed.
    return eigsh(M, k=count, which="LA", v0=first, tol=TOLERANCE, rng=0)
