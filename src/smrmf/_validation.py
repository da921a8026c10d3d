"""What parameters may be, written as data, and the checks of the data itself.

Every refusal is one sentence: the value, the limit, the way out.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array


class ParameterError(ValueError, TypeError):
    """A parameter has a value or a type that it cannot have."""


@dataclass(frozen=True)
class Number:
    """A finite number within limits; ``above`` leaves its lower limit out."""

    low: float | None = None
    high: float | None = None
    above: bool = False
    integer: bool = False

    def accepts(self, value: Any) -> bool:
        """Tell whether the value is such a number."""
        kind = numbers.Integral if self.integer else numbers.Real
        if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
            return False
        try:
            number = float(value)
        except OverflowError:
            return False
        too_low = self.low is not None and (number <= self.low if self.above else number < self.low)
        too_high = self.high is not None and number > self.high
        return bool(np.isfinite(number)) and not too_low and not too_high

    def __str__(self) -> str:
        noun = "an integer" if self.integer else "a number"
        limits = []
        if self.low is not None:
            limits.append(f"above {self.low:g}" if self.above else f"of at least {self.low:g}")
        if self.high is not None:
            limits.append(f"at most {self.high:g}")
        return " ".join([noun, " and ".join(limits)]).strip()


@dataclass(frozen=True)
class Word:
    """One of some words."""

    options: tuple[str, ...]

    def accepts(self, value: Any) -> bool:
        """Tell whether the value is one of the words."""
        return isinstance(value, str) and value in self.options

    def __str__(self) -> str:
        return " or ".join(repr(option) for option in self.options)


@dataclass(frozen=True)
class Thing:
    """An instance of some types, described in words."""

    types: tuple[type, ...]
    words: str

    def accepts(self, value: Any) -> bool:
        """Tell whether the value is an instance."""
        return isinstance(value, self.types)

    def __str__(self) -> str:
        return self.words


Rule = Number | Word | Thing
ARRAY = Thing((np.ndarray,), "an array")
NOTHING = Thing((type(None),), "None")
RANDOM_STATE = Thing((type(None), np.random.RandomState), "None, a RandomState")


def check_parameters(owner: str, values: Mapping[str, Any], rules: Mapping[str, Iterable[Rule]]) -> None:
    """Refuse the first parameter that none of its rules accepts."""
    for name, allowed in rules.items():
        value = values[name]
        if not any(rule.accepts(value) for rule in allowed):
            wanted = " or ".join(str(rule) for rule in allowed)
            raise ParameterError(f"{name}={value!r} is not valid for {owner}: it must be {wanted}.")


def check_n_clusters(n_clusters: int, n_samples: int) -> None:
    """Refuse more clusters than points."""
    if n_samples < max(n_clusters, 2):
        raise ParameterError(
            f"n_clusters={n_clusters} needs at least {max(n_clusters, 2)} points, but X has "
            f"n_samples={n_samples}: give more points or ask for fewer clusters."
        )


def check_n_neighbors(n_neighbors: int, n_samples: int, way_out: str) -> None:
    """Refuse more neighbours than there are other points."""
    if n_neighbors >= n_samples:
        raise ParameterError(
            f"n_neighbors={n_neighbors} must be less than n_samples={n_samples}: a point is not its own "
            f"neighbour; {way_out}."
        )


def count_exemplars(exemplars: float, n_samples: int, at_least: int = 1) -> int:
    """Return how many points a count or a share of all points means; a share gives ``at_least`` so many."""
    if not isinstance(exemplars, numbers.Integral):
        return min(max(round(exemplars * n_samples), at_least, 1), n_samples)
    if exemplars > n_samples:
        raise ParameterError(
            f"exemplars={exemplars} is more than n_samples={n_samples}: ask for at most {n_samples}, or "
            "for a share between 0 and 1."
        )
    return int(exemplars)


def finite_array(estimator: Any, X: Any, copy: bool = False) -> np.ndarray | sp.csr_array:
    """Return X as a float array or CSR matrix; say where it is not finite."""
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite=False,
        copy=copy,
        estimator=estimator,
        input_name="X",
    )
    values = X.data if sp.issparse(X) else X
    # One cheap sum tells almost always that all is well.
    with np.errstate(over="ignore", invalid="ignore"):
        suspect = not np.isfinite(values.sum())
    if suspect and not np.isfinite(values).all():
        wrong = sp.coo_array(X) if sp.issparse(X) else None
        where = np.argwhere(~np.isfinite(values))
        if wrong is not None:
            row, column = wrong.row[where[0, 0]], wrong.col[where[0, 0]]
        else:
            row, column = where[0]
        name = "NaN" if np.isnan(values[tuple(where[0])]) else "infinity"
        raise ValueError(
            f"Input X contains {name} at row {row}, column {column} ({len(where)} such values in all): "
            "remove these rows, or fill them first, for instance with sklearn.impute.SimpleImputer."
        )
    return X


def available_bytes() -> int:
    """Return how much memory this process can get, as far as the system tells."""
    limits = [np.iinfo(np.int64).max]  # unknown: let the allocation itself decide
    with suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with suppress(OSError, ValueError, StopIteration), open("/proc/meminfo") as lines:
        line = next(line for line in lines if line.startswith("MemAvailable"))
        limits.append(int(line.split()[1]) * 1024)
    with suppress(OSError, ValueError):  # a container may have less than its machine
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(limits)


def check_memory(name: str, needed: int, what: str, way_out: str) -> None:
    """Refuse work whose arrays would not fit, before any of them is made."""
    available = available_bytes()
    if needed > available:
        raise MemoryError(
            f"{name} needs {what}, {needed / 2**30:,.1f} GiB, but only {available / 2**30:,.1f} GiB "
            f"are available; {way_out}."
        )


def as_dense(name: str, X: Any, n_arrays: int) -> np.ndarray:
    """Return a dense array, if ``n_arrays`` of its size, which the method needs, fit in memory."""
    if not sp.issparse(X):
        return X
    check_memory(
        name,
        n_arrays * X.shape[0] * X.shape[1] * X.dtype.itemsize,
        f"{n_arrays} dense arrays of {X.shape[0]} x {X.shape[1]}",
        "reduce the features first, for instance with sklearn.decomposition.TruncatedSVD",
    )
    return X.toarray()


def tame(X: Any) -> tuple[Any, float]:
    """Divide by a power of two where squares of the data would overflow or vanish."""
    largest = float(abs(X).max()) if X.size else 1.0
    limit = np.finfo(X.dtype).max ** 0.25
    if largest == 0 or 1 / limit < largest < limit:
        return X, 1.0
    magnitude = 2.0 ** np.floor(np.log2(largest))
    return over(X, magnitude), magnitude


def over(X: Any, divisor: float) -> Any:
    """Return ``X / divisor`` in the precision of X; SciPy would widen a sparse one."""
    if not sp.issparse(X):
        return X / X.dtype.type(divisor)
    return sp.csr_array((X.data / X.dtype.type(divisor), X.indices, X.indptr), shape=X.shape)
