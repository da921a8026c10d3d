"""Dissimilarities of all pairs of points, by any metric of scikit-learn or by a function of the caller's."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf._arrays import scale_to_safe_range
from smrmf._parallel import Pool, row_blocks
from smrmf._validation import ParameterError, shown
from smrmf.kernels.scaling import rows_near_one

# The names that sklearn.metrics.pairwise_distances knows; asking it would import it, which is slow.
METRICS = (
    *(
        "euclidean",
        "sqeuclidean",
        "manhattan",
        "cosine",
        "precomputed",
        "braycurtis",
        "canberra",
        "chebyshev",
    ),
    *("cityblock", "correlation", "dice", "hamming", "haversine", "jaccard", "l1", "l2", "mahalanobis"),
    *("matching", "minkowski", "nan_euclidean", "rogerstanimoto", "russellrao", "seuclidean", "sokalsneath"),
    "yule",
)
SUMS_OF_DIFFERENCES = ("manhattan", "cityblock", "l1")
# Not haversine, though scikit-learn takes it: where one of the two coordinates is zero its result is wrong.
TAKE_SPARSE = ("euclidean", "sqeuclidean", "manhattan", "cosine", "l2", "l1", "cityblock", "precomputed")
OF_TRUE_AND_FALSE = ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule")
# What vanishes between equal points, but for traces that rounding leaves.
ZERO_TO_ITSELF = ("euclidean", "l2", "sqeuclidean", *SUMS_OF_DIFFERENCES)
# The power of the data's unit that a metric grows with: where squares or sums would overflow or vanish, the
# points are measured in another unit. What is not here has no unit, takes rows one by one, or is a callable.
DEGREES = (
    dict.fromkeys((*ZERO_TO_ITSELF, "precomputed", "minkowski", "chebyshev", "nan_euclidean"), 1)
    | {"sqeuclidean": 2}
    | dict.fromkeys(("braycurtis", "seuclidean", "mahalanobis"), 0)
)
OF_DIRECTIONS = ("cosine", "correlation")


def check_metric(metric: Any, X: Any) -> None:
    """Refuse points that a metric of this name does not take."""
    if not isinstance(metric, str):
        return
    if sp.issparse(X) and metric not in TAKE_SPARSE:
        others = " or ".join(repr(name) for name in TAKE_SPARSE[:4])
        raise ParameterError(
            f"metric={metric!r} does not take sparse data: use X.toarray(), or for instance metric={others}."
        )
    largest = np.iinfo(np.int32).max
    if sp.issparse(X) and metric in SUMS_OF_DIFFERENCES and max(X.shape[1], X.nnz) > largest:
        raise ParameterError(
            f"metric={metric!r} takes sparse data of at most {largest} features and entries, but X has "
            f"{X.shape[1]} features and {X.nnz} entries: use metric='euclidean'."
        )
    if metric == "haversine" and X.shape[1] != 2:
        raise ParameterError(
            f"metric='haversine' needs 2 features, latitude and longitude in radians, but X has "
            f"{X.shape[1]}: give these two, or use metric='euclidean'."
        )


def dissimilarities(X: Any, metric: Any, pool: Pool) -> tuple[np.ndarray, float]:
    """Return D transposed (targets x sources), divided by its largest entry, and that entry."""
    degree = DEGREES.get(metric) if isinstance(metric, str) else None
    X, magnitude = (X, 1.0) if degree is None else scale_to_safe_range(X)
    if metric == "precomputed":
        D = np.ascontiguousarray((X.toarray() if sp.issparse(X) else X).T)
    else:
        D = distances(X, metric, pool)
        check_finite(D, metric)
        if metric in ZERO_TO_ITSELF:
            np.fill_diagonal(D, 0)
    # Scaling D scales the objective and moves no minimum; the penalty is set for entries of at most one.
    largest = max(float(D.max()), -float(D.min()))
    if largest > 0:
        D /= D.dtype.type(largest)
    # Factor by factor: a power that is beyond all numbers would raise, a product is infinite.
    return D, math.prod([magnitude] * (degree or 0), start=largest or 1.0)


def distances(X: Any, metric: Any, pool: Pool) -> np.ndarray:
    """Return the distances of all pairs of points (targets x sources), filled block by block."""
    from sklearn.metrics import pairwise_distances  # slow to import, and needed by fit only

    n = X.shape[0]
    D = np.empty((n, n), X.dtype)
    points, known_metric, options = prepared(X, metric)

    def fill(rows: slice) -> None:
        # A row that has no distance, as a constant one has no correlation, is found afterwards.
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            D[rows] = pairwise_distances(points[rows], points, metric=known_metric, **options)

    # Blocks of rows, not all pairs at once: scikit-learn's temporary arrays stay as small as a block.
    pool.map(fill, row_blocks(n, n))
    return D


def prepared(X: Any, metric: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Return points and metric as scikit-learn takes them, and what it would find from all pairs at once."""
    if callable(metric):
        return X, from_source_to_target(metric), {}
    if metric in OF_TRUE_AND_FALSE:
        return X.astype(bool), metric, {}
    if metric in OF_DIRECTIONS:
        # Each row by itself: scikit-learn takes a short one for a row of zeros, and squares may overflow.
        return rows_near_one(X), metric, {}
    if metric == "canberra":
        return X / 4, metric, {}  # the sum of two entries cannot overflow then, and small ones stay
    if metric == "seuclidean":
        return X, metric, {"V": np.var(X, axis=0, ddof=1)}
    if metric == "mahalanobis":
        return X, metric, {"VI": inverse_covariance(X)}
    if metric == "sqeuclidean" and sp.issparse(X):
        return X, "euclidean", {"squared": True}
    if metric in SUMS_OF_DIFFERENCES and sp.issparse(X):
        # The only indices that scikit-learn's own loop takes; check_metric has found that they fit.
        parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
        return sp.csr_array(parts, shape=X.shape), metric, {}
    return X, metric, {}


