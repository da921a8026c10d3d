"""Tables that lie in files, for more rows than memory holds, and scratch files for tables made from them.

A mapped table is read a page at a time as its rows are asked for, and the system forgets pages when it needs
room. A scratch file has no name: it is gone when its table is not used any more, or the process is killed.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Any

import numpy as np

from smrmf._parallel import BLOCK_ENTRIES

# Blocks of rows that are moved from file to file: large, so that what goes to one place is not a few bytes.
MOVED_ENTRIES = 128 * BLOCK_ENTRIES


def is_mapped(X: Any) -> bool:
    """Tell whether an array, or what it is a view of, lies in a file."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap) and isinstance(X.base, mmap.mmap):
            return True
        X = X.base
    return isinstance(X, mmap.mmap)


def scratch_table(shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """Return a table of zeros in a scratch file, in the folder for temporary files (``TMPDIR``)."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    with tempfile.TemporaryFile(prefix="smrmf-") as file:
        try:
            reserve(file.fileno(), size)
        except OSError as error:
            folder = tempfile.gettempdir()
            raise OSError(
                error.errno,
                f"A scratch file of {size / 2**30:,.1f} GiB does not fit in {folder} ({error.strerror}): "
                "make room there, or name another folder in the environment variable TMPDIR.",
            ) from error
        # The map stays when the file is closed. A plain array: views of it know that they are mapped.
        return np.asarray(np.memmap(file, dtype, "r+", shape=shape))


def reserve(descriptor: int, size: int) -> None:
    """Make a file so long, and sure that there is room: a full disk would end the process later."""
    if hasattr(os, "posix_fallocate") and size > 0:
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.truncate(descriptor, size)


def table_of_rows(X: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return ``X[rows]`` for ascending rows, in a scratch file if X lies in a file."""
    if not is_mapped(X):
        return X[rows]
    table = scratch_table((len(rows), X.shape[1]), X.dtype)
    for block in moved_blocks(*table.shape):
        table[block] = X[rows[block]]
    return table


def table_in_order(X: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return ``X[order]`` for a permutation of the rows, in a scratch file if X lies in a file."""
    if not is_mapped(X):
        return X[order]
    table, place = scratch_table(X.shape, X.dtype), np.empty_like(order)
    place[order] = np.arange(len(order), dtype=order.dtype)
    # Read from the first to the last row. Rows that go next to each other are written together.
    for block in moved_blocks(*X.shape):
        by_place = np.argsort(place[block])
        table[place[block][by_place]] = X[block][by_place]
    return table


def moved_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Cut a table into blocks of rows that are moved at a time."""
    size = max(1, MOVED_ENTRIES // max(n_columns, 1))
    return [slice(start, start + size) for start in range(0, n_rows, size)]
