"""The slot of the loop: where the graph comes from. All variants of the paper differ only here.

========================  ==============================================================
RMNMF, selective RMNMF    :class:`FixedAffinity`, a kNN graph that never changes
SMRMF, -Euc, -NS          :class:`RowSparseAffinity`, Z on the simplex, C in a ball (4.12, 4.13)
f-SMRMF                   :class:`ClosedFormAffinity`, each column of Z by itself (5.18)
AMRMF                     :class:`AdaptiveAffinity`, the same with one smoothness for all
APMF                      :class:`~smrmf.factorization._projected.ProjectedAffinity`
========================  ==============================================================

Z is stored transposed (``Zt``), so that each simplex vector is contiguous in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf.factorization._candidates import CandidateLists
from smrmf.factorization._dissimilarity import AbstractDissimilarity, ListBlock
from smrmf.factorization._row_sparse import a2dm2, central_point
from smrmf.graph.exemplars import Neighborhoods
from smrmf.kernels._balls import AbstractBall, Shrinkage, Sum
from smrmf.kernels.balls import project_rows_in_place
from smrmf.kernels.row_sparse import c_rows, z_target_rows
from smrmf.kernels.simplex import columns_value, neighbor_smoothness, solve_columns
from smrmf.sharing import remember


class AbstractAffinity(ABC):
    """What the loop needs of a graph. The learner itself never changes; its state does."""

    @abstractmethod
    def init(self) -> Any:
        """Return the first state."""

    @abstractmethod
    def graph(self, state: Any) -> np.ndarray | sp.csr_array:
        """Return the symmetric weights that the Laplacian uses this iteration."""

    @abstractmethod
    def update(self, state: Any, G: np.ndarray, H: np.ndarray, lam: float, mu: float) -> Any:
        """Return the next state, given this iteration's G and H."""

    @abstractmethod
    def value(self, state: Any) -> float:
        """Return this term of the objective."""

    @abstractmethod
    def representation(self, state: Any) -> np.ndarray | sp.csr_array:
        """Return Zt: row j holds how much each point represents point j."""

    # A learner that also projects the points fills the next three; to all others they are as given.

    def project(self, state: Any, target: Callable[[], np.ndarray], mu: float) -> Any:
        """Return the state with the points projected anew, close to the target."""
        return state

    def points(self, state: Any, X: np.ndarray) -> np.ndarray:
        """Return the points as projected by the state, X being those of the last iteration."""
        return X

    def components(self, state: Any, F: np.ndarray) -> np.ndarray:
        """Return components in the coordinates before projection."""
        return F


@dataclass(frozen=True)
class FixedAffinity(AbstractAffinity):
    """A graph given once and for all (RMNMF); ``selector`` chose the points whose neighbourhoods it has."""

    W: sp.csr_array
    Zt: sp.csr_array
    selector: Any = None

    def init(self) -> None:
        return None

    def graph(self, state: None) -> sp.csr_array:
        return self.W

    def update(self, state: None, G: np.ndarray, H: np.ndarray, lam: float, mu: float) -> None:
        return None

    def value(self, state: None) -> float:
        return 0.0

    def representation(self, state: None) -> sp.csr_array:
        return self.Zt


@dataclass(frozen=True)
class RowSparseState:
    """Four n x n arrays, updated in place, all transposed."""

    D: np.ndarray
    Z: np.ndarray
    C: np.ndarray
    multiplier: np.ndarray
    shrunk: Shrinkage | None = None
    settled: bool = False


