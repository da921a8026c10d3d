"""f-SMRMF: every column of Z in closed form, in memory that grows with n only."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from smrmf._arrays import check_memory
from smrmf._scratch import is_mapped
from smrmf._validation import AUTO, Constraints, Interval, Sizes
from smrmf.factorization._closed_form import ClosedFormAffinity
from smrmf.factorization._dissimilarity import make_dissimilarity, scaled_selection_weight
from smrmf.factorization._footprint import memory_of_fit
from smrmf.factorization._manifold import PAPER_SETTINGS, ManifoldFactorization
from smrmf.factorization._points import Problem
from smrmf.factorization._slots import FixedPoints, RankedExemplars, Slots
from smrmf.factorization._start import Start
from smrmf.graph.exemplars import ExemplarRule, Neighborhoods
from smrmf.graph.search import suits_cells

# From so many numbers on a table is large enough to ask whether there is memory for it.
LARGE = 10**6


class FastSMRMF(ManifoldFactorization):
    """Cluster points, and find exemplars among them that represent the others: f-SMRMF.

    Solves (5.16) of the paper, ``min ||X - G F||_{2,1} + lambda tr(G' L_Z G) + beta (<D, Z> + delta/2
    ||Z||_F^2)`` with G non-negative and orthonormal and the columns of Z on the simplex. Each column
    has a closed form on its nearest candidates, certified exact. With the default dissimilarity and
    smoothness an iteration costs O(n m c + n k c), and memory grows with n; a large ``smoothness``
    makes all of Z positive, and "kernel" compares all pairs in every iteration. The neighbour search
    before costs O(n^2 m) up to 20,000 points; among more dense ones it looks into near cells only, and
    nearly all neighbours are found (``neighbor_recall_``). Pick it first: the defaults need no tuning and
    no scaling of weights.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c, the rank of the factorisation.
    exemplars : "auto", float or int, default="auto"
        How many exemplars to keep in the graph and to report: a share of the points (at least one per
        cluster) or a count. "auto" keeps a tenth of the points in the graph, as the paper does, and
        reports as many as one can look at: a tenth of every cluster, at least one, at most five.
    n_neighbors : int, "auto" or "sqrt", default="auto"
        Neighbours of an exemplar in the graph, and of a point in the bandwidths; "auto" is 10 (fewer
        for tiny data), "sqrt" the paper's square root of the number of points.
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
        Weight beta of the representation. The larger lambda / beta, the more the clusters found so
        far count against the input space; "auto" gives both about the same weight.
    smoothness : float or "auto", default="auto"
        Weight delta that spreads a point over its representatives. "auto" is one delta per point, with
        which it has exactly ``n_neighbors`` of them in the first Z, itself excluded; a number is the
        paper's delta for all points.
    dissimilarity : {"sqeuclidean", "kernel", "euclidean"}, default="sqeuclidean"
        What Z minimises: squared distances over their local mean, minus the adaptive Gaussian kernel
        (the paper), or distances over the largest one.
    neighborhoods : {"affinity", "input"}, default="affinity"
        Neighbours of an exemplar: the largest entries of its row of Z, or its nearest points.
    bandwidth : {"distance", "squared-distance"}, default="distance"
        Kernel width, for ``dissimilarity="kernel"``: distance to the k-th neighbour, or its square,
        which suits points of unit norm only (the paper's choice for real data).
    exemplar_rule : {"mass", "norm"}, default="mass"
        How exemplars are ranked: by the mass they represent (in the result: inside their cluster,
        every cluster having its share), or by the L2 norm of their row of Z (the paper).
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
    freeze_tol : float, default=0
        Z stays as it is for the rest of the fit once none of its entries changes by more; the paper
        uses 1e-5 from 2000 points on. 0 updates it in every iteration.

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
        The symmetrised neighbourhoods of the exemplars, the graph of the last iteration.
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
    Mani, Domeniconi, Griva: Unsupervised selective manifold regularized matrix factorization,
    arXiv 2010.09936.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from smrmf import FastSMRMF
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = FastSMRMF(n_clusters=3, random_state=0).fit(X)
    >>> [int(size) for size in np.bincount(model.labels_)]
    [64, 50, 36]
    >>> bool((model.predict(X) == model.labels_).all())
    True
    """

    _constraints: ClassVar[Constraints] = {
        **ManifoldFactorization._constraints,
        "smoothness": (Interval(1e-30, 1e30), AUTO),
    }

    _reads_files: ClassVar[bool] = True
    # A number may be so small that every point represents itself only.
    _for_more_edges = "raise smoothness"

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
        smoothness: float | str = "auto",
        dissimilarity: str = "sqeuclidean",
        neighborhoods: str = "affinity",
        bandwidth: str = "distance",
        exemplar_rule: ExemplarRule = "mass",
        init: str | np.ndarray = "spectral",
        penalty: float | str = "auto",
        penalty_growth: float = 1.05,
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = -1,
        freeze_tol: float = 0.0,
    ) -> None:
        self.n_clusters = n_clusters
        self.exemplars = exemplars
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.neighbors = neighbors
        self.manifold_weight = manifold_weight
        self.selection_weight = selection_weight
        self.smoothness = smoothness
        self.dissimilarity = dissimilarity
        self.neighborhoods = neighborhoods
        self.bandwidth = bandwidth
        self.exemplar_rule = exemplar_rule
        self.init = init
        self.penalty = penalty
        self.penalty_growth = penalty_growth
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.freeze_tol = freeze_tol

    def memory_needed(
        self, n_samples: int, n_features: int, dtype: Any = np.float64, in_file: bool = False
    ) -> int:
        """Estimate how many bytes a fit of dense points takes, beside the points themselves.

        Parameters
        ----------
        n_samples, n_features : int
            Size of the table.
        dtype : data type, default=numpy.float64
            Its numbers: those of float32 take half as much.
        in_file : bool, default=False
            Whether it is memory-mapped, so that its rows need no memory.

        Returns
        -------
        int
            Bytes, within a factor of two, if the default start and lists suffice.

        Examples
        --------
        >>> from smrmf import FastSMRMF
        >>> round(FastSMRMF(10).memory_needed(1_000_000, 50, "float32") / 2**30, 1)
        1.3
        """
        sizes = Sizes.from_parameters(n_samples, self.n_clusters, self.n_neighbors, self.exemplars)
        many = suits_cells(n_samples, self.neighbors)
        return memory_of_fit(sizes, n_features, np.dtype(dtype), many=many, mapped=in_file and many)

    def _check_memory(self, X: Any) -> None:
        if not isinstance(X, np.ndarray) or X.ndim != 2 or X.size < LARGE:
            return  # whatever else is wrong with it is found when it is looked at
        dtype = X.dtype if X.dtype == np.float32 else np.float64
        check_memory(
            type(self).__name__,
            self.memory_needed(X.shape[0], X.shape[1], dtype, is_mapped(X)),
            f"rows, lists and factors of {X.shape[0]} points",
            "give numbers of type float32, a memory-mapped file, fewer points or fewer clusters",
        )

    def _slots(self, problem: Problem, start: Start) -> Slots:
        sizes = problem.sizes
        near = problem.neighbors.indices[:, : sizes.n_neighbors] if self.neighborhoods == "input" else None
        # With the mean of the latent bandwidths for all points, as the paper has it (paper note 28).
        dissimilarity = make_dissimilarity(self.dissimilarity, self.bandwidth, True, problem)
        smoothness = None if isinstance(self.smoothness, str) else float(self.smoothness)
        # The simplex graph of the start solves (5.18) for squared distances and k neighbours. Then it is the
        # first Z: D and delta scaled by one factor leave z = P(-d / delta) the same.
        known = smoothness is None and self.dissimilarity == "sqeuclidean"
        affinity = ClosedFormAffinity(
            dissimilarity,
            Neighborhoods(sizes.n_exemplars, sizes.n_neighbors, self.exemplar_rule, near),
            scaled_selection_weight(self.selection_weight, dissimilarity, problem, start),
            smoothness,
            # The neighbour search has found these, and the next one, which bounds the rest.
            list_size=2 * sizes.n_neighbors,
            freeze_tol=self.freeze_tol,
            first=problem.representation if known else None,
        )
        exemplars = RankedExemplars(self.exemplar_rule, sizes.n_reported, problem.groups_of_rows)
        return Slots(affinity, FixedPoints(), exemplars)

    @classmethod
    def paper_settings(cls) -> dict[str, Any]:
        """Return the paper's parameters.

        It tunes ``manifold_weight`` and ``selection_weight`` over 1e-3 ... 1 and ``smoothness`` over
        1e-2 ... 10, with labels.
        """
        return PAPER_SETTINGS | {
            "manifold_weight": 0.1,
            "selection_weight": 0.1,
            "smoothness": 1.0,
            "dissimilarity": "kernel",
            "neighborhoods": "affinity",
            "bandwidth": "squared-distance",
        }
