"""ESC-FFS: exemplar-based subspace clustering by farthest-first search."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClusterMixin
from sklearn.utils import Tags, check_random_state

from smrmf._estimator import RULES, Watch
from smrmf._parallel import Pool, row_blocks
from smrmf._spectral import graph_labels
from smrmf._validation import Number, ParameterError, Rule, check_memory, count_exemplars
from smrmf.kernels.axes import times, unit_rows
from smrmf.kernels.graphs import nearest_neighbors, neighbor_graph
from smrmf.kernels.lasso import raise_bar, solve_rows
from smrmf.selection._base import Selector

KMEANS_STARTS = 20


class Posed(NamedTuple):
    """Checked data, and how many exemplars are wanted."""

    X: Any
    n_exemplars: int


class ESC(ClusterMixin, Selector):
    """Cluster points that lie in subspaces, through a few exemplars that express all of them.

    Points are scaled to unit length. The cost of a point x for exemplars E is ``min_c ||c||_1 + lambda/2
    ||x - c E||^2``, a LASSO. Exemplars are chosen farthest-first: the next one is the point that those
    chosen express worst. Then points whose coefficients c are close are linked, and the graph is clustered
    spectrally. Pick it for data whose classes are subspaces rather than blobs (images under changing
    light, motion, digits), also when classes differ in size. A point is solved anew only while its last
    cost, which can only fall, could make it the next exemplar: some solutions for every exemplar instead
    of n. It needs two arrays of points x exemplars; sparse X stays sparse.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c.
    exemplars : float or int, default=0.05
        How many exemplars to choose: a share of the points (at least one per cluster) or a count.
    fidelity : float, default=100.0
        The weight lambda > 1 of the residual: the larger, the more exactly points are expressed.
    n_neighbors : int, default=3
        Neighbours of a point in the graph, by their coefficients; at most all others. With few of them
        the graph may fall into more parts than clusters.
    tol : float, default=1e-6
        Relative gap between the bounds of a cost at which it counts as known. Exemplars whose costs are
        closer than this tie, and the first of them is taken.
    random_state : int, RandomState or None, default=None
        Draws the first exemplar and seeds k-means.
    n_jobs : int or None, default=-1
        Threads; the result does not depend on it.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of every point, consecutive from 0.
    exemplar_indices_ : array
        The exemplars, in the order in which they were chosen. Once all points are expressed as well as can
        be (duplicates of exemplars), and last of all points at the origin, they come by index.
    exemplar_scores_ : array
        The cost of each when it was chosen, ``lambda / 2`` for the first; they never rise.
    coefficients_ : CSR matrix of shape (n_samples, n_exemplars)
        How every point is expressed; an exemplar by itself, ``1 - 1 / lambda`` times.
    affinity_ : CSR matrix of shape (n_samples, n_samples)
        The symmetric graph.
    n_solves_ : int
        LASSO problems solved in the search; without bounds it would be about the number of points times
        that of exemplars.
    n_features_in_, feature_names_in_
        Features seen by ``fit``, and their names, if all are strings.

    References
    ----------
    You, Li, Robinson, Vidal: Scalable exemplar-based subspace clustering on class-imbalanced data, ECCV 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from smrmf import ESC
    >>> rng = np.random.default_rng(0)
    >>> planes = [rng.random(size=(40, 2)) @ rng.normal(size=(2, 9)) for _ in range(3)]
    >>> model = ESC(n_clusters=3, exemplars=9, n_neighbors=6, random_state=0).fit(np.vstack(planes))
    >>> [int(size) for size in np.bincount(model.labels_)]
    [40, 40, 40]
    """

    _rules: ClassVar[dict[str, Iterable[Rule]]] = {
        name: RULES[name] for name in ("n_clusters", "exemplars", "random_state", "n_jobs")
    } | {
        "fidelity": (Number(1, above=True),),
        "n_neighbors": (Number(1, integer=True),),
        "tol": (Number(0, 1, above=True),),
    }
    n_solves_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        exemplars: float = 0.05,
        fidelity: float = 100.0,
        n_neighbors: int = 3,
        tol: float = 1e-6,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.n_clusters = n_clusters
        self.exemplars = exemplars
        self.fidelity = fidelity
        self.n_neighbors = n_neighbors
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _prepare(self, X: Any) -> Posed:
        n = X.shape[0]
        if n < max(self.n_clusters, 2):
            raise ParameterError(
                f"n_clusters={self.n_clusters} needs at least {max(self.n_clusters, 2)} points, but X has "
                f"n_samples={n}: give more points or ask for fewer clusters."
            )
        count = count_exemplars(self.exemplars, n, self.n_clusters)
        check_memory(
            "ESC",
            3 * 8 * n * count,
            f"three arrays of {n} x {count}",
            "ask for fewer exemplars or give fewer points",
        )
        return Posed(X, count)

    def _n_steps(self, problem: Posed) -> int:
        return problem.n_exemplars

    def _solve(self, problem: Posed, pool: Pool, watch: Watch) -> dict[str, Any]:
        random_state = check_random_state(self.random_state)
        unit, lengths = unit_rows(problem.X)
        search = Search(unit, lengths > 0, problem.n_exemplars, float(self.fidelity), float(self.tol), pool)
        nonzero = np.flatnonzero(lengths > 0)
        first = int(nonzero[random_state.randint(len(nonzero))]) if len(nonzero) else 0
        seed = random_state.randint(np.iinfo(np.int32).max)

        def attributes() -> dict[str, Any]:
            coefficients = search.code()
            graph = coefficient_graph(coefficients, unit, self.n_neighbors, pool)
            # The same seed at every call: watching a fit does not change it.
            state = np.random.RandomState(seed)
            labels = graph_labels(coefficients, graph, self.n_clusters, state, pool, n_starts=KMEANS_STARTS)
            return {
                "labels_": labels,
                "exemplar_indices_": np.array(search.picks, dtype=np.intp),
                "exemplar_scores_": np.array(search.costs, dtype=problem.X.dtype),
                "coefficients_": sp.csr_array(coefficients.astype(problem.X.dtype)),
                "affinity_": graph,
                "n_solves_": search.n_solves,
            }

        row, cost = first, self.fidelity / 2
        while True:
            search.add(row, cost)
            stop = watch({"n_iter": len(search.picks), "objective": cost}, attributes)
            if stop or len(search.picks) == problem.n_exemplars:
                return attributes()
            row, cost = search.farthest()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass
class Search:
    """Farthest-first search: the exemplars so far, and an upper bound of every point's cost for them."""

    unit: Any
    directed: np.ndarray
    n_exemplars: int
    fidelity: float
    tol: float
    pool: Pool
    picks: list[int] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    n_solves: int = 0

    def __post_init__(self) -> None:
        n, k = len(self.directed), self.n_exemplars
        self.products, self.coefficients = np.zeros((n, k)), np.zeros((n, k))
        self.gram = np.zeros((k, k))
        # The cost of nothing: of a unit vector half the fidelity, at the origin none.
        self.upper = np.where(self.directed, self.fidelity / 2, 0.0)

    def add(self, row: int, cost: float) -> None:
        """Make a point an exemplar, found at that cost."""
        t = len(self.picks)
        self.picks.append(row)
        self.costs.append(cost)
        exemplar = self.unit[[row]]
        exemplar = exemplar.toarray() if sp.issparse(exemplar) else exemplar
        self.products[:, t] = times(self.unit, np.ascontiguousarray(exemplar[0]), self.pool)
        self.gram[t, : t + 1] = self.gram[: t + 1, t] = self.products[self.picks, t]
        self.upper[row] = -np.inf

    def farthest(self) -> tuple[int, float]:
        """Return the point of the largest cost, and that cost; ties go to the lower index.

        Costs only fall when exemplars come in, so old ones bound new ones from above, and only points
        whose bound reaches the largest cost found so far are solved.
        """
        size = len(self.picks)
        free = np.flatnonzero((self.upper > -np.inf) & self.directed)
        if len(free) == 0:  # only points at the origin are left
            return int(np.flatnonzero(self.upper > -np.inf)[0]), 0.0
        falling = free[np.argsort(-self.upper[free], kind="stable")]
        bar, solved = raise_bar(
            self.gram,
            self.products,
            size,
            self.fidelity,
            self.tol,
            -np.inf,
            falling,
            self.coefficients,
            self.upper,
        )
        self.n_solves += int(solved)
        row = int(free[np.flatnonzero(self.upper[free] >= bar * (1 - self.tol))[0]])
        return row, float(self.upper[row])

    def code(self) -> np.ndarray:
        """Return the coefficients of all points on the exemplars."""
        size = len(self.picks)
        gram = np.ascontiguousarray(self.gram[:size, :size])
        coefficients = self.coefficients[:, :size].copy()
        coefficients[self.picks] = 0
        coded = self.directed.copy()
        coded[self.picks] = False
        rows = np.flatnonzero(coded)

        def one(block: slice) -> None:
            mine = rows[block]
            found = coefficients[mine]
            solve_rows(gram, np.ascontiguousarray(self.products[mine, :size]), self.fidelity, self.tol, found)
            coefficients[mine] = found

        self.pool.map(one, row_blocks(len(rows), 1024))
        exemplars = np.flatnonzero(self.directed[self.picks])
        coefficients[np.array(self.picks)[exemplars], exemplars] = 1 - 1 / self.fidelity
        return coefficients


def coefficient_graph(coefficients: np.ndarray, unit: Any, n_neighbors: int, pool: Pool) -> sp.csr_array:
    """Link every point to those with the nearest coefficients, scaled to unit length.

    A point that no exemplar expresses is linked to those it makes the smallest angle with.
    """
    n = len(coefficients)
    k = min(n_neighbors, n - 1)
    norms = np.linalg.norm(coefficients, axis=1)
    expressed = np.flatnonzero(norms > 0)
    indices = np.empty((n, k), np.intp)
    if len(expressed) > k:
        scaled = coefficients[expressed] / norms[expressed, None]
        indices[expressed] = expressed[nearest_neighbors(scaled, k, pool=pool).indices]
        others = np.flatnonzero(norms == 0)
    else:
        others = np.arange(n)
    if len(others):
        indices[others] = nearest_neighbors(unit, k, pool=pool).indices[others]
    W = neighbor_graph(indices, np.ones((n, k)))
    return (W + W.T).tocsr()
