"""New rows from a file of any length, block by block, in the memory that a few blocks need."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from smrmf.tables._array_files import read_array
from smrmf.tables._columns import check_names
from smrmf.tables._delimited import Source
from smrmf.tables._delimited_blocks import Wanted, delimited_blocks
from smrmf.tables._preparation import TablePreparation
from smrmf.tables._read import SEPARATORS, check_name, kind_of, read_table, told_of_parquet, words_of
from smrmf.tables._record import DataTable, TableError, for_polars, import_polars

BLOCK_ROWS = 50_000
BLOCK_BYTES = 2**26  # of the numbers, or of the text, of one block, where rows are long


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
    wide = max(1, len(preparation.feature_names_out_))
    wanted = Wanted(preparation.numbers_, preparation.words_, id_column)
    # Not fewer of a sparse table, most of whose columns are empty in any row.
    fitting = BLOCK_ROWS if preparation.is_sparse_ else BLOCK_BYTES // (8 * wide)
    n_rows = n_rows or max(1, min(BLOCK_ROWS, fitting))
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
    polars = import_polars()
    with told_of_parquet(file):
        lazy = polars.scan_parquet(for_polars(file), glob=False)
        names = lazy.collect_schema().names()
    yield DataTable(None, names)
    with told_of_parquet(file):
        total = lazy.select(polars.len()).collect().item()
    used = [*wanted.numbers, *wanted.words]
    read = list(dict.fromkeys(used if wanted.id_column is None else [*used, wanted.id_column]))
    for begin in range(0, total, n_rows):
        with told_of_parquet(file):
            frame = lazy.select(read).slice(begin, n_rows).collect()
        ids = None if wanted.id_column is None else words_of(DataTable(frame, read), wanted.id_column)
        yield DataTable(frame.select(used), used, ids)


def _array_blocks(file: Path, wanted: Wanted, n_rows: int) -> Iterator[DataTable]:
    mapped = read_array(file)
    yield replace(mapped, frame=None)
    for begin in range(0, mapped.n_rows, n_rows):
        # Mapped anew, and copied: pages of a map that stays count as memory, all that were ever read.
        rows = DataTable(np.array(read_array(file).frame[begin : begin + n_rows]), mapped.names)
        yield replace(rows, ids=None if wanted.id_column is None else words_of(rows, wanted.id_column))


def _of_whole(table: DataTable, id_column: str | None, n_rows: int) -> Iterator[DataTable]:
    yield DataTable(None, table.names if id_column is None else [*table.names, id_column], notes=table.notes)
    for begin in range(0, table.n_rows, n_rows):
        rows = slice(begin, begin + n_rows)
        yield DataTable(table.frame[rows], table.names, None if table.ids is None else table.ids[rows])
