"""Deep semi-NMF: two layers of features, clustered by the code of the second."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.utils import check_random_state

from smrmf._arrays import as_dense, divide_keeping_dtype, scale_to_safe_range
from smrmf._estimator import FitReporter, Fitted
from smrmf._parallel import Pool
from smrmf._validation import (
    AUTO,
    COUNT,
    DEFAULT_NEIGHBORS,
    Constraints,
    PairOf,
    ParameterError,
    check_n_clusters,
)
from smrmf.factorization._alternating import AlternatingSolution, Factors, SemiNonnegative, alternate
from smrmf.factorization._certainty import certainty
from smrmf.factorization._new_points import Factorization
from smrmf.factorization._points import reduce_features
from smrmf.graph.duplicates import agreeing_labels, distinct_rows
from smrmf.graph.graphs import either_neighbor_graph
from smrmf.graph.labels import empty_cluster_warnings, kmeans_labels
from smrmf.graph.search import nearest
from smrmf.kernels.scaling import squared_frobenius_norm
from smrmf.kernels.thin_svd import thin_svd
from smrmf.sharing import remember

# The lift is at least this share of its mean: it must be positive where the leading singular vector is zero.
SMALLEST_LIFT = 1e-2
# Lifts are this much larger than needed, so that no entry becomes exactly zero.
LIFT = 1.01
# With fewer entries than this share, products with sparse data are the cheaper ones.
SPARSE_DATA_SHARE = 0.05


class DeepInput(NamedTuple):
    """Checked data, divided by its magnitude, and the sizes of the two layers."""

    data: np.ndarray
    magnitude: float
    layers: tuple[int, int]


class DeepSemiNMF(Factorization):
    """Cluster by a short non-negative code that is found through a longer one: deep semi-NMF.

    Solves ``min ||X - H_2 Z_2 Z_1||_F^2`` with a non-negative code ``H_2`` and features ``Z_2 Z_1`` of any
    sign, after finding ``X ~ H_1 Z_1`` and ``H_1 ~ H_2 Z_2`` layer by layer; clusters come from k-means on
    ``H_2``. Pick it for data of any sign whose clusters overlap in the input space. An iteration costs
    O(n m k_2), in the first layer O(n m k_1).

    The product ``Z_2 Z_1`` is an arbitrary matrix of rank k_2, so the model is that of one semi-NMF of rank
    k_2, and so is every step of its fine-tuning; depth decides only where it starts. So the fine-tuning works
    on the product, and the product is split into its layers at the end.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c.
    layers : "auto" or pair of int, default="auto"
        Sizes of the two codes. "auto" is half the features and the larger of a tenth of that and
        ``2 n_clusters`` (the paper), never more than points, features, or the layer before.
    max_iter : int, default=1000
        Maximum number of iterations, in each layer and in the fine-tuning.
    tol : float, default=1e-4
        Relative change of the objective at which to stop; 0 does all iterations.
    n_init : int, default=20
        Starts of k-means.
    random_state : int, RandomState or None, default=None
        Seed of k-means. The factorisation itself is deterministic.
    n_jobs : int or None, default=-1
        Threads; the result does not depend on it.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Cluster of every point, consecutive from 0.
    components_ : array of shape (k_2, n_features)
        The features ``Z_2 Z_1``.
    embedding_ : array of shape (n_samples, k_2)
        The code ``H_2``.
    membership_ : array of shape (n_samples, n_clusters found)
        How much every point belongs to each cluster, by the labels at the end of a walk of two steps over
        the graph of nearest neighbours; rows sum to one and are largest at the label.
    confidence_ : array of shape (n_samples,)
        The membership in the own cluster, but lower where a point is labelled against its neighbourhood:
        what the walk gives the label.
    outlier_scores_ : array of shape (n_samples,)
        How far every point lies from all others: 0 amid them, 1/2 if its neighbours are twice as far away
        as they are from theirs, nearly 1 far from everything.
    layer_components_ : list of two arrays, of shapes (k_1, n_features) and (k_2, k_1)
        ``Z_1`` and ``Z_2``.
    objective_, objective_history_ : float, array of shape (n_iter_,)
        The objective of data scaled to points of unit length (root mean square), last and after
        each iteration of the fine-tuning.
    n_iter_, converged_ : int, bool
        Iterations of the fine-tuning, and whether its objective settled.
    n_features_in_, feature_names_in_
        Features seen by ``fit``, and their names, if all are strings.

    References
    ----------
    Trigeorgis, Bousmalis, Zafeiriou, Schuller: A deep semi-NMF model for learning hidden representations,
    ICML 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from smrmf import DeepSemiNMF
    >>> X = load_digits(n_class=3).data
    >>> model = DeepSemiNMF(n_clusters=3, random_state=0).fit(X)
    >>> model.embedding_.shape, bool((model.embedding_ >= 0).all())
    ((537, 6), True)
    """

    _constraints: ClassVar[Constraints] = {
        "layers": (AUTO, PairOf("a pair of integers of at least 1", COUNT)),
        "n_init": (COUNT,),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        layers: str | tuple[int, int] = "auto",
        max_iter: int = 1000,
        tol: float = 1e-4,
        n_init: int = 20,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.n_clusters = n_clusters
        self.layers = layers
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _prepare(self, X: Any) -> tuple[DeepInput, int]:
        check_n_clusters(self.n_clusters, X.shape[0])
        layers = layer_sizes(self.layers, X.shape[0], X.shape[1], self.n_clusters)
        # The data, the same scaled, a copy for the SVD and its two factors, and work of about five squares.
        n_arrays = 5 + math.ceil(5 * min(X.shape) / max(X.shape))
        data, magnitude = scale_to_safe_range(as_dense("DeepSemiNMF", X, n_arrays))
        return DeepInput(data, magnitude, layers), self.max_iter

    def _solve(self, given: DeepInput, pool: Pool, report: FitReporter) -> Fitted:
        data, magnitude, layers = given
        random_state = check_random_state(self.random_state)
        seed = random_state.randint(np.iinfo(np.int32).max)
        # To points of unit root-mean-square length, for which the smallest denominator of the updates is set.
        scale = float(np.sqrt(squared_frobenius_norm(data) / len(data))) or 1.0
        # On an orthonormal basis of the rows ||X - G F|| is the same, with fewer columns.
        reduced, reduction = reduce_features(divide_keeping_dtype(data, scale))
        unit = data.dtype.type(scale * magnitude)
        groups = distinct_rows(data)

        k = min(DEFAULT_NEIGHBORS, len(data) - 1)
        neighbors = remember(nearest, data, k, pool=pool)
        graph = either_neighbor_graph(neighbors)

        first = semi_nmf(reduced, layers[0], pool, self.max_iter, self.tol)
        # H_1 ~ H_2 Z_2, so the F of this layer is Z_2, and X ~ H_2 Z_2 Z_1.
        second = semi_nmf(first.factors.G, layers[1], pool, self.max_iter, self.tol)
        mixing = second.factors.F

        def attributes(factors: Factors) -> dict[str, Any]:
            # The same seed at every call: watching a fit does not change it.
            kmeans_state = np.random.RandomState(seed)
            features = (factors.F if reduction.basis is None else factors.F @ reduction.basis) * unit
            labels = kmeans_labels(factors.G, self.n_clusters, kmeans_state, self.n_init)
            labels = agreeing_labels(labels, groups)
            return certainty(labels, graph, neighbors, k) | {
                "labels_": labels,
                "embedding_": factors.G,
                "components_": features,
                # The Z_1 with Z_2 Z_1 nearest to the features: equal to them where Z_2 has full row rank.
                "layer_components_": [scipy.linalg.pinv(mixing) @ features, mixing],
                "_fit_data": data,
                "_magnitude": magnitude,
                "_fit_neighbors": k,
            }

        def on_iteration(n_iter: int, objective: float, factors: Factors) -> bool:
            return report({"n_iter": n_iter, "objective": objective}, lambda: attributes(factors))

        tuning = semi_nmf(reduced, second.factors.G, pool, self.max_iter, self.tol, on_iteration)
        found = attributes(tuning.factors)
        warnings = empty_cluster_warnings(found["labels_"], [], self.n_clusters, groups)
        return Fitted(found | tuning.attributes(), warnings + tuning.warnings("DeepSemiNMF", self.tol))

    @classmethod
    def paper_settings(cls) -> dict[str, Any]:
        """Return the original's parameters: all iterations, and a hundred starts of k-means."""
        return {"layers": "auto", "max_iter": 500, "tol": 0.0, "n_init": 100}


