"""GNMF: non-negative factorisation that is smooth on a graph."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Tags, check_random_state

from smrmf._arrays import check_nonnegative, divide_keeping_dtype, scale_to_safe_range
from smrmf._estimator import FitReporter, Fitted
from smrmf._parallel import Pool
from smrmf._validation import NONE, Constraints, InstanceOf, Interval, OneOf, Sizes
from smrmf.factorization._alternating import Factors, Multiplicative, alternate, unit_components
from smrmf.factorization._certainty import certainty
from smrmf.factorization._new_points import Factorization
from smrmf.graph.duplicates import distinct_rows
from smrmf.graph.graphs import either_neighbor_graph, given_graph
from smrmf.graph.labels import empty_cluster_warnings, empty_columns_last, label_rows
from smrmf.graph.search import nearest
from smrmf.kernels.nonnegative_svd import nonnegative_parts
from smrmf.kernels.scaling import squared_frobenius_norm
from smrmf.kernels.thin_svd import thin_svd
from smrmf.kernels.truncated_svd import leading_singular_vectors
from smrmf.sharing import remember

# Up to this size a whole SVD is as quick as a part of it.
FEW = 500
FEW_NEIGHBORS = 5
# Entries of the start below this share of the largest count as zeros: they are rounding.
ROUNDING_SHARE = 1e-6


class GNMFInput(NamedTuple):
    """Checked data, divided by its magnitude, the graph of the user, and the sizes of the problem."""

    data: Any
    magnitude: float
    graph: sp.csr_array | None
    sizes: Sizes


class GNMF(Factorization):
    """Cluster by non-negative parts that linked points mix in similar amounts: graph-regularised NMF.

    Solves ``min ||X - G F||_F^2 + lambda tr(G' L G)`` over non-negative G and F, where L is the Laplacian of
    a neighbourhood graph or of your own. Pick it for non-negative data (images, counts, spectra) when the
    components should be parts, and linked points should have similar amounts of them; sparse X stays
    sparse. An iteration costs O(n m c + n k c), or the non-zeros of X times c, and never raises the
    objective.

    The graph term falls with the size of G, so part of a large weight is lost to a smaller G and a larger F;
    with ``labels="argmax"`` it can make columns of G proportional, so that one cluster takes all points.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c, the rank of the factorisation.
    n_neighbors : int, "auto" or "sqrt", default="auto"
        Neighbours in the graph: i and j are linked, with weight 1, if either is among the nearest of
        the other. "auto" is the original 5 (fewer for tiny data), "sqrt" the paper's square root of
        the number of points.
    graph : array or sparse matrix of shape (n_samples, n_samples) or None, default=None
        Your own non-negative weights, instead of neighbours. Of weights that differ by direction the
        larger counts.
    manifold_weight : float, default=10.0
        Weight lambda of the graph, for data scaled to points of unit length (root mean square), so
        it does not depend on the unit of X. 0 is plain NMF by multiplicative updates.
    labels : {"kmeans", "argmax"}, default="kmeans"
        Clusters by k-means on the rows of G (the original), or by their largest entry.
    init : {"auto", "random"}, default="auto"
        Where to start: the non-negative SVD with its zeros filled by the mean, where the rank allows
        it, or at random (the original).
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float, default=1e-3
        Relative change of the objective at which to stop; 0 does all iterations.
    random_state : int, RandomState or None, default=None
        Seed of a random start and of k-means.
    n_jobs : int or None, default=-1
        Threads; the result does not depend on it.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of every point, consecutive from 0.
    components_ : array of shape (n_clusters, n_features)
        The parts F, of unit length.
    embedding_ : array of shape (n_samples, n_clusters)
        G: how much of each part a point has.
    membership_ : array of shape (n_samples, n_clusters found)
        How much every point belongs to each cluster, by the labels at the end of a walk of two steps over
        the graph of nearest neighbours; rows sum to one and are largest at the label.
    confidence_ : array of shape (n_samples,)
        The membership in the own cluster, but lower where a point is labelled against its neighbourhood:
        what the walk gives the label.
    outlier_scores_ : array of shape (n_samples,)
        How far every point lies from all others: 0 amid them, 1/2 if its neighbours are twice as far away
        as they are from theirs, nearly 1 far from everything.
    affinity_ : CSR matrix of shape (n_samples, n_samples)
        The symmetric graph.
    objective_, objective_history_ : float, array of shape (n_iter_,)
        The objective of the scaled data, last and after each iteration.
    n_iter_, converged_ : int, bool
        Iterations done, and whether the objective settled.
    n_features_in_, feature_names_in_
        Features seen by ``fit``, and their names, if all are strings.

    References
    ----------
    Cai, He, Han, Huang: Graph regularized nonnegative matrix factorization for data representation,
    IEEE TPAMI 33(8), 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from smrmf import GNMF
    >>> X = load_digits(n_class=3).data
    >>> model = GNMF(n_clusters=3, random_state=0).fit(X)
    >>> model.components_.shape, bool((model.components_ >= 0).all())
    ((3, 64), True)
    >>> [int(size) for size in np.bincount(model.labels_)]
    [195, 178, 164]
    """

    _constraints: ClassVar[Constraints] = {
        "graph": (
            NONE,
            InstanceOf("an array or sparse matrix of weights", np.ndarray, sp.spmatrix, sp.sparray),
        ),
        "manifold_weight": (Interval(0, 1e30),),  # the points have unit length: more is never needed
        "init": (OneOf("auto", "random"),),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int | str = "auto",
        graph: Any = None,
        manifold_weight: float = 10.0,
        labels: str = "kmeans",
        init: str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.manifold_weight = manifold_weight
        self.labels = labels
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _prepare(self, X: Any) -> tuple[GNMFInput, int]:
        check_nonnegative("GNMF", float(X.min()))
        graph = None if self.graph is None else given_graph(self.graph, X.shape[0], X.dtype)
        # With a given graph n_neighbors is not used, so it is not checked against the data either.
        n_neighbors = "auto" if graph is not None else self.n_neighbors
        sizes = Sizes.from_parameters(X.shape[0], self.n_clusters, n_neighbors, usual_neighbors=FEW_NEIGHBORS)
        data, magnitude = scale_to_safe_range(X)
        return GNMFInput(data, magnitude, graph, sizes), self.max_iter

    def _solve(self, given: GNMFInput, pool: Pool, report: FitReporter) -> Fitted:
        data, magnitude, graph, sizes = given
        random_state = check_random_state(self.random_state)
        neighbors = remember(nearest, data, sizes.n_neighbors, pool=pool)
        graph = either_neighbor_graph(neighbors) if graph is None else graph
        # Points of unit root-mean-square length: lambda and SMALLEST then mean the same for any unit of X.
        scale = float(np.sqrt(squared_frobenius_norm(data) / sizes.n_samples)) or 1.0
        X = divide_keeping_dtype(data, scale)
        degrees = np.asarray(graph.sum(axis=1)).ravel()
        norm, weight = squared_frobenius_norm(X), float(self.manifold_weight)
        method = Multiplicative(X, norm, graph, degrees, weight, pool)
        seed = random_state.randint(np.iinfo(np.int32).max)
        groups = distinct_rows(data)

        def fitted(factors: Factors) -> Fitted:
            # A column of G may grow as its row of F shrinks: unit rows of F fix how they share the size of X.
            F, G = unit_components(factors.F, factors.G)
            # The same seed at every call: watching a fit does not change it.
            draws = np.random.RandomState(seed)
            labels, moved = label_rows(G, self.labels, sizes.n_clusters, draws, groups)
            order, labels = empty_columns_last(labels, sizes.n_clusters)
            F, G = F[order], G[:, order]
            attributes = {
                "labels_": labels,
                "embedding_": G * G.dtype.type(scale * magnitude),
                "components_": F,
                "affinity_": graph,
                "_fit_data": data,
                "_magnitude": magnitude,
                "_fit_neighbors": sizes.n_neighbors,
            }
            attributes |= certainty(labels, graph, neighbors, sizes.n_neighbors)
            return Fitted(attributes, empty_cluster_warnings(labels, moved, sizes.n_clusters, groups))

        def on_iteration(n_iter: int, objective: float, factors: Factors) -> bool:
            return report({"n_iter": n_iter, "objective": objective}, lambda: fitted(factors).attributes)

        start = method.with_products(*first_factors(X, sizes.n_clusters, self.init, random_state))
        solution = alternate(method, start, max_iter=self.max_iter, tol=self.tol, on_iteration=on_iteration)
        attributes, warnings = fitted(solution.factors)
        return Fitted(attributes | solution.attributes(), solution.warnings("GNMF", self.tol) + warnings)

    @classmethod
    def paper_settings(cls) -> dict[str, Any]:
        """Return the paper's parameters.

        It tunes ``manifold_weight`` over 1e-3 ... 1 with labels and averages over 30 random starts.
        """
        return {
            "n_neighbors": "sqrt",
            "manifold_weight": 1e-3,
            "labels": "argmax",
            "init": "random",
            "tol": 1e-4,
        }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def first_factors(
    X: Any, n_clusters: int, init: str, random_state: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Return positive factors: multiplicative updates never leave a zero."""
    n, m = X.shape
    mean = float(X.mean())
    if init == "random" or n_clusters >= min(n, m) or mean == 0:
        # G F is a sum of c products: entries of this size make it as large as X, up to a constant.
        size = np.sqrt(mean / n_clusters)
        G, F = random_state.uniform(size=(n, n_clusters)), random_state.uniform(size=(n_clusters, m))
        return (size * G).astype(X.dtype), (size * F).astype(X.dtype)
    if not sp.issparse(X) and min(n, m) <= FEW:
        left, values, right = thin_svd(X)
    else:
        # Positive, so that it has a part along the leading vector of X >= 0.
        first = random_state.uniform(0.5, 1, min(n, m))
        left, values, right = leading_singular_vectors(X, n_clusters, first)
    # Zeros of the non-negative SVD become the mean of X: updates never leave a zero (paper note 13).
    G, F = (
        np.where(part > ROUNDING_SHARE * part.max(), part, mean).astype(X.dtype)
        for part in nonnegative_parts(left[:, :n_clusters], values, right)
    )
    return G, F
