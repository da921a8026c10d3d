"""The points before anything is learned: sizes that fit each other, few coordinates, nearest neighbours.

The data have three forms after the checks. ``data`` are as given, in a safe range, and sparse if they came
so. ``reduced`` points have as few coordinates as the method allows: the loop sees them only through lengths
and inner products of rows, which stay the same on any orthonormal basis of their span; of wide sparse data
they are the coordinates on the leading axes, and what these neglect is measured. The ``scaled`` points of the
loop (:mod:`smrmf.factorization._start`) are those in the unit that the start has measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from smrmf._parallel import Pool, row_blocks
from smrmf._progress import NOBODY, Progress
from smrmf._scratch import is_mapped, table_in_order
from smrmf._validation import Sizes
from smrmf.factorization._memory import Memory, NoMemory
from smrmf.graph.candidates import Neighbors
from smrmf.graph.cells import train_cells
from smrmf.graph.copies import Copies, take_rows_in_place
from smrmf.graph.dense_points import many_points
from smrmf.graph.duplicates import distinct_rows
from smrmf.graph.graphs import simplex_graph, symmetrize
from smrmf.graph.groups import numbered_by_first
from smrmf.graph.neighbors import MeasuredPoints, measured_points
from smrmf.graph.search import InCells, is_searched_in_cells, search
from smrmf.kernels.truncated_svd import leading_coordinates
from smrmf.sharing import remember

# Below this many features an attempt to reduce them costs more than it can save.
FEW_FEATURES = 64
# Share of the squared length of the data that principal axes keep.
KEPT_VARIANCE = 0.999
# Coordinates of sparse points: at least so many, and several for each of the c directions that F has.
COORDINATES, COORDINATES_PER_CLUSTER = 128, 4
# What a search has found is remembered by this name.
SEARCH = "search"
# Parts of a search of which callbacks are told: bars take time with each, and a hundred will do.
MOST_PARTS, POINTS_PER_PART = 100, 256


class Reduction(NamedTuple):
    """How points came to fewer coordinates: the basis (rows) that carries them back, and their old origin.

    A basis of None is the identity, a center of None the origin. The basis of sparse points is a mixture of
    their rows, ``basis @ table``, which is never formed. ``neglected`` is the share of the squared length of
    the points that the coordinates leave out. Of ``n_features`` columns, by default all, those beyond are not
    the user's and do not come back.
    """

    basis: np.ndarray | None = None
    center: np.ndarray | None = None
    table: sp.csr_array | None = None
    neglected: float = 0.0
    n_features: int | None = None

    def carry_back(self, F: np.ndarray) -> np.ndarray:
        """Return directions, as rows, in the features that the points had."""
        F = F if self.basis is None else F @ self.basis
        F = F if self.table is None else F @ self.table
        return np.ascontiguousarray(F[:, : self.n_features])

    def restore_basis(self, F: np.ndarray, G: np.ndarray, unit: float) -> np.ndarray:
        """Carry a basis F back, such that ``G F`` rebuilds the points as they were, in units of ``unit``.

        The center comes back through G: an orthonormal indicator spans the constant vector, ``G G' 1 = 1``.
        """
        F = self.carry_back(F)
        if self.center is not None:
            # G (F + (G'1) center') = G F + 1 center'.
            center = self.center[: self.n_features]
            F = F + np.outer(G.sum(axis=0), center / unit).astype(F.dtype)
        return F

    def after(self, earlier: Reduction) -> Reduction:
        """Return both in one: this reduction of points that an earlier one has reduced, without a center."""
        if earlier.basis is None:
            return self
        basis = earlier.basis if self.basis is None else self.basis @ earlier.basis
        center = None if self.center is None else earlier.carry_back(self.center[None, :])[0]
        neglected = 1 - (1 - self.neglected) * (1 - earlier.neglected)
        return Reduction(basis, center, earlier.table, neglected)


def dense_coordinates(X: Any, n_clusters: int) -> tuple[np.ndarray, Reduction]:
    """Express sparse points in few dense coordinates, on their leading axes; dense ones stay as they are."""
    if not sp.issparse(X):
        return X, Reduction()
    points, mixing, table, neglected = remember(leading_coordinates, X, n_coordinates(n_clusters))
    return points, Reduction(mixing, None, table, neglected)


def n_coordinates(n_clusters: int) -> int:
    """Return how many coordinates sparse points get, if they have not fewer features or fewer rows."""
    return max(COORDINATES, COORDINATES_PER_CLUSTER * n_clusters)


def reduce_features(X: np.ndarray) -> tuple[np.ndarray, Reduction]:
    """Express X in a basis of its row span if that is shorter: ``X = coordinates @ basis``."""
    n, m = X.shape
    if is_mapped(X):  # the loop has other ways to need few numbers of very many points
        return X, Reduction()
    # More features than points always have a shorter basis: the rank is at most n.
    if m <= n and (m < FEW_FEATURES or not _sample_is_dependent(X)):
        return X, Reduction()
    return remember(express_in_span, X)


def express_in_span(X: np.ndarray) -> tuple[np.ndarray, Reduction]:
    """Find an orthonormal basis of the row span, and the coordinates in it; X itself if they are no fewer."""
    n, m = X.shape
    if m > n:
        # A thin QR of X' gives X = R' Q'.
        Q, R = scipy.linalg.qr(X.T, mode="economic", check_finite=False)
        return np.ascontiguousarray(R.T), Reduction(np.ascontiguousarray(Q.T))
    # m x m, cheaper than an SVD of X; eigenvalues are squared singular values, in ascending order.
    values, vectors = scipy.linalg.eigh((X.T @ X).astype(np.float64), check_finite=False)
    eps = np.finfo(X.dtype).eps
    rank = int(np.sum(values > values[-1] * m * eps))
    if rank == 0:
        return X, Reduction()
    basis = np.ascontiguousarray(vectors[:, m - rank :].T).astype(X.dtype)
    short = X @ basis.T
    # Squaring X hid singular values below sqrt(eps): if they mattered, keep X.
    if rank > m // 2 or np.linalg.norm(X - short @ basis) > np.sqrt(eps) / 100 * np.linalg.norm(X):
        return X, Reduction()
    return short, Reduction(basis)


def _sample_is_dependent(X: np.ndarray) -> bool:
    """Tell cheaply whether the rank may be at most half the number of features.

    If more than m/2 rows, evenly spread, are independent, the rank is above m/2, and no basis would be used.
    """
    n, m = X.shape
    size = m // 2 + 1
    rows = X[np.linspace(0, n - 1, size).astype(int)].astype(np.float64, copy=False)
    gram = rows @ rows.T
    # LAPACK's pivoted Cholesky stops at the numerical rank: a fraction of the cost of eigenvalues.
    (pivoted_cholesky,) = scipy.linalg.get_lapack_funcs(("pstrf",), (gram,))
    tolerance = gram.diagonal().max() * size * np.finfo(X.dtype).eps
    rank = pivoted_cholesky(gram, tol=tolerance, overwrite_a=1)[2]
    return bool(rank < size)


def leading_axes(X: np.ndarray) -> tuple[np.ndarray, Reduction]:
    """Centre X, and keep only the axes that hold nearly all of it if it does not fill its features.

    A projection on directions in which the points do not extend has no distance between any two of them, and
    with it the objective of APMF nearly vanishes (paper note 54). Unlike :func:`reduce_features` this
    changes the problem: what lies along the dropped axes is lost.
    """
    n, m = X.shape
    center = X.mean(axis=0, dtype=np.float64)
    wide = X - center
    X = wide.astype(X.dtype)
    # The smaller Gram matrix has the same positive eigenvalues, the squared lengths along the axes.
    gram = wide.T @ wide if m <= n else wide @ wide.T
    values, vectors = scipy.linalg.eigh(gram, check_finite=False)
    values, vectors = values[::-1], vectors[:, ::-1]
    # Data rounded by eps have squared lengths of eps^2 where there should be none; float64 adds its eps.
    rounding = max(np.finfo(np.float64).eps, float(np.finfo(X.dtype).eps) ** 2)
    rank = int(np.sum(values > values[0] * max(n, m) * rounding))
    if rank == m or values[0] <= 0:
        return X, Reduction(None, center)
    held = np.cumsum(values[:rank]) / values[:rank].sum()
    kept = int(np.searchsorted(held, KEPT_VARIANCE)) + 1
    # Eigenvectors u of X X' become axes as X'u / sqrt(value), of unit length.
    axes = vectors[:, :kept] if m <= n else wide.T @ (vectors[:, :kept] / np.sqrt(values[:kept]))
    basis = np.ascontiguousarray(axes.T).astype(X.dtype)
    # The squared length about the origin is that about the center and that of n centers.
    dropped, length = float(values[kept:rank].sum()), float(values[:rank].sum() + n * center @ center)
    return X @ basis.T, Reduction(basis, center, neglected=dropped / length)


class ManifoldInput(NamedTuple):
    """Checked input: data in a safe range, the magnitude they are divided by, the sizes, and the metric.

    Of the metric "cosine" the data are directions already, and may have a column more than ``n_features``.
    ``search`` says how neighbours are found, or has them.
    """

    data: np.ndarray | sp.csr_array
    magnitude: float
    sizes: Sizes
    metric: str = "euclidean"
    n_features: int | None = None
    search: Any = "auto"


class Searched(NamedTuple):
    """What a search has found: the neighbours, and of many points the order of learning, and their cells."""

    neighbors: Neighbors
    order: np.ndarray | None = None
    cells: InCells | None = None


@dataclass(frozen=True)
class Problem:
    """All that the start and the slots may know: the points with few coordinates, and their neighbours.

    Distances are those of ``points``: of the coordinates, or of sparse data as they are. ``neighbors`` may be
    given, with distances of another kind; ``measured`` are the same neighbours with those of the points.
    Where the user's table lies in a file, ``in_file`` is that, and ``data`` are in a scratch file.

    ``representation()`` is the first Zt: (5.18) on squared distances, every point by its k nearest ones.
    ``graph()`` is the symmetric graph of it, on which clusters of any shape and first projections are found;
    ``wide_graph()`` is the same of twice as many neighbours, as far as there are points.
    ``groups()`` tells which points are identical. All are made on first use. Where ``copies``
    leaves some out, everything here is of the distinct points. Many points lie in ``cells``, in whose order
    they are.
    """

    data: np.ndarray | sp.csr_array
    in_file: np.ndarray | None
    magnitude: float
    sizes: Sizes
    metric: str
    reduced: np.ndarray
    reduction: Reduction
    points: MeasuredPoints
    neighbors: Neighbors
    measured: Neighbors
    representation: Callable[[], sp.csr_array]
    graph: Callable[[], sp.csr_array]
    groups: Callable[[], np.ndarray]
    copies: Copies
    cells: InCells | None
    random_state: np.random.RandomState
    pool: Pool

    @property
    def many(self) -> bool:
        """Tell whether the points are so many that their neighbours are approximate."""
        return self.cells is not None

    def groups_of_rows(self) -> np.ndarray:
        """Tell which of all rows are identical, those left out included."""
        rows: np.ndarray = self.copies.rows(self.groups())
        return rows

    def wide_graph(self) -> sp.csr_array:
        # The list has one neighbour more than the graph, which gives the weights their zero.
        known, k = self.neighbors.indices.shape[1] - 1, self.sizes.n_neighbors
        return symmetrize(simplex_graph(self.neighbors, max(k, min(2 * k, known))), self.pool)


def n_parts_of_search(given: ManifoldInput) -> int:
    """Return of how many parts of the search callbacks are told: of none where neighbours are given."""
    if not isinstance(given.search, str):
        return 0
    return min(MOST_PARTS, -(-given.sizes.n_samples // POINTS_PER_PART))


def of_fewer_points(sizes: Sizes, n_samples: int) -> Sizes:
    """Return the sizes of the same problem with fewer points; the same share of them are exemplars."""
    share = round(sizes.n_exemplars * n_samples / sizes.n_samples)
    least = min(sizes.n_exemplars, sizes.n_clusters)
    return replace(sizes, n_samples=n_samples, n_exemplars=max(share, least))


def prepare(
    given: ManifoldInput,
    reduce: Callable[[np.ndarray], tuple[np.ndarray, Reduction]],
    random_state: np.random.RandomState,
    pool: Pool,
    leave_copies_out: bool = False,
    progress: Progress = NOBODY,
    memory: Memory | None = None,
) -> Problem:
    """Reduce the points and find their neighbours; the rows of the given data may change their order."""
    groups, copies, sizes = cache(partial(distinct_rows, given.data)), Copies(), given.sizes
    in_file = given.data if is_mapped(given.data) else None
    if leave_copies_out:
        needed = max(sizes.n_clusters, sizes.n_reported or 0)
        copies = Copies.to_leave_out(groups(), sizes.n_neighbors, needed)
    if copies.first is not None:
        sizes = of_fewer_points(sizes, len(copies.first))
        given = given._replace(data=copies.distinct(given.data))
        groups = cache(partial(np.arange, len(copies.first)))
    coordinates, first = dense_coordinates(given.data, sizes.n_clusters)
    reduced, reduction = reduce(coordinates)
    # Coordinates on some axes would lose distances along the others: those of sparse points are exact.
    searched, how = given.data if sp.issparse(given.data) else reduced, given.search
    memory = memory or NoMemory(random_state)
    known: Searched | None = memory.recall(SEARCH)
    cells, order = cells_in_order(known, searched, how, pool)
    if order is not None:
        copies, groups = copies.in_order(order), cache(partial(numbered_by_first, groups()[order]))
        alone, given = reduced is given.data, in_order(given, order)
        searched = reduced = given.data if alone else reduced[order]
    # Lists of 2 k candidates for Z, and one more neighbour, which bounds what a list leaves out.
    wanted = min(2 * sizes.n_neighbors + 1, sizes.n_samples - 1)
    if known is None:
        how, k = cells or how, sizes.n_neighbors
        points, neighbors = remember(search, searched, wanted, pool, how, k, progress)
        cells = None if cells is None else cells._replace(n_asked=neighbors.n_asked)
        memory.keep(SEARCH, Searched(neighbors, order, cells))
    else:
        neighbors = known.neighbors
        points = measured_points(searched) if cells is None else many_points(searched)
    measured = neighbors
    if not isinstance(given.search, str):
        measured = neighbors._replace(squared=distances_of(points, neighbors.indices, pool))
    # Other starts and other graphs need neither. Of many points it is made again rather than kept.
    representation = partial(simplex_graph, neighbors, sizes.n_neighbors)

    def graph() -> sp.csr_array:
        return symmetrize(representation(), pool)

    return Problem(
        data=given.data,
        in_file=in_file,
        magnitude=given.magnitude,
        sizes=sizes,
        metric=given.metric,
        reduced=reduced,
        reduction=reduction.after(first)._replace(n_features=given.n_features),
        points=points,
        neighbors=neighbors,
        measured=measured,
        representation=representation,
        graph=cache(graph) if cells is None else graph,
        groups=groups,
        copies=copies,
        cells=cells,
        random_state=random_state,
        pool=pool,
    )


def cells_in_order(
    known: Searched | None, X: Any, how: Any, pool: Pool
) -> tuple[InCells | None, np.ndarray | None]:
    """Return the cells of many points, and the order in which they are learned from, if there are so many."""
    if known is not None:
        return known.cells, known.order
    if not is_searched_in_cells(X, how):
        return None, None
    return InCells(*remember(train_cells, X, pool)).ordered()


def in_order(given: ManifoldInput, order: np.ndarray) -> ManifoldInput:
    """Return the input with its rows in another order."""
    # In place, or a second table would be there for the whole fit; one in a file is the user's.
    move = table_in_order if is_mapped(given.data) else take_rows_in_place
    return given._replace(data=move(given.data, order))


def distances_of(points: MeasuredPoints, indices: np.ndarray, pool: Pool) -> np.ndarray:
    """Return the squared distances of all points to others that are listed."""
    blocks = row_blocks(points.n_samples, points.block_width)
    return np.concatenate(pool.map(lambda rows: points.pair_distances(points.X[rows], indices[rows]), blocks))
