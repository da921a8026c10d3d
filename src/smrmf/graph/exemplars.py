"""Which points stand for the others, and the graph of their neighbourhoods (3.6).

``Zt`` is Z transposed: row j is how point j is represented, column i what point i represents. It may
be dense (SMRMF, APMF) or CSR (the others).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from smrmf._numba import kernel
from smrmf.graph.graphs import keep_entries, neighbor_graph, symmetrize
from smrmf.graph.membership import one_hot

ExemplarRule = Literal["mass", "norm"]
Matrix: TypeAlias = Any  # a dense array or a CSR matrix
# How many exemplars are reported of a cluster unless told otherwise: this share of it, and at most so many.
READABLE_SHARE, READABLE_MOST = 0.1, 5


def tie_resolution(dtype: np.dtype) -> float:
    """Return the relative difference below which two numbers count as equal: 4e-10, or 7e-5 in float32."""
    return float(np.finfo(dtype).eps) ** 0.6


def best_first(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of the largest scores; ties go to the lower index (paper note 7)."""
    return np.argsort(-on_grid(scores), kind="stable")[:count]


def on_grid(scores: np.ndarray) -> np.ndarray:
    """Return scores as whole numbers, such that nearly equal ones are equal."""
    # "Nearly equal" is not transitive and gives no order.
    unit = tie_resolution(scores.dtype) * max(float(scores.max()), np.finfo(scores.dtype).tiny)
    return np.rint(scores / unit)


def largest_places(scores: np.ndarray, count: int) -> np.ndarray:
    """Return where the largest scores are, the same as by :func:`best_first`, in their order in the array."""
    ranks = on_grid(scores)
    if count >= len(ranks):
        return np.arange(len(ranks))
    # Of many points most of the time of a sort.
    least = np.partition(ranks, len(ranks) - count)[len(ranks) - count]
    taken = ranks > least
    taken[np.flatnonzero(ranks == least)[: count - np.count_nonzero(taken)]] = True
    return np.flatnonzero(taken)


def transposed(Z: Matrix) -> Matrix:
    """Return Zt of a representation Z, in the form in which it is read: its rows behind each other."""
    return sp.csr_array(Z.T) if sp.issparse(Z) else Z.T


def exemplar_scores(Zt: Matrix, rule: ExemplarRule) -> np.ndarray:
    """Score every point by what it represents: the mass of others, or the L2 norm of its row of Z."""
    # Column i of Zt is row i of Z. The mass leaves out z_ii, by which a point only represents itself.
    n = Zt.shape[0]
    if sp.issparse(Zt):
        sums, power = np.zeros(n), 2 if rule == "norm" else 1
        _add_by_column(Zt.indices, Zt.data, power, sums)
        return (np.sqrt(sums) if rule == "norm" else sums - Zt.diagonal()).astype(Zt.dtype)
    if rule == "norm":
        return np.sqrt(np.einsum("ji,ji->i", Zt, Zt))
    return Zt.sum(axis=0) - np.diagonal(Zt)


