"""DS3: representatives chosen from dissimilarities alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import Tags

from smrmf._arrays import check_memory
from smrmf._estimator import FitReporter, Fitted, convergence_warnings
from smrmf._parallel import Pool, row_blocks
from smrmf._validation import (
    COUNT,
    NONE,
    SHARE,
    Constraints,
    InstanceOf,
    Interval,
    OneOf,
    ParameterError,
    count_exemplars,
)
from smrmf.graph.duplicates import distinct_rows
from smrmf.graph.exemplars import best_first
from smrmf.graph.groups import sums_of_groups
from smrmf.kernels.balls import (
    L1InfBall,
    L1InfRegularizer,
    L12Ball,
    L12Regularizer,
    RowConstraint,
    WeightedSum,
)
from smrmf.kernels.row_sparse import c_rows, relaxed_z_rows
from smrmf.selection._base import SelectionInput, Selector
from smrmf.selection._dissimilarities import METRICS, check_metric, dissimilarities
from smrmf.selection._prices import best_single, published_price, sufficient_price

# A source is a representative if its largest entry reaches this share of the largest of all.
SMALLEST_PEAK_SHARE = 0.1
DEFAULT_SHARE = 0.1
# How far beyond the smallest price that leaves one representative a price may be.
SETTLING = 1.1
# The published penalty, for dissimilarities of at most one. It does not grow: Z would freeze before it
# reaches the optimum. For a number of iterations it is adapted to the slower of Z - C and the change of C,
# but for the constrained form with "linf", where that saves no time. From then on it is constant, which the
# convergence of the method needs.
PENALTY = 0.1
BALANCE_EVERY, BALANCE_UNTIL = 10, 1000
SLOWER, BALANCE_STEP = 3.0, 1.3
# Over-relaxation, between 1 (the plain method) and 2 (where convergence ends), saves iterations.
RELAXATION = 1.6


class DS3(ClusterMixin, Selector):
    """Choose representatives from dissimilarities, and cluster by them: sparse subset selection.

    Solves ``min <D, Z>`` over representations Z, whose columns (how a target is represented by the sources)
    are non-negative and sum to one, while ``sum_i ||z_i||_p <= tau`` bounds the rows (constrained form) or
    ``lambda sum_i ||z_i||_p`` is added (regularised form); p is infinity or 2. For p = infinity these are
    the linear-programming relaxations of p-median and of facility location. Pick it when dissimilarities
    are all you have, and you want members of the data that represent the others, and clusters. It needs
    five arrays of sources x targets, and every iteration costs some passes over them.

    Parameters
    ----------
    exemplars : float, int or None, default=None
        Budget of the constrained form: a share of the sources or a count q. None is ``n_clusters``, or
        a tenth of the sources where that is None too. With "linf" it bounds the sum of the largest
        entries of the rows, ``tau = q``; with "l2" ``tau = sqrt(q n_targets)``, what q equal clusters
        need. At most q representatives are reported.
    regularization : float or None, default=None
        Lambda of the regularised form, in which the number of representatives is found, in the unit that
        its authors published; their default is 0.1. With "l2" 1 leaves one representative (or those
        whose totals of dissimilarities are equally small). With "linf" it does so for most
        dissimilarities, but may leave a few: then raise it. None is the constrained form.
    norm : {"linf", "l2"}, default="linf"
        The norm of the rows.
    metric : str or callable, default="euclidean"
        Any metric of :func:`sklearn.metrics.pairwise_distances`, a function of two points, a source and a
        target, or "precomputed": then X holds the dissimilarities of sources (rows) to targets (columns), of
        any sign, and need not be square. Sparse data go with "euclidean", "sqeuclidean", "manhattan",
        "cosine", "precomputed" and functions of two sparse rows; metrics of true and false,
        as "jaccard", take what is not zero as true.
    n_clusters : int or None, default=None
        Number of clusters, made from that many of the best representatives (fewer where one of them gets
        no target); None makes one cluster of each representative.
    max_iter : int, default=3000
        Maximum number of iterations.
    tol : float, default=1e-3
        Largest change of any entry of Z, and largest violation of a constraint by an entry, at which
        to stop.
    n_jobs : int or None, default=-1
        Threads; the result does not depend on it.

    Attributes
    ----------
    exemplar_indices_ : array
        The representatives, rows of X, by the L2 norm of their rows of Z, largest first.
    exemplar_scores_ : array
        These norms.
    labels_ : array of shape (n_samples,) or (n_targets,)
        Cluster of every target, consecutive from 0.
    cluster_exemplars_ : array of shape (n_clusters_found,)
        The representative of every cluster.
    representation_ : array of shape (n_sources, n_targets)
        Z; columns sum to one.
    objective_ : float
        ``<D, Z>``, the total dissimilarity of the targets to what represents them.
    n_iter_, converged_ : int, bool
        Iterations done, and whether they sufficed.
    n_features_in_, feature_names_in_
        Features seen by ``fit``, and their names, if all are strings.

    References
    ----------
    Elhamifar, Sapiro, Sastry: Dissimilarity-based sparse subset selection, IEEE TPAMI 38(11), 2016.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from smrmf import DS3
    >>> X, y = make_blobs(60, centers=3, random_state=0, cluster_std=0.5)
    >>> model = DS3(exemplars=3).fit(X)
    >>> sorted(int(label) for label in y[model.exemplar_indices_])  # one for each blob
    [0, 1, 2]
    """

    _constraints: ClassVar[Constraints] = {
        "exemplars": (NONE, COUNT, SHARE),
        "regularization": (NONE, Interval(0, above=True)),
        "norm": (OneOf("linf", "l2"),),
        "metric": (OneOf(*METRICS), InstanceOf("a callable", Callable)),
        "n_clusters": (NONE, COUNT),
    }

    def __init__(
        self,
        exemplars: float | None = None,
        *,
        regularization: float | None = None,
        norm: str = "linf",
        metric: Any = "euclidean",
        n_clusters: int | None = None,
        max_iter: int = 3000,
        tol: float = 1e-3,
        n_jobs: int | None = -1,
    ) -> None:
        self.exemplars = exemplars
        self.regularization = regularization
        self.norm = norm
        self.metric = metric
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs

    def _prepare(self, X: Any) -> tuple[SelectionInput, int]:
        check_metric(self.metric, X)
        n_sources = X.shape[0]
        n_targets = X.shape[1] if self.metric == "precomputed" else n_sources
        if self.n_clusters is not None and self.n_clusters > n_sources:
            raise ParameterError(
                f"n_clusters={self.n_clusters} is more than the n_samples={n_sources} rows of X: lower it."
            )
        budget = self.exemplars if self.exemplars is not None else self.n_clusters
        count = count_exemplars(DEFAULT_SHARE if budget is None else budget, n_sources, self.n_clusters or 1)
        check_memory(
            "DS3",
            5 * n_sources * n_targets * X.dtype.itemsize,
            f"five arrays of {n_sources} x {n_targets}",
            "use IPM or KDPP, which need none, or fewer points",
        )
        return SelectionInput(X, count), self.max_iter

    def _solve(self, given: SelectionInput, pool: Pool, report: FitReporter) -> Fitted:
        D, scale = dissimilarities(given.X, self.metric, pool)

        groups = distinct_rows(D if self.metric == "precomputed" else given.X)

        def attributes(Zt: np.ndarray) -> dict[str, Any]:
            return self._fitted(Zt, D, given.n_exemplars, groups) | {
                "representation_": Zt.T,
                "objective_": float(np.vdot(D, Zt)) * scale,
            }

        def on_iteration(n_iter: int, residual: float, feasible: Callable[[], np.ndarray]) -> bool:
            return report({"n_iter": n_iter, "change": residual}, lambda: attributes(feasible()))

        if self.regularization is None and given.n_exemplars == 1:
            found = single_source(D, on_iteration)
        else:
            found = solve_ds3(
                D,
                self._row_constraint(D, given.n_exemplars),
                adaptive=self.regularization is not None or self.norm == "l2",
                tol=self.tol,
                max_iter=self.max_iter,
                pool=pool,
                on_iteration=on_iteration,
            )
        fitted = attributes(found.Zt) | {"n_iter_": found.n_iter, "converged_": found.converged}
        if found.converged or found.stopped or self.tol == 0:
            return Fitted(fitted, [])
        reason = (
            f"entries of Z still change or violate a constraint by up to {found.residual:.1e}, more than "
            f"tol={self.tol:g}: raise max_iter or tol"
        )
        if found.residual <= self.tol:
            reason = "one is never enough: raise max_iter"
        return Fitted(fitted, convergence_warnings("DS3", found.n_iter, reason))

    def _row_constraint(self, D: np.ndarray, n_exemplars: int) -> Callable[[float], RowConstraint]:
        """Return what is asked of the rows of Z, for a given penalty."""
        if self.regularization is not None:
            unit = published_price(D, self.norm)
            # Beyond a price that leaves one representative nothing changes but the time it takes. Where it is
            # the smallest such price more than one are as good; a little more settles it.
            enough = max(unit, SETTLING * sufficient_price(D, self.norm))
            price = min(self.regularization * unit, enough)
            kind = L1InfRegularizer if self.norm == "linf" else L12Regularizer
            # The C step, min price ||C|| + mu/2 ||C - Y||^2, is the proximal map of (price / mu) ||C||.
            return lambda penalty: kind(price / penalty)
        # q rows that represent N/q targets each have q largest entries of 1 and q norms of sqrt(N/q).
        radius = float(n_exemplars) if self.norm == "linf" else float(np.sqrt(n_exemplars * len(D)))
        ball = L1InfBall(radius) if self.norm == "linf" else L12Ball(radius)
        return lambda penalty: ball

    def _fitted(self, Zt: np.ndarray, D: np.ndarray, n_exemplars: int, groups: np.ndarray) -> dict[str, Any]:
        """Read representatives and clusters from Z."""
        peaks, norms = Zt.max(axis=0), np.sqrt(np.einsum("ji,ji->i", Zt, Zt))
        most = Zt.shape[1] if self.regularization is not None else n_exemplars
        ranked = best_first(norms, len(norms))
        # The relaxation leaves small shares in many rows; a budget is no count of rows.
        chosen = ranked[peaks[ranked] >= SMALLEST_PEAK_SHARE * peaks.max()][:most]
        centers = chosen if self.n_clusters is None else ranked[: self.n_clusters]
        # Identical targets go where they are represented most together.
        owner = assign(sums_of_groups(Zt, groups), sums_of_groups(D, groups), centers)[groups]
        winners, labels = np.unique(owner, return_inverse=True)
        return {
            "exemplar_indices_": chosen,
            "exemplar_scores_": norms[chosen],
            "labels_": labels,
            "cluster_exemplars_": centers[winners],
        }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.metric == "precomputed"
        return tags


def assign(Zt: np.ndarray, D: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Give every target to the centre that represents it most, or, if none does, to the least unlike one."""

    def assign_block(block: slice) -> np.ndarray:
        shares = Zt[block][:, centers]
        nearest = D[block][:, centers].argmin(axis=1)
        return np.where(shares.max(axis=1) > 0, shares.argmax(axis=1), nearest)

    return np.concatenate([assign_block(block) for block in row_blocks(*Zt.shape)])


