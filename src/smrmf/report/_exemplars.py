"""Which rows stand for the others on a page, and which ones each stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf.graph.exemplars import rows_of_z, transposed
from smrmf.graph.groups import membership
from smrmf.plot._model import best_exemplars
from smrmf.report._subject import Subject

# Of each cluster and of all, as many as one can look at; more clusters have fewer each, but one at least.
MOST_OF_CLUSTER, MOST_OF_ALL = 8, 400
# A row is represented by another if that gives so much of it; so many of them are joined by lines.
LEAST_WEIGHT, MOST_JOINED = 0.01, 100
# Of models without exemplars: how many rows nearest to the mean, and how many neighbours of each.
TYPICAL_ROWS, TYPICAL_NEIGHBORS = 3, 12


@dataclass(frozen=True)
class ShownExemplar:
    """A row that stands for others: ``joined`` are those of the most weight, of ``count`` in all."""

    row: int
    cluster: int
    joined: np.ndarray
    count: int
    inside: int


def has_exemplars(subject: Subject) -> bool:
    """Tell whether the model has chosen exemplars; else rows nearest to the mean of a cluster are typical."""
    return hasattr(subject.model, "exemplar_indices_")


def shown_exemplars(subject: Subject) -> list[ShownExemplar]:
    """Return the rows that a page shows of every cluster, the best first."""
    most = max(1, min(MOST_OF_CLUSTER, MOST_OF_ALL // len(subject.clusters)))
    if not has_exemplars(subject):
        chosen = _nearest_to_means(subject, min(most, TYPICAL_ROWS))
    else:
        best = [best_exemplars(subject.model, cluster, most) for cluster in subject.clusters]
        chosen = np.concatenate(best).astype(int)
    if hasattr(subject.model, "representation_"):
        ties = _represented(subject.model, chosen)
    else:
        ties = _neighbors(subject.model, chosen)
    labels = subject.labels
    return [
        ShownExemplar(
            row=int(row),
            cluster=int(labels[row]),
            joined=others[:MOST_JOINED],
            count=len(others),
            inside=int(np.count_nonzero(labels[others] == labels[row])),
        )
        for row, others in zip(chosen, ties, strict=True)
    ]


def _represented(model: Any, chosen: np.ndarray) -> list[np.ndarray]:
    """Return for every row those that it represents, of the most weight first."""
    found = []
    rows = rows_of_z(transposed(model.representation_), chosen)
    for place, row in enumerate(chosen):
        part = rows[[place]].tocoo()
        others, weights = part.coords[1], part.data
        kept = (weights >= LEAST_WEIGHT) & (others != row)
        order = np.argsort(-weights[kept], kind="stable")
        found.append(others[kept][order])
    return found


def _neighbors(model: Any, chosen: np.ndarray) -> list[np.ndarray]:
    """Return for every row its nearest other ones."""
    found = []
    for row in chosen:
        far = squared_distances(model._fit_data, model._fit_data[[row]])[:, 0]
        far[row] = np.inf
        count = min(TYPICAL_NEIGHBORS, len(far) - 1)
        found.append(np.argsort(far, kind="stable")[:count])
    return found


def _nearest_to_means(subject: Subject, count: int) -> np.ndarray:
    """Return the rows of every cluster that are nearest to its mean."""
    X, labels = subject.model._fit_data, subject.labels
    sums = membership(labels, len(subject.sizes), np.float64) @ X
    means = np.asarray(sums.toarray() if sp.issparse(sums) else sums) / np.maximum(subject.sizes, 1)[:, None]
    far = squared_distances(X, means)
    chosen = []
    for cluster in subject.clusters:
        members = np.flatnonzero(labels == cluster)
        chosen.append(members[np.argsort(far[members, cluster], kind="stable")[:count]])
    return np.concatenate(chosen)


def squared_distances(X: Any, others: Any) -> np.ndarray:
    """Return the squared distances of all rows to few others."""
    squares = [
        np.asarray(part.multiply(part).sum(axis=1) if sp.issparse(part) else (part**2).sum(axis=1)).ravel()
        for part in (X, others)
    ]
    products = X @ others.T
    products = products.toarray() if sp.issparse(products) else np.asarray(products)
    return squares[0][:, None] - 2 * products + squares[1]