@dataclass(frozen=True)
class RowSparseAffinity(AbstractAffinity):
    """Z on the simplex and C in a ball, tied by a multiplier: SMRMF and its ablations.

    ``freeze_tol`` stops updating Z and C for good once C changes by no more (paper note 18). With
    ``single_start`` the first C has one exemplar for all points, so that the first Z reaches the first
    graph only (paper note 12).
    """

    dissimilarity: AbstractDissimilarity
    ball: AbstractBall
    neighborhoods: Neighborhoods
    beta: float
    freeze_tol: float = 0.0
    single_start: bool = False

    def init(self) -> RowSparseState:
        """Find the first Z and C by A2DM2; the main multiplier starts at zero (paper note 12)."""
        D = self.dissimilarity.dense()
        start = remember(a2dm2, D, self.ball, self.dissimilarity.points.pool)
        if self.single_start:
            start.C[:] = 0
            start.C[:, central_point(D)] = 1
        return RowSparseState(D, start.Z, start.C, start.multiplier)

    def graph(self, state: RowSparseState) -> sp.csr_array:
        return self.neighborhoods.graph(state.Z, state.D)

    def update(
        self, state: RowSparseState, G: np.ndarray, H: np.ndarray, lam: float, mu: float
    ) -> RowSparseState:
        if state.settled:
            return state
        pool, Z, multiplier = self.dissimilarity.points.pool, state.Z, state.multiplier
        pool.over_rows(z_target_rows, (state.D, state.C, multiplier, Z), self.beta, mu)
        if lam > 0:
            widths = self.dissimilarity.latent_widths(G, H)
            self.dissimilarity.add_latent(G, H, widths, -lam / mu, Z)
        pool.over_rows(project_rows_in_place, (Z,), 1.0)
        shrunk = self.ball.shrinkage(Sum(Z, multiplier, 1 / mu), 1.0, state.shrunk, pool)
        measured = pool.over_rows(c_rows, (Z, state.C, multiplier), *shrunk, mu)
        change = max(moved for moved, _ in measured)
        return replace(state, shrunk=shrunk, settled=change <= self.freeze_tol)

    def value(self, state: RowSparseState) -> float:
        return self.beta * float(np.vdot(state.D, state.Z))

    def representation(self, state: RowSparseState) -> np.ndarray:
        return state.Z


@dataclass(frozen=True)
class ClosedFormState:
    """Candidate lists, the smoothness of every column, and the solution on the lists."""

    lists: CandidateLists
    delta: np.ndarray
    z: np.ndarray = field(repr=False)
    certified: int = 0
    settled: bool = False


