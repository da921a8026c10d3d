"""A table as it was read, and how the room speaks of columns and rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOST_NAMED = 3  # columns in one sentence
BLOCK_ROWS = 50_000
BLOCK_BYTES = 2**26  # of the numbers, or of the text, of one block, where rows are long


class TableError(ValueError):
    """A table, or the file of one, cannot be used."""


@dataclass(frozen=True, eq=False)
class DataTable:
    """A table that was read: the columns to use, what stands beside them, and what a user must know.

    ``frame`` is a polars DataFrame, an array or a CSR array, with the columns ``names``. ``ids`` and
    ``labels`` are words for every row, as they stand in the file, or None; an unknown class is empty. A table
    may be a part of a longer one, of which ``first_row`` rows stand before it, or has only every ``step``-th
    row of it.
    """

    frame: Any
    names: list[str]
    ids: list[str] | None = None
    labels: list[str] | None = None
    notes: list[str] = field(default_factory=list)
    first_row: int = 0
    step: int = 1

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return int(self.frame.shape[0])


def block_rows(n_columns: int) -> int:
    """Return how many rows of a long table are treated at a time."""
    return max(1, min(BLOCK_ROWS, BLOCK_BYTES // (8 * max(1, n_columns))))


def check_different(source: str, names: Sequence[str]) -> None:
    """Refuse columns of which several have one name."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise TableError(f"{source} has more than one column {twice[0]!r}: rename all but one.")


def for_polars(file: Path) -> str | bytes:
    """Return what polars reads a file by: its path, or its bytes, where polars takes no such path."""
    try:
        str(file).encode()
    except UnicodeEncodeError:  # names of files are bytes, of any kind
        return file.read_bytes()
    return str(file)


def import_polars() -> Any:
    """Return polars, which is imported only where a table of several types is at hand."""
    try:
        import polars
    except ImportError as error:
        raise ImportError("Tables need polars: pip install 'smrmf[app]'.") from error
    return polars


def written(value: float) -> str:
    """Return a number for a sentence: with six digits, but never with fewer than stand before its point."""
    return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:g}"


def listed(names: Sequence[Any]) -> str:
    """Return names for a sentence, only the first of many."""
    shown = [repr(name) for name in names[:MOST_NAMED]]
    if len(names) > MOST_NAMED:
        return f"{', '.join(shown)} and {len(names) - MOST_NAMED} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