# Gets the iteration, what still changes, and a function that makes the current Zt; returning True stops.
OnIteration = Callable[[int, float, Callable[[], np.ndarray]], bool]


class DS3Solution(NamedTuple):
    """The representation Zt (rows on the simplex), and how the iteration ended."""

    Zt: np.ndarray
    n_iter: int
    residual: float
    converged: bool
    stopped: bool


def single_source(D: np.ndarray, on_iteration: OnIteration) -> DS3Solution:
    """Return the optimum of the constrained form for a budget of one, in a single step.

    This budget is the smallest for which columns can sum to one, and all rows are constant then. With "l2" no
    Z has less, so that no finite multiplier exists, and the method of multipliers would not come to an end.
    """
    Zt = np.zeros_like(D)
    Zt[:, best_single(D)] = 1
    return DS3Solution(Zt, 1, 0.0, True, on_iteration(1, 0.0, lambda: Zt))


def solve_ds3(
    D: np.ndarray,
    row_constraint: Callable[[float], RowConstraint],
    *,
    adaptive: bool,
    tol: float,
    max_iter: int,
    pool: Pool,
    on_iteration: OnIteration | None = None,
) -> DS3Solution:
    """Solve ``min <D, Z>`` over columns on the simplex, with a ball or a price on the rows of Z.

    The simplex is kept by Z and the rows are kept by its copy C; the alternating direction method of
    multipliers ties them. All arrays are transposed: row j is how target j is represented.

    Parameters
    ----------
    D : array of shape (n_targets, n_sources)
        Dissimilarities of at most one in size.
    row_constraint : callable
        Returns the constraint or regulariser of the rows of Z for a given penalty, by which a price is
        divided.
    adaptive : bool
        Whether to adapt the penalty for some time.
    tol : float
        Largest entry of Z - C, in this iteration and the last, and largest change of C at which to stop;
        they bound the change of Z.
    max_iter : int
        Maximum number of iterations.
    pool : Pool
        Threads.
    on_iteration : callable, optional
        Gets the iteration, the largest of those numbers, and a function that makes the current Zt;
        returning True stops.
    """
    Z, C, multiplier = np.empty_like(D), np.zeros_like(D), np.zeros_like(D)
    # The best single source represents all targets: feasible for every budget and every price.
    C[:, best_single(D)] = 1

    def feasible() -> np.ndarray:
        # Without relaxation, which leaves the simplex.
        Zt = np.empty_like(D)
        pool.over_rows(relaxed_z_rows, (D, C, multiplier, Zt), mu, 1.0)
        return Zt

    mu, shrinkage, last_gap = PENALTY, None, 0.0
    converged = stopped = False
    for n_iter in range(1, max_iter + 1):
        pool.over_rows(relaxed_z_rows, (D, C, multiplier, Z), mu, RELAXATION)
        shrinkage = row_constraint(mu).shrinkage(WeightedSum(Z, multiplier, 1 / mu), 1.0, shrinkage, pool)
        measured = pool.over_rows(c_rows, (Z, C, multiplier), shrinkage, mu)
        change, gap = (max(entries) for entries in zip(*measured, strict=True))
        # The change of Z is at most the sum of these three, by the triangle inequality; the first Z has none
        # before it to change from.
        residual = max(gap, last_gap, change)
        last_gap = gap
        converged = residual <= tol and n_iter > 1
        if on_iteration is not None:
            stopped = on_iteration(n_iter, residual, feasible)
        if converged or stopped:
            break
        if adaptive and n_iter % BALANCE_EVERY == 0 and n_iter <= BALANCE_UNTIL:
            # The multiplier is not divided by mu here, so it stays valid when mu changes.
            mu *= penalty_factor(gap, change)
    # A last step without relaxation, so that the rows returned lie on the simplex.
    pool.over_rows(relaxed_z_rows, (D, C, multiplier, Z), mu, 1.0)
    return DS3Solution(Z, n_iter, residual, converged, stopped)


def penalty_factor(gap: float, change: float) -> float:
    """Return what the penalty is multiplied by: more of it closes the gap, less lets C move."""
    if gap > SLOWER * change:
        return BALANCE_STEP
    return 1 / BALANCE_STEP if change > SLOWER * gap else 1.0
