"""The smoothest functions on a graph: points that the graph ties together have nearly the same values.

They are the leading eigenvectors of the normalised graph. Rounding must not mix the components of the graph,
which share the eigenvalue one, so each is solved by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

from smrmf._parallel import SERIAL, Pool
from smrmf.graph.coarse import GUARD, closest_as_one, smooth
from smrmf.graph.components import Components
from smrmf.graph.grains import graph_of_grains

# Relative error of an eigenvalue: clusters do not depend on more digits, which take a third of the time.
TOLERANCE = 1e-6
# Up to so many points a dense solver is as fast as any.
FEW_POINTS = 256
# Beyond so many, neighbours are taken as one first.
MANY_POINTS = 20_000


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
        rows = self.vectors[:, :n_columns] * weights.astype(self.vectors.dtype)
        # Rows of unit length, as in Ng, Jordan and Weiss 2002: k-means then compares directions.
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(norms > 0, norms, 1)


def smoothest(
    W: sp.csr_array,
    components: Components,
    n_columns: int,
    random_state: np.random.RandomState,
    pool: Pool = SERIAL,
) -> Spectrum:
    """Find the leading eigenvectors of the normalised graph, fewer where it has fewer points.

    Each component is solved by itself: a Lanczos iteration on all at once can miss copies of the
    eigenvalue one that they share.
    """
    if components.number == 1:
        values, vectors = leading_pairs(W, min(n_columns, W.shape[0]), random_state, pool)
        order = np.argsort(-values, kind="stable")
        return Spectrum(values[order], vectors[:, order])
    parts = []
    for label in range(components.number):
        members = np.flatnonzero(components.of_point == label)
        # Each component has an eigenvalue one among those wanted: no single one can have more than the rest.
        count = min(n_columns - components.number + 1, len(members))
        parts.append((members, *leading_pairs(W[members][:, members], count, random_state, pool)))
    value = np.concatenate([values for _, values, _ in parts])
    owner = np.concatenate([np.full(len(values), place) for place, (_, values, _) in enumerate(parts)])
    within = np.concatenate([np.arange(len(values)) for _, values, _ in parts])
    order = np.argsort(-value, kind="stable")[:n_columns]
    vectors = np.zeros((W.shape[0], len(order)), W.dtype)
    for column, q in enumerate(order):
        members, _, found = parts[owner[q]]
        vectors[members, column] = found[:, within[q]]
    return Spectrum(value[order], vectors)


def leading_pairs(
    W: sp.csr_array, count: int, random_state: np.random.RandomState, pool: Pool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues of a connected graph, normalised, and their eigenvectors."""
    n = W.shape[0]
    degrees = np.asarray(W.sum(axis=1)).ravel()
    if n > MANY_POINTS:
        groups = closest_as_one(W)
        values, vectors = leading_pairs(graph_of_grains(W, groups, pool), count + GUARD, random_state, pool)
        # An eigenvector is a function times the root of the degrees. Functions are the same for a group.
        coarse = (vectors / np.sqrt(np.bincount(groups, degrees))[:, None]).astype(W.dtype)
        values, functions = smooth(W, degrees, values, coarse[groups], count, pool)
        functions *= np.sqrt(degrees)[:, None]
        return values, functions
    # M = D^(-1/2) W D^(-1/2). I - M is the normalised Laplacian: its smoothest functions lead in M.
    scale = 1 / np.sqrt(degrees)
    M = sp.csr_array((W.data * np.repeat(scale, np.diff(W.indptr)) * scale[W.indices], W.indices, W.indptr))
    if n <= max(2 * count, FEW_POINTS):
        return scipy.linalg.eigh(M.toarray(), subset_by_index=[n - count, n - 1])
    # Positive, as the leading eigenvector is: the start is never orthogonal to it.
    first = random_state.uniform(0.5, 1, n).astype(M.dtype)
    # A graph with few eigenvalues leaves it no direction, and it goes on in a random one: by a seed.
    return eigsh(M, k=count, which="LA", v0=first, tol=TOLERANCE, rng=0)
