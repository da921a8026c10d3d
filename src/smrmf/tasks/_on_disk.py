"""Tables of numbers that stay on disk while they are clustered, as they would fill too much of the memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from smrmf import _arrays
from smrmf._scratch import in_scratch
from smrmf.tables import DataTable, TablePreparation
from smrmf.tables._array_files import array_slices, read_array
from smrmf.tables._cells import as_class
from smrmf.tables._columns import columns_of
from smrmf.tables._mapped import every, slices
from smrmf.tables._new_rows import NewRows
from smrmf.tables._notes import notes_on_gaps
from smrmf.tables._open import open_numbers
from smrmf.tables._parquet import ParquetFile
from smrmf.tables._read import check_name, kind_of, words_of
from smrmf.tables._record import block_rows
from smrmf.tasks._tables import PreparedTable, RowNames, TableChoice

# A fit in memory takes about so many times the table: above this share of the memory it stays on disk.
SHARE = 8
# What reading takes: the table, the numbers that are made of it, and a copy of these.
COPIES = 3
# From which columns are decided on, and clusters are described.
SAMPLE_ROWS, SAMPLE_BYTES = 100_000, 2**28


def prepare_on_disk(choice: TableChoice, report: bool = False) -> PreparedTable | None:
    """Open a large table of numbers, and prepare it block by block; None for all others, which are read.

    What becomes of the columns, and in which unit they are, is decided by rows at equal distances: means,
    deviations and medians of a hundred thousand rows hardly differ from those of all. A table that is not of
    numbers alone, or of which a report is wanted, is read if it fits in memory, and refused otherwise.
    """
    choice.check()
    kind, path = kind_of(choice.path), choice.path
    if path == "-" or (needed := _bytes(choice, kind)) * SHARE <= _arrays.available_bytes():
        return None
    names = _columns_of_numbers(choice, kind)
    if names is not None and not report:
        return _prepared(choice, kind, names)
    way_out = (
        "make it smaller, or write it with numbers alone, as .parquet or .npy, which stay on disk"
        if names is None
        else "leave --report out, and it stays on disk"
    )
    _arrays.check_memory(f"Clustering {path}", COPIES * needed, f"{COPIES} times its size", way_out)
    return None


def some_rows(X: np.memmap, most: int) -> np.ndarray:
    """Return rows at equal distances, at most so many."""
    return every(X, -(-len(X) // most), block_rows(X.shape[1]))


def _bytes(choice: TableChoice, kind: str) -> int:
    """Return about how much memory a table takes."""
    file = Path(choice.path)
    if kind == ".npy":
        return int(read_array(file).frame.nbytes)
    if kind == ".parquet":
        found = ParquetFile.of(file)
        return 8 * found.n_rows * len(choice.columns or found.kinds)
    return file.stat().st_size  # text takes about as much as its numbers do


def _columns_of_numbers(choice: TableChoice, kind: str) -> list[str] | None:
    """Return the columns to use of a table that may stay on disk; None, if not all have numbers."""
    file = Path(choice.path)
    beside = [name for name in (choice.id_column, choice.label_column) if name is not None]
    if kind == ".npy":
        known, numeric = (read_array(file).names,) * 2
    elif kind == ".parquet":
        kinds = ParquetFile.of(file).kinds
        known, numeric = list(kinds), [name for name, dtype in kinds.items() if dtype.is_numeric()]
    else:
        return None
    for name in (*choice.columns, *choice.drop, *beside):
        check_name(choice.path, name, known)
    used = [name for name in dict.fromkeys(choice.columns or known) if name not in {*choice.drop, *beside}]
    return used if used and set(used) <= set(numeric) else None


def _prepared(choice: TableChoice, kind: str, names: list[str]) -> PreparedTable:
    raw = open_numbers(choice.path, columns=names, gaps=True).frame
    step = -(-len(raw) // max(1, min(SAMPLE_ROWS, SAMPLE_BYTES // (8 * len(names)))))
    sample = DataTable(every(raw, step, block_rows(len(names))), names, step=step)
    preparation = TablePreparation(names if choice.columns else None, scale=choice.scale).fit(sample)
    gaps, known = (_gaps(preparation, blocks) for blocks in (_blocks(raw, names), [sample]))
    late = {name: count for name, count in gaps.items() if not known[name]}
    as_it_is = (
        names == preparation.numbers_
        and raw.dtype == preparation.dtype_
        and not (any(gaps.values()) or preparation.offsets_.any() or (preparation.divisors_ != 1).any())
    )
    X = raw if as_it_is else _transformed(raw, names, preparation)
    ids, labels = (_words(choice, kind, name) for name in (choice.id_column, choice.label_column))
    notes = [
        f"{choice.path} takes {raw.nbytes / 2**30:,.1f} GiB, more than 1/{SHARE} of the memory that is "
        f"available: it stays on disk, and {sample.n_rows} of {len(raw)} rows decide on the columns.",
        *_on_late(late, len(raw)),
    ]
    known_labels = None if labels is None else [as_class(word) for word in labels]
    table = DataTable(raw, names, ids, known_labels, notes)
    return PreparedTable(table, preparation, X, RowNames.of(table, choice.id_column), step)


def _blocks(raw: np.memmap, names: list[str]) -> Iterator[DataTable]:
    for begin, rows in slices(raw, block_rows(len(names))):
        yield DataTable(rows, names, first_row=begin)


def _gaps(preparation: TablePreparation, blocks: Iterable[DataTable]) -> dict[str, int]:
    """Return how many values the columns of numbers lack; refuse infinite ones."""
    seen = NewRows(preparation.numbers_, {})
    for block in blocks:
        seen.add(columns_of(block))
    return seen.gaps


def _on_late(gaps: dict[str, int], n_rows: int) -> list[str]:
    """Return what a user must know of gaps in columns that have none in the rows that decide."""
    gaps = {name: count for name, count in gaps.items() if count}
    done = "filled with the median of the rows that decide"
    return notes_on_gaps(gaps, n_rows, [done] * len(gaps), done)


def _transformed(raw: np.memmap, names: list[str], preparation: TablePreparation) -> np.memmap:
    blocks = (preparation.transform(block) for block in _blocks(raw, names))
    return in_scratch(blocks, (len(raw), len(preparation.numbers_)), preparation.dtype_, None)


def _words(choice: TableChoice, kind: str, name: str | None) -> list[str] | None:
    """Return a column that stands beside those that are used."""
    if name is None:
        return None
    file = Path(choice.path)
    if kind == ".parquet":
        parts = ParquetFile.of(file).slices([name], block_rows(1))
        return [word for part in parts for word in words_of(DataTable(part, [name]), name)]
    names = read_array(file).names
    parts = array_slices(file, block_rows(len(names)))
    return [word for part in parts for word in words_of(DataTable(part, names), name)]
