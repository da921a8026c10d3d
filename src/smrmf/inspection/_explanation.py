"""Why is this point here? Who represents it, which exemplars are near, and which features decide."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from smrmf._parallel import WARNING_FILTERS, thread_pool
from smrmf._validation import ParameterError
from smrmf.graph.exemplars import transposed
from smrmf.graph.neighbors import measured_points
from smrmf.inspection._table import PlainTable
from smrmf.inspection._table import feature_names as names_of


@dataclass(frozen=True)
class Explanation:
    """Why a point is in its cluster.

    Attributes
    ----------
    cluster, confidence : int, float
        Its cluster, and the membership in it.
    next_cluster, next_confidence : int or None, float
        The next best cluster, and the membership in that; None if there is only one.
    outlier_score : float
        How far the point lies from all others.
    representatives : PlainTable
        ``point``, ``weight``, ``cluster`` and ``distance`` of the training points that it is
        represented by.
    exemplar, next_exemplar : int or None
        The nearest exemplars of the two clusters.
    features : PlainTable
        ``feature``, its ``value``, that of the ``exemplar`` and of the ``next_exemplar``, and ``share``: how
        much of the difference of the two squared distances is due to it, positive where it speaks for the
        cluster, negative where for the next.
    """

    cluster: int
    confidence: float
    next_cluster: int | None
    next_confidence: float
    outlier_score: float
    representatives: PlainTable
    exemplar: int
    next_exemplar: int | None
    features: PlainTable

    def __str__(self) -> str:
        lines = [f"In cluster {self.cluster} with confidence {self.confidence:.2f}."]
        if self.next_cluster is not None:
            lines[0] = (
                f"{lines[0][:-1]}, next is cluster {self.next_cluster} with {self.next_confidence:.2f}."
            )
        if self.outlier_score > 0.5:
            lines += [f"It lies far from all others (outlier score {self.outlier_score:.2f})."]
        lines += ["", "Represented by", str(self.representatives)]
        if self.next_cluster is not None:
            lines += [
                "",
                f"Nearest exemplars: {self.exemplar} of its cluster, {self.next_exemplar} of the next.",
                "Features that speak for its cluster (share above 0) and for the next (below 0):",
                str(self.features),
            ]
        return "\n".join(lines)


def explain(model: Any, point: Any, X: Any = None, *, n: int = 5, feature_names: Any = None) -> Explanation:
    """Say why a point is in its cluster.

    Parameters
    ----------
    model : fitted factorisation
        The model.
    point : int or row of features
        A row of the training data by its number, or a new point.
    X : array-like, frame or CSR matrix, default=None
        The training data in the units to report; None is as they were fitted.
    n : int, default=5
        How many representatives and features to list.
    feature_names : array-like of str, default=None
        Names of the features, if neither X nor the model has any.

    Returns
    -------
    Explanation
        Representatives, the nearest exemplars of the cluster and of the next best one, and the
        features that decide between the two.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from smrmf import FastSMRMF
    >>> from smrmf.inspection import explain
    >>> iris = load_iris()
    >>> model = FastSMRMF(n_clusters=3, random_state=0).fit(iris.data)
    >>> found = explain(model, 70, feature_names=iris.feature_names)
    >>> found.cluster, found.next_cluster
    (0, 2)
    >>> print(found.features)
    feature            value  exemplar  next_exemplar    share
    sepal length (cm)    5.9       5.7            6.5   0.4103
    petal width (cm)     1.8       1.3              2  -0.2692
    petal length (cm)    4.8       4.2            5.2  -0.2564
    sepal width (cm)     3.2       2.9              3  -0.0641
    """
    check_is_fitted(model)
    row, own = as_row(model, point)
    # A row by its number, or as a list, has no names of features, which scikit-learn would point out.
    with WARNING_FILTERS.changed("ignore"):
        shares, score = model.predict_proba(row)[0], float(model.outlier_scores(row)[0])
        compared = model._comparable(row)
    cluster = int(shares.argmax())
    nearest = [nearest_exemplar(model, compared, label) for label in range(len(shares))]
    following = next_best(shares, cluster, distances(model, compared, np.array(nearest)))
    table = training_rows(model) if X is None else X
    names = names_of(table, model, feature_names)
    pair = [nearest[cluster], nearest[cluster if following is None else following]]
    return Explanation(
        cluster=cluster,
        confidence=float(shares[cluster]),
        next_cluster=following,
        next_confidence=float(shares[following]) if following is not None else 0.0,
        outlier_score=score,
        representatives=representatives(model, compared, own, n),
        exemplar=nearest[cluster],
        next_exemplar=None if following is None else nearest[following],
        features=deciding_features(model, compared, row, own, pair, table, names, n),
    )


def next_best(shares: np.ndarray, cluster: int, far: np.ndarray) -> int | None:
    """Return the cluster that would be next, by membership or where that says nothing by distance."""
    if len(shares) == 1:
        return None
    others = np.delete(np.arange(len(shares)), cluster)
    return int(others[np.lexsort((far[others], -shares[others]))[0]])


def as_row(model: Any, point: Any) -> tuple[Any, int | None]:
    """Return a point as a table of one row, and its number among the training data, if it is one of them."""
    n = len(model.labels_)
    if isinstance(point, numbers.Integral):
        if not 0 <= int(point) < n:
            raise ParameterError(
                f"point={point} is no row of the training data: give 0 to {n - 1}, or a new row."
            )
        return training_rows(model)[[int(point)]], int(point)
    if sp.issparse(point) or nw.dependencies.is_into_dataframe(point):
        return point, None
    return np.asarray(point, dtype=float).reshape(1, -1), None


def training_rows(model: Any) -> Any:
    """Return the training data in the unit in which they came; directions alone for ``metric="cosine"``."""
    data = model._fit_data[:, : model.n_features_in_]
    return data * data.dtype.type(model._magnitude)


def representatives(model: Any, compared: Any, own: int | None, n: int) -> PlainTable:
    """List the training points that a point is represented by, those of the most weight first."""
    if own is not None and hasattr(model, "representation_"):
        weights = dense_row(transposed(model.representation_)[[own]])
    else:
        with thread_pool(model.n_jobs) as pool:
            near = model._ask(measured_points(model._fit_data), compared, pool)
        weights = model._weights(near).toarray().ravel()
    chosen = np.argsort(-weights, kind="stable")[: min(n, np.count_nonzero(weights > 0))]
    return PlainTable(
        {
            "point": chosen,
            "weight": weights[chosen],
            "cluster": model.labels_[chosen],
            "distance": distances(model, compared, chosen),
        }
    )


def distances(model: Any, compared: Any, rows: np.ndarray) -> np.ndarray:
    """Return the distances of a point to training points, in the unit of the data."""
    difference = model._fit_data[rows] - compared if not sp.issparse(compared) else None
    if difference is None:
        difference = (model._fit_data[rows] - sp.vstack([compared] * len(rows))).toarray()
    return np.linalg.norm(difference, axis=1) * model._magnitude


def nearest_exemplar(model: Any, compared: Any, cluster: int) -> int:
    """Return the exemplar of a cluster that is nearest to a point; of a model without, its nearest point."""
    candidates = getattr(model, "exemplar_indices_", np.arange(len(model.labels_)))
    candidates = candidates[model.labels_[candidates] == cluster]
    if len(candidates) == 0:
        candidates = np.flatnonzero(model.labels_ == cluster)
    return int(candidates[distances(model, compared, candidates).argmin()])


def deciding_features(
    model: Any,
    compared: Any,
    row: Any,
    own: int | None,
    nearest: list[int],
    table: Any,
    names: np.ndarray,
    n: int,
) -> PlainTable:
    """List the features by which a point is nearer to one exemplar than to the other."""
    points = [
        dense_row(part)[: model.n_features_in_]
        for part in (compared, *(model._fit_data[[i]] for i in nearest))
    ]
    here, first, last = points[0], points[1], points[-1]
    spoken = (here - last) ** 2 - (here - first) ** 2
    share = spoken / (np.abs(spoken).sum() or 1.0)
    order = np.argsort(-np.abs(spoken), kind="stable")[:n]
    order = order[spoken[order] != 0]
    shown = [
        dense_row(row if own is None else take_row(table, own)),
        *(dense_row(take_row(table, i)) for i in nearest),
    ]
    return PlainTable(
        {
            "feature": names[order],
            "value": shown[0][order],
            "exemplar": shown[1][order],
            "next_exemplar": shown[-1][order],
            "share": share[order],
        }
    )


def take_row(table: Any, i: int) -> Any:
    """Return one row of an array, a sparse matrix or a frame."""
    return table[[i]] if sp.issparse(table) else np.asarray(table)[[i]]


def dense_row(row: Any) -> np.ndarray:
    """Return a table of one row as an array of numbers."""
    return (row.toarray() if sp.issparse(row) else np.asarray(row, dtype=float)).ravel()
