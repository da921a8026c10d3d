"""NMF as a clustering: scikit-learn's factorisation, with labels read from it."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils import Tags, check_random_state

from smrmf._arrays import check_nonnegative, divide_keeping_dtype, scale_to_safe_range
from smrmf._estimator import FitReporter, Fitted, Warnings
from smrmf._parallel import WARNING_FILTERS, Pool
from smrmf._validation import DEFAULT_NEIGHBORS, NONE, Constraints, OneOf, ParameterError, check_n_clusters
from smrmf.factorization._alternating import unit_components
from smrmf.factorization._certainty import certainty
from smrmf.factorization._new_points import Factorization
from smrmf.graph.duplicates import distinct_rows
from smrmf.graph.graphs import either_neighbor_graph
from smrmf.graph.labels import empty_cluster_warnings, empty_columns_last, label_rows
from smrmf.graph.search import nearest
from smrmf.kernels.scaling import squared_frobenius_norm
from smrmf.sharing import remember


class NMFInput(NamedTuple):
    """Checked data, divided by their magnitude."""

    data: Any
    magnitude: float


class NMFClustering(Factorization):
    """Cluster by the non-negative parts that points are made of: scikit-learn's NMF with labels.

    Solves ``min ||X - G F||_F^2`` over non-negative G and F by :class:`sklearn.decomposition.NMF` and reads a
    cluster from every row of G. Pick it as the baseline without a graph; :class:`GNMF` adds one. It
    costs what scikit-learn's coordinate descent costs; sparse X stays sparse.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters c, the rank of the factorisation.
    labels : {"kmeans", "argmax"}, default="kmeans"
        Clusters by k-means on the rows of G, or by their largest entry (the paper).
    init : {"random", "nndsvd", "nndsvda", "nndsvdar"} or None, default=None
        scikit-learn's start; None is "nndsvda" where the rank allows it.
    solver : {"cd", "mu"}, default="cd"
        scikit-learn's solver.
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float, default=1e-4
        scikit-learn's tolerance.
    random_state : int, RandomState or None, default=None
        Seed of the start and of k-means.
    n_jobs : int or None, default=-1
        Threads for new points; the result does not depend on it.

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
    reconstruction_err_ : float
        ``||X - G F||_F``.
    n_iter_ : int
        Iterations done.
    n_features_in_, feature_names_in_
        Features seen by ``fit``, and their names, if all are strings.

    References
    ----------
    Lee, Seung: Algorithms for non-negative matrix factorization, NIPS 2000.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from smrmf import NMFClustering
    >>> X = load_digits(n_class=3).data
    >>> model = NMFClustering(n_clusters=3, random_state=0).fit(X)
    >>> model.components_.shape, model.labels_.shape
    ((3, 64), (537,))
    """

    _constraints: ClassVar[Constraints] = {
        "init": (NONE, OneOf("random", "nndsvd", "nndsvda", "nndsvdar")),
        "solver": (OneOf("cd", "mu"),),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        labels: str = "kmeans",
        init: str | None = None,
        solver: str = "cd",
        max_iter: int = 1000,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.n_clusters = n_clusters
        self.labels = labels
        self.init = init
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _prepare(self, X: Any) -> tuple[NMFInput, int]:
        check_nonnegative("NMFClustering", float(X.min()))
        check_n_clusters(self.n_clusters, X.shape[0])
        if self.init in ("nndsvd", "nndsvda", "nndsvdar") and self.n_clusters > min(X.shape):
            raise ParameterError(
                f"init={self.init!r} needs n_clusters={self.n_clusters} to be at most min(n_samples, "
                f"n_features)={min(X.shape)}: use init=None or 'random'."
            )
        # One step for the callbacks: scikit-learn's NMF does not report its iterations.
        return NMFInput(*scale_to_safe_range(X)), 1

    def _solve(self, given: NMFInput, pool: Pool, report: FitReporter) -> Fitted:
        from sklearn.decomposition import NMF  # slow to import, and needed by fit only

        data, magnitude = given
        random_state = check_random_state(self.random_state)
        # scikit-learn has absolute constants, such as the zeros of its non-negative SVD: the data get a fixed
        # unit, points of unit root-mean-square length.
        scale = float(np.sqrt(squared_frobenius_norm(data) / data.shape[0])) or 1.0
        model = NMF(
            self.n_clusters,
            init=self.init,
            solver=self.solver,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=random_state,
        )
        with WARNING_FILTERS.changed("always") as caught:
            G = model.fit_transform(divide_keeping_dtype(data, scale))
        # A column of G may grow as its row of F shrinks: unit rows of F fix how they share the size of X.
        F, G = unit_components(model.components_, G)
        groups = distinct_rows(data)
        labels, moved = label_rows(G, self.labels, self.n_clusters, random_state, groups)
        order, labels = empty_columns_last(labels, self.n_clusters)
        F, G = F[order], G[:, order]
        k = min(DEFAULT_NEIGHBORS, data.shape[0] - 1)
        neighbors = remember(nearest, data, k, pool=pool)
        attributes = certainty(labels, either_neighbor_graph(neighbors), neighbors, k) | {
            "labels_": labels,
            "embedding_": G * G.dtype.type(scale * magnitude),
            "components_": F,
            # NaN is the root of a negative number, to which rounding makes the error of an exact fit.
            "reconstruction_err_": float(np.nan_to_num(model.reconstruction_err_)) * scale * magnitude,
            "n_iter_": model.n_iter_,
            "_fit_data": data,
            "_magnitude": magnitude,
            "_fit_neighbors": k,
        }
        metadata = {"n_iter": model.n_iter_, "objective": attributes["reconstruction_err_"]}
        report(metadata, lambda: attributes)
        # RuntimeWarnings come from that root; all others are for the caller.
        passed_on: Warnings = [
            (str(warning.message), warning.category)
            for warning in caught
            if not issubclass(warning.category, RuntimeWarning)
        ]
        return Fitted(attributes, passed_on + empty_cluster_warnings(labels, moved, self.n_clusters, groups))

    @classmethod
    def paper_settings(cls) -> dict[str, Any]:
        """Return the paper's parameters; it averages over 30 random starts."""
        return {"labels": "argmax", "init": "random", "solver": "mu", "max_iter": 1000, "tol": 1e-6}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags
