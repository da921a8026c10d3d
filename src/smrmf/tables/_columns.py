"""The columns of a table by name, whether it is a frame of several types or one array of numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from narwhals.stable.v2.dependencies import is_pandas_dataframe

from smrmf.tables._record import DataTable, TableError, check_different, import_polars, listed

Kind = Literal["numbers", "words", "dates", "other"]


@dataclass(frozen=True, eq=False)
class ArrayColumns:
    """The columns of an array, all of numbers, by name."""

    array: np.ndarray
    places: dict[str, int]
    first_row: int = 0
    step: int = 1

    def row(self, place: int) -> int:
        """Return the number of a row, as sentences call it."""
        return self.first_row + place * self.step + 1

    @property
    def names(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.places)

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return len(self.array)

    def kind(self, name: str) -> Kind:
        """Return what a column holds."""
        return "numbers"

    def is_single(self, name: str) -> bool:
        """Tell whether a column has single precision."""
        return bool(self.array.dtype == np.float32)

    def numbers(self, name: str) -> np.ndarray:
        """Return a column as numbers, missing ones as NaN."""
        # Side by side: every pass over a column of a wide table would go through all of its memory.
        column = np.ascontiguousarray(self.array[:, self.places[name]])
        return column.astype(np.float32 if self.is_single(name) else np.float64, copy=False)

    def words(self, name: str) -> Any:
        """Return a column as a polars Series of words."""
        return import_polars().Series(self.numbers(name)).cast(import_polars().String)


@dataclass(frozen=True, eq=False)
class FrameColumns:
    """The columns of a polars DataFrame."""

    frame: Any
    names: list[str]
    first_row: int = 0
    step: int = 1

    def row(self, place: int) -> int:
        """Return the number of a row, as sentences call it."""
        return self.first_row + place * self.step + 1

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return int(self.frame.height)

    def kind(self, name: str) -> Kind:
        """Return what a column holds."""
        polars, dtype = import_polars(), self.frame.get_column(name).dtype
        if dtype.is_numeric() or dtype == polars.Null:
            return "numbers"
        if dtype.is_temporal():
            return "dates"
        words = (polars.String, polars.Boolean, polars.Categorical, polars.Enum)
        return "words" if dtype in words else "other"

    def is_single(self, name: str) -> bool:
        """Tell whether a column has single precision."""
        return bool(self.frame.get_column(name).dtype == import_polars().Float32)

    def numbers(self, name: str) -> np.ndarray:
        """Return a column as numbers, not to be written to, missing ones as NaN; refuse other words."""
        polars, column = import_polars(), self.frame[name]
        numbers = column.cast(polars.Float32 if self.is_single(name) else polars.Float64, strict=False)
        wrong = numbers.is_null() & column.is_not_null()
        if wrong.any():
            place = int(wrong.arg_true()[0])
            raise TableError(
                f"{name!r} must have numbers, but has {str(column[place])!r:.60} in row {self.row(place)}, "
                "counted from 1: correct it, or leave it empty."
            )
        return numbers.to_numpy()

    def words(self, name: str) -> Any:
        """Return a column as a polars Series of words."""
        return self.frame[name].cast(import_polars().String)


Columns = ArrayColumns | FrameColumns


def columns_of(frame: Any) -> Columns:
    """Return the columns of a table that was read, of an array, or of what polars makes a DataFrame of."""
    names, part = None, (0, 1)
    if isinstance(frame, DataTable):
        frame, names, part = frame.frame, frame.names, (frame.first_row, frame.step)
    if isinstance(frame, np.ndarray):
        if frame.ndim != 2 or not len(frame):
            raise TableError(f"The table has the shape {frame.shape}: give rows by columns, and some rows.")
        names = names or [f"x{place}" for place in range(frame.shape[1])]
        return ArrayColumns(frame, {name: place for place, name in enumerate(names)}, *part)
    found = _polars_frame(frame)
    if not found.height:
        raise TableError("The table has no rows: give at least one.")
    return FrameColumns(found, found.columns, *part)


def check_names(names: Collection[str], wanted: Iterable[str]) -> None:
    """Refuse a table that lacks some of the wanted columns."""
    known = set(names)
    absent = [name for name in wanted if name not in known]
    if absent:
        has = listed(list(names))
        raise TableError(f"The table has no column {listed(absent)}, which is needed; it has {has}.")


def _polars_frame(frame: Any) -> Any:
    polars = import_polars()
    if isinstance(frame, polars.DataFrame):
        return frame
    if not is_pandas_dataframe(frame):
        return polars.DataFrame(frame)
    names = [str(name) for name in frame.columns]
    check_different("The table", names)
    return polars.DataFrame([_polars_series(name, frame.iloc[:, place]) for place, name in enumerate(names)])


def _polars_series(name: str, column: Any) -> Any:
    """Return a column of pandas as one of polars, which itself needs pyarrow for words."""
    polars, values = import_polars(), column.to_numpy()
    if values.dtype.kind in "biuf":
        return polars.Series(name, values)
    if values.dtype.kind in "mM":
        return polars.Series(name, values.astype(f"{values.dtype.kind}8[us]"))
    cells = [None if gone else cell for cell, gone in zip(values.tolist(), column.isna(), strict=True)]
    try:
        return polars.Series(name, cells, strict=False)
    except (TypeError, ValueError, OverflowError, polars.exceptions.PolarsError):
        return polars.Series(name, cells, dtype=polars.Object)
