"""ESC: cluster points on subspaces by exemplars that a farthest-first search finds."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state

from smrmf._arrays import check_memory
from smrmf._estimator import FitReporter, Fitted
from smrmf._parallel import Pool, row_blocks
from smrmf._validation import (
    COUNT,
    Constraints,
    Interval,
    check_n_clusters,
    check_n_neighbors,
    count_exemplars,
)
from smrmf.graph.duplicates import agreeing_labels, distinct_rows
from smrmf.graph.graphs import neighbor_graph
from smrmf.graph.labels import empty_cluster_warnings, graph_labels
from smrmf.graph.neighbors import find_neighbors
from smrmf.kernels.distances import squared_norms
from smrmf.kernels.lasso import find_costliest, solve_rows
from smrmf.kernels.scaling import matmul, unit_rows
from smrmf.selection._base import SelectionInput, Selector

USUAL_NEIGHBORS = 3
N_KMEANS_STARTS = 20
# Squared distance of unit vectors at a right angle, ||u - v||^2 = 2 - 2 u'v, less a margin for rounding.
RIGHT_ANGLE = 2 - 1e-9


class ESC(ClusterMixin, Selector):
    """Cluster points by how a few exemplars represent them: exemplar-based subspace clustering.

    The cost of representing a point by exemplars E, all rows scaled to length one, is
    ``f(x, E) = min_c ||c||_1 + lambda/2 ||x - c E||^2``. Solves, greedily, ``min_E max_j f(x_j, E)``:
    after a random first exemplar each next one is the point that those before represent worst. Points
    are then clustered by a graph that joins points with similar coefficients c.

    Pick it when clusters are directions, or subspaces through the origin, rather than places: faces under
    changing light, moving objects, documents; also when clusters differ in size, since a small one that is
    ill represented gets its exemplars early. Centre the data first if their mean says nothing. As a selector
    it covers the data, outliers first of all. The search is lazy: costs only fall when exemplars are
    added, so old costs are bounds, and most points are not looked at again. n points and k exemplars take
    k products of the data with one of their rows, several thousand small LASSO problems to find the
    exemplars and n to code the points; memory is five arrays of n x k. Sparse data stay sparse.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    exemplars : float or int, default=0.05
        How many exemplars to find: a share of the points (at least one per cluster) or a count.
    fidelity : float, default=100.0
        Weight lambda of the fit against sparseness, above 1 and at most 1e5. A point whose cosine with all
        exemplars is below 1/lambda in size is not represented at all.
    n_neighbors : int, default=3
        Neighbours of a point in the graph, by distance of unit coefficient vectors. Must be less than the
        number of points, except that data too small for the default use all other points.
    random_state : int, RandomState or None, default=None
        Seed of the first exemplar and of k-means on the graph's eigenvectors.
    tol : float, default=1e-6
        Relative duality gap to which each cost is known. Costs this close are ties, which go to the point
        that comes first in X.
    n_jobs : int or None, default=-1
        Threads; the result does not depend on it.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of every point, consecutive from 0. A row of zeros has no direction and gets the label of the
        largest cluster (one of its own, if there are fewer other rows than clusters).
    exemplar_indices_ : array of shape (n_exemplars,)
        The exemplars, in the order of choice. As many are found as asked for: once all points are
        represented as well as an exemplar itself, duplicates follow, and rows of zeros come last of all.
    exemplar_scores_ : array of shape (n_exemplars,)
        Cost of each exemplar just before its choice: lambda/2 for the first, not rising, and at least
        ``1 - 1/(2 lambda)``, the cost of an exemplar; zero for a row of zeros.
    coefficients_ : CSR matrix of shape (n_samples, n_exemplars)
        The c of every point; ``(1 - 1/lambda)`` at its own place for an exemplar.
    affinity_ : CSR matrix of shape (n_samples, n_samples)
        The symmetric graph: 1, or 2 for mutual neighbours. Where coefficients are alike to those of too few
        other points, or there are none, the nearest points by cosine are neighbours instead; rows of zeros
        have none.
    n_solves_ : int
        LASSO problems of the search; without bounds it would be almost n_samples for every exemplar.
    n_features_in_ : int
        Features seen by ``fit``.
    feature_names_in_ : array
        Their names, if all are strings.

    References
    ----------
    You, Li, Robinson, Vidal: Scalable exemplar-based subspace clustering on class-imbalanced data,
    ECCV 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from smrmf import ESC
    >>> rng = np.random.RandomState(0)
    >>> subspaces = [rng.normal(size=(100, 3)) @ rng.normal(size=(3, 12)) for _ in range(3)]
    >>> model = ESC(n_clusters=3, n_neighbors=5, random_state=0).fit(np.vstack(subspaces))
    >>> [int(size) for size in np.bincount(model.labels_)]
    [100, 100, 100]
    """

    _constraints: ClassVar[Constraints] = {
        "fidelity": (Interval(1, 1e5, above=True),),
        "n_neighbors": (COUNT,),
        "tol": (Interval(0, 0.1),),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        exemplars: float = 0.05,
        fidelity: float = 100.0,
        n_neighbors: int = USUAL_NEIGHBORS,
        random_state: int | np.random.RandomState | None = None,
        tol: float = 1e-6,
        n_jobs: int | None = -1,
    ) -> None:
        self.n_clusters = n_clusters
        self.exemplars = exemplars
        self.fidelity = fidelity
        self.n_neighbors = n_neighbors
        self.random_state = random_state
        self.tol = tol
        self.n_jobs = n_jobs

    def _prepare(self, X: np.ndarray | sp.csr_array) -> tuple[SelectionInput, int]:
        n = X.shape[0]
        check_n_clusters(self.n_clusters, n)
        if self.n_neighbors > USUAL_NEIGHBORS:  # the default suits any data: fewer for tiny ones
            check_n_neighbors(self.n_neighbors, n, "lower n_neighbors")
        k = count_exemplars(self.exemplars, n, self.n_clusters)
        check_memory(
            "ESC",
            8 * (5 * n * k + 3 * k * k),
            f"five arrays of {n} x {k} (points x exemplars)",
            f"ask for fewer than exemplars={self.exemplars}",
        )
        return SelectionInput(X, k), k

    def _solve(self, given: SelectionInput, pool: Pool, report: FitReporter) -> Fitted:
        # Rows of zeros have no direction: they are left out here and put back by ``in_all_rows``.
        unit, _ = unit_rows(given.X)
        rows, empty = split_rows(unit)
        points = unit if len(empty) == 0 else unit[rows]
        random_state = check_random_state(self.random_state)
        search = FarthestFirst(points, min(given.n_exemplars, len(rows)), float(self.fidelity), self.tol)
        # Drawn once, so that a callback does not change the result.
        row = random_state.randint(max(len(rows), 1))
        seed = random_state.randint(2**31 - 1)
        groups = distinct_rows(given.X)

        def attributes(fill: int = 0) -> dict[str, Any]:
            found = self._fitted(search, np.random.RandomState(seed), pool)
            whole = in_all_rows(found, rows, empty, fill, self.n_clusters, given.X.dtype)
            return whole | {"labels_": agreeing_labels(whole["labels_"], groups)}

        stopped = False
        while len(search.chosen) < search.wanted and not stopped:
            search.add(row, pool)
            stopped = report({"n_iter": len(search.chosen), "objective": search.costs[-1]}, attributes)
            if len(search.chosen) < search.wanted and not stopped:
                row = search.farthest()
        found = attributes(0 if stopped else given.n_exemplars - len(search.chosen))
        n_found, n_distinct = len(np.unique(found["labels_"])), int(groups.max()) + 1
        if n_found == self.n_clusters:
            return Fitted(found, [])
        if n_distinct < self.n_clusters:
            return Fitted(found, empty_cluster_warnings(found["labels_"], [], self.n_clusters, groups))
        message = (
            f"ESC found {n_found} clusters, fewer than n_clusters={self.n_clusters}: too few points "
            "differ in direction; lower n_clusters."
        )
        return Fitted(found, [(message, ConvergenceWarning)])

    def _fitted(
        self, search: FarthestFirst, random_state: np.random.RandomState, pool: Pool
    ) -> dict[str, Any]:
        """Cluster the points by the exemplars found so far."""
        C = search.code(pool)
        n = len(C)
        graph = similar_codes(search.X, C, min(self.n_neighbors, n - 1), pool)
        if n <= self.n_clusters:
            labels = np.arange(n)
        else:
            labels = graph_labels(
                search.X, graph, self.n_clusters, random_state, pool, n_starts=N_KMEANS_STARTS
            )
        return {
            "labels_": labels,
            "exemplar_indices_": np.array(search.chosen, dtype=np.intp),
            "exemplar_scores_": np.array(search.costs),
            "coefficients_": sp.csr_array(C),
            "affinity_": graph,
            "n_solves_": search.n_solves,
        }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class FarthestFirst:
    """Grow a set of exemplars by the point that those before represent worst.

    ``upper`` bounds the cost of every point from above. Costs never rise when the set grows, so a bound
    stays one: only points whose bound exceeds the largest cost found need to be solved again, from the
    coefficients they had.
    """

    def __init__(self, X: np.ndarray | sp.csr_array, wanted: int, fidelity: float, tol: float) -> None:
        n = X.shape[0]
        self.X, self.wanted, self.fidelity, self.tol = X, wanted, fidelity, tol
        self.chosen: list[int] = []
        self.costs: list[float] = []
        self.n_solves = 0
        # c = 0 costs lambda/2 ||x||^2, and rows have unit length.
        self.upper = np.full(n, fidelity / 2)
        self.gram = np.zeros((wanted, wanted))
        self.products = np.zeros((n, wanted))
        self.coefficients = np.zeros((n, wanted))

    def add(self, row: int, pool: Pool) -> None:
        """Make a point an exemplar."""
        place = len(self.chosen)
        self.chosen.append(row)
        self.costs.append(float(self.upper[row]))
        self.upper[row] = -np.inf  # so that it is not chosen again
        point: Any = self.X[[row]]
        point = (point.toarray() if sp.issparse(point) else point)[0]
        # One product of the data with a row per exemplar: LASSO and its bounds need inner products only.
        self.products[:, place] = matmul(self.X, point, pool)
        self.gram[: place + 1, place] = self.gram[place, : place + 1] = self.products[self.chosen, place]

    def farthest(self) -> int:
        """Return the point with the largest cost; the first of those within the tolerance."""
        # One solve first: the cost of the most promising point excludes most of the others by their bounds.
        top = int(np.argmax(self.upper))
        bar = self._update_bounds(np.array([top]), -np.inf)
        rivals = np.flatnonzero(self.upper >= bar * (1 - self.tol))
        rivals = rivals[rivals != top]
        # Largest bounds first: they may raise the bar, and then the rest need no solve.
        bar = self._update_bounds(rivals[np.argsort(-self.upper[rivals], kind="stable")], bar)
        return int(np.argmax(self.upper >= bar * (1 - self.tol)))

    def _update_bounds(self, rows: np.ndarray, bar: float) -> float:
        """Solve the points that may cost more than ``bar``; return the largest cost."""
        size = len(self.chosen)
        bar, solved = find_costliest(
            self.gram, self.products, size, self.fidelity, self.tol, bar, rows, self.coefficients, self.upper
        )
        self.n_solves += solved
        return bar

    def code(self, pool: Pool) -> np.ndarray:
        """Return the coefficients of all points on the exemplars so far."""
        size = len(self.chosen)
        gram = np.ascontiguousarray(self.gram[:size, :size])
        products = np.ascontiguousarray(self.products[:, :size])
        # A copy: the search must not depend on whether a callback asks for the codes.
        C = self.coefficients[:, :size].copy()
        pool.map(
            lambda block: solve_rows(gram, products[block], self.fidelity, self.tol, C[block]),
            row_blocks(*C.shape),
        )
        # min |c| + lambda/2 (1 - c)^2 is at c = 1 - 1/lambda: an exemplar represents itself.
        C[self.chosen] = (1 - 1 / self.fidelity) * np.eye(size)
        return C


def split_rows(unit: np.ndarray | sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of rows with a direction, and of rows of zeros."""
    full = np.asarray(abs(unit).sum(axis=1)).ravel() > 0 if sp.issparse(unit) else unit.any(axis=1)
    return np.flatnonzero(full), np.flatnonzero(~full)


