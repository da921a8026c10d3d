"""Parquet files, as a whole or some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smrmf.tables._record import DataTable, TableError, for_polars, import_polars


def read_parquet(file: Path) -> DataTable:
    """Read all of a file."""
    with told_of(file):
        frame = import_polars().read_parquet(for_polars(file), glob=False)
    return DataTable(frame, frame.columns)


@dataclass(frozen=True, eq=False)
class ParquetFile:
    """A file of which only the names and types of its columns have been read, and how many rows there are."""

    file: Path
    lazy: Any
    kinds: dict[str, Any]
    n_rows: int

    @classmethod
    def of(cls, file: Path) -> ParquetFile:
        """Look at a file."""
        polars = import_polars()
        with told_of(file):
            lazy = polars.scan_parquet(for_polars(file), glob=False)
            return cls(file, lazy, dict(lazy.collect_schema()), lazy.select(polars.len()).collect().item())

    def slices(self, names: Sequence[str], n_rows: int) -> Iterator[Any]:
        """Yield some columns as frames of so many rows; of those of one row group no other is unpacked."""
        for begin in range(0, self.n_rows, n_rows):
            with told_of(self.file):
                frame = self.lazy.select(names).slice(begin, n_rows).collect()
            yield frame


@contextmanager
def told_of(file: Path) -> Iterator[None]:
    """Tell of a file what is wrong with it."""
    try:
        yield
    except (import_polars().exceptions.PolarsError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise TableError(f"{file} is no Parquet file, or damaged ({reason:.200}): write it again.") from error
