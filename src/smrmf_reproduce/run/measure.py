"""Do one run: load, fit, time and score it, and say what went wrong if anything did."""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

from smrmf import datasets
from smrmf.metrics import clustering_accuracy, kernel_neighborhoods
from smrmf.sharing import SharedWork, shared_work
from smrmf_reproduce.run.environment import forget_peak_memory, machine, peak_memory, versions
from smrmf_reproduce.run.methods import build, starts_from_svd
from smrmf_reproduce.run.neighborhoods import learned_neighborhoods
from smrmf_reproduce.run.plan import DETAILS, Run
from smrmf_reproduce.run.store import DONE, FAILED, Record

# Sets that are drawn, by name, with their dimensions.
SIMULATED = {"2d-moons": 2, "10d-moons": 10}
SCORES = ("accuracy", "nmi_max", "nmi_arithmetic", "objective", "n_iter", "converged")
# What [measurements] of a plan may ask for; the result stands in the record under the same name.
MEASUREMENTS: dict[str, Callable[..., Any]] = {"neighborhoods": kernel_neighborhoods}


def load_points(name: str, data_home: str | None) -> datasets.Dataset:
    """Return a data set, drawn or loaded."""
    if name in SIMULATED:
        return datasets.Dataset(*datasets.make_moons_paper(dim=SIMULATED[name]))
    return datasets.load(name, data_home=data_home)


def whole_points(run: Run, data: datasets.Dataset) -> datasets.Dataset:
    """Return the points as a run takes them: where it begins as the paper does, sparse ones as dense.

    The loop takes wide sparse points on their leading axes. From a clustering that changes next to nothing,
    but from the rough start of the paper it would be another method.
    """
    X, y = data
    if run.is_measurement or not sp.issparse(X) or not starts_from_svd(run):
        return data
    return datasets.Dataset(X.toarray(), y)


class Worker:
    """Does runs one after the other and keeps what they share.

    That is the points of the last data set, the work on them that several fits repeat, and what is compiled.
    """

    def __init__(self, data_home: str | None = None) -> None:
        self._data_home = data_home
        self._loaded: tuple[str, datasets.Dataset] | None = None
        self._shared = SharedWork()
        self._warm: set[Hashable] = set()

    def measure(self, run: Run) -> Record:
        """Do a run and return its record; an error makes it a failed one."""
        # Begun as a failure and overwritten on success: every record has the same fields.
        record = failed(run, "")
        began = start = time.perf_counter()
        try:
            data = whole_points(run, self._points(run.data))
            self._warm_up(run, data.X)
            forget_peak_memory()
            # After loading and compiling, which are costs of this process and not of the method.
            start, saved = time.perf_counter(), self._shared.saved
            with shared_work(self._shared), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # corners of a grid that do not converge belong to it
                found, spent = _measure_data(run, data) if run.is_measurement else _fit(run, data)
            record |= found | {"status": DONE, "error": None}
            # "seconds" is what the run takes alone: work taken over from earlier runs is added in full, or
            # the first run of a batch would pay for all and tables would depend on the batches.
            record |= {"spent": spent, "seconds": spent + self._shared.saved - saved}
        # Not BaseException: Ctrl-C and the end of the process are not results of the run.
        except Exception as error:
            reason = traceback.format_exception_only(error)[-1].strip()
            # It may name a file whose name is no text, which no page could show.
            reason = reason.encode("utf-8", "replace").decode("utf-8")
            record |= {"error": reason, "spent": time.perf_counter() - start}
        return record | {"peak_memory": peak_memory(), "took": time.perf_counter() - began}

    def _points(self, name: str) -> datasets.Dataset:
        if self._loaded is None or self._loaded[0] != name:
            self._shared = SharedWork()  # results on other points cannot be used again
            self._loaded = (name, load_points(name, self._data_home))
        return self._loaded[1]

    def _warm_up(self, run: Run, points: Any) -> None:
        """Compile what a run needs on a few points, outside of its time, the first time in a process."""
        code = (run.estimator, chosen_code(run.settings), sp.issparse(points), points.dtype)
        if code in self._warm or run.is_measurement:
            return
        # Before the fit, so that an estimator that fails on these points fails once and not in every run.
        self._warm.add(code)
        # Not negative, as NMF needs it. Outside of shared_work, which keeps one result per function:
        # these points would take the place of the data set's.
        X = np.abs(np.random.default_rng(0).normal(size=(60, 4))).astype(points.dtype)
        X = sp.csr_array(X) if sp.issparse(points) else X
        with warnings.catch_warnings(), suppress(Exception):  # what is wrong shows in the run itself
            warnings.simplefilter("ignore")
            build(run, X, 2).fit(X)