def similar_codes(X: np.ndarray | sp.csr_array, C: np.ndarray, n_neighbors: int, pool: Pool) -> sp.csr_array:
    """Return the symmetric graph that joins every point to those with the nearest unit coefficient vectors.

    Vectors at a right angle or more have nothing in common, and a choice among them would be arbitrary: the
    points nearest by cosine take their place.
    """
    if n_neighbors < 1:
        return sp.csr_array((len(C), len(C)))
    norms = np.sqrt(squared_norms(C))
    coded = np.flatnonzero(norms > 0)
    indices = np.zeros((len(C), n_neighbors), np.intp)
    strange = np.ones(indices.shape, dtype=bool)
    if len(coded) > n_neighbors:
        unit = C[coded]
        unit /= norms[coded, None]
        near = find_neighbors(unit, n_neighbors, pool=pool)
        indices[coded] = coded[near.indices]
        strange[coded] = near.squared > RIGHT_ANGLE
    rows = np.flatnonzero(strange.any(axis=1))
    if len(rows):
        # At most n_neighbors of them are known already and one is the point itself, so enough are left.
        wanted = min(2 * n_neighbors + 1, len(C))
        for row, near in zip(rows, find_neighbors(X, wanted, X[rows], pool=pool).indices, strict=True):
            alike = indices[row][~strange[row]]
            others = near[(near != row) & ~np.isin(near, alike)]
            indices[row] = np.append(alike, others)[:n_neighbors]
    W = neighbor_graph(indices, np.ones(indices.shape))
    # 1, or 2 for mutual neighbours, as in the authors' program.
    return (W + W.T).tocsr()


def in_all_rows(
    found: dict[str, Any],
    rows: np.ndarray,
    empty: np.ndarray,
    fill: int,
    n_clusters: int,
    dtype: np.dtype,
) -> dict[str, Any]:
    """Return results for all rows from those of some; ``fill`` rows of zeros become exemplars too."""
    n = len(rows) + len(empty)
    placed = sp.csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(n, len(rows)))
    # Labels are ordered by size, so 0 is the largest cluster.
    labels = np.full(n, len(rows) if len(rows) < n_clusters else 0)
    labels[rows] = found["labels_"]
    coefficients = sp.csr_array((placed @ found["coefficients_"]).astype(dtype))
    coefficients.resize((n, coefficients.shape[1] + fill))
    return found | {
        "labels_": labels,
        "exemplar_indices_": np.concatenate([rows[found["exemplar_indices_"]], empty[:fill]]),
        "exemplar_scores_": np.concatenate([found["exemplar_scores_"], np.zeros(fill)]).astype(dtype),
        "coefficients_": coefficients,
        "affinity_": sp.csr_array((placed @ found["affinity_"] @ placed.T).astype(dtype)),
    }
