"""RMNMF: the loop on a fixed neighbourhood graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from smrmf.factorization._manifold import PAPER_SETTINGS, ManifoldFactorization
from smrmf.factorization._points import Problem
from smrmf.factorization._slots import FixedAffinity, FixedPoints, RankedExemplars, Slots
from smrmf.factorization._start import Start
from smrmf.graph.exemplars import ExemplarRule
from smrmf.graph.graphs import heat_graph, heat_representation, symmetrize


class RMNMF(ManifoldFactorization):
    """Cluster by a robust factorisation that is smooth on a fixed neighbourhood graph: RMNMF.

    Solves ``min ||X - G F||_{2,1} + lambda tr(G' L G)`` with G non-negative and orthonormal, (3.1) of the
    paper, where L is the Laplacian of the k-nearest-neighbour graph with adaptive heat weights. The
    l2,1 loss limits the influence of single outliers on the components. Pick it as the reference without a
    learned graph. An iteration costs O(n m c + n k c), the neighbour search before it O(n^2 m) up to 20,000
    points, and about O(n^1.5 m) for more dense ones.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c, the rank of the factorisation.
    exemplars : "auto", float or int, default="auto"
        How many exemplars to report: a share of the points (at least one per cluster) or a count. "auto"
        is as many as one can look at: a tenth of every cluster, at least one, at most five.
    n_neighbors : int, "auto" or "sqrt", default="auto"
        Neighbours of a point in the graph; "auto" is 10 (fewer for tiny data), "sqrt" the paper's
        square root of the number of points.
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
    bandwidth : {"distance", "squared-distance"}, default="distance"
        Heat-kernel width: distance to the k-th neighbour, or its square.
    exemplar_rule : {"mass", "norm"}, default="mass"
        How exemplars are ranked: by the mass they represent inside their cluster, every cluster
        having its share, or by the L2 norm of their row of Z (the paper).
    init : {"spectral", "nndsvd", "kmeans"} or array of shape (n_samples, n_clusters), \
            default="spectral"
        Where the loop starts, which matters more than any other parameter. "spectral" finds clusters of any
        shape by the edges of the neighbourhood graph that many clusterings agree on. "nndsvd" is the paper's.
    penalty : float or "auto", default="auto"
        First penalty mu. "auto" does not depend on the unit of the data; the paper's protocol has 0.1.
    penalty_growth : float, default=1.05
        Growth rho of the penalty per iteration.
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float, default=1e-4
        Relative change of the objective at which to stop, once the constraints hold.
    random_state : int, RandomState or None, default=None
        Seed of the start. The loop itself is deterministic.
    n_jobs : int or None, default=-1
        Threads; the result does not depend on it.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of every point, consecutive from 0: the largest entry of its row of G.
    components_ : array of shape (n_clusters, n_features)
        The basis F, a row for every cluster: about the mean of its points, in their units.
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
    affinity_ : CSR matrix of shape (n_samples, n_samples)
        The symmetric graph.
    representation_ : CSR matrix of shape (n_samples, n_samples)
        Z: entry (i, j) is how much point i represents point j; columns sum to one.
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
        Share of the squared length of the points that the coordinates of the loop leave out: above 0 only
        for wide sparse data, whose distances are exact, but whose factors are found on leading axes.
    n_features_in_ : int
        Features seen by ``fit``.
    feature_names_in_ : array
        Their names, if all are strings.

    References
    ----------
    Huang, Nie, Huang, Ding: Robust manifold nonnegative matrix factorization, TKDD 8(3), 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from smrmf import RMNMF
    >>> X, _ = make_blobs(60, centers=3, random_state=0, cluster_std=0.5)
    >>> model = RMNMF(n_clusters=3, random_state=0).fit(X)
    >>> [int(size) for size in np.bincount(model.labels_)]
    [20, 20, 20]
    """

    _reads_files = True
    # The square of a tiny distance is so narrow a kernel that all weights vanish.
    _for_more_edges = "use bandwidth='distance'"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        exemplars: float | str = "auto",
        n_neighbors: int | str = "auto",
        metric: str = "euclidean",
        neighbors: Any = "auto",
        manifold_weight: float | str = "auto",
        bandwidth: str = "distance",
        exemplar_rule: ExemplarRule = "mass",
        init: str | np.ndarray = "spectral",
        penalty: float | str = "auto",
        penalty_growth: float = 1.05,
        max_iter: int = 1000,
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
        self.bandwidth = bandwidth
        self.exemplar_rule = exemplar_rule
        self.init = init
        self.penalty = penalty
        self.penalty_growth = penalty_growth
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _slots(self, problem: Problem, start: Start) -> Slots:
        # One bandwidth per row makes the weights asymmetric: the Laplacian gets (W + W')/2 (paper note 33).
        # The rows, divided by their sums, are how each point is represented by its neighbours.
        near = problem.neighbors, problem.sizes.n_neighbors, self.bandwidth
        return Slots(
            FixedAffinity(symmetrize(heat_graph(*near)), heat_representation(*near)),
            FixedPoints(),
            RankedExemplars(self.exemplar_rule, problem.sizes.n_reported, problem.groups_of_rows),
        )

    @classmethod
    def paper_settings(cls) -> dict[str, Any]:
        """Return the paper's parameters; it tunes ``manifold_weight`` over 1e-3 ... 1 with labels."""
        # The heat kernel's width is the plain distance, on real data too (paper note 29).
        return PAPER_SETTINGS | {"manifold_weight": 0.1, "bandwidth": "distance"}
