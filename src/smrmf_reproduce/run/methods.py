"""Estimators that are ready to fit, built from the name and the settings of a run."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import numpy as np
import sklearn.cluster

import smrmf
from smrmf import nndsvd
from smrmf_reproduce.run.plan import PlanError, Run

# Entries of the non-negative SVD that count as zero where a reading fills them (paper note 13).
SMALL = 1e-10


def find_estimator(name: str) -> Any:
    """Return an estimator of ``smrmf`` or ``sklearn.cluster``, or one named as ``package.module:Class``."""
    module, _, kind = name.rpartition(":")
    if not module:
        return _find_short(name)
    try:
        found = getattr(import_module(module), kind)
    # Not ImportError alone: a module may raise anything while it is imported.
    except Exception as error:
        why = " ".join(str(error).split())
        raise PlanError(
            f"The estimator {name!r} cannot be imported ({why}): install its package, or put its folder on "
            "PYTHONPATH."
        ) from error
    if not _is_estimator(found):
        raise PlanError(f"{name!r} is no estimator: name a class with fit, get_params and set_params.")
    return found


def _is_estimator(found: Any) -> bool:
    """Tell whether this is a class that can be set up and fitted; a plan may name anything."""
    return (
        isinstance(found, type)
        and not inspect.isabstract(found)
        and all(callable(getattr(found, name, None)) for name in ("fit", "get_params", "set_params"))
    )


def _find_short(name: str) -> Any:
    """Return an estimator of ``smrmf``, else of ``sklearn.cluster``."""
    for package in (smrmf, sklearn.cluster):
        found = getattr(package, name, None)
        if _is_estimator(found):  # modules and functions have names there, too
            return found
    raise PlanError(
        f"The estimator {name!r} is no estimator of smrmf or sklearn.cluster: correct the name, or write "
        "'package.module:Class' for a class of another package."
    )


def build(run: Run, X: Any, n_clusters: int) -> Any:
    """Return the estimator of a run on the points X, on one thread: runs are spread over processes."""
    kind = find_estimator(run.estimator)
    base, settings = base_settings(run), dict(run.settings)
    del settings["settings"]
    selector = settings.pop("selector", None)
    if selector:
        settings["selector"] = _told(find_estimator(selector)(n_jobs=1), random_state=run.seed)
    fill, perturbation = settings.pop("fill", 0.0), settings.pop("perturbation", 0.0)
    if fill or perturbation:
        settings["init"] = changed_start(X, n_clusters, fill, perturbation, run.seed)
    if settings.get("selection") == "none":  # a file of settings has no word for None
        settings["selection"] = None
    # The plan has the last word over paper_settings().
    model = kind(**base | settings)
    return _told(model, n_clusters=n_clusters, n_jobs=1, random_state=run.seed)


def base_settings(run: Run) -> dict[str, Any]:
    """Return what the plan starts from: the paper's parameters of the estimator, or its defaults."""
    kind = find_estimator(run.estimator)
    wants_paper = run.settings["settings"] == "paper" and hasattr(kind, "paper_settings")
    return kind.paper_settings() if wants_paper else {}


def starts_from_svd(run: Run) -> bool:
    """Tell whether a run begins with the non-negative SVD, the one start that a plan can change."""
    return (base_settings(run) | dict(run.settings)).get("init") == "nndsvd"


def changed_start(X: Any, n_clusters: int, fill: float, perturbation: float, seed: int) -> np.ndarray:
    """Return the non-negative SVD with a constant for small entries, and every entry moved a little.

    A widespread implementation fills them. The move is relative, and another for every seed.
    """
    dense = X.toarray() if hasattr(X, "toarray") else X
    # The same at every point of a grid: nndsvd shares its SVD among them.
    G = nndsvd(dense, n_clusters)
    if fill:
        G = np.where(G < SMALL, fill, G)
    return G * (1 + perturbation * np.random.RandomState(seed).standard_normal(G.shape))


def _told(model: Any, **values: int) -> Any:
    """Set those of the parameters that the model has: HDBSCAN finds the number of clusters itself."""
    return model.set_params(**{name: value for name, value in values.items() if name in model.get_params()})
