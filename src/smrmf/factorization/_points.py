"""The points before anything is learned: sizes that fit each other, few coordinates, nearest neighbours.

The data have three forms after the door. ``data`` are as given, in a safe range. ``reduced`` points have
as few coordinates as the method allows: the loop sees them only through lengths and inner products of
rows, which stay the same on any orthonormal basis of their span. The ``scaled`` points of the loop
(:mod:`smrmf.factorization._start`) are those in the unit that the start has measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from smrmf._parallel import Pool
from smrmf._validation import check_n_clusters, check_n_neighbors, count_exemplars
from smrmf.graph.exemplars import ExemplarRule, Neighborhoods
from smrmf.graph.graphs import simplex_graph
from smrmf.graph.neighbors import Centered, Neighbors, center_points, find_neighbors
from smrmf.sharing import remember

DEFAULT_NEIGHBORS = 10
# Below this many features an attempt to reduce them costs more than it can save.
FEW_FEATURES = 64
# Share of the squared length of the data that principal axes keep.
KEPT_VARIANCE = 0.999


@dataclass(frozen=True)
class Sizes:
    """The whole numbers of a problem, checked against each other."""

    n_samples: int
    n_clusters: int
    n_neighbors: int
    n_exemplars: int

    @classmethod
    def from_parameters(
        cls,
        n_samples: int,
        n_clusters: int,
        n_neighbors: int | str,
        exemplars: float | None = None,
        usual_neighbors: int = DEFAULT_NEIGHBORS,
    ) -> Sizes:
        """Resolve words and shares; refuse what does not fit the data."""
        check_n_clusters(n_clusters, n_samples)
        if isinstance(n_neighbors, str):
            wanted = usual_neighbors if n_neighbors == "auto" else int(np.sqrt(n_samples))
            n_neighbors = min(wanted, n_samples - 1)
        else:
            check_n_neighbors(n_neighbors, n_samples, "lower n_neighbors or use 'auto'")
        # A share of the points never leaves a cluster without an exemplar.
        count = 0 if exemplars is None else count_exemplars(exemplars, n_samples, n_clusters)
        return cls(n_samples, n_clusters, int(n_neighbors), count)


class Reduced(NamedTuple):
    """Coordinates of the points, the basis (rows) that carries them back, and where their origin was.

    None is the identity, and the origin itself.
    """

    X: np.ndarray
    basis: np.ndarray | None
    center: np.ndarray | None = None

    def restore(self, F: np.ndarray) -> np.ndarray:
        """Carry directions back to the original features."""
        return F if self.basis is None else F @ self.basis

    def restore_basis(self, F: np.ndarray, G: np.ndarray, unit: float) -> np.ndarray:
        """Carry a basis F back, such that ``G F`` rebuilds the points as they were, in units of ``unit``.

        As an indicator, G spans the constant vector: ``G G' 1 = 1``, which carries the origin.
        """
        F = self.restore(F)
        if self.center is not None:
            F = F + np.outer(G.sum(axis=0), self.center / unit).astype(F.dtype)
        return F


def reduce_features(X: np.ndarray) -> Reduced:
    """Express X in a basis of its row span if that is shorter: ``X = coordinates @ basis``."""
    n, m = X.shape
    if m > n:
        # A thin QR of X' gives X = R' Q'.
        Q, R = scipy.linalg.qr(X.T, mode="economic", check_finite=False)
        return Reduced(np.ascontiguousarray(R.T), np.ascontiguousarray(Q.T))
    if m < FEW_FEATURES or not _sample_is_dependent(X):
        return Reduced(X, None)
    values, vectors = scipy.linalg.eigh((X.T @ X).astype(np.float64), check_finite=False)
    eps = np.finfo(X.dtype).eps
    rank = int(np.sum(values > values[-1] * m * eps))
    if rank == 0:
        return Reduced(X, None)
    basis = np.ascontiguousarray(vectors[:, m - rank :].T).astype(X.dtype)
    short = X @ basis.T
    # Squaring X hid singular values below sqrt(eps): if they mattered, keep X.
    if rank > m // 2 or np.linalg.norm(X - short @ basis) > np.sqrt(eps) / 100 * np.linalg.norm(X):
        return Reduced(X, None)
    return Reduced(short, basis)


def _sample_is_dependent(X: np.ndarray) -> bool:
    """Tell cheaply whether the rank may be at most half the number of features."""
    n, m = X.shape
    size = m // 2 + 1
    rows = X[np.linspace(0, n - 1, size).astype(int)].astype(np.float64, copy=False)
    gram = rows @ rows.T
    (pivoted_cholesky,) = scipy.linalg.get_lapack_funcs(("pstrf",), (gram,))
    tolerance = gram.diagonal().max() * size * np.finfo(X.dtype).eps
    rank = pivoted_cholesky(gram, tol=tolerance, overwrite_a=1)[2]
    return bool(rank < size)


def leading_axes(X: np.ndarray) -> Reduced:
    """Centre X, and keep only the axes that hold nearly all of it if it does not fill its features.

    A projection that is learned may hide in directions in which the points do not extend at all.
    Unlike :func:`reduce_features` this changes the problem: what is dropped is gone.
    """
    n, m = X.shape
    center = X.mean(axis=0, dtype=np.float64)
    wide = X - center
    X = wide.astype(X.dtype)
    gram = wide.T @ wide if m <= n else wide @ wide.T
    values, vectors = scipy.linalg.eigh(gram, check_finite=False)
    values, vectors = values[::-1], vectors[:, ::-1]
    rounding = max(np.finfo(np.float64).eps, float(np.finfo(X.dtype).eps) ** 2)
    rank = int(np.sum(values > values[0] * max(n, m) * rounding))
    if rank == m or values[0] <= 0:
        return Reduced(X, None, center)
    held = np.cumsum(values[:rank]) / values[:rank].sum()
    kept = int(np.searchsorted(held, KEPT_VARIANCE)) + 1
    axes = vectors[:, :kept] if m <= n else wide.T @ (vectors[:, :kept] / np.sqrt(values[:kept]))
    basis = np.ascontiguousarray(axes.T).astype(X.dtype)
    return Reduced(X @ basis.T, basis, center)


class ManifoldInput(NamedTuple):
    """What the door lets in: data in a safe range, what they were divided by, and the sizes."""

    data: np.ndarray
    magnitude: float
    sizes: Sizes


@dataclass(frozen=True)
class Problem:
    """All that the start and the slots may know: the points with few coordinates, and their neighbours."""

    data: np.ndarray
    magnitude: float
    sizes: Sizes
    reduction: Reduced
    centered: Centered
    neighbors: Neighbors
    random_state: np.random.RandomState
    pool: Pool

    @property
    def reduced(self) -> np.ndarray:
        """Return the points with few coordinates."""
        return self.reduction.X

    @cached_property
    def representation(self) -> sp.csr_array:
        """Return the first Zt: (5.18) on squared distances, every point by its k nearest ones."""
        return simplex_graph(self.neighbors, self.sizes.n_neighbors)

    def neighborhoods(self, rule: ExemplarRule, where: str, n_exemplars: int | None) -> Neighborhoods:
        """Return how exemplars and their neighbourhoods are chosen."""
        k = self.sizes.n_neighbors
        lists = self.neighbors.indices[:, :k] if where == "input" else None
        return Neighborhoods(n_exemplars, k, rule, lists)


def prepare(
    given: ManifoldInput,
    reduce: Callable[[np.ndarray], Reduced],
    random_state: np.random.RandomState,
    pool: Pool,
) -> Problem:
    """Reduce the points and find their neighbours."""
    sizes = given.sizes
    reduction = remember(reduce, given.data)
    # Twice the neighbours and one more: candidates for Z, and what lies just outside.
    wanted = min(2 * sizes.n_neighbors + 1, sizes.n_samples - 1)
    centered, neighbors = remember(search, reduction.X, wanted, pool)
    return Problem(given.data, given.magnitude, sizes, reduction, centered, neighbors, random_state, pool)


def search(X: np.ndarray, n_neighbors: int, pool: Pool) -> tuple[Centered, Neighbors]:
    """Centre the points, and find the nearest others of every one."""
    centered = center_points(X)
    return centered, find_neighbors(X, n_neighbors, centered=centered, pool=pool)
