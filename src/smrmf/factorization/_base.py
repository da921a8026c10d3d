"""The estimator shared by all variants: validate, start, call the loop, name the results."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    clone,
)
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from smrmf._parallel import Pool, thread_pool
from smrmf._validation import (
    ARRAY,
    NOTHING,
    RANDOM_STATE,
    Number,
    Rule,
    Word,
    check_memory,
    check_parameters,
    finite_array,
)
from smrmf.factorization._affinity import AbstractAffinity
from smrmf.factorization._exemplars import rank_exemplars
from smrmf.factorization._loop import Progress, Solution, Status, factorize
from smrmf.factorization._out_of_sample import neighbor_weights
from smrmf.factorization._problem import Problem, Sizes, Weights, check_init, start_indicator
from smrmf.factorization._reduce import reduce_features
from smrmf.kernels.graphs import nearest_neighbors

AUTO = Word(("auto",))


class ManifoldFactorization(
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
    ABC,
):
    """Cluster rows of X by ``X ~ G F`` with G non-negative, orthonormal and smooth on a graph.

    A subclass says only where the graph comes from.
    """

    _rules: ClassVar[dict[str, Iterable[Rule]]] = {
        "n_clusters": (Number(1, integer=True),),
        "exemplars": (Number(1, integer=True), Number(0, 1, above=True)),
        "n_neighbors": (Number(1, integer=True), Word(("auto", "sqrt"))),
        "manifold_weight": (Number(0), AUTO),
        "exemplar_rule": (Word(("mass", "norm")),),
        "init": (Word(("spectral", "nndsvd", "kmeans")), ARRAY),
        "penalty": (Number(0, above=True), AUTO),
        "penalty_growth": (Number(1),),
        "max_iter": (Number(1, 10**9, integer=True),),
        "tol": (Number(0),),
        "random_state": (RANDOM_STATE, Number(0, 2**32 - 1, integer=True)),
        "n_jobs": (NOTHING, Number(1, integer=True), Number(high=-1, integer=True)),
    }

    def __init__(
        self,
        n_clusters: int,
        exemplars: float,
        n_neighbors: int | str,
        manifold_weight: float | str,
        exemplar_rule: str,
        init: str | np.ndarray,
        penalty: float | str,
        penalty_growth: float,
        max_iter: int,
        tol: float,
        random_state: int | np.random.RandomState | None,
        n_jobs: int | None,
    ) -> None:
        self.n_clusters = n_clusters
        self.exemplars = exemplars
        self.n_neighbors = n_neighbors
        self.manifold_weight = manifold_weight
        self.exemplar_rule = exemplar_rule
        self.init = init
        self.penalty = penalty
        self.penalty_growth = penalty_growth
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @abstractmethod
    def _affinity(self, problem: Problem) -> AbstractAffinity:
        """Return the object that supplies the graph."""

    @abstractmethod
    def _check_sizes(self, sizes: Sizes, dtype: np.dtype) -> None:
        """Refuse sizes that this variant cannot handle, before anything is allocated."""

    @with_callbacks
    def fit(self, X: Any, y: None = None) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The points, of any sign and scale.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted estimator.
        """
        check_parameters(type(self).__name__, self.get_params(deep=False), self._rules)
        # A copy of its own: predict needs the training points as they are now.
        checked = finite_array(self, X, copy=True)
        sizes = Sizes.from_parameters(checked.shape[0], self.n_clusters, self.n_neighbors, self.exemplars)
        self._check_sizes(sizes, checked.dtype)
        check_init(self.init, checked, sizes)
        data, magnitude = _tame(_dense(type(self).__name__, checked))
        context = self._init_callback_context(max_subtasks=self.max_iter)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        with thread_pool(self.n_jobs) as pool:
            fitted = self._solve(data, magnitude, sizes, pool, context, X)
        # Only a finished fit leaves its mark; a refused or interrupted one leaves the old one.
        validate_data(self, X, skip_check_array=True, reset=True)
        for name, value in fitted.items():
            setattr(self, name, value)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self

    def _solve(
        self,
        data: np.ndarray,
        magnitude: float,
        sizes: Sizes,
        pool: Pool,
        context: Any,
        X: Any,
    ) -> dict[str, Any]:
        """Run the loop and return the fitted attributes."""
        reduced = reduce_features(data)
        # Twice the neighbours and one more: candidates for Z, and what lies just outside.
        wanted = min(2 * sizes.n_neighbors + 1, sizes.n_samples - 1)
        neighbors = nearest_neighbors(reduced.X, wanted, pool=pool)
        random_state = check_random_state(self.random_state)
        G = start_indicator(self.init, data, reduced.X, neighbors, sizes, random_state, pool)
        weights = Weights.from_start(reduced.X, G, self.manifold_weight, self.penalty, magnitude, pool)
        affinity = self._affinity(Problem(reduced.X, sizes, neighbors, weights, magnitude, pool))
        names = feature_names(self, X)

        def attributes(G: np.ndarray, F: np.ndarray) -> dict[str, Any]:
            return {
                "labels_": consecutive_labels(G)[0],
                "embedding_": G,
                "components_": reduced.restore(F * (weights.scale * magnitude)),
                "_fit_data": data,
                "_magnitude": magnitude,
                "_fit_neighbors": sizes.n_neighbors,
                "n_features_in_": data.shape[1],
            } | names

        solution = factorize(
            reduced.X / weights.scale,
            G,
            affinity,
            lam=weights.lam,
            mu=weights.mu,
            rho=self.penalty_growth,
            max_iter=self.max_iter,
            tol=self.tol,
            pool=pool,
            on_iteration=self._watcher(context, X, weights.scale * magnitude, attributes),
        )
        unit = weights.scale * magnitude
        return attributes(solution.G, solution.F) | self._results(solution, affinity, sizes, unit)

    def _watcher(
        self, context: Any, X: Any, unit: float, attributes: Callable[..., dict[str, Any]]
    ) -> Callable[[Progress], bool]:
        """Report every iteration to the callbacks; they may ask to stop."""

        def watch(progress: Progress) -> bool:
            task = context.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=self, X=X)
            return task.call_on_fit_task_end(
                estimator=self,
                X=X,
                metadata={"n_iter": progress.n_iter, "objective": progress.objective * unit},
                reconstruction_attributes=lambda: attributes(progress.G, progress.F),
            )

        return watch

    def _results(
        self, solution: Solution, affinity: AbstractAffinity, sizes: Sizes, unit: float
    ) -> dict[str, Any]:
        """Name the results of the loop, and warn of what went wrong."""
        labels, repaired = consecutive_labels(solution.G)
        if repaired:
            warnings.warn(
                f"{len(repaired)} of {sizes.n_clusters} clusters came out empty and were given one point "
                f"each (points {repaired}): the data may have fewer clusters, lower n_clusters.",
                ConvergenceWarning,
                stacklevel=5,
            )
        if solution.status not in (Status.CONVERGED, Status.STOPPED):
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} iterations: "
                f"{solution.status.value}.",
                ConvergenceWarning,
                stacklevel=5,
            )
        if solution.graph.nnz == 0:
            warnings.warn(
                "The learned graph is empty, every point represents only itself, so the manifold term "
                "has no effect: raise n_neighbors, exemplars, or (FastSMRMF) smoothness.",
                UserWarning,
                stacklevel=5,
            )
        Zt = affinity.representation(solution.state)
        exemplars, scores = rank_exemplars(Zt, labels, sizes.n_exemplars, self.exemplar_rule)
        history = np.asarray(solution.history) * unit
        return {
            "labels_": labels,
            "exemplar_indices_": exemplars,
            "exemplar_scores_": scores,
            "affinity_": solution.graph,
            "representation_": sp.csr_array(Zt.T) if sp.issparse(Zt) else Zt.T,
            "objective_": float(history[-1]),
            "objective_history_": history,
            "n_iter_": solution.n_iter,
            "converged_": solution.status is Status.CONVERGED,
        }

    def fit_transform(self, X: Any, y: None = None) -> np.ndarray:
        """Cluster the rows of X and return their embedding.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The points.
        y : None
            Ignored.

        Returns
        -------
        embedding : array of shape (n_samples, n_clusters)
            The orthonormal cluster indicator G.
        """
        return self.fit(X, y).embedding_

    def transform(self, X: Any) -> np.ndarray:
        """Embed points: each is a mixture of its nearest training points.

        A distinct training point gets its own row of ``embedding_``, duplicates the mean of theirs.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The points.

        Returns
        -------
        embedding : array of shape (n_samples, n_clusters)
            Weighted means of rows of ``embedding_``.
        """
        return self._weights_of(X) @ self.embedding_

    def predict(self, X: Any) -> np.ndarray:
        """Assign points to clusters by the vote of their nearest training points.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The points.

        Returns
        -------
        labels : array of shape (n_samples,)
            Indices of clusters; for distinct training points, ``labels_``.
        """
        weights = self._weights_of(X)
        # Votes, not mixtures of G, whose rows are larger in small clusters.
        votes = np.eye(self.embedding_.shape[1], dtype=weights.dtype)[self.labels_]
        return (weights @ votes).argmax(axis=1)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rebuild points from embeddings, ``G F``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_clusters)
            Embeddings.

        Returns
        -------
        X_original : array of shape (n_samples, n_features)
            Points in the original features.
        """
        check_is_fitted(self)
        G = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if G.shape[1] != len(self.components_):
            raise ValueError(
                f"X has shape {G.shape}, but inverse_transform takes embeddings with "
                f"{len(self.components_)} columns, as transform returns them."
            )
        return G @ self.components_

    def _weights_of(self, X: Any) -> sp.csr_array:
        check_is_fitted(self)
        checked = finite_array(self, X)
        validate_data(self, X, skip_check_array=True, reset=False)
        data = _dense(type(self).__name__, checked).astype(self._fit_data.dtype)
        data /= self._magnitude
        # Points so far away that squares would overflow are as well represented from this far.
        furthest = np.finfo(data.dtype).max ** 0.25
        np.clip(data, -furthest, furthest, out=data)
        with thread_pool(self.n_jobs) as pool:
            return neighbor_weights(self._fit_data, data, self._fit_neighbors, pool)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def consecutive_labels(G: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Return the largest column of every row; an empty cluster gets the point nearest to it.

    The second result lists the points so moved.
    """
    labels = G.argmax(axis=1)
    sizes = np.bincount(labels, minlength=G.shape[1])
    moved = []
    for empty in np.flatnonzero(sizes == 0):
        point = int(np.argmax(np.where(sizes[labels] > 1, G[:, empty], -np.inf)))
        sizes[labels[point]] -= 1
        sizes[empty] = 1
        labels[point] = empty
        moved.append(point)
    return labels, moved


