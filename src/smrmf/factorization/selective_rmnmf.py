"""RMNMF on the neighbourhoods of selected points: the paper's use of DPP and IPM."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from smrmf._arrays import as_dense
from smrmf._validation import NONE, Constraints, InstanceOf, ParameterError, shown
from smrmf.factorization._manifold import PAPER_PROTOCOL, ManifoldFactorization
from smrmf.factorization._points import Problem
from smrmf.factorization._slots import FixedAffinity, FixedPoints, GivenExemplars, Slots
from smrmf.factorization._start import Start
from smrmf.graph.graphs import heat_graph, rows_to_one, symmetrize
from smrmf.selection.ipm import IPM


class SelectiveRMNMF(ManifoldFactorization):
    """Cluster by a robust factorisation that is smooth on the neighbourhoods of selected points only.

    Solves ``min ||X - G F||_{2,1} + lambda tr(G' L G)`` with G non-negative and orthonormal, where L is the
    Laplacian of :class:`RMNMF`'s graph without the rows of the points that the selector does not choose.
    Pick it to see what a way of choosing points does to a clustering, with everything else equal;
    :class:`SMRMF` and :class:`FastSMRMF` choose while they cluster. It costs what the selector costs,
    and then less than RMNMF, as the graph has fewer edges.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c, the rank of the factorisation.
    selector : estimator or None, default=None
        Sets ``exemplar_indices_`` in its ``fit``: ``IPM()``, ``KDPP()``, ``DS3()``, ``ESC()``, or one of your
        own. None is ``IPM()``, a tenth of the points. A selector whose ``random_state`` is None gets a
        seed drawn from ``random_state``.
    n_neighbors : int, "auto" or "sqrt", default="auto"
        Neighbours of a selected point in the graph; "auto" is 10 (fewer for tiny data), "sqrt" the
        paper's square root of the number of points.
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
        Seed of the start, and of a selector without one.
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
    selector_ : estimator
        The fitted selector.
    exemplar_indices_ : array
        The selected points in the selector's order.
    exemplar_scores_ : array
        The selector's scores; ones if it gives none.
    exemplar_labels_ : array
        Their clusters.
    kept_indices_ : array
        Points whose neighbourhoods the graph is made of.
    affinity_ : CSR matrix of shape (n_samples, n_samples)
        The symmetric graph.
    representation_ : CSR matrix of shape (n_samples, n_samples)
        Z: entry (i, j) is how much the selected point i represents point j; columns sum to one. A point
        in no selected neighbourhood represents itself.
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
    arXiv 2010.09936, section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from smrmf import KDPP, SelectiveRMNMF
    >>> X, _ = make_blobs(60, centers=3, random_state=0, cluster_std=0.5)
    >>> model = SelectiveRMNMF(n_clusters=3, selector=KDPP(exemplars=12), random_state=0).fit(X)
    >>> [int(size) for size in np.bincount(model.labels_)]
    [20, 20, 20]
    >>> len(model.exemplar_indices_)
    12
    """

    _constraints: ClassVar[Constraints] = {
        "selector": (NONE, InstanceOf("a selector such as IPM()", BaseEstimator)),
    }

    # The square of a tiny distance is so narrow a kernel that all weights vanish.
    _for_more_edges = "use bandwidth='distance'"
    # The selector of a user chooses among all rows, and is told nothing of copies.
    _copies_as_one = False

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        selector: Any = None,
        n_neighbors: int | str = "auto",
        metric: str = "euclidean",
        neighbors: Any = "auto",
        manifold_weight: float | str = "auto",
        bandwidth: str = "distance",
        init: str | np.ndarray = "spectral",
        penalty: float | str = "auto",
        penalty_growth: float = 1.05,
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.n_clusters = n_clusters
        self.selector = selector
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.neighbors = neighbors
        self.manifold_weight = manifold_weight
        self.bandwidth = bandwidth
        self.init = init
        self.penalty = penalty
        self.penalty_growth = penalty_growth
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _slots(self, problem: Problem, start: Start) -> Slots:
        selector = fit_selector(self.selector, problem)
        heat = heat_graph(problem.neighbors, problem.sizes.n_neighbors, self.bandwidth)
        # Rows first, then the mean with the transpose (paper note 44): the edges of a selected point stay,
        # at half their weight where the other end is not selected. With all selected it is RMNMF's graph.
        kept = np.zeros(problem.sizes.n_samples, heat.dtype)
        kept[selector.exemplar_indices_] = 1
        restricted = (heat * kept[:, None]).tocsr()
        restricted.eliminate_zeros()
        rows = np.unique(selector.exemplar_indices_)
        affinity = FixedAffinity(symmetrize(restricted), represented_by(restricted), rows)
        return Slots(affinity, FixedPoints(), GivenExemplars(selector))

    @classmethod
    def paper_settings(cls) -> dict[str, Any]:
        """Return the paper's parameters; it tunes ``manifold_weight`` over 1e-3 ... 1 with labels."""
        return PAPER_PROTOCOL | {"manifold_weight": 0.1, "bandwidth": "distance"}


def fit_selector(selector: Any, problem: Problem) -> Any:
    """Fit a copy of the selector, and refuse one that does not say which points it chose."""
    # A clone: fit must not change the parameter that the user gave.
    fitted = IPM() if selector is None else clone(selector)
    # A selector without a random_state at all counts as seeded.
    if fitted.get_params(deep=False).get("random_state", 0) is None:
        fitted.set_params(random_state=problem.random_state.randint(np.iinfo(np.int32).max))
    # As dense for one that does not take sparse points, if that fits in memory.
    takes_sparse = get_tags(fitted).input_tags.sparse
    fitted.fit(problem.data if takes_sparse else as_dense(type(fitted).__name__, problem.data, 1))
    n, chosen = problem.sizes.n_samples, np.asarray(getattr(fitted, "exemplar_indices_", ()))
    if chosen.size == 0 or chosen.dtype.kind not in "iu" or chosen.min() < 0 or chosen.max() >= n:
        raise ParameterError(
            f"selector={shown(selector)} does not set exemplar_indices_ to rows of X, whole numbers from "
            f"0 to {n - 1}, in its fit: give IPM(), KDPP(), DS3(), ESC() or an estimator that does."
        )
    return fitted


def represented_by(neighborhoods: sp.csr_array) -> sp.csr_array:
    """Return Zt: every point spread over the selected points in whose neighbourhoods it lies."""
    Zt = rows_to_one(neighborhoods.T.tocsr())
    # Columns of Z must sum to one also for points in no selected neighbourhood.
    alone = np.asarray(Zt.sum(axis=1) == 0, Zt.dtype).ravel()
    return (Zt + sp.diags_array(alone)).tocsr()