def layer_sizes(
    layers: str | tuple[int, int], n_samples: int, n_features: int, n_clusters: int
) -> tuple[int, int]:
    """Return the sizes of the two codes; the paper asks for too many on some sets (paper note 55)."""
    most = min(n_samples, n_features)
    if isinstance(layers, str):
        # m/2 and m/20, but no more than min(n, m), the largest rank that X can have.
        first = min(max(round(n_features / 2), 1), most)
        return first, min(max(round(first / 10), 2 * n_clusters), first)
    if not layers[1] <= layers[0] <= most:
        raise ParameterError(
            f"layers={layers!r} must be at most min(n_samples, n_features)={most}, the second at most the "
            "first: lower them, or use 'auto'."
        )
    return int(layers[0]), int(layers[1])


def semi_nmf(
    X: np.ndarray,
    start: int | np.ndarray,
    pool: Pool,
    max_iter: int,
    tol: float,
    on_iteration: Callable[[int, float, Factors], bool] | None = None,
) -> AlternatingSolution:
    """Factorise X with a non-negative G, from a given one or from that many singular vectors."""
    # The products are the only use of X, and are the same; the start needs it dense.
    points = sp.csr_array(X) if np.count_nonzero(X) < SPARSE_DATA_SHARE * X.size else X
    method = SemiNonnegative(points, squared_frobenius_norm(X), pool)
    G = start if isinstance(start, np.ndarray) else singular_start(X, start)
    first = method.with_best_basis(G)
    return alternate(method, first, max_iter=max_iter, tol=tol, on_iteration=on_iteration)


