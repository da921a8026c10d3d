"""The estimators of the one loop: start, weigh, call it, name the results."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from smrmf._estimator import RULES, Watch
from smrmf._parallel import Pool
from smrmf._validation import ARRAY, Number, Rule, Word, as_dense, tame
from smrmf.factorization._closed_form import AbstractAffinity
from smrmf.factorization._loop import Progress, Solution, Status, factorize
from smrmf.factorization._new_points import Factorization
from smrmf.factorization._points import Problem, Sizes, Weights, check_init, start_indicator
from smrmf.factorization._reduce import Reduced, reduce_features
from smrmf.factorization._results import consecutive_labels, warn_of_empty_clusters
from smrmf.graph.exemplars import rank_exemplars
from smrmf.graph.neighbors import nearest_neighbors
from smrmf.sharing import remember

AUTO = Word(("auto",))


class Start(NamedTuple):
    """Checked data, divided by its magnitude, and the sizes of the problem."""

    data: np.ndarray
    magnitude: float
    sizes: Sizes


class ManifoldFactorization(Factorization):
    """Cluster rows of X by ``X ~ G F`` with G non-negative, orthonormal and smooth on a graph.

    A subclass says only where the graph comes from. Those without the parameters ``exemplars`` and
    ``exemplar_rule`` say in ``_sizes`` and ``_exemplar_results`` what their exemplars are.
    """

    exemplars: float
    exemplar_rule: str

    _rules: ClassVar[dict[str, Iterable[Rule]]] = RULES | {
        "n_neighbors": (Number(1, integer=True), Word(("auto", "sqrt"))),
        "manifold_weight": (Number(0), AUTO),
        "exemplar_rule": (Word(("mass", "norm")),),
        "init": (Word(("spectral", "nndsvd", "kmeans")), ARRAY),
        "penalty": (Number(0, above=True), AUTO),
        "penalty_growth": (Number(1),),
    }

    def __init__(
        self,
        n_clusters: int,
        n_neighbors: int | str,
        manifold_weight: float | str,
        init: str | np.ndarray,
        penalty: float | str,
        penalty_growth: float,
        max_iter: int,
        tol: float,
        random_state: int | np.random.RandomState | None,
        n_jobs: int | None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.manifold_weight = manifold_weight
        self.init = init
        self.penalty = penalty
        self.penalty_growth = penalty_growth
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @abstractmethod
    def _affinity(self, problem: Problem, weights: Weights) -> AbstractAffinity:
        """Return the object that supplies the graph."""

    def _sizes(self, n_samples: int) -> Sizes:
        """Return the whole numbers of the problem, checked against each other."""
        return Sizes.from_parameters(n_samples, self.n_clusters, self.n_neighbors, self.exemplars)

    def _check_sizes(self, sizes: Sizes, dtype: np.dtype) -> None:
        """Refuse sizes that this variant cannot handle, before anything is allocated."""

    def _reduce(self, data: np.ndarray) -> Reduced:
        """Return the points with as few coordinates as the method allows."""
        return remember(reduce_features, data)

    def _pose(self, problem: Problem) -> Problem:
        """Return the problem, with a first projection if the method projects the points."""
        return problem

    def _exemplar_results(
        self, affinity: AbstractAffinity, Zt: Any, labels: np.ndarray, sizes: Sizes
    ) -> dict[str, Any]:
        """Return the exemplars, best first, and their scores."""
        exemplars, scores = rank_exemplars(Zt, labels, sizes.n_exemplars, self.exemplar_rule)
        return {"exemplar_indices_": exemplars, "exemplar_scores_": scores}

    def _named(self, state: Any, reduced: Reduced) -> dict[str, Any]:
        """Return what a variant has learned beside the graph, by name."""
        return {}

    def _prepare(self, X: Any) -> Start:
        sizes = self._sizes(X.shape[0])
        self._check_sizes(sizes, X.dtype)
        check_init(self.init, X, sizes)
        # The data, scaled and centred, their residual, its multiplier, and one work array.
        return Start(*tame(as_dense(type(self).__name__, X, 6)), sizes)

    def _n_steps(self, problem: Start) -> int:
        return self.max_iter

    def _solve(self, problem: Start, pool: Pool, watch: Watch) -> dict[str, Any]:
        data, magnitude, sizes = problem
        reduced = self._reduce(data)
        # Twice the neighbours and one more: candidates for Z, and what lies just outside.
        wanted = min(2 * sizes.n_neighbors + 1, sizes.n_samples - 1)
        neighbors = remember(nearest_neighbors, reduced.X, wanted, pool=pool)
        random_state = check_random_state(self.random_state)
        G = start_indicator(self.init, data, reduced.X, neighbors, sizes, random_state, pool)
        posed = self._pose(Problem(data, reduced.X, sizes, neighbors, magnitude, random_state, pool))
        view = posed.view
        weights = Weights.from_start(view, G, self.manifold_weight, self.penalty, magnitude, pool)
        affinity = self._affinity(posed, weights)
        unit = weights.scale * magnitude

        def attributes(G: np.ndarray, F: np.ndarray, state: Any) -> dict[str, Any]:
            return {
                "labels_": consecutive_labels(G)[0],
                "embedding_": G,
                "components_": unit * reduced.restore_basis(affinity.components(state, F), G, weights.scale),
                "_fit_data": data,
                "_magnitude": magnitude,
                "_fit_neighbors": sizes.n_neighbors,
            } | self._named(state, reduced)

        def on_iteration(now: Progress) -> bool:
            metadata = {"n_iter": now.n_iter, "objective": now.objective * unit}
            return watch(metadata, lambda: attributes(now.G, now.F, now.state))

        solution = factorize(
            view / weights.scale,
            G,
            affinity,
            lam=weights.lam,
            mu=weights.mu,
            rho=self.penalty_growth,
            max_iter=self.max_iter,
            tol=self.tol,
            pool=pool,
            on_iteration=on_iteration,
        )
        found = attributes(solution.G, solution.F, solution.state)
        return found | self._results(solution, affinity, sizes, unit)

    def _results(
        self, solution: Solution, affinity: AbstractAffinity, sizes: Sizes, unit: float
    ) -> dict[str, Any]:
        """Name the results of the loop, and warn of what went wrong."""
        labels, repaired = consecutive_labels(solution.G)
        warn_of_empty_clusters(labels, repaired, sizes.n_clusters, 5)
        self._warn(solution)
        Zt = affinity.representation(solution.state)
        history = np.asarray(solution.history) * unit
        return {
            "labels_": labels,
            "affinity_": solution.graph,
            "representation_": sp.csr_array(Zt.T) if sp.issparse(Zt) else Zt.T,
            "objective_": float(history[-1]),
            "objective_history_": history,
            "n_iter_": solution.n_iter,
            "converged_": solution.status is Status.CONVERGED,
        } | self._exemplar_results(affinity, Zt, labels, sizes)

    def _warn(self, solution: Solution) -> None:
        if solution.status not in (Status.CONVERGED, Status.STOPPED) and self.tol > 0:
            warnings.warn(
                f"{type(self).__name__} did not converge in max_iter={self.max_iter} iterations: "
                f"{solution.status.value}.",
                ConvergenceWarning,
                stacklevel=6,
            )
        if not (solution.graph != 0).sum():
            warnings.warn(
                "The learned graph is empty, every point represents only itself, so the manifold term "
                "has no effect: raise n_neighbors, exemplars, or (FastSMRMF) smoothness.",
                UserWarning,
                stacklevel=6,
            )
