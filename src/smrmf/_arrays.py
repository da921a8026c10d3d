"""Data before a fit and results after it: finite, in a safe range, within the memory there is.

Every refusal is one sentence with the value, the limit, and what to do instead.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from smrmf._parallel import row_blocks
from smrmf._validation import ParameterError, safe_limit


def finite_array(estimator: Any, X: Any, copy: bool = False) -> np.ndarray | sp.csr_array:
    """Return X as a float array or CSR matrix; refuse it, with the place, where it is no finite number.

    Rows of a sparse copy have every entry once, in the order of the columns: sums depend on the order.
    """
    # Names of a DataFrame, which the array does not have.
    names = getattr(X, "columns", None)
    try:
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
    except (ValueError, TypeError, OverflowError) as error:
        raise _better_sentence(error, X, names) from error
    if copy and sp.issparse(X):
        X.sum_duplicates()  # which sorts, too
    values = X.data if sp.issparse(X) else X
    if not all_finite(values):
        raise _not_finite(X, names)
    return X


def _not_finite(X: np.ndarray | sp.csr_array, names: Any) -> ValueError:
    """Return an error that tells where the first entry is that is not finite, and how many there are."""
    if sp.issparse(X):
        entries = sp.coo_array(X)
        where = np.flatnonzero(~np.isfinite(entries.data))
        count, row, column = len(where), entries.row[where[0]], entries.col[where[0]]
    else:
        # By blocks: the table may lie in a file that memory does not hold.
        blocks = row_blocks(*X.shape)
        counts = [int(np.count_nonzero(~np.isfinite(X[rows]))) for rows in blocks]
        first = blocks[int(np.flatnonzero(counts)[0])]
        place, column = np.argwhere(~np.isfinite(X[first]))[0]
        count, row = sum(counts), first.start + place
    name = "NaN" if np.isnan(X[row, column]) else "infinity"
    return ValueError(
        f"Input X contains {name} at row {row}, column {_column_name(column, names)} ({count} such "
        "values in all): remove these rows, or fill them first, for instance with "
        "sklearn.impute.SimpleImputer."
    )


def all_finite(values: np.ndarray) -> bool:
    """Tell whether all entries are finite."""
    # A finite sum proves it, without an array of answers; an infinite one may be overflow: look at each.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


def check_results(name: str, attributes: Mapping[str, Any]) -> None:
    """Refuse results that are not finite, whatever led to them."""
    parts = (
        (n, v) for n, value in attributes.items() for v in (value if isinstance(value, list) else [value])
    )
    for attribute, value in parts:
        values = np.asarray(value.data if sp.issparse(value) else value)
        if values.dtype.kind == "f" and not all_finite(values):
            raise ValueError(
                f"{name} has no finite result for this data: {attribute} is infinite or NaN; scale the data "
                "to entries of about 1, or take parameters nearer to their defaults."
            )


def _column_name(column: int, names: Any) -> str:
    return str(column) if names is None else repr(names[column])


def _better_sentence(error: Exception, X: Any, names: Any) -> Exception:
    """Return an error that tells which entry is no real number, or the given one if all are."""
    if "Complex data not supported" in str(error):
        kind = getattr(X, "dtype", "complex128")  # a DataFrame has several
        return ParameterError(
            f"Complex data not supported: X has entries of type {kind}, but they must be real; use the real "
            "parts, or real and imaginary parts as features of their own."
        )
    # Not what is no table: as Python objects it would take several times its memory.
    is_table = not sp.issparse(X) and getattr(X, "ndim", 2) == 2
    table = np.asarray(X, dtype=object) if is_table else np.empty(0)
    for row, column in np.ndindex(table.shape if table.ndim == 2 else (0, 0)):
        value = table[row, column]
        try:
            float("nan" if value is None else value)
        except OverflowError:  # an integer, whose digits would fill lines
            return ParameterError(
                f"Input X has a number beyond {np.finfo(float).max:.1e} at row {row}, column "
                f"{_column_name(column, names)}: divide the column by a power of ten, or drop it."
            )
        except (ValueError, TypeError) as reason:
            return ParameterError(
                f"Input X has {value!r:.60} at row {row}, column {_column_name(column, names)} ({reason}): "
                "encode the column as numbers, for instance with sklearn.preprocessing.OneHotEncoder, or "
                "drop it."
            )
    return error


def available_bytes() -> int:
    """Return how many bytes this process can get, as far as the system reports it."""
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


def is_cheap_dense(X: sp.csr_array) -> bool:
    """Tell whether a third of a sparse table is filled: it takes about half the memory of a dense one.

    Then nothing is lost by making it dense, and products of dense rows are several times as fast. How it is
    stored does not count: the same numbers are always taken the same way.
    """
    return bool(3 * X.count_nonzero() >= X.shape[0] * X.shape[1])


def check_nonnegative(name: str, smallest: float) -> None:
    """Refuse negative data."""
    if smallest < 0:
        raise ValueError(
            f"Negative values in data passed to {name}: the smallest is {smallest:g}, but it must be at "
            "least 0; scale the features to [0, 1], or use FastSMRMF, which takes any sign."
        )


def feature_attributes(X: Any) -> dict[str, Any]:
    """Return ``n_features_in_``, and ``feature_names_in_`` if all names are strings."""
    bare = BaseEstimator()
    validate_data(bare, X, skip_check_array=True, reset=True)
    return vars(bare)


def scale_to_safe_range(X: Any) -> tuple[Any, float]:
    """Divide by a power of two where squares of the data could overflow or vanish; return both."""
    largest = largest_entry(X) if X.size else 1.0
    limit = safe_limit(X.dtype)
    if largest == 0 or 1 / limit < largest < limit:
        return X, 1.0
    # Division by a power of two changes exponents only: entries keep all digits, short of underflow.
    magnitude = float(2.0 ** np.floor(np.log2(largest)))
    return divide_keeping_dtype(X, magnitude), magnitude


def largest_entry(X: Any) -> float:
    """Return the largest absolute value of the entries."""
    if sp.issparse(X) or X.ndim != 2:
        return float(abs(X).max())
    return float(max(np.abs(X[rows]).max() for rows in row_blocks(*X.shape)))


def divide_keeping_dtype(X: Any, divisor: float) -> Any:
    """Return ``X / divisor`` in the precision of X; SciPy would widen a sparse one."""
    if not sp.issparse(X):
        # A float64 scalar of NumPy would make float32 data float64.
        return X / X.dtype.type(divisor)
    return sp.csr_array((X.data / X.dtype.type(divisor), X.indices, X.indptr), shape=X.shape)
