"""AMRMF: the loop on a graph whose neighbours adapt to the clusters found so far."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from smrmf.factorization._closed_form import AdaptiveAffinity, ClosedFormAffinity
from smrmf.factorization._dissimilarity import InputSpace, RoughnessDissimilarity, scaled_selection_weight
from smrmf.factorization._manifold import PAPER_SETTINGS, ManifoldFactorization
from smrmf.factorization._points import Problem
from smrmf.factorization._slots import FixedPoints, RankedExemplars, Slots
from smrmf.factorization._start import Start
from smrmf.graph.exemplars import ExemplarRule, Neighborhoods


class AMRMF(ManifoldFactorization):
    """Cluster by a factorisation on a graph that is learned from distances and clusters: AMRMF.

    Solves ``min ||X - G F||_{2,1} + lambda tr(G' L_S G) + beta sum_ij (d_ij s_ij + alpha s_ij^2)`` with G
    non-negative and orthonormal, rows of S on the simplex, ``s_ii = 0`` and squared distances d. Every
    point may be a neighbour of every other; the weight alpha is the mean of those that give each
    point k neighbours in the input space. Pick it when neighbours by distance alone are in doubt and
    the clusters should influence them. Rows of S are found on short candidate lists certified exact, so
    it costs about what :class:`FastSMRMF` costs; while G and H differ much (``init="nndsvd"``), lists
    can grow to n.

    **This is a derivation, not a transcription.** The article that introduces AMRMF is not available to us.
    The objective is derived from what is published about it (a robust factorisation and a learned
    affinity solved together by an augmented Lagrangian, adaptive neighbours as in CAN, whose alpha the
    paper uses); every update, S included, minimises the augmented Lagrangian exactly.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c, the rank of the factorisation.
    exemplars : "auto", float or int, default="auto"
        How many exemplars to report: a share of the points (at least one per cluster) or a count. "auto"
        is as many as one can look at: a tenth of every cluster, at least one, at most five.
    n_neighbors : int, "auto" or "sqrt", default="auto"
        Neighbours of a point in the first graph, which set alpha; "auto" is 10 (fewer for tiny data),
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
    selection_weight : float or "auto", default="auto"
        Weight beta of the distances. The larger lambda / beta, the more the clusters found so far
        count against the input space; "auto" gives both about the same weight.
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
        The learned graph, ``(S + S') / 2``.
    representation_ : CSR matrix of shape (n_samples, n_samples)
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
        Share of the squared length of the points that the coordinates of the loop leave out: above 0 only
        for wide sparse data, whose distances are exact, but whose factors are found on leading axes.
    n_features_in_ : int
        Features seen by ``fit``.
    feature_names_in_ : array
        Their names, if all are strings.

    References
    ----------
    Zhang, Zhang, Du, You, Tao: Adaptive manifold regularized matrix factorization for data clustering,
    IJCAI 2017. Nie, Wang, Huang: Clustering and projected clustering with adaptive neighbors, KDD 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from smrmf import AMRMF
    >>> X, _ = make_blobs(60, centers=3, random_state=0, cluster_std=0.5)
    >>> model = AMRMF(n_clusters=3, random_state=0).fit(X)
    >>> [int(size) for size in np.bincount(model.labels_)]
    [20, 20, 20]
    """

    _reads_files = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        exemplars: float | str = "auto",
        n_neighbors: int | str = "auto",
        metric: str = "euclidean",
        neighbors: Any = "auto",
        manifold_weight: float | str = "auto",
        selection_weight: float | str = "auto",
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
        self.selection_weight = selection_weight
        self.exemplar_rule = exemplar_rule
        self.init = init
        self.penalty = penalty
        self.penalty_growth = penalty_growth
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _slots(self, problem: Problem, start: Start) -> Slots:
        sizes = problem.sizes
        dissimilarity = RoughnessDissimilarity.from_space(
            InputSpace(problem.points, problem.neighbors, sizes.n_neighbors, problem.pool)
        )
        if isinstance(self.selection_weight, str):
            beta = scaled_selection_weight(self.selection_weight, dissimilarity, problem, start)
        else:
            # The weight is meant for squared distances of the data as given, magnitude^2 * scale * D here;
            # the objective of the loop is divided by magnitude * start.scale.
            unit = problem.magnitude * dissimilarity.distances.scale / start.scale or math.ulp(0.0)
            weight = self.selection_weight * unit
            beta = start.check_weight("selection_weight", self.selection_weight, weight, 1 / unit, start.lam)
        columns = ClosedFormAffinity(
            dissimilarity,
            # All of S is the graph, no exemplars are selected.
            Neighborhoods(None, sizes.n_neighbors, "mass"),
            beta,
            smoothness=None,
            list_size=2 * sizes.n_neighbors,
            first=problem.representation,
        )
        exemplars = RankedExemplars(self.exemplar_rule, sizes.n_reported, problem.groups_of_rows)
        return Slots(AdaptiveAffinity(columns), FixedPoints(), exemplars)

    @classmethod
    def paper_settings(cls) -> dict[str, Any]:
        """Return the paper's parameters; ``manifold_weight`` is tuned over 1e-3 ... 1 with labels.

        The weight of the distances is 1, as CAN has it (paper notes 41 and 52).
        """
        return PAPER_SETTINGS | {"manifold_weight": 0.1, "selection_weight": 1.0}
