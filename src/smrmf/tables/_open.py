"""Open a table of numbers for a fit without reading it into memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smrmf._scratch import in_scratch
from smrmf.tables._array_files import array_slices, read_array
from smrmf.tables._parquet import ParquetFile
from smrmf.tables._read import check_name, kind_of
from smrmf.tables._record import DataTable, TableError, block_rows, import_polars

WAY_OUT = "leave it out by drop, or prepare the table in memory with read_table and TablePreparation"


def open_table(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    scratch: str | os.PathLike[str] | None = None,
) -> np.memmap:
    """Open a table of numbers as an array on disk, which may be larger than memory.

    A ``.npy`` file of floating-point numbers in rows is mapped as it is, and nothing of it is read. All else
    (Parquet, integers, half precision, columns side by side, some columns of a file) is copied block by block
    into a scratch file, in double precision, or in single if all columns have it. The scratch file has no
    name, and is gone with the array, or with the process, however that ends.

    Parameters
    ----------
    path : str or path
        The file, ``.npy`` or ``.parquet``.
    columns : sequence of str or None, default=None
        The columns to use; None takes all. Those of an array are ``x0``, ``x1``, ...
    drop : sequence of str, default=()
        Columns not to use.
    scratch : str, path or None, default=None
        The folder of a scratch file; None takes that of :func:`tempfile.gettempdir`, which ``TMPDIR`` sets.
        There must be room for the whole array, and it should be on a disk: some systems keep temporary
        files in memory.

    Returns
    -------
    X : memmap of shape (n_rows, n_columns)
        The numbers, not to be written to.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from smrmf.tables import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "counts.npy"
    ...     np.save(path, np.arange(6).reshape(3, 2))
    ...     X = open_table(path)
    >>> type(X).__name__, X.dtype.name, X[2].tolist()
    ('memmap', 'float64', [4.0, 5.0])
    """
    return open_numbers(path, columns=columns, drop=drop, scratch=scratch).frame


def open_numbers(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    scratch: str | os.PathLike[str] | None = None,
    gaps: bool = False,
) -> DataTable:
    """Do the same, and keep the names; with ``gaps`` values may be missing in Parquet, and are NaN."""
    columns = [columns] if isinstance(columns, str) else columns
    drop = [drop] if isinstance(drop, str) else drop
    kind, file = kind_of(path), Path(path)
    if kind not in (".npy", ".parquet"):
        raise TableError(
            f"{file} can only be read as a whole: write it as .parquet or .npy, or use read_table."
        )
    source = read_array(file) if kind == ".npy" else ParquetFile.of(file)
    names = source.names if isinstance(source, DataTable) else list(source.kinds)
    for name in (*(columns or ()), *drop):
        check_name(str(file), name, names)
    used = [name for name in dict.fromkeys(columns or names) if name not in set(drop)]
    if not used or not source.n_rows:
        why = "has no rows: give some" if used else "has no column left: give other columns, or drop fewer"
        raise TableError(f"{file} {why}.")
    if isinstance(source, ParquetFile):
        return DataTable(_of_parquet(source, used, scratch, gaps), used)
    return DataTable(_of_array(file, source, used, scratch), used)


def _of_array(file: Path, table: DataTable, used: list[str], scratch: Any) -> np.memmap:
    mapped: np.memmap = table.frame
    dtype = "float32" if mapped.dtype == np.float32 else "float64"
    if used == table.names and mapped.dtype == dtype and mapped.flags.c_contiguous:
        return mapped
    places = [table.names.index(name) for name in used]
    blocks = (block[:, places] for block in array_slices(file, block_rows(len(table.names))))
    return in_scratch(blocks, (len(mapped), len(used)), dtype, scratch)


def _of_parquet(source: ParquetFile, used: list[str], scratch: Any, gaps: bool) -> np.memmap:
    for name in used:
        if not source.kinds[name].is_numeric():
            raise TableError(
                f"{name!r} of {source.file} has no numbers, but {source.kinds[name]}: {WAY_OUT}."
            )
    is_single = all(source.kinds[name] == import_polars().Float32 for name in used)
    dtype = "float32" if is_single else "float64"
    return in_scratch(_numbers(source, used, dtype, gaps), (source.n_rows, len(used)), dtype, scratch)


def _numbers(source: ParquetFile, used: list[str], dtype: str, gaps: bool) -> Iterator[np.ndarray]:
    """Yield the rows of a file as arrays."""
    polars, done = import_polars(), 0
    kind = polars.Float32 if dtype == "float32" else polars.Float64
    for frame in source.slices(used, block_rows(len(used))):
        # Column by column into rows: a frame as an array has its columns side by side.
        block = np.empty(frame.shape, dtype)
        for place, name in enumerate(used):
            block[:, place] = frame[name].cast(kind).fill_null(np.nan).to_numpy()
        missing = np.isnan(block)
        if not gaps and missing.any():
            row, place = np.argwhere(missing)[0]
            raise TableError(
                f"{used[place]!r} of {source.file} has no value in row {done + row + 1}, counted from 1: "
                f"fill it, {WAY_OUT}."
            )
        done += len(block)
        yield block
