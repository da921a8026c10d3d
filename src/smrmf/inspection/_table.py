"""Small tables as answers: a frame of the user's library where the data came as one, else a plain one."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from smrmf.graph.columns import numbered_names

# Rows that a printed table shows, from the beginning.
SHOWN_ROWS = 60


class PlainTable(dict[str, np.ndarray]):
    """Columns of equal length by name, which print as a table and become a frame by ``pd.DataFrame(table)``.

    Parameters
    ----------
    columns : mapping of str to array-like
        The columns.

    Examples
    --------
    >>> PlainTable({"cluster": [0, 1], "share": [0.25, 0.75]})
    cluster  share
          0   0.25
          1   0.75
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        super().__init__((name, np.asarray(column)) for name, column in columns.items())
        if len({len(column) for column in self.values()}) > 1:
            raise ValueError("The columns of a table must have the same length.")

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.values()), ()))

    def head(self, n: int) -> PlainTable:
        """Return the first rows."""
        return PlainTable({name: column[:n] for name, column in self.items()})

    def where(self, kept: np.ndarray) -> PlainTable:
        """Return some of the rows, by a mask or by their numbers."""
        return PlainTable({name: column[kept] for name, column in self.items()})

    def _cells(self) -> list[list[str]]:
        shown = self.head(SHOWN_ROWS)
        return [[name, *map(written, column)] for name, column in shown.items()]

    def __repr__(self) -> str:
        columns = self._cells()
        # Numbers to the right, words to the left.
        lines = [
            [cell.rjust(width) if column.dtype.kind in "iuf" else cell.ljust(width) for cell in cells]
            for cells, column in zip(columns, self.values(), strict=True)
            for width in [max(map(len, cells))]
        ]
        text = "\n".join("  ".join(row).rstrip() for row in zip(*lines, strict=True))
        left_out = self.n_rows - SHOWN_ROWS
        return text + (f"\n... and {left_out} more rows" if left_out > 0 else "")

    def _repr_html_(self) -> str:
        head, *rows = zip(*self._cells(), strict=True) if self else ((),)
        titles = "".join(f"<th>{escape(name)}</th>" for name in head)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def written(value: Any) -> str:
    """Return a cell as people read it: numbers with four digits."""
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)


def like(frame: Any, columns: Mapping[str, Any]) -> Any:
    """Return columns as a frame of the library that the given one is of, or as a plain table."""
    table = PlainTable(columns)
    if not nw.dependencies.is_into_dataframe(frame):
        return table
    library = nw.from_native(frame, eager_only=True).implementation
    return nw.from_dict(dict(table), backend=library).to_native()


def feature_names(X: Any, model: Any = None, given: Any = None) -> np.ndarray:
    """Return the names of the columns: those given, the frame's, the model's, or their numbers."""
    width = np.asarray(X).shape[1] if isinstance(X, list) else X.shape[1]
    if given is not None:
        names = np.asarray(given, dtype=object).astype(str)
        if len(names) != width:
            raise ValueError(f"feature_names has {len(names)} names, but X has {width} columns.")
        return names
    if nw.dependencies.is_into_dataframe(X):
        return np.array([str(name) for name in nw.from_native(X, eager_only=True).columns])
    known = getattr(model, "feature_names_in_", ())
    return np.asarray(known, str) if len(known) == width else numbered_names(width)


def last_step(model: Any) -> Any:
    """Return the model itself, or the last step of a pipeline."""
    return model[-1] if hasattr(model, "steps") else model