@dataclass(frozen=True)
class ClosedFormAffinity(AbstractAffinity):
    """Every column of Z by itself, in closed form, on candidate lists (f-SMRMF).

    The lists start with ``list_size`` candidates; the columns whose certificate fails get longer
    ones until all are exact. ``smoothness=None`` gives every point exactly k neighbours, without
    itself; a number is the paper's delta, where a point may represent itself. ``freeze_tol`` stops
    updating Z for good once no entry changes by more (paper note 18).
    """

    dissimilarity: AbstractDissimilarity
    neighborhoods: Neighborhoods
    beta: float
    smoothness: float | None
    list_size: int
    freeze_tol: float = 0.0

    def init(self) -> ClosedFormState:
        """Solve (5.18) for the input dissimilarity alone."""
        lists = CandidateLists.start(
            self.dissimilarity, self.list_size, with_self=self.smoothness is not None
        )
        if self.smoothness is None:
            k = self.dissimilarity.points.n_neighbors
            delta = neighbor_smoothness(lists.table(k + 1), k)
        else:
            delta = np.full(len(lists.outside), self.smoothness, lists.D.dtype)
        return self.solve(ClosedFormState(lists, delta, lists.D), None, None, 0.0)

    def graph(self, state: ClosedFormState) -> sp.csr_array:
        return self.neighborhoods.graph(self.representation(state))

    def update(
        self, state: ClosedFormState, G: np.ndarray, H: np.ndarray, lam: float, mu: float
    ) -> ClosedFormState:
        # Without a latent term the columns stay what they are.
        if state.settled or lam == 0:
            return state
        new = self.solve(state, G, H, lam / self.beta)
        if self.freeze_tol == 0 or len(new.z) != len(state.z):
            return new
        return replace(new, settled=bool(np.abs(new.z - state.z).max() <= self.freeze_tol))

    def solve(self, state: ClosedFormState, G: Any, H: Any, ratio: float) -> ClosedFormState:
        """Solve all columns; widen the lists of those that are not certified, and solve again."""
        widths, floor = None, 0.0
        if ratio > 0:
            widths = self.dissimilarity.latent_widths(G, H)
            floor = ratio * self.dissimilarity.latent_floor(G, H)
        lists = state.lists
        while True:
            bound = lists.outside + state.delta.dtype.type(floor)
            z, level, certified = self._solve_lists(lists, state.delta, bound, G, H, ratio, widths)
            if certified == len(level):
                return replace(state, lists=lists, z=z, certified=certified)
            lists = lists.widen(self.dissimilarity, np.flatnonzero(level > bound))

    def _solve_lists(
        self,
        lists: CandidateLists,
        delta: np.ndarray,
        bound: np.ndarray,
        G: Any,
        H: Any,
        ratio: float,
        widths: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray, int]:
        level, z = np.empty_like(delta), np.empty_like(lists.D)
        hat = z if ratio > 0 else lists.D  # z holds D-hat until it is solved
        as_matrix, as_lists = ratio > 0 and lists.whole, ratio > 0 and not lists.whole
        if as_matrix:  # SMRMF's way: half the work, as every entry has its mirror image
            z[:] = lists.D
            self.dissimilarity.add_latent(G, H, widths, ratio, z.reshape(len(delta), -1))

        def one(block: slice) -> int:
            indptr = lists.indptr[block.start : block.stop + 1]
            if as_lists:
                # Only this block's part of z is touched.
                part = ListBlock(indptr, lists.indices, block.start)
                self.dissimilarity.latent_lists(G, H, widths, part, z)
                mine = slice(indptr[0], indptr[-1])
                z[mine] *= ratio
                z[mine] += lists.D[mine]
            return solve_columns(indptr, hat, delta[block], bound[block], z, level[block])

        counts = self.dissimilarity.points.pool.map(one, lists.blocks())
        return z, level, sum(counts)

    def value(self, state: ClosedFormState) -> float:
        lists, pool = state.lists, self.dissimilarity.points.pool

        def one(block: slice) -> float:
            indptr = lists.indptr[block.start : block.stop + 1]
            return columns_value(indptr, lists.D, state.delta[block], state.z)

        return self.beta * sum(pool.map(one, lists.blocks()))

    def representation(self, state: ClosedFormState) -> sp.csr_array:
        n = len(state.delta)
        kept = np.flatnonzero(state.z > 0)
        indptr = np.searchsorted(kept, state.lists.indptr)
        return sp.csr_array((state.z[kept], state.lists.indices[kept], indptr), shape=(n, n))


@dataclass(frozen=True)
class AdaptiveAffinity(AbstractAffinity):
    """The graph of adaptive neighbours (AMRMF): CAN's alpha for all points, and all of S as the graph.

    Its rows solve the column problem of f-SMRMF with ``delta = 2 alpha``. The first S is CAN's, where
    every point has its own alpha and exactly k neighbours; from then on alpha is their mean.
    """

    columns: ClosedFormAffinity

    def init(self) -> ClosedFormState:
        state = self.columns.init()
        return replace(state, delta=np.full_like(state.delta, state.delta.mean()))

    def graph(self, state: ClosedFormState) -> sp.csr_array:
        return self.columns.graph(state)

    def update(
        self, state: ClosedFormState, G: np.ndarray, H: np.ndarray, lam: float, mu: float
    ) -> ClosedFormState:
        # Also without a latent term: the first rows had other alphas.
        return self.columns.solve(state, G, H, lam / self.columns.beta)

    def value(self, state: ClosedFormState) -> float:
        return self.columns.value(state)

    def representation(self, state: ClosedFormState) -> sp.csr_array:
        return self.columns.representation(state)