def singular_start(X: np.ndarray, n_columns: int) -> np.ndarray:
    """Return a non-negative G that spans the leading left singular vectors of X.

    A multiple of a positive vector, the lift, is added to each of them. For non-negative X the lift is the
    leading singular vector itself, so the span stays the same, and G fits as well as the SVD. Columns are
    multiplied by their singular values: with unit length, most singular values of G would be equal, and
    rounding would choose the start of the next layer.
    """
    if not X.any():
        return np.zeros((len(X), min(n_columns, *X.shape)), X.dtype)
    left, values, _ = thin_svd(X)
    left, values = left[:, :n_columns], values[:n_columns]
    # LAPACK leaves the signs open: the largest entry of every vector is made positive.
    peaks = left[np.abs(left).argmax(axis=0), np.arange(left.shape[1])]
    left = left * np.where(peaks < 0, -1, 1)
    # Beyond the numerical rank vectors are rounding: such a column is the lift alone.
    beyond = values <= max(X.shape) * np.finfo(X.dtype).eps * values[0]
    left[:, beyond], values[beyond] = 0, values[0]
    leading = left[:, 0]
    # For X >= 0 the leading vector can be chosen non-negative (Perron and Frobenius), up to rounding.
    rounding = len(X) * float(np.finfo(X.dtype).eps) * leading.max()
    lift = np.abs(leading) if (leading >= -rounding).all() else np.ones_like(leading)
    lift = np.maximum(lift, SMALLEST_LIFT * lift.mean())
    # A little more than needed: multiplicative updates never leave an exact zero, and rounding would decide
    # which entry is one.
    amount = np.where(beyond, 1, LIFT * np.maximum((-left / lift[:, None]).max(axis=0), 0))
    lifted = np.maximum(left + lift[:, None] * amount, 0) * values
    # A point at the origin has the code zero, which fits it exactly.
    return np.where(X.any(axis=1, keepdims=True), lifted, 0).astype(X.dtype)
