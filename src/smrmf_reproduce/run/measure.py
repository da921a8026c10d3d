"""Do one run: load, fit, time and score it, and say what went wrong if anything did."""

from __future__ import annotations

import os
import platform
import time
import traceback
import warnings
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

from smrmf import datasets
from smrmf.metrics import clustering_accuracy
from smrmf.sharing import SharedWork, shared_work
from smrmf_reproduce.run.methods import build
from smrmf_reproduce.run.neighborhoods import kernel_neighborhoods, learned_neighborhoods
from smrmf_reproduce.run.plan import Run
from smrmf_reproduce.run.store import DONE, FAILED, Record

MOONS = {"2d-moons": 2, "10d-moons": 10}
LIBRARIES = ("smrmf", "numpy", "scipy", "scikit-learn", "numba")
SCORES = ("accuracy", "nmi_max", "nmi_arithmetic", "objective", "n_iter", "converged")
DETAILS = ("history", "neighborhoods", "picture")

# What runs on the same points share, in this process, and which estimators are compiled already.
_shared = SharedWork()
_warm: set[str] = set()


@lru_cache(maxsize=1)
def load_points(name: str, data_home: str | None) -> datasets.Dataset:
    """Return a data set, kept for the runs that follow, in place of the last one."""
    _shared.results.clear()
    if name in MOONS:
        return datasets.Dataset(*datasets.make_moons_paper(dim=MOONS[name]))
    return datasets.load(name, data_home=data_home)


def measure(run: Run, data_home: str | None = None) -> Record:
    """Do a run and return its record; an error makes it a failed one."""
    record = failed(run, "")
    start = time.perf_counter()
    try:
        data = load_points(run.data, data_home)
        warm_up(run)
        forget_peak_memory()
        start, saved = time.perf_counter(), _shared.saved
        with shared_work(_shared), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # corners of a grid that do not converge belong to it
            found, spent = _fit(run, data)
        record |= found | {"status": DONE, "error": None}
        record |= {"spent": spent, "seconds": spent + _shared.saved - saved}
    except Exception as error:
        reason = traceback.format_exception_only(error)[-1].strip()
        record |= {"error": reason, "spent": time.perf_counter() - start}
    return record | {"peak_memory": peak_memory()}


def warm_up(run: Run) -> None:
    """Compile what a run needs on a few points, outside of its time, the first time in a process."""
    if run.estimator in _warm or run.estimator == "neighborhoods":
        return
    _warm.add(run.estimator)
    X = np.abs(np.random.default_rng(0).normal(size=(60, 4)))
    with warnings.catch_warnings(), suppress(Exception):  # what is wrong shows in the run itself
        warnings.simplefilter("ignore")
        build(run, X, 2).fit(X)


def failed(run: Run, reason: str) -> Record:
    """Return the record of a run that has no result."""
    return {
        "key": run.key,
        "data": run.data,
        "method": run.method,
        "params": dict(run.params),
        "settings": dict(run.settings),
        "seed": run.seed,
        "status": FAILED,
        "error": reason,
        "seconds": None,
        "spent": None,
        "peak_memory": None,
        **dict.fromkeys(("n_samples", "n_features", "n_classes", *SCORES, *DETAILS)),
        "versions": versions(),
        "machine": machine(),
        "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }


def _fit(run: Run, data: datasets.Dataset) -> tuple[Record, float]:
    """Fit and score; return what was found and how long the fit took."""
    X, y = data
    n_classes = len(np.unique(y))
    found: Record = {"n_samples": X.shape[0], "n_features": X.shape[1], "n_classes": n_classes}
    start = time.perf_counter()
    if run.estimator == "neighborhoods":
        bandwidth = "distance" if run.data in MOONS else "squared-distance"
        found["neighborhoods"] = kernel_neighborhoods(X, y, bandwidth)
        return found, time.perf_counter() - start
    model = build(run, X, n_classes).fit(X)
    spent = time.perf_counter() - start
    found |= scores(model, y)
    if hasattr(model, "objective_history_"):
        found["history"] = [float(f"{value:.6g}") for value in model.objective_history_]
    if run.estimator in ("SMRMF", "FastSMRMF"):
        found["neighborhoods"] = learned_neighborhoods(model, y)
    if run.data in MOONS:
        found["picture"] = picture(model, X, y)
    return found, spent


def scores(model: Any, y: np.ndarray) -> Record:
    """Compare the labels of a fitted model with the classes; noise counts as one more cluster."""
    labels = model.labels_
    return {
        "accuracy": clustering_accuracy(y, labels),
        "nmi_max": float(normalized_mutual_info_score(y, labels, average_method="max")),
        "nmi_arithmetic": float(normalized_mutual_info_score(y, labels, average_method="arithmetic")),
        "objective": float(model.objective_) if hasattr(model, "objective_") else None,
        "n_iter": int(model.n_iter_) if hasattr(model, "n_iter_") else None,
        "converged": bool(model.converged_) if hasattr(model, "converged_") else None,
    }


def picture(model: Any, X: np.ndarray, y: np.ndarray) -> Record:
    """Return what a drawing of clusters and graph in the first two coordinates needs."""
    W = sp.triu(getattr(model, "affinity_", sp.csr_array((len(y), len(y)))), k=1).tocoo()
    edges = zip(W.row.tolist(), W.col.tolist(), W.data.tolist(), strict=True)
    return {
        "points": X[:, :2].round(4).tolist(),
        "classes": y.tolist(),
        "labels": model.labels_.tolist(),
        "edges": [[i, j, float(f"{weight:.4g}")] for i, j, weight in edges],
        "exemplars": np.asarray(getattr(model, "exemplar_indices_", [])).tolist(),
    }


def forget_peak_memory() -> None:
    """Let the peak start anew, where the system allows it (Linux)."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def peak_memory() -> float | None:
    """Return the most memory this process has held, in MB; None where the system does not say."""
    try:
        with open("/proc/self/status") as file:
            sizes = dict(line.split(":", 1) for line in file)
        return int(sizes["VmHWM"].split()[0]) / 1024
    except (OSError, KeyError):
        return None


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Return the versions of what computes."""
    return {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES}


@lru_cache(maxsize=1)
def machine() -> dict[str, Any]:
    """Describe the machine, without its name."""
    found: dict[str, Any] = {"system": platform.system(), "cpu": _processor(), "cores": os.cpu_count()}
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        found["memory_gb"] = round(memory / 1e9, 1)
    return found


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or platform.machine()
