"""New rows from a file of any length, block by block, in the memory that a few blocks need."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from smrmf.tables._array_files import array_slices, read_array
from smrmf.tables._columns import check_names
from smrmf.tables._delimited import Source
from smrmf.tables._delimited_blocks import Wanted, delimited_blocks
from smrmf.tables._parquet import ParquetFile
from smrmf.tables._preparation import TablePreparation
from smrmf.tables._read import SEPARATORS, check_name, kind_of, read_table, words_of
from smrmf.tables._record import BLOCK_BYTES, DataTable, TableError, block_rows


def read_blocks(
    path: str | os.PathLike[str],
    preparation: TablePreparation,
    id_column: str | None = None,
    n_rows: int | None = None,
) -> Iterator[DataTable]:
    """Yield the rows of a table for a preparation that has been fitted, about ``n_rows`` at a time.

    What the columns hold is known from the fit, and so no block is treated as another: a cell is the same
    number, or word, wherever it stands. Every block knows how many rows stand before it, and the first one
    has the notes on the file.
    """
    blocks = _blocks(path, preparation, id_column, n_rows)
    whole = next(blocks)
    names = whole.names
    if id_column is not None:
        check_name(str(path), id_column, names)
        names = [name for name in names if name != id_column]
    if not preparation.is_sparse_:
        check_names(names, [*preparation.numbers_, *preparation.words_])
    done, notes = 0, whole.notes
    for block in blocks:
        if block.n_rows:
            yield replace(block, first_row=done, notes=notes)
            done, notes = done + block.n_rows, []
    if not done:
        raise TableError(f"{path} has the names of {len(whole.names)} columns, but no rows: give some.")


def _blocks(path: Any, preparation: TablePreparation, id_column: str | None, n_rows: int | None) -> Any:
    """Return an iterator over a table with all names, but no rows, and then over the rows."""
    wanted = Wanted(preparation.numbers_, preparation.words_, id_column)
    # Not fewer of a sparse table, most of whose columns are empty in any row.
    n_rows = n_rows or block_rows(1 if preparation.is_sparse_ else len(preparation.feature_names_out_))
    kind = kind_of(path)
    if preparation.is_sparse_ or kind == ".npz":
        return _of_whole(read_table(path, id_column=id_column), id_column, n_rows)
    if kind in SEPARATORS:
        return _text_blocks(path, SEPARATORS[kind], wanted, n_rows)
    return (_parquet_blocks if kind == ".parquet" else _array_blocks)(Path(path), wanted, n_rows)


def _text_blocks(path: Any, separator: str | None, wanted: Wanted, n_rows: int) -> Iterator[DataTable]:
    if str(path) == "-":
        yield from delimited_blocks(
            "standard input", sys.stdin.buffer, separator, wanted, n_rows, BLOCK_BYTES
        )
        return
    with Source(str(path), Path(path)).open() as file:
        yield from delimited_blocks(str(path), file, separator, wanted, n_rows, BLOCK_BYTES)


def _parquet_blocks(file: Path, wanted: Wanted, n_rows: int) -> Iterator[DataTable]:
    source = ParquetFile.of(file)
    yield DataTable(None, list(source.kinds))
    used = [*wanted.numbers, *wanted.words]
    read = list(dict.fromkeys(used if wanted.id_column is None else [*used, wanted.id_column]))
    for frame in source.slices(read, n_rows):
        ids = None if wanted.id_column is None else words_of(DataTable(frame, read), wanted.id_column)
        yield DataTable(frame.select(used), used, ids)


def _array_blocks(file: Path, wanted: Wanted, n_rows: int) -> Iterator[DataTable]:
    mapped = read_array(file)
    yield replace(mapped, frame=None)
    for block in array_slices(file, n_rows):
        rows = DataTable(block, mapped.names)
        yield replace(rows, ids=None if wanted.id_column is None else words_of(rows, wanted.id_column))


def _of_whole(table: DataTable, id_column: str | None, n_rows: int) -> Iterator[DataTable]:
    yield DataTable(None, table.names if id_column is None else [*table.names, id_column], notes=table.notes)
    for begin in range(0, table.n_rows, n_rows):
        rows = slice(begin, begin + n_rows)
        yield DataTable(table.frame[rows], table.names, None if table.ids is None else table.ids[rows])