def chosen_code(settings: Mapping[str, Any]) -> Hashable:
    """Return the part of the settings that decides which code runs, and so what has to be compiled."""
    # Of a number its type, and whether it is zero, which may leave out a step; a grid has many of the others.
    return tuple(
        (name, (type(value), value == 0) if type(value) in (int, float) else str(value))
        for name, value in sorted(settings.items())
    )


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
        "took": None,
        **dict.fromkeys(("n_samples", "n_features", "n_classes", *SCORES, *DETAILS)),
        "versions": versions(),
        "machine": machine(),
        "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }


def _measure_data(run: Run, data: datasets.Dataset) -> tuple[Record, float]:
    """Measure the data themselves; return what was found and how long it took."""
    X, y = data
    start = time.perf_counter()
    found = {run.estimator: MEASUREMENTS[run.estimator](X, y, **run.arguments)}
    return _sizes(X, y) | found, time.perf_counter() - start


def _fit(run: Run, data: datasets.Dataset) -> tuple[Record, float]:
    """Fit and score; return what was found and how long the fit took."""
    X, y = data
    sizes = _sizes(X, y)
    start = time.perf_counter()
    # Building is timed too, as a reading may compute its start there (changed_start).
    model = build(run, X, sizes["n_classes"]).fit(X)
    spent = time.perf_counter() - start
    found = sizes | scores(model, y)
    if "history" in run.record and hasattr(model, "objective_history_"):
        found["history"] = [float(f"{value:.6g}") for value in model.objective_history_]
    if "neighborhoods" in run.record:
        found["neighborhoods"] = learned_neighborhoods(model, y)
    if "picture" in run.record:
        found["picture"] = picture(model, X, y)
    return found, spent


def _sizes(X: Any, y: np.ndarray) -> Record:
    return {"n_samples": X.shape[0], "n_features": X.shape[1], "n_classes": len(np.unique(y))}


def scores(model: Any, y: np.ndarray) -> Record:
    """Compare the labels of a fitted model with the classes; noise counts as one more cluster."""
    labels = model.labels_
    return {
        "accuracy": clustering_accuracy(y, labels),
        # The divisor that fits the paper's moons table; the arithmetic mean is recorded beside it
        # (paper note 57).
        "nmi_max": float(normalized_mutual_info_score(y, labels, average_method="max")),
        "nmi_arithmetic": float(normalized_mutual_info_score(y, labels, average_method="arithmetic")),
        "objective": float(model.objective_) if hasattr(model, "objective_") else None,
        "n_iter": int(model.n_iter_) if hasattr(model, "n_iter_") else None,
        "converged": bool(model.converged_) if hasattr(model, "converged_") else None,
    }


def picture(model: Any, X: np.ndarray, y: np.ndarray) -> Record:
    """Return what a drawing of clusters and graph in the first two coordinates needs."""
    # The graph is symmetric: its upper triangle has every edge once.
    W = sp.triu(getattr(model, "affinity_", sp.csr_array((len(y), len(y)))), k=1).tocoo()
    edges = zip(W.row.tolist(), W.col.tolist(), W.data.tolist(), strict=True)
    return {
        "points": X[:, :2].round(4).tolist(),
        "classes": y.tolist(),
        "labels": model.labels_.tolist(),
        "edges": [[i, j, float(f"{weight:.4g}")] for i, j, weight in edges],
        "exemplars": np.asarray(getattr(model, "exemplar_indices_", [])).tolist(),
    }