def feature_names(estimator: ManifoldFactorization, X: Any) -> dict[str, Any]:
    """Return ``feature_names_in_`` as a fit on X would set it, if at all."""
    probe = clone(estimator)
    validate_data(probe, X, skip_check_array=True, reset=True)
    return {name: value for name, value in vars(probe).items() if name == "feature_names_in_"}


def _dense(name: str, X: Any) -> np.ndarray:
    """Return a dense array: the residual of a sparse matrix is dense anyway."""
    if not sp.issparse(X):
        return X
    # The data, scaled and centred, their residual, its multiplier, and one work array.
    needed = 6 * X.shape[0] * X.shape[1] * X.dtype.itemsize
    shape = f"{X.shape[0]} x {X.shape[1]}"
    check_memory(
        name,
        needed,
        f"six dense {shape} arrays",
        "reduce the features first, for instance with sklearn.decomposition.TruncatedSVD",
    )
    return X.toarray()


def _tame(X: np.ndarray) -> tuple[np.ndarray, float]:
    """Divide by a power of two where squares of the data would overflow or vanish."""
    largest = float(np.abs(X).max()) if X.size else 1.0
    limit = np.finfo(X.dtype).max ** 0.25
    if largest == 0 or 1 / limit < largest < limit:
        return X, 1.0
    magnitude = 2.0 ** np.floor(np.log2(largest))
    return X / X.dtype.type(magnitude), magnitude
