"""APMF: the loop on points whose projection is learned in every iteration."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar

import numpy as np

from smrmf._arrays import check_memory
from smrmf._validation import COUNT, SHARE, Constraints, ParameterError, Sizes
from smrmf.factorization._loop import LARGEST_PENALTY
from smrmf.factorization._manifold import PAPER_SETTINGS, ManifoldFactorization
from smrmf.factorization._points import Problem, leading_axes
from smrmf.factorization._projected import (
    ProjectedAffinity,
    ProjectedPoints,
    graph_scatter,
    smallest_axes,
)
from smrmf.factorization._slots import RankedExemplars, Slots
from smrmf.factorization._start import FirstPoints, Start
from smrmf.graph.exemplars import ExemplarRule


def check_apmf_memory(model: APMF, sizes: Sizes, dtype: np.dtype) -> None:
    """Refuse more points than the n x n arrays have room for."""
    n = sizes.n_samples
    check_memory(
        "APMF", 4 * n * n * dtype.itemsize, f"four arrays of {n} x {n}", "use FastSMRMF, or fewer points"
    )


def projected_points(model: APMF, problem: Problem) -> FirstPoints:
    """Begin with the points in the directions in which neighbours in the first graph differ least."""
    X, pool = problem.reduced, problem.pool
    count = projected_coordinates(model.n_components, X.shape[1])
    P = smallest_axes(graph_scatter(problem.graph(), X, pool), count)
    return FirstPoints(pool.matmul(X, P), P)


class APMF(ManifoldFactorization):
    """Cluster by a factorisation whose graph and projection are learned with it: APMF.

    Solves ``min ||X P - G F||_{2,1} + lambda tr(G' L_S G) + alpha sum_ij s_ij^2 ||P'(x_i - x_j)||^2`` with
    G non-negative and orthonormal, rows of S on the simplex and orthonormal columns of P. Pick it when
    many features are noise and a subspace in which neighbours agree should be found along with the
    clusters. It needs up to four n x n arrays, and ``n^2 m + n m^2`` operations per iteration, which suits
    up to some thousand points and features.

    The published iteration has the sign of a multiplier wrong and drops a term of the step of P, so that its
    residual diverges; here every update minimises (P: lowers) the augmented Lagrangian. Where the
    points do not fill their features, in particular with more features than points, the objective is
    close to zero for a P in directions in which the points do not extend. **There the points are first
    reduced to the principal axes that hold 99.9 % of their variance**, which is a change of method. The
    points are centred, as in the authors' code.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c, the rank of the factorisation.
    exemplars : "auto", float or int, default="auto"
        How many exemplars to report: a share of the points (at least one per cluster) or a count. "auto"
        is as many as one can look at: a tenth of every cluster, at least one, at most five.
    n_neighbors : int, "auto" or "sqrt", default="auto"
        Neighbours of a point in the first graph; "auto" is 10 (fewer for tiny data),
        "sqrt" the paper's square root of the number of points.
    metric : {"euclidean", "cosine"}, default="euclidean"
        How rows are compared: as they are, or by their directions alone, each divided by its length (a
        row of zeros is at right angles to all others).
    neighbors : {"auto", "exact", "approximate"}, sparse graph, pair or transformer, default="auto"
        How neighbours are found. "auto" compares all pairs of up to 20,000 points, and beyond that, of
        dense points, nearly all that matter ("approximate"). Or neighbours of your own, by any measure: a
        sparse graph of distances, the arrays (indices, distances), or a neighbours transformer of
        scikit-learn.
    manifold_weight : float or "auto", default="auto"
        Weight lambda of the graph. "auto" is the typical residual times n/c, with which the graph
        weighs about as much as the loss, for any unit and any number of points.
    projection_weight : float or "auto", default="auto"
        Weight alpha of the distances after projection. The larger lambda / alpha, the more the clusters
        count against the distances in the graph; "auto" gives both about the same weight.
    n_components : float or int, default=0.5
        Coordinates after projection: a share of the features (or of the principal axes, where the
        points are reduced to them) or a count.
    exemplar_rule : {"mass", "norm"}, default="mass"
        How exemplars are ranked: by the mass they represent inside their cluster, every cluster
        having its share, or by the L2 norm of their row of Z (the paper).
    init : {"spectral", "nndsvd", "kmeans"} or array of shape (n_samples, n_clusters), \
            default="spectral"
        Where the loop starts, which matters more than any other parameter. "spectral" finds clusters of any
        shape by the edges of the neighbourhood graph that many clusterings agree on. "nndsvd" is the paper's.
    penalty : float or "auto", default="auto"
        First penalty mu. "auto" does not depend on the unit of the data; the paper's protocol has 0.1.
    penalty_growth : float, default=1.5
        Growth rho of the penalty per iteration.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-4
        Relative change of the objective at which to stop, once the constraints hold; 0 does all
        iterations.
    random_state : int, RandomState or None, default=None
        Seed of the start. The loop itself is deterministic.
    n_jobs : int or None, default=-1
        Threads; the result does not depend on it.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of every point, consecutive from 0: the largest entry of its row of G.
    components_ : array of shape (n_clusters, n_features)
        The basis F, carried back from the projected coordinates: about the mean of every cluster.
    embedding_ : array of shape (n_samples, n_clusters)
        The indicator G: near 1 in the column of the point's cluster, near 0 in the others. The paper's G
        has orthonormal columns; here that of a cluster of s points is times sqrt(s), and its row of F
        divided by it.
    exemplar_indices_ : array
        Exemplars, best first.
    exemplar_scores_ : array
        Their scores under ``exemplar_rule``.
    exemplar_labels_ : array
        Their clusters.
    kept_indices_ : array
        Points whose neighbourhoods the graph is made of.
    projection_ : array of shape (n_features, n_components_)
        The learned P, orthonormal columns.
    n_components_ : int
        Coordinates after projection.
    affinity_ : array of shape (n_samples, n_samples)
        The learned graph, ``(S + S') / 2``.
    representation_ : array of shape (n_samples, n_samples)
        The transpose of S: entry (i, j) is how near point i is to point j; columns sum to one.
    objective_ : float
        Last value of the objective.
    objective_history_ : array of shape (n_iter_,)
        Its value after each iteration.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether the objective settled with the constraints holding.
    stability_ : float
        How well the clusterings that vote in the start agree with its clusters: their mean adjusted Rand
        index, 1 where all are the same, or where the graph falls into the clusters by itself. Only with
        ``init="spectral"``.
    neighbor_recall_ : float
        Share of the nearest neighbours that the search has found: 1 if it is exact, otherwise measured on
        a sample. Not of neighbours that are given.
    membership_ : array of shape (n_samples, n_clusters found)
        How much every point belongs to each cluster; rows sum to one and are largest at the label. The end
        of a walk of two steps over the graph of neighbours, half by the labels there and half by the votes
        of the clusterings that the default start tries.
    confidence_ : array of shape (n_samples,)
        The membership in the own cluster, but lower where a point is labelled against its neighbourhood:
        what the walk gives the label.
    outlier_scores_ : array of shape (n_samples,)
        How far every point lies from all others: 0 amid them, 1/2 if its neighbours are twice as far away
        as they are from theirs, nearly 1 far from everything.
    neglected_share_ : float
        Share of the squared length of the points that the coordinates of the loop leave out: above 0
        where the points are reduced to principal axes, and for wide sparse data, whose distances are exact,
        but whose factors are found on leading axes.
    n_features_in_ : int
        Features seen by ``fit``.
    feature_names_in_ : array
        Their names, if all are strings.

    References
    ----------
    Chen, Wang, Li: Adaptive projected matrix factorization method for data clustering, Neurocomputing
    306, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from smrmf import APMF
    >>> X, _ = make_blobs(60, 4, centers=3, random_state=0, cluster_std=0.5)
    >>> model = APMF(n_clusters=3, random_state=0).fit(X)
    >>> [int(size) for size in np.bincount(model.labels_)]
    [20, 20, 20]
    >>> model.projection_.shape
    (4, 2)
    """

    _constraints: ClassVar[Constraints] = {
        **ManifoldFactorization._constraints,
        "n_components": (COUNT, SHARE),
    }
    _reduction = staticmethod(leading_axes)
    _first_points = staticmethod(projected_points)
    _checks = (check_apmf_memory,)

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        exemplars: float | str = "auto",
        n_neighbors: int | str = "auto",
        metric: str = "euclidean",
        neighbors: Any = "auto",
        manifold_weight: float | str = "auto",
        projection_weight: float | str = "auto",
        n_components: float = 0.5,
        exemplar_rule: ExemplarRule = "mass",
        init: str | np.ndarray = "spectral",
        penalty: float | str = "auto",
        penalty_growth: float = 1.5,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.n_clusters = n_clusters
        self.exemplars = exemplars
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.neighbors = neighbors
        self.manifold_weight = manifold_weight
        self.projection_weight = projection_weight
        self.n_components = n_components
        self.exemplar_rule = exemplar_rule
        self.init = init
        self.penalty = penalty
        self.penalty_growth = penalty_growth
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _slots(self, problem: Problem, start: Start) -> Slots:
        if isinstance(self.projection_weight, str):
            # In a row of S, another cluster costs lambda q with q about c/n, and the distance u has the slope
            # 2 alpha u s. At the mean u and s = 1/n both are equal for this alpha.
            mean = 2 * float(np.var(start.scaled, axis=0).sum())
            # With lambda = 0 any alpha serves.
            alpha = (start.lam or 1.0) * problem.sizes.n_clusters / (2 * (mean or 1.0))
        else:
            # Squared distances are divided by the unit squared, the objective by the unit.
            given = float(self.projection_weight)
            divided = max(start.lam, min(start.mu, LARGEST_PENALTY))
            alpha = start.check_weight(
                "projection_weight", given, given * start.unit, 1 / start.unit, divided
            )
        return Slots(
            ProjectedAffinity(problem.representation(), alpha, problem.pool),
            ProjectedPoints(problem.reduced / start.scale, alpha, problem.reduction, problem.pool),
            RankedExemplars(self.exemplar_rule, problem.sizes.n_reported, problem.groups_of_rows),
        )

    @classmethod
    def paper_settings(cls) -> dict[str, Any]:
        """Return the paper's parameters, with the article's growth and number of iterations.

        The paper tunes both weights over 1e-3 ... 1 (0.01 on large sets) and ``n_components`` over 0.2,
        0.5, 0.7, with labels.
        """
        return PAPER_SETTINGS | {
            "manifold_weight": 0.01,
            "projection_weight": 0.01,
            "n_components": 0.5,
            "penalty_growth": 1.5,
            "max_iter": 30,
            "tol": 0.0,
        }


def projected_coordinates(n_components: float, n_directions: int) -> int:
    """Return how many coordinates a count or a share of the directions means."""
    if not isinstance(n_components, numbers.Integral):
        return max(1, round(n_components * n_directions))
    if n_components > n_directions:
        raise ParameterError(
            f"n_components={n_components} is more than the {n_directions} directions in which the points "
            f"extend: ask for at most {n_directions}, or for a share between 0 and 1."
        )
    return int(n_components)
