"""Estimators that are ready to fit, built from the name and the settings of a run."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import sklearn.cluster

import smrmf
from smrmf import nndsvd
from smrmf.sharing import remember
from smrmf_reproduce.run.plan import PlanError, Run

# Entries of the non-negative SVD that count as zero where a reading fills them (paper note 13).
SMALL = 1e-10


def find_estimator(name: str) -> Any:
    """Return a class of ``smrmf`` or ``sklearn.cluster``, or any other named as ``package.module:Class``."""
    module, _, kind = name.rpartition(":")
    if not module:
        return getattr(smrmf, name, None) or getattr(sklearn.cluster, name)
    try:
        return getattr(import_module(module), kind)
    except (ImportError, AttributeError) as error:
        raise PlanError(
            f"The estimator {name!r} cannot be imported ({error}): install its package, or put its folder on "
            "PYTHONPATH."
        ) from error


def build(run: Run, X: Any, n_clusters: int) -> Any:
    """Return the estimator of a run on the points X, on one thread: runs are spread over processes."""
    settings = dict(run.settings)
    kind = find_estimator(run.estimator)
    base = kind.paper_settings() if settings.pop("settings") == "paper" and _has_settings(kind) else {}
    selector = settings.pop("selector", None)
    if selector:
        settings["selector"] = _seeded(getattr(smrmf, selector)(n_jobs=1), run.seed)
    fill = settings.pop("fill", 0.0)
    if fill:
        settings["init"] = filled_start(X, n_clusters, fill)
    if settings.get("selection") == "none":  # a file of settings has no word for None
        settings["selection"] = None
    # The plan has the last word over paper_settings().
    model = kind(**base | settings)
    # Not every estimator has these: HDBSCAN finds the number of clusters itself.
    if "n_clusters" in model.get_params():
        model.set_params(n_clusters=n_clusters)
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=1)
    return _seeded(model, run.seed)


def filled_start(X: Any, n_clusters: int, fill: float) -> np.ndarray:
    """Return the non-negative SVD as a widespread implementation has it: a constant for small entries."""
    dense = X.toarray() if hasattr(X, "toarray") else X
    # n x c, and the same at every point of a grid: one SVD serves them all.
    G = remember(nndsvd, dense, n_clusters)
    return np.where(G < SMALL, fill, G)


def _has_settings(kind: Any) -> bool:
    return hasattr(kind, "paper_settings")


def _seeded(model: Any, seed: int) -> Any:
    return model.set_params(random_state=seed) if "random_state" in model.get_params() else model