def inverse_covariance(X: np.ndarray) -> np.ndarray:
    """Return the inverse of the covariance of the features; refuse one that cannot be inverted."""
    covariance = np.atleast_2d(np.cov(X, rowvar=False, ddof=min(1, len(X) - 1)))
    rank = np.linalg.matrix_rank(covariance, hermitian=True)
    if rank < len(covariance):
        raise ParameterError(
            f"metric='mahalanobis' needs a covariance of full rank, but that of {len(covariance)} features "
            f"has rank {rank}: give more points or fewer features, or use metric='seuclidean'."
        )
    return np.linalg.inv(covariance).T


def from_source_to_target(metric: Callable[[Any, Any], Any]) -> Callable[[Any, Any], float]:
    """Return a function of target and source that calls ``metric(source, target)`` and wants a number."""

    def measured(target: Any, source: Any) -> float:
        value = metric(source, target)
        # bool is a Real, and a distance of "same or not" is a fair one.
        if isinstance(value, numbers.Real | np.bool_) or (
            np.ndim(value) == 0 and isinstance(value, np.ndarray)
        ):
            return float(value)
        raise ParameterError(
            f"metric={name_of(metric)} returned {shown(value)} for two points: it must return a real number."
        )

    return measured


def check_finite(D: np.ndarray, metric: Any) -> None:
    """Refuse distances that are not numbers."""
    if np.isfinite(D).all():
        return
    target, source = np.argwhere(~np.isfinite(D))[0]
    raise ParameterError(
        f"metric={name_of(metric)} gives {D[target, source]} for rows {source} and {target} of X: change or "
        "drop such rows, or use another metric."
    )


def name_of(metric: Any) -> str:
    """Return how to call a metric in a sentence."""
    return repr(metric) if isinstance(metric, str) else getattr(metric, "__name__", repr(metric))
