"""The rows of the fit as people read them: numbers by column, and words beside them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import narwhals.stable.v2.selectors as selectors
import numpy as np
import scipy.sparse as sp

from smrmf._validation import ParameterError, shown
from smrmf.graph.columns import numbered_names
from smrmf.inspection._explanation import unit_rows

# Numbers beyond these are written with an exponent, and a missing one so.
LARGE, MOST_DECIMALS, MISSING = 1e7, 5, "\N{EN DASH}"


@dataclass(frozen=True)
class ReadableTable:
    """A row for every point of the fit, in the units that people read.

    ``values`` are dense, or CSR with entries for few words of many; ``words`` are columns of a frame that are
    no numbers, by their names.
    """

    values: Any
    names: np.ndarray
    words: dict[str, np.ndarray]

    @property
    def is_sparse(self) -> bool:
        """Whether most values are zero and not kept."""
        return sp.issparse(self.values)

    @cached_property
    def decimals(self) -> np.ndarray:
        """How many decimals tell the values of a column apart; -1 for whole numbers."""
        if self.is_sparse:
            return np.full(len(self.names), 3)
        found = np.empty(len(self.names), dtype=int)
        for place, column in enumerate(self.values.T):
            known = column[~np.isnan(column)]
            found[place] = -1 if (known == np.rint(known)).all() else decimals_of(known)
        return found

    def written(self, value: float, column: int) -> str:
        """Return a value of a column as people read it."""
        return number(value, int(self.decimals[column]))


def decimals_of(values: np.ndarray) -> int:
    """Return how many decimals tell values apart, and show two digits of a typical one.

    Of the middle half, not of the standard deviation, which few large values make so large that all others
    would be rounded to nothing.
    """
    # Where most values are the same one, such as zero, the others have the spread.
    others = values[values != np.median(values)]
    spreads = [float(np.subtract(*np.quantile(part, [0.75, 0.25]))) for part in (values, others) if len(part)]
    spread = next((spread for spread in spreads if spread > 0), 0.0)
    typical = float(np.median(np.abs(values)))
    wanted = [1 - np.floor(np.log10(typical))] if typical > 0 else []
    wanted += [1 + np.ceil(-np.log10(spread))] if spread > 0 else []
    return int(np.clip(max(wanted), 0, MOST_DECIMALS)) if wanted else 3


def number(value: float, decimals: int) -> str:
    """Return a number with so many decimals; with -1 one that is usually whole."""
    if not np.isfinite(value):
        return MISSING
    size = abs(value)
    if size >= LARGE or 0 < size < 10.0 ** -(MOST_DECIMALS - 1):
        return f"{value:.3g}"
    if decimals < 0:
        decimals = 0 if value == round(value) or size >= 100 else 1
    text = f"{value:,.{decimals}f}" if size >= 10_000 else f"{value:.{decimals}f}"
    return text if float(text.replace(",", "")) else text.replace("-", "")


def table_of_fit(model: Any, before: Any, feature_names: Any) -> ReadableTable:
    """Return the points of the fit in the unit in which they came."""
    values = unit_rows(model, slice(None))
    values = sp.csr_array(values) if sp.issparse(values) else np.asarray(values, dtype=float)
    known = getattr(model, "feature_names_in_", None)
    if known is None and before is not None:
        known = getattr(before[-1], "feature_names_out_", None)
    return ReadableTable(values, _names(feature_names, known, values.shape[1]), {})


def table_of(X: Any, n_samples: int, model: Any, feature_names: Any) -> ReadableTable:
    """Return a table that somebody gave; refuse what is not one row of it for every point of the fit."""
    if nw.dependencies.is_into_dataframe(X):
        table = _of_frame(_with_text_names(X), feature_names)
    else:
        values = _of_array(X)
        known = getattr(model, "feature_names_in_", None)
        known = known if known is not None and len(known) == values.shape[1] else None
        table = ReadableTable(values, _names(feature_names, known, values.shape[1]), {})
    n_rows = table.values.shape[0]
    if n_rows != n_samples:
        raise ParameterError(
            f"X has {n_rows} rows, but the model was fitted to {n_samples}: give a row for every point of "
            "the fit, in the same order."
        )
    _check_finite(table)
    return table


def _of_frame(frame: Any, feature_names: Any) -> ReadableTable:
    numeric = frame.select(selectors.numeric() | selectors.boolean()).columns
    # The one string that a column of words needs for what is missing; None would be a word.
    words = {
        name: np.array(
            [MISSING if is_missing(word) else str(word) for word in frame.get_column(name).to_list()]
        )
        for name in frame.columns
        if name not in numeric
    }
    columns = [
        np.asarray(frame.get_column(name).cast(nw.Float64).to_numpy(), dtype=float) for name in numeric
    ]
    # A column without a value says nothing.
    kept = [place for place, column in enumerate(columns) if not np.isnan(column).all()]
    names = np.array(numeric, dtype=object)
    if feature_names is not None:
        names = _names(feature_names, None, len(frame.columns))[[frame.columns.index(n) for n in numeric]]
    values = np.column_stack([columns[k] for k in kept]) if kept else np.empty((len(frame), 0))
    return ReadableTable(values, names[kept].astype(str) if kept else np.empty(0, str), words)


def _with_text_names(X: Any) -> Any:
    """Return a frame whose columns are called by texts, which those of pandas need not be."""
    if nw.dependencies.is_pandas_like_dataframe(X):
        names = [" ".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in X.columns]
        shared, times = Counter(names).most_common(1)[0] if names else ("", 0)
        if times > 1:
            raise ParameterError(
                f"X has {times} columns called {shown(shared)}: give each a name of its own."
            )
        X = X.set_axis(names, axis=1)
    return nw.from_native(X, eager_only=True)


def is_missing(word: Any) -> bool:
    """Tell whether a cell is empty: None, NaN, or what stands for these in frames."""
    try:
        return word is None or bool(word != word)  # NaN is not itself
    except TypeError:  # pandas does not say of its NA whether it is itself
        return True
    except ValueError:  # a cell that has an array
        return False


def _of_array(X: Any) -> Any:
    if sp.issparse(X):
        return sp.csr_array(X)
    try:
        values = np.asarray(X, dtype=float)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            "X has entries that are no numbers: give words as columns of a pandas or polars frame."
        ) from error
    if values.ndim != 2 or values.shape[1] == 0:
        raise ParameterError(f"X has shape {values.shape}, but must have rows and columns.")
    return values


def _check_finite(table: ReadableTable) -> None:
    entries = table.values.data if table.is_sparse else table.values
    bad = ~np.isfinite(entries) if table.is_sparse else np.isinf(entries)
    if bad.any():
        where = "" if table.is_sparse else f" in column {str(table.names[np.argwhere(bad)[0][1]])!r}"
        raise ParameterError(
            f"X has a value{where} that is not finite: replace it, or leave it missing in a dense table."
        )


def _names(given: Any, known: Any, width: int) -> np.ndarray:
    """Return names for so many columns: those given, those known, or their numbers."""
    if given is None:
        return numbered_names(width) if known is None else np.asarray(known, dtype=object).astype(str)
    names = np.asarray(given, dtype=object).ravel().astype(str)
    if len(names) != width:
        raise ParameterError(
            f"feature_names has {len(names)} names, but there are {width} columns: give one for each."
        )
    return names
