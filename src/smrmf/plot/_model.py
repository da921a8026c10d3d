"""What a picture needs of a model, or one sentence that says what is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from smrmf._validation import ParameterError, shown

# Where an attribute comes from.
WAYS = {
    "labels_": "take a model that clusters, such as FastSMRMF",
    "components_": "take a factorisation, such as FastSMRMF",
    "exemplar_indices_": "take a model with exemplars, such as FastSMRMF",
    "affinity_": "take a model with a graph, such as FastSMRMF",
    "confidence_": "take a factorisation, such as FastSMRMF",
    "objective_history_": "take a model that iterates, such as FastSMRMF",
}


def check_model(model: Any, *attributes: str) -> None:
    """Refuse what is no fitted model, or one without the attributes that a picture shows."""
    if isinstance(model, type) or not hasattr(model, "fit"):
        raise ParameterError(
            f"model={shown(model)} is not a fitted model: give an estimator of smrmf, after its fit."
        )
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        name = type(model).__name__
        raise NotFittedError(f"This {name} is not fitted yet: call fit before drawing it.") from error
    for attribute in attributes:
        if not hasattr(model, attribute):
            raise ParameterError(f"{type(model).__name__} has no {attribute}: {WAYS[attribute]}.")


def count_clusters(labels: np.ndarray) -> int:
    """Return the number of clusters that have a point."""
    return int(labels.max()) + 1


def check_coordinates(coordinates: Any, n_samples: int) -> np.ndarray:
    """Return places as an array; refuse any but two finite numbers for each point."""
    places = np.asarray(coordinates)
    if places.shape != (n_samples, 2) or places.dtype.kind not in "iuf":
        raise ParameterError(
            f"coordinates has shape {places.shape} and entries of type {places.dtype}, but must have two "
            f"numbers for each point, shape ({n_samples}, 2): take those of smrmf.plot.layout(model)."
        )
    if not np.isfinite(places).all():
        raise ParameterError("coordinates has entries that are not finite: every point needs a place.")
    return places


def best_exemplars(model: Any, cluster: int, count: int) -> np.ndarray:
    """Return the best exemplars of a cluster, at most so many, best first."""
    indices = np.asarray(model.exemplar_indices_)
    return indices[model.labels_[indices] == cluster][:count]
