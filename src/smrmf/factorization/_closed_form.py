"""Z column by column in closed form, on short candidate lists: f-SMRMF (5.18) and AMRMF.

A column is ``z = P_simplex(-d / delta)``, positive at the smallest entries of d only. A list holds the
smallest input dissimilarities of a column; it is widened only where an entry outside could be positive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf._parallel import row_blocks
from smrmf.factorization._dissimilarity import AbstractDissimilarity, Latent, ListBlock
from smrmf.factorization._slots import AbstractAffinity, GraphTerm
from smrmf.graph.exemplars import Neighborhoods
from smrmf.graph.graphs import positive_entries
from smrmf.kernels.simplex import columns_value, neighbor_smoothness, solve_columns


@dataclass(frozen=True)
class CandidateLists:
    """The smallest dissimilarities of every column, as rows of a ragged table.

    A first list is sorted by value; a widened one, and one of all points, in the order of the points.
    ``bound_outside`` is the smallest dissimilarity that a list leaves out (infinite for a list that is not
    to be widened: a full one, or one of approximate or given neighbours).
    """

    indptr: np.ndarray
    indices: np.ndarray
    D: np.ndarray  # of the input space alone, which never changes
    bound_outside: np.ndarray  # one per column
    with_self: bool

    @classmethod
    def start(cls, dissimilarity: AbstractDissimilarity, size: int, *, with_self: bool) -> CandidateLists:
        """Make lists of the same size for all columns."""
        n = dissimilarity.space.n_samples
        known = dissimilarity.smallest
        if known is None or with_self:
            # The neighbour search leaves a point itself out, so lists with it need a search of their own.
            indices, values, outside = smallest_entries(dissimilarity, np.arange(n), size, with_self)
        else:
            # The last one known bounds what a list leaves out, unless all others are known. Of lists from
            # which some may be missing nothing is certain: they are all that a point can choose from.
            n_known = known.indices.shape[1]
            bounded = known.exact and n_known < n - 1
            size = min(size, n_known - 1) if bounded else n_known
            indices, values = known.indices[:, :size], known.D[:, :size]
            outside = known.D[:, size] if bounded else np.full(n, np.inf, values.dtype)
        indptr = np.arange(0, indices.size + 1, indices.shape[1])
        return cls(indptr, indices.ravel(), values.ravel(), outside, with_self)

    def blocks(self) -> list[slice]:
        """Cut the columns into blocks for the threads, the narrower the longer the lists are."""
        return row_blocks(len(self.bound_outside), max(128, len(self.D) // len(self.bound_outside)))

    def widen(self, dissimilarity: AbstractDissimilarity, rows: np.ndarray) -> CandidateLists:
        """Double the lists of some columns."""
        n = len(self.bound_outside)
        lengths = np.diff(self.indptr)
        size = min(2 * int(lengths[rows].max()), n - (not self.with_self))
        # In the order of the points, not of their values: the latent terms are then read in one sweep.
        indices, values, outside = smallest_entries(dissimilarity, rows, size, self.with_self, by_value=False)
        # All of them to one length: the search returns a rectangle, not a ragged table.
        lengths[rows] = size
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        kept = np.ones(n, dtype=bool)
        kept[rows] = False
        of_kept = np.repeat(kept, lengths)
        from_kept = np.repeat(kept, np.diff(self.indptr))
        wide_indices = np.empty(indptr[-1], self.indices.dtype)
        wide_values = np.empty(indptr[-1], self.D.dtype)
        # One after the other: the right sides are copies as long as the lists.
        wide_indices[of_kept] = self.indices[from_kept]
        wide_values[of_kept] = self.D[from_kept]
        wide_indices[~of_kept], wide_values[~of_kept] = indices.ravel(), values.ravel()
        new_outside = self.bound_outside.copy()
        new_outside[rows] = outside
        return CandidateLists(indptr, wide_indices, wide_values, new_outside, self.with_self)


def smallest_entries(
    dissimilarity: AbstractDissimilarity, rows: np.ndarray, size: int, with_self: bool, by_value: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the ``size`` smallest dissimilarities of some columns, and the smallest one left out."""
    n = dissimilarity.space.n_samples
    size = min(size, n if with_self else n - 1)

    def search_block(block: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mine = rows[block]
        D = dissimilarity.block(mine)
        if not with_self:
            # By index, not by value: a duplicate at distance zero remains a candidate.
            D[np.arange(len(mine)), mine] = np.inf
        if size < n:
            # Place ``size`` of the partition holds the smallest entry that the list leaves out.
            nearest = np.argpartition(D, size, axis=1)
            outside = np.take_along_axis(D, nearest[:, size : size + 1], 1)[:, 0]
            nearest = nearest[:, :size]
        else:
            nearest = np.broadcast_to(np.arange(n), D.shape)
            outside = np.full(len(mine), np.inf, D.dtype)
        # A partition has no order; after this one, the stable sort below gives ties to the lower index.
        nearest = np.sort(nearest, axis=1)
        values = np.take_along_axis(D, nearest, 1)
        if by_value and size < n:
            order = np.argsort(values, axis=1, kind="stable")
            nearest, values = np.take_along_axis(nearest, order, 1), np.take_along_axis(values, order, 1)
        return nearest, values, outside

    parts = dissimilarity.space.pool.map(search_block, row_blocks(len(rows), n))
    indices, values, outside = zip(*parts, strict=True)
    return np.concatenate(indices), np.concatenate(values), np.concatenate(outside)


@dataclass(frozen=True)
class ClosedFormState:
    """Candidate lists, the smoothness of every column, and the solution on the lists."""

    lists: CandidateLists
    delta: np.ndarray  # one per column
    z: np.ndarray = field(repr=False)  # as long as lists.D
    settled: bool = False


@dataclass(frozen=True)
class ClosedFormAffinity(AbstractAffinity[ClosedFormState]):
    """Every column of Z by itself, in closed form, on candidate lists (f-SMRMF).

    The lists start with ``list_size`` candidates; columns whose certificate fails get longer ones until all
    are exact. ``smoothness=None`` sets the delta of each point such that its first column has exactly k
    entries, itself excluded; a number is the paper's delta, where a point may represent itself. With
    ``freeze_tol`` Z stays as it is once no entry changes by more (paper note 18). ``first`` makes the first
    Zt, nearest neighbours first, where it is known already.
    """

    dissimilarity: AbstractDissimilarity
    neighborhoods: Neighborhoods
    beta: float
    smoothness: float | None
    list_size: int
    freeze_tol: float = 0.0
    first: Callable[[], sp.csr_array] | None = None

    def init(self, X: np.ndarray) -> tuple[ClosedFormState, GraphTerm]:
        state = self.first_state()
        return state, self.graph_term(state)

    def update(
        self, state: ClosedFormState, X: np.ndarray, G: np.ndarray, H: np.ndarray, lam: float, mu: float
    ) -> tuple[ClosedFormState, GraphTerm | None]:
        # (5.18) depends neither on mu nor on the last Z: without a latent term its solution never changes.
        if state.settled or lam == 0:
            return state, None
        # Where the last Z is not compared with, the new one may take its place.
        new = self.solve(state, G, H, lam / self.beta, state.z if self.freeze_tol == 0 else None)
        # Entries correspond only while no list has been widened, and widening makes the table longer.
        if self.freeze_tol > 0 and len(new.z) == len(state.z):
            new = replace(new, settled=bool(np.abs(new.z - state.z).max() <= self.freeze_tol))
        return new, self.graph_term(new)

    def representation(self, state: ClosedFormState) -> sp.csr_array:
        lists = state.lists
        return positive_entries(lists.indptr, lists.indices, state.z, self.dissimilarity.space.pool)

    def first_state(self) -> ClosedFormState:
        """Solve (5.18) for the input dissimilarity alone, unless the solution is known."""
        lists = CandidateLists.start(
            self.dissimilarity, self.list_size, with_self=self.smoothness is not None
        )
        if self.smoothness is None:
            # From D alone, once: the latent term may later give a column more or fewer than k entries.
            k = self.dissimilarity.space.n_neighbors
            delta = neighbor_smoothness(lists.D.reshape(len(lists.bound_outside), -1)[:, : k + 1], k)
        else:
            delta = np.full(len(lists.bound_outside), self.smoothness, lists.D.dtype)
        if self.first is None:
            return self.solve(ClosedFormState(lists, delta, lists.D), None, None, 0.0)
        z = np.zeros((len(delta), len(lists.D) // len(delta)), lists.D.dtype)
        # Both are sorted by distance, so the known entries are the head of each list, and the rest is 0.
        known = self.first().data.reshape(len(delta), -1)
        z[:, : known.shape[1]] = known
        return ClosedFormState(lists, delta, z.ravel())

    def graph_term(self, state: ClosedFormState) -> GraphTerm:
        """Return the graph of the exemplars' neighbourhoods, and ``beta`` times the value of (5.18).

        The value has the input D, not D-hat: the latent part of D-hat stands for the trace, which the loop
        adds itself (paper note 10).
        """
        lists, pool = state.lists, self.dissimilarity.space.pool
        values = pool.map(
            lambda columns: columns_value(
                lists.indptr[columns.start : columns.stop + 1], lists.D, state.delta[columns], state.z
            ),
            lists.blocks(),
        )
        # Z is handed over, and gone when the rows of its exemplars are taken out.
        weights, kept = self.neighborhoods.graph(self.representation(state))
        return GraphTerm(weights, self.beta * sum(values), kept)

    def solve(
        self, state: ClosedFormState, G: Any, H: Any, ratio: float, z: np.ndarray | None = None
    ) -> ClosedFormState:
        """Solve all columns; widen the lists of those that are not certified, and solve again.

        The solution takes the place of ``z`` if lists stay as long as they are.
        """
        latent = self.dissimilarity.measure_latent(G, H) if ratio > 0 else Latent(0.0)
        lists = state.lists
        while True:
            # No D-hat outside a list is below this. Entries of z are positive below the level nu only, so a
            # column whose nu does not exceed the bound is exact. Full lists have the bound infinity.
            bound = lists.bound_outside + state.delta.dtype.type(ratio * latent.floor)
            z = np.empty_like(lists.D) if z is None or len(z) != len(lists.D) else z
            level, certified = self._solve_lists(lists, state.delta, bound, G, H, latent, ratio, z)
            if certified == len(level):
                return replace(state, lists=lists, z=z)
            z = None  # as long as the lists, of which two exist for a while
            lists = lists.widen(self.dissimilarity, np.flatnonzero(level > bound))

    def _solve_lists(
        self,
        lists: CandidateLists,
        delta: np.ndarray,
        bound: np.ndarray,
        G: Any,
        H: Any,
        latent: Latent,
        ratio: float,
        z: np.ndarray,
    ) -> tuple[np.ndarray, int]:
        """Write the solution on the lists to z; return the levels, and how many columns are certified."""
        n, level = len(delta), np.empty_like(delta)
        # z holds D-hat = D + ratio D_hg before it is solved in place.
        np.copyto(z, lists.D)
        by_matrix = ratio > 0 and len(z) == n * n
        # Lists of all points are in the order of the points, so the table is the n x n array Zt.
        if by_matrix:  # as SMRMF does: half of the work, as every entry has its mirror image
            self.dissimilarity.add_latent(G, H, latent, ratio, z.reshape(n, n))

        def solve_block(block: slice) -> int:
            # A block writes to the entries of its own columns in z and level only.
            indptr = lists.indptr[block.start : block.stop + 1]
            if ratio > 0 and not by_matrix:
                mine = slice(indptr[0], indptr[-1])
                part = ListBlock(indptr, lists.indices, block.start)
                self.dissimilarity.latent_lists(G, H, latent, part, z)
                z[mine] *= ratio
                z[mine] += lists.D[mine]
            return solve_columns(indptr, z, delta[block], bound[block], z, level[block])

        return level, sum(self.dissimilarity.space.pool.map(solve_block, lists.blocks()))


@dataclass(frozen=True)
class AdaptiveAffinity(AbstractAffinity[ClosedFormState]):
    """The graph of adaptive neighbours (AMRMF): CAN's alpha for all points, and all of S as the graph.

    Its rows solve the column problem of f-SMRMF with ``delta = 2 alpha``, as ``alpha s^2 = delta/2 s^2``. The
    first S is CAN's, where every point has its own alpha and exactly k neighbours; all later ones have the
    mean of these alphas (paper note 52).
    """

    columns: ClosedFormAffinity

    def init(self, X: np.ndarray) -> tuple[ClosedFormState, GraphTerm]:
        state = self.columns.first_state()
        state = replace(state, delta=np.full_like(state.delta, state.delta.mean()))
        return state, self.columns.graph_term(state)

    def update(
        self, state: ClosedFormState, X: np.ndarray, G: np.ndarray, H: np.ndarray, lam: float, mu: float
    ) -> tuple[ClosedFormState, GraphTerm]:
        # Also without a latent term: the first rows have other alphas than the mean.
        new = self.columns.solve(state, G, H, lam / self.columns.beta, state.z)
        return new, self.columns.graph_term(new)

    def representation(self, state: ClosedFormState) -> sp.csr_array:
        return self.columns.representation(state)
