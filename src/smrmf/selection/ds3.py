"""DS3: representatives by dissimilarities alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from smrmf._estimator import RULES, Watch
from smrmf._parallel import Pool, row_blocks
from smrmf._ranking import best_first
from smrmf._validation import (
    NOTHING,
    Number,
    ParameterError,
    Rule,
    Thing,
    Word,
    check_memory,
    count_exemplars,
    tame,
)
from smrmf.kernels._balls import AbstractBall, L1InfBall, L1InfPenalty, L12Ball, L12Penalty
from smrmf.selection._admm import represent
from smrmf.selection._base import Selector

# A source is a representative if its largest entry reaches this share of the largest of all.
SMALLEST_SHARE = 0.1
DEFAULT_SHARE = 0.1
# Metrics that grow with a power of the data's unit, and vanish between equal points.
DEGREES = {
    "euclidean": 1,
    "l2": 1,
    "sqeuclidean": 2,
    "manhattan": 1,
    "l1": 1,
    "cityblock": 1,
    "precomputed": 1,
}


class Posed(NamedTuple):
    """Checked data, and how many exemplars are wanted of how many sources and targets."""

    data: Any
    n_exemplars: int
    n_sources: int
    n_targets: int


class DS3(ClusterMixin, Selector):
    """Choose representatives from dissimilarities: sparse subset selection.

    Solves ``min <D, Z>`` over representations Z, whose columns (how a target is represented by the sources)
    are non-negative and sum to one, while ``sum_i ||z_i||_p <= tau`` bounds the rows (constrained form) or
    ``lambda sum_i ||z_i||_p`` is added (regularised form); p is infinity or 2. For p = infinity these are
    the linear-programming relaxations of p-median and of facility location. Pick it when all you have
    is how unlike things are, and you want real ones that stand for the rest, and clusters.
    It needs four arrays of sources x targets, and every iteration costs some passes over them.

    Parameters
    ----------
    exemplars : float, int or None, default=None
        Budget of the constrained form: a share of the sources or a count q. None is ``n_clusters``, or
        a tenth of the sources where that is None too. With "linf" it bounds the
        sum of the largest entries of the rows, ``tau = q``; with "l2" ``tau = sqrt(q n_targets)``, what q
        equal clusters need. At most q representatives are reported.
    regularization : float or None, default=None
        Share of the lambda that leaves one representative, for the regularised form, in which the
        number of representatives is found. The original default is 0.1; 1 leaves one. None is the
        constrained form.
    norm : {"linf", "l2"}, default="linf"
        The norm of the rows.
    metric : str or callable, default="euclidean"
        Any metric of :func:`sklearn.metrics.pairwise_distances`, or "precomputed": then X holds the
        dissimilarities of sources (rows) to targets (columns), of any sign, and need not be square.
    n_clusters : int or None, default=None
        So many clusters, from that many best representatives (fewer where one of them wins no
        target); None makes one of each representative.
    max_iter : int, default=3000
        At most so many iterations.
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

    _rules: ClassVar[dict[str, Iterable[Rule]]] = {
        name: RULES[name] for name in ("max_iter", "tol", "n_jobs")
    } | {
        "exemplars": (NOTHING, *RULES["exemplars"]),
        "regularization": (NOTHING, Number(0, above=True)),
        "norm": (Word(("linf", "l2")),),
        "metric": (Thing((str,), "the name of a metric"), Thing((type(len), type(lambda: 0)), "a callable")),
        "n_clusters": (NOTHING, Number(1, integer=True)),
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

    def _prepare(self, X: Any) -> Posed:
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
        return Posed(X, count, n_sources, n_targets)

    def _n_steps(self, problem: Posed) -> int:
        return self.max_iter

    def _solve(self, problem: Posed, pool: Pool, watch: Watch) -> dict[str, Any]:
        D, scale = dissimilarities(problem.data, self.metric, pool)

        def attributes(Zt: np.ndarray) -> dict[str, Any]:
            return self._read(Zt, D, problem.n_exemplars) | {
                "representation_": Zt.T,
                "objective_": float(np.vdot(D, Zt)) * scale,
            }

        def on_iteration(n_iter: int, unrest: float, make: Any) -> bool:
            return watch({"n_iter": n_iter, "change": unrest}, lambda: attributes(make()))

        found = represent(
            D,
            self._rows(D, problem),
            balanced=self.regularization is not None,
            tol=self.tol,
            max_iter=self.max_iter,
            pool=pool,
            on_iteration=on_iteration,
        )
        if not (found.converged or found.stopped) and self.tol > 0:
            warnings.warn(
                f"DS3 did not converge in max_iter={self.max_iter} iterations: entries of Z still change or "
                "violate a constraint by more than tol: raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return attributes(found.Zt) | {"n_iter_": found.n_iter, "converged_": found.converged}

    def _rows(self, D: np.ndarray, problem: Posed) -> Callable[[float], AbstractBall]:
        """Return what is asked of the rows of Z, for a given penalty."""
        if self.regularization is not None:
            # Beyond the price that leaves one representative nothing changes but the time it takes.
            price = min(self.regularization, 1.0) * largest_price(D, self.norm)
            kind = L1InfPenalty if self.norm == "linf" else L12Penalty
            return lambda penalty: kind(price / penalty)
        q, n = problem.n_exemplars, problem.n_targets
        ball = L1InfBall(float(q)) if self.norm == "linf" else L12Ball(float(np.sqrt(q * n)))
        return lambda penalty: ball

    def _read(self, Zt: np.ndarray, D: np.ndarray, n_exemplars: int) -> dict[str, Any]:
        """Read representatives and clusters from Z."""
        peaks, norms = Zt.max(axis=0), np.sqrt(np.einsum("ji,ji->i", Zt, Zt))
        most = Zt.shape[1] if self.regularization is not None else n_exemplars
        ranked = best_first(norms, len(norms))
        chosen = ranked[peaks[ranked] >= SMALLEST_SHARE * peaks.max()][:most]
        centers = chosen if self.n_clusters is None else ranked[: self.n_clusters]
        owner = assign(Zt, D, centers)
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


def dissimilarities(X: Any, metric: Any, pool: Pool) -> tuple[np.ndarray, float]:
    """Return D transposed (targets x sources), divided by its largest entry, and that entry."""
    degree = DEGREES.get(metric) if isinstance(metric, str) else None
    X, magnitude = (X, 1.0) if degree is None else tame(X)
    if metric == "precomputed":
        D = np.ascontiguousarray((X.toarray() if sp.issparse(X) else X).T)
    else:
        D = distances(X, metric, pool)
        if degree is not None:
            np.fill_diagonal(D, 0)  # rounding leaves traces there
    largest = max(float(D.max()), -float(D.min()))
    if largest > 0:
        D /= D.dtype.type(largest)
    return D, (largest or 1.0) * magnitude ** (degree or 1)


def distances(X: Any, metric: Any, pool: Pool) -> np.ndarray:
    """Return the distances of all pairs of points by any metric of scikit-learn, filled block by block."""
    from sklearn.metrics import pairwise_distances  # slow to import, and needed by fit only

    n = X.shape[0]
    D = np.empty((n, n), X.dtype)
    blocks = row_blocks(n, n)
    pool.map(lambda b: np.copyto(D[b], pairwise_distances(X[b], X, metric=metric)), blocks)
    return D


def largest_price(D: np.ndarray, norm: str) -> float:
    """Return a lambda at which one source represents all; D is targets x sources.

    It is sufficient, not tight. Sources as good as the best one have no price.
    """
    best = int(np.argmin(D.sum(axis=0)))
    total, size = np.zeros(D.shape[1]), np.zeros(D.shape[1])
    for block in row_blocks(*D.shape):
        v = D[block] - D[block, best : best + 1]
        total += v.sum(axis=0)
        size += np.abs(v).sum(axis=0) if norm == "linf" else np.einsum("ji,ji->i", v, v)
    if norm == "linf":
        prices = size / 2
    else:
        prices = np.divide(np.sqrt(len(D)) * size, 2 * total, out=np.zeros_like(size), where=total > 0)
    return float(prices.max()) or 1.0


def assign(Zt: np.ndarray, D: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Give every target to the centre that represents it most, or, if none does, to the least unlike one."""

    def one(block: slice) -> np.ndarray:
        shares = Zt[block][:, centers]
        nearest = D[block][:, centers].argmin(axis=1)
        return np.where(shares.max(axis=1) > 0, shares.argmax(axis=1), nearest)

    return np.concatenate([one(block) for block in row_blocks(*Zt.shape)])