def with_copies_as_one(scores: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Give the first of several identical rows the scores of all of them, and the others none.

    Of copies, which are rows of one group, one is enough to look at: it stands for all that they stand for.
    """
    first = np.unique(groups, return_index=True)[1]
    joined = np.zeros_like(scores)
    joined[first] = np.bincount(groups, scores)
    return joined


def rows_of_z(Zt: Matrix, chosen: np.ndarray) -> sp.csr_array:
    """Return rows of Z, that is columns of Zt, as CSR with sorted indices."""
    counts = np.zeros(len(chosen), np.intp)
    if sp.issparse(Zt):
        place = np.full(Zt.shape[1], -1, Zt.indices.dtype)
        place[chosen] = np.arange(len(chosen))
        _count_in_columns(Zt.indices, place, counts)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(Zt.indptr.dtype)
        indices, data = np.empty(indptr[-1], Zt.indices.dtype), np.empty(indptr[-1], Zt.dtype)
        # Row by row of Zt: the columns of every row of Z come in their order.
        _gather_from_columns(Zt.indptr, Zt.indices, Zt.data, place, indptr[:-1].copy(), indices, data)
        return sp.csr_array((data, indices, indptr), shape=(len(chosen), Zt.shape[0]))
    # Two passes over Zt, to count and to fill: no dense copy of the columns is made.
    _count_positive(Zt, chosen, counts)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices, data = np.empty(indptr[-1], np.intp), np.empty(indptr[-1], Zt.dtype)
    _gather_positive(Zt, chosen, indptr[:-1].copy(), indices, data)
    return sp.csr_array((data, indices, indptr), shape=(len(chosen), len(Zt)))


@dataclass(frozen=True)
class Neighborhoods:
    """Keep the neighbourhoods of the best exemplars: Z-hat of (3.6), symmetrised.

    ``n_exemplars=None`` keeps all of Z (the fully connected graph of -NS). ``neighbors`` are the k
    neighbours of every point in the input space; None takes the k largest entries of its row of Z.
    """

    n_exemplars: int | None
    n_neighbors: int
    rule: ExemplarRule
    neighbors: np.ndarray | None = None

    def graph(self, Zt: Matrix, D: np.ndarray | None = None) -> tuple[sp.csr_array, np.ndarray | None]:
        """Return (Z-hat + Z-hat') / 2 without its diagonal, and the points whose neighbourhoods it has.

        Dense dissimilarities D settle ties. None are all points.
        """
        if self.n_exemplars is None:
            return symmetrize(rows_of_z(Zt, np.arange(Zt.shape[0]))), None
        n = Zt.shape[0]
        # In the order of the points, in which the columns of Zt are read fastest.
        chosen = largest_places(exemplar_scores(Zt, self.rule), self.n_exemplars)
        rows = rows_of_z(Zt, chosen)
        del Zt
        if self.neighbors is not None:
            known = self.neighbors[chosen]
            rows = rows.multiply(neighbor_graph(known, np.ones(known.shape, rows.dtype), n)).tocsr()
            rows.sort_indices()
        # A point is not its own neighbour (paper note 8), and entries that are zero are no neighbours.
        own = np.repeat(chosen, np.diff(rows.indptr)) == rows.indices
        kept = keep_entries(rows, ~own & (rows.data > 0))
        # D is symmetric. Read with the other point as its row, as Zt is stored.
        row = np.repeat(chosen, np.diff(kept.indptr))
        unlikeness = np.zeros_like(kept.data) if D is None else D[kept.indices, row]
        largest = np.zeros(kept.nnz, dtype=bool)
        resolution = tie_resolution(kept.dtype)
        keep_largest(kept.indptr, kept.data, unlikeness, self.n_neighbors, resolution, largest)
        kept = keep_entries(kept, largest)
        # The rows of all other points are empty.
        ends = np.zeros(n + 1, kept.indptr.dtype)
        ends[chosen + 1] = np.diff(kept.indptr)
        return symmetrize(sp.csr_array((kept.data, kept.indices, np.cumsum(ends)), shape=(n, n))), chosen


def cluster_quotas(sizes: np.ndarray, count: int) -> np.ndarray:
    """Share ``count`` exemplars among clusters by size, at least one each while there are enough."""
    quotas = np.zeros(len(sizes), dtype=int)
    if count >= len(sizes):
        quotas[:] = 1
    wanted = count * sizes / sizes.sum()
    while quotas.sum() < count:  # the cluster furthest below its share gets the next one
        short = np.where(quotas < sizes, wanted - quotas, -np.inf)
        quotas[np.argmax(short)] += 1
    return quotas


def readable_quotas(sizes: np.ndarray) -> np.ndarray:
    """Return how many exemplars of every cluster a person looks at: a share of it, at least one, not many."""
    return np.minimum(np.clip(np.rint(READABLE_SHARE * sizes), 1, READABLE_MOST), sizes).astype(int)


def rank_exemplars(
    Zt: Matrix, labels: np.ndarray, count: int | None, rule: ExemplarRule, groups: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Choose and rank the exemplars of a finished clustering; return indices and scores, best first.

    The paper's rule takes the rows of Z with the largest norms, wherever they lie. The rule ``mass``
    scores a point by the mass it represents inside its own cluster and gives every cluster its share,
    so the exemplars cover all clusters and sit where neighbours agree. A count of None is a few for each, and
    no row twice where ``groups`` tells which rows are identical.
    """
    sizes, scores = np.bincount(labels), cluster_scores(Zt, labels, rule)
    if count is None and groups is not None:
        scores = with_copies_as_one(scores, groups)
    if rule == "norm" and count is not None:
        chosen = best_first(scores, count)
        return chosen, scores[chosen]
    # Of those that one looks at each stands for others, unless none does.
    telling = np.maximum(np.bincount(labels, scores > 0), 1).astype(int)
    quotas = np.minimum(readable_quotas(sizes), telling) if count is None else cluster_quotas(sizes, count)
    members = (np.flatnonzero(labels == label) for label in range(len(quotas)))
    chosen = np.concatenate([m[best_first(scores[m], q)] for m, q in zip(members, quotas, strict=True)])
    # In the order of the points, so that ties go to the lower index across clusters too.
    chosen.sort()
    chosen = chosen[best_first(scores[chosen], len(chosen))]
    return chosen, scores[chosen]


def cluster_scores(Zt: Matrix, labels: np.ndarray, rule: ExemplarRule) -> np.ndarray:
    """Score every point of a finished clustering: by the norm of its row, or its mass inside its cluster."""
    if rule == "norm":
        return exemplar_scores(Zt, "norm")
    # Z times the indicator of the clusters, n x c: how much of each cluster a point represents.
    masses = (Zt.T @ one_hot(labels, labels.max() + 1, Zt.dtype)).astype(np.float64)
    # Rounding may leave a little less than z_ii in the own cluster.
    return np.clip(masses[np.arange(len(labels)), labels] - Zt.diagonal(), 0, None).astype(Zt.dtype)


@kernel
def _add_by_column(indices: np.ndarray, data: np.ndarray, power: int, sums: np.ndarray) -> None:
    """Add the entries of a sparse matrix, or their squares, by column, in double precision."""
    for p in range(indices.shape[0]):
        value = np.float64(data[p])
        sums[indices[p]] += value * value if power == 2 else value


@kernel
def _count_in_columns(indices: np.ndarray, place: np.ndarray, counts: np.ndarray) -> None:
    """Count the entries of a sparse matrix in some columns; ``place`` is negative for all others."""
    for p in range(indices.shape[0]):
        at = place[indices[p]]
        if at >= 0:
            counts[at] += 1


@kernel
def _gather_from_columns(
    indptr: np.ndarray,  # IN
    columns: np.ndarray,  # IN
    entries: np.ndarray,  # IN
    place: np.ndarray,  # IN
    position: np.ndarray,  # IN, OUT
    indices: np.ndarray,  # OUT
    data: np.ndarray,  # OUT
) -> None:
    """Write the entries of some columns behind each other; ``position`` is where each begins."""
    for j in range(indptr.shape[0] - 1):
        for p in range(indptr[j], indptr[j + 1]):
            at = place[columns[p]]
            if at >= 0:
                indices[position[at]] = j
                data[position[at]] = entries[p]
                position[at] += 1


@kernel
def _count_positive(M: np.ndarray, chosen: np.ndarray, counts: np.ndarray) -> None:
    """Count the positive entries of some columns of a dense matrix, row by row."""
    # By rows, although columns are counted: rows are contiguous, and "chosen" ascends.
    for j in range(M.shape[0]):
        for q in range(chosen.shape[0]):
            counts[q] += M[j, chosen[q]] > 0


@kernel
def _gather_positive(
    M: np.ndarray, chosen: np.ndarray, position: np.ndarray, indices: np.ndarray, data: np.ndarray
) -> None:
    """Write the positive entries of some columns behind each other; ``position`` is where each begins."""
    for j in range(M.shape[0]):
        for q in range(chosen.shape[0]):
            value = M[j, chosen[q]]
            if value > 0:
                indices[position[q]] = j
                data[position[q]] = value
                position[q] += 1


@kernel
def keep_largest(
    indptr: np.ndarray,  # IN
    data: np.ndarray,  # IN
    unlikeness: np.ndarray,  # IN
    limit: int,  # IN
    resolution: float,  # IN
    keep: np.ndarray,  # OUT
) -> None:
    """Mark the ``limit`` largest positive entries of each row.

    Entries closer than ``resolution`` are equal: a ball clips whole rows to one level, and rounding
    must not choose among them. Among equals the less unlike one wins, then the earlier one.
    """
    # Entries of Z are at most one, so the resolution is an absolute one.
    best = np.empty(limit, np.intp)
    for row in range(indptr.shape[0] - 1):
        count = 0
        for p in range(indptr[row], indptr[row + 1]):
            if count == limit and (count == 0 or not _precedes(p, best[-1], data, unlikeness, resolution)):
                continue  # as for most entries
            first, last = 0, count
            while first < last:
                middle = (first + last) // 2
                if _precedes(p, best[middle], data, unlikeness, resolution):
                    last = middle
                else:
                    first = middle + 1
            count = min(count + 1, limit)
            for q in range(count - 1, first, -1):
                best[q] = best[q - 1]
            best[first] = p
        for q in range(count):
            keep[best[q]] = data[best[q]] > 0


@kernel
def _precedes(p: int, q: int, data: np.ndarray, unlikeness: np.ndarray, resolution: float) -> bool:
    """Tell whether an entry is larger than an earlier one, or as large and less unlike."""
    a, b = np.rint(data[p] / resolution), np.rint(data[q] / resolution)
    return a > b or (a == b and unlikeness[p] < unlikeness[q])
