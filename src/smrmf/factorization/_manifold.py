"""The fit that all methods of the loop share: prepare, start, fill the slots, loop, name the results."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from smrmf._arrays import as_dense, check_memory, is_cheap_dense, scale_to_safe_range
from smrmf._estimator import FitReporter, Fitted, StageProgress, convergence_warnings
from smrmf._parallel import Pool
from smrmf._progress import Progress
from smrmf._scratch import is_mapped
from smrmf._validation import (
    AUTO,
    COUNT,
    SHARE,
    Constraints,
    Interval,
    ParameterError,
    Sizes,
    check_init,
    check_parameters,
)
from smrmf.factorization._checkpoint import LOOP, START, memory_of
from smrmf.factorization._loop import LoopState, Solution, Status, factorize
from smrmf.factorization._memory import LoopMemory, Memory
from smrmf.factorization._new_points import COMPARED, Factorization
from smrmf.factorization._operations import InMemory
from smrmf.factorization._plane import in_plane_of_means
from smrmf.factorization._points import (
    SEARCH,
    ManifoldInput,
    Problem,
    Reduction,
    n_coordinates,
    n_parts_of_search,
    prepare,
    reduce_features,
)
from smrmf.factorization._results import (
    Outcome,
    column_warnings,
    factors,
    for_new_points,
    rows_without_direction,
)
from smrmf.factorization._slots import OutOfRangeError, Slots, exemplar_attributes
from smrmf.factorization._start import (
    FirstIndicator,
    FirstPoints,
    Start,
    first_indicator,
    n_parts_of_start,
    weigh,
)
from smrmf.graph.duplicates import distinct_rows
from smrmf.graph.exemplars import (
    ExemplarRule,
    best_first,
    cluster_scores,
    transposed,
    with_copies_as_one,
)
from smrmf.graph.labels import empty_cluster_warnings
from smrmf.graph.search import is_searched_in_cells
from smrmf.kernels.truncated_svd import most_exact_rows

# The protocol of the paper's manifold methods (paper notes 9, 13 and 32). The paper tunes its weights with
# labels, over 1e-3, 1e-2, 1e-1, 1 (paper note 41).
PAPER_PROTOCOL: dict[str, Any] = {
    "n_neighbors": "sqrt",
    "init": "nndsvd",
    "penalty": 0.1,
    "penalty_growth": 1.05,
    "max_iter": 1000,
    "tol": 1e-4,
}
# The same for methods that rank exemplars of their own.
PAPER_SETTINGS: dict[str, Any] = PAPER_PROTOCOL | {"exemplars": 0.1, "exemplar_rule": "norm"}
# A sparse table of so few columns is taken as dense: the loop has arrays of about as many coordinates anyway.
FEW_COLUMNS = 256
# The tasks that callbacks see below the fit; each has tasks of its own.
STAGES = SEARCH, START, LOOP


class ManifoldFactorization(Factorization):
    """Cluster rows of X by ``X ~ G F`` with G non-negative, orthonormal and smooth on a graph.

    A method says in ``_slots`` where the graph comes from, which points are factorised and which are
    reported as exemplars. It takes these parameters as they are, or writes an ``__init__`` of its own.
    ``_reduction`` is how its points lose coordinates, ``_first_points`` where the loop begins with them;
    ``_checks`` are refusals of its own, called with the estimator, the sizes and the precision before
    anything is allocated, and ``_for_more_edges`` says what to do where the graph comes out empty. Whether
    rows that are there many times are learned from once, ``_copies_as_one`` says.
    """

    _constraints: ClassVar[Constraints] = {"exemplars": (COUNT, SHARE, AUTO)}
    _reduction: ClassVar[staticmethod[[np.ndarray], tuple[np.ndarray, Reduction]]] = staticmethod(
        reduce_features
    )
    _first_points: ClassVar[staticmethod[[Any, Problem], FirstPoints]] = staticmethod(
        lambda model, problem: FirstPoints(problem.reduced)
    )
    _checks: ClassVar[tuple[Callable[[Any, Sizes, np.dtype], None], ...]] = ()
    _for_more_edges: ClassVar[str] = "raise n_neighbors"
    _copies_as_one: ClassVar[bool] = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        exemplars: float | str = "auto",
        n_neighbors: int | str = "auto",
        metric: str = "euclidean",
        neighbors: Any = "auto",
        manifold_weight: float | str = "auto",
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
        self.exemplar_rule = exemplar_rule
        self.init = init
        self.penalty = penalty
        self.penalty_growth = penalty_growth
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @abstractmethod
    def _slots(self, problem: Problem, start: Start) -> Slots:
        """Return the parts of the method, for these points and this start."""

    def _prepare(self, X: Any) -> tuple[ManifoldInput, int]:
        # A method whose exemplars are chosen by others has no such parameter, and one with an ``__init__`` of
        # its own may have left the metric out.
        exemplars, metric = getattr(self, "exemplars", None), getattr(self, "metric", "euclidean")
        sizes = Sizes.from_parameters(X.shape[0], self.n_clusters, self.n_neighbors, exemplars)
        for check in self._checks:
            check(self, sizes, X.dtype)
        check_init(self.init, X, self.n_clusters, self.penalty)
        given = points_of_the_loop(type(self).__name__, X, self.n_clusters)
        how = getattr(self, "neighbors", "auto")
        if is_mapped(given) and not (metric == "euclidean" and is_searched_in_cells(given, how)):
            given = np.array(given)  # of all other fits arrays as large are a part
        # A power of two, exact to divide by; 1 unless squares of the data would overflow or vanish.
        data, magnitude = scale_to_safe_range(COMPARED[metric](given))
        return ManifoldInput(data, magnitude, sizes, metric, X.shape[1], how), len(STAGES)

    def _solve(self, given: ManifoldInput, pool: Pool, report: FitReporter) -> Fitted:
        memory = memory_of(self, given, check_random_state(self.random_state))
        with report.stage(SEARCH, n_parts_of_search(given)) as stage:
            problem = self._problem(given, memory, pool, StageProgress(stage))
        with report.stage(START, n_parts_of_start(self.init)) as stage:
            problem, found, start = self._start(problem, memory, StageProgress(stage))
            slots = self._slots(problem, start)
        try:
            solution = self._iterate(problem, start, slots, memory.of_loop(slots, start, self.tol), report)
        except OutOfRangeError as error:
            raise ParameterError(f"{error}: {way_back_in_range(self)}.") from error
        firmness = {} if found.stability is None else {"stability_": found.stability}
        # The arrays of the loop go before those of the results come.
        outcome, start = Outcome.of(solution, slots), start.without_points()
        del solution, found
        fitted = self._results(problem, start, slots, outcome)
        # Of lists that were given nobody knows what they miss.
        if isinstance(given.search, str):
            firmness["neighbor_recall_"] = problem.neighbors.recall
        said = column_warnings(problem, report.features.get("feature_names_in_"))
        kept = for_new_points(problem, last=True)
        return Fitted(firmness | fitted.attributes | kept, fitted.warnings + said + memory.warnings)

    def _problem(self, given: ManifoldInput, memory: Memory, pool: Pool, progress: Progress) -> Problem:
        """Reduce the points and find their neighbours."""
        # A start that is given, or that looks at no neighbours, has all rows, and so have given neighbours.
        as_one = type(self)._copies_as_one and isinstance(self.init, str) and self.init == "spectral"
        as_one = as_one and isinstance(given.search, str)
        return prepare(given, type(self)._reduction, memory.draws, pool, as_one, progress, memory)

    def _start(
        self, problem: Problem, memory: Memory, progress: Progress
    ) -> tuple[Problem, FirstIndicator, Start]:
        """Find the first G; return the problem with the points of the loop, G, and the start of the loop."""
        # Points first: where they are refused, no number has been drawn.
        first = type(self)._first_points(self, problem)
        found = memory.once(START, lambda: first_indicator(self.init, self.penalty, problem, progress))
        if first.X is problem.reduced:
            problem = in_plane_of_means(problem, found.G)
            first = FirstPoints(problem.reduced, for_the_loop_alone=problem.reduced is not first.X)
        weights = self.manifold_weight, self.penalty
        return problem, found, weigh(first, found, *weights, problem.magnitude, problem.pool)

    def _iterate(
        self, problem: Problem, start: Start, slots: Slots, memory: LoopMemory, report: FitReporter
    ) -> Solution:
        """Do the loop, from its start or from where an earlier fit has left it."""
        # Handed over, not kept: the loop lets go of most of its arrays in the first iteration.
        known = [memory.recall(self.max_iter)]
        n_left = self.max_iter - (0 if known[0] is None else known[0].n_iter)
        # Not said while they happen: what becomes of them is found in the end.
        with np.errstate(over="ignore", invalid="ignore"), report.stage(LOOP, n_left) as iterations:

            def on_iteration(state: LoopState) -> bool:
                memory.see(state)
                return iterations(
                    {"n_iter": state.n_iter, "objective": state.history[-1] * start.unit},
                    # Made only if a callback asks for them.
                    lambda: factors(problem, start, slots, state)[0] | for_new_points(problem),
                )

            solution = factorize(
                slots,
                start,
                rho=self.penalty_growth,
                max_iter=self.max_iter,
                tol=self.tol,
                ops=InMemory(problem.pool),
                on_iteration=on_iteration,
                state=known.pop(),
            )
            memory.end(solution.state)
        return solution

    def _results(self, problem: Problem, start: Start, slots: Slots, outcome: Outcome) -> Fitted:
        """Name the results of a finished loop, and list what the user must know of them."""
        found, moved = factors(problem, start, slots, outcome)
        copies, status = problem.copies, outcome.status
        warnings = empty_cluster_warnings(found["labels_"], moved, self.n_clusters, problem.groups_of_rows())
        Zt, W = outcome.Zt, outcome.graph.weights
        if Zt.shape != W.shape:
            owner = type(slots.affinity).__name__
            raise ValueError(f"{owner}.representation has the shape {Zt.shape}, but the graph has {W.shape}.")
        Zt, W = copies.represented(Zt), copies.graph(W)
        history = np.asarray(outcome.history) * start.unit
        kept = outcome.graph.kept
        attributes = found | {
            "affinity_": W,
            "kept_indices_": np.arange(len(found["labels_"]))
            if kept is None
            else np.sort(copies.places(kept)),
            # The transpose of a CSR matrix is CSC, so it is converted; that of an array is a view.
            "representation_": sp.csr_array(Zt.T) if sp.issparse(Zt) else Zt.T,
            "objective_": float(history[-1]),
            "objective_history_": history,
            "n_iter_": outcome.n_iter,
            "converged_": status is Status.CONVERGED,
        }
        if status not in (Status.CONVERGED, Status.STOPPED) and self.tol > 0:
            warnings += convergence_warnings(type(self).__name__, outcome.n_iter, status.value)
        if not (W != 0).sum():
            message = f"The graph is empty, so the manifold term has no effect: {self._for_more_edges}."
            warnings += [(message, UserWarning)]
        if problem.reduction.n_features not in (None, problem.data.shape[1]):
            warnings += [(rows_without_direction(problem), UserWarning)]
        # Theirs first: what the fit sets itself is not for a slot to change.
        return Fitted(exemplar_attributes(slots.exemplars, Zt, found["labels_"]) | attributes, warnings)

    def exemplars_of(self, cluster: int, n: int = 5) -> np.ndarray:
        """Return the points that stand for a cluster, best first.

        They are ranked as ``exemplar_indices_`` is, but as many as you ask for, not a share.

        Parameters
        ----------
        cluster : int
            A label.
        n : int, default=5
            How many; fewer if the cluster has fewer points that represent others.

        Returns
        -------
        array
            Rows of the training data.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from smrmf import FastSMRMF
        >>> X, y = load_iris(return_X_y=True)
        >>> model = FastSMRMF(n_clusters=3, random_state=0).fit(X)
        >>> y[model.exemplars_of(1, n=3)]
        array([0, 0, 0])
        """
        check_is_fitted(self)
        n_clusters = int(self.labels_.max()) + 1
        own = {"cluster": (Interval(0, n_clusters - 1, integer=True),), "n": (COUNT,)}
        check_parameters("exemplars_of", {"cluster": cluster, "n": n}, own)
        rule: ExemplarRule = getattr(self, "exemplar_rule", "mass")
        scores = cluster_scores(transposed(self.representation_), self.labels_, rule)
        scores = with_copies_as_one(scores, distinct_rows(self._fit_data))
        members = np.flatnonzero(self.labels_ == cluster)
        # Those that represent nothing come last, and not at all while there are others.
        members = members[scores[members] > 0] if (scores[members] > 0).any() else members
        return members[best_first(scores[members], n)]


def points_of_the_loop(name: str, X: np.ndarray | sp.csr_array, n_clusters: int) -> np.ndarray | sp.csr_array:
    """Return the table as the fit takes it, if the arrays of the loop fit in memory.

    Sparse it stays, but where it has few columns or is mostly filled: as dense it is then no larger than what
    the loop needs, or than it is already.
    """
    if not sp.issparse(X):
        return X
    n, count = X.shape[0], n_coordinates(n_clusters)
    # Six arrays: the points, the same scaled and centred, E, its multiplier, and G F.
    if X.shape[1] <= max(FEW_COLUMNS, count) or is_cheap_dense(X):
        return as_dense(name, X, 6)
    width = n if n <= most_exact_rows(count) else count
    check_memory(
        name,
        6 * n * width * X.dtype.itemsize,
        f"6 dense arrays of {n} x {width}",
        "give fewer points, or ask for fewer clusters",
    )
    return X


def way_back_in_range(model: ManifoldFactorization) -> str:
    """Say what to do where numbers of the loop come out as infinite."""
    # Its own parameters, not those of a selector.
    given = [
        f"{name}={value:g}"
        for name, value in model.get_params(deep=False).items()
        if ("weight" in name or name == "penalty") and isinstance(value, numbers.Real)
    ]
    instead = f"use 'auto' instead of {', '.join(given)}, or " if given else ""
    return f"{instead}scale the data to entries of about 1"
