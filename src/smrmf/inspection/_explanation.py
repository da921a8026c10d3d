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
from smrmf._validation import COUNT, ParameterError, check_parameters, shown
from smrmf.graph.exemplars import transposed
from smrmf.graph.membership import unfavored
from smrmf.inspection._table import PlainTable, last_step
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
        much the feature speaks, of all that speak, positive for the cluster and negative for the next. What
        counts is by how much it makes one of the two exemplars nearer, in squares.
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
            lines += [
                f"It is much farther from its neighbours than these from theirs (outlier score "
                f"{self.outlier_score:.2f})."
            ]
        lines += ["", "Represented by", str(self.representatives)]
        if self.next_cluster is not None:
            lines += [
                "",
                f"Nearest exemplars: {self.exemplar} of its cluster, {self.next_exemplar} of the next.",
                "Features that speak for its cluster (share above 0) and for the next (below 0):",
                str(self.features),
            ]
            if self.next_confidence > self.confidence:
                lines += ["Its surroundings are rather for the next cluster: its label is in doubt."]
            if self.features["share"].sum() < 0:
                lines += ["It is nearer to the exemplar of the next cluster: its neighbours put it here."]
        return "\n".join(lines)


def explain(model: Any, point: Any, X: Any = None, *, n: int = 5, feature_names: Any = None) -> Explanation:
    """Say why a point is in its cluster.

    Parameters
    ----------
    model : fitted factorisation
        The model, or a pipeline that ends with it, whose steps before a new point goes through.
    point : int or row of features
        A row of the training data by its number, or a new point.
    X : array-like, frame or CSR matrix, default=None
        The training data in the units to report, for a row by its number; None is as they were fitted.
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
    sepal length (cm)    5.9       5.8            6.5   0.5303
    sepal width (cm)     3.2       2.7              3  -0.3182
    petal length (cm)    4.8       5.1            5.2   0.1061
    petal width (cm)     1.8       1.9              2  0.04545
    """
    check_parameters("explain", {"n": n}, {"n": (COUNT,)})
    before, model = (model[:-1] if hasattr(model, "steps") else None), last_step(model)
    check_is_fitted(model)
    if not hasattr(model, "_fit_data"):
        raise ParameterError(
            f"explain takes a fitted factorisation, such as FastSMRMF, and not {type(model).__name__}."
        )
    row, own = as_row(model, point, before)
    table = None if X is None else checked_table(model, X, own)
    named = model._fit_data[:, : model.n_features_in_] if table is None else table
    names = names_of(named, model, feature_names)
    # A row by its number, or as a list, has no names of features, which scikit-learn would point out.
    with WARNING_FILTERS.changed("ignore"):
        shares, score = model.predict_proba(row)[0], float(model.outlier_scores(row)[0])
        compared = model._comparable(model._checked(row))
    cluster = int(shares.argmax())
    if own is not None:  # as confidence_ says it, also against the label
        cluster = int(model.labels_[own])
        shares = unfavored(model.membership_[own], cluster, float(model.confidence_[own]))
    nearest = [nearest_exemplar(model, compared, label) for label in range(len(shares))]
    following = next_best(shares, cluster, distances(model, compared, np.array(nearest)))
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
        features=deciding_features(model, compared, own, pair, table, names, n),
    )


def next_best(shares: np.ndarray, cluster: int, far: np.ndarray) -> int | None:
    """Return the cluster that would be next, by membership or where that says nothing by distance."""
    if len(shares) == 1:
        return None
    others = np.delete(np.arange(len(shares)), cluster)
    return int(others[np.lexsort((far[others], -shares[others]))[0]])


def as_row(model: Any, point: Any, before: Any) -> tuple[Any, int | None]:
    """Return a point as a table of one row, and its number among the training data, if it is one of them.

    ``before`` are the steps of a pipeline that new points go through.
    """
    n = len(model.labels_)
    if isinstance(point, numbers.Integral):
        if not 0 <= int(point) < n:
            raise ParameterError(
                f"point={point} is no row of the training data: give 0 to {n - 1}, or a new row."
            )
        return unit_rows(model, [int(point)]), int(point)
    names = getattr(model if before is None else before, "feature_names_in_", ())
    try:
        if len(names) and hasattr(point, "to_frame") and set(names) <= set(point.index):
            point = point[list(names)].to_frame().T.astype(float)  # a row of a pandas frame, by its names
        if not sp.issparse(point) and not nw.dependencies.is_into_dataframe(point):
            point = np.asarray(point, dtype=float).reshape(1, -1)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"point={shown(point)} is no row of numbers: give the number of a training row, 0 to {n - 1}, or "
            "the numbers of a new row."
        ) from error
    if point.shape[0] != 1:
        raise ParameterError(f"point has {point.shape[0]} rows, but one is explained at a time.")
    with WARNING_FILTERS.changed("ignore"):
        return (point if before is None else before.transform(point)), None


def unit_rows(model: Any, rows: Any) -> Any:
    """Return training data in the unit in which they came; directions alone for ``metric="cosine"``."""
    data = model._fit_data[rows][:, : model.n_features_in_]
    return data * data.dtype.type(model._magnitude)


def checked_table(model: Any, X: Any, own: int | None) -> Any:
    """Return the training rows in other units; refuse a table that is not of the fit."""
    if own is None:
        raise ParameterError(
            "X has the training rows in other units, in which a new point is not known: leave X out, or give "
            "the number of a training row."
        )
    known, width = getattr(model, "feature_names_in_", ()), model.n_features_in_
    if len(known) and nw.dependencies.is_into_dataframe(X):
        frame = nw.from_native(X, eager_only=True)
        if missing := [name for name in known if name not in frame.columns]:
            raise ParameterError(f"X has no column {missing[0]!r}, which the model was fitted to.")
        X = frame.select(list(known)).to_native()
    table = X if sp.issparse(X) or hasattr(X, "columns") else np.asarray(X)
    if table.shape != (len(model.labels_), width):
        raise ParameterError(
            f"X has shape {table.shape}, but the model was fitted to {(len(model.labels_), width)}: give the "
            "training rows, with the columns of the fit."
        )
    return table


def representatives(model: Any, compared: Any, own: int | None, n: int) -> PlainTable:
    """List the training points that a point is represented by, those of the most weight first."""
    if own is not None and hasattr(model, "representation_"):
        weights = dense_row(transposed(model.representation_)[[own]])
    else:
        with thread_pool(model.n_jobs) as pool:
            near = model._search(pool).nearest(compared, pool)
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
    if not sp.issparse(compared):
        return np.linalg.norm(model._fit_data[rows] - compared, axis=1) * model._magnitude
    difference = model._fit_data[rows] - sp.vstack([compared] * len(rows), format="csr")
    return sp.linalg.norm(difference, axis=1) * model._magnitude


def nearest_exemplar(model: Any, compared: Any, cluster: int) -> int:
    """Return the exemplar of a cluster that is nearest to a point; of a model without, its nearest point."""
    candidates = getattr(model, "exemplar_indices_", np.arange(len(model.labels_)))
    candidates = candidates[model.labels_[candidates] == cluster]
    if len(candidates) == 0:
        candidates = np.flatnonzero(model.labels_ == cluster)
    return int(candidates[distances(model, compared, candidates).argmin()])


def deciding_features(
    model: Any, compared: Any, own: int | None, pair: list[int], table: Any, names: np.ndarray, n: int
) -> PlainTable:
    """List the features by which a point is nearer to one exemplar than to the other."""
    rows = [compared, *(model._fit_data[[i]] for i in pair)]
    here, first, last = (dense_row(row)[: model.n_features_in_] for row in rows)
    spoken = (here - last) ** 2 - (here - first) ** 2
    order = np.argsort(-np.abs(spoken), kind="stable")[:n]
    order = order[spoken[order] != 0]
    written = [part * model._magnitude for part in (here, first, last)]
    if table is not None:
        written = [dense_row(take_row(table, i)) for i in (own, *pair)]
    return PlainTable(
        {
            "feature": names[order],
            "value": written[0][order],
            "exemplar": written[1][order],
            "next_exemplar": written[2][order],
            "share": spoken[order] / (np.abs(spoken).sum() or 1.0),
        }
    )


def take_row(table: Any, i: Any) -> Any:
    """Return one row of an array, a sparse matrix or a frame."""
    if nw.dependencies.is_into_dataframe(table):
        return nw.from_native(table, eager_only=True)[[i]].to_numpy()
    return table[[i]]


def dense_row(row: Any) -> np.ndarray:
    """Return a table of one row as an array of numbers."""
    return (row.toarray() if sp.issparse(row) else np.asarray(row, dtype=float)).ravel()
