"""Tables that lie in files, for more rows than memory holds, and scratch files for tables made from them.

A mapped table is read a page at a time as its rows are asked for, and the system forgets pages when it needs
room. A scratch file has no name: it is gone when its table is not used any more, or the process is killed.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable
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


def in_scratch(
    blocks: Iterable[np.ndarray], shape: tuple[int, int], dtype: str, folder: str | os.PathLike[str] | None
) -> np.memmap:
    """Write rows block by block into a file in a folder, and return them as an array that is mapped.

    The file has no name, so that the system takes it away when nobody maps it any more: with the array, or
    with the process, however that ends.
    """
    folder = tempfile.gettempdir() if folder is None else os.fspath(folder)
    check_room(folder, shape[0] * shape[1] * np.dtype(dtype).itemsize)
    with tempfile.TemporaryFile(dir=folder) as file:
        # Not through a map: where a disk is full, a map ends the process, and a write raises an error.
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype=dtype).data)
        file.flush()
        return np.memmap(file, dtype=dtype, mode="r", shape=shape)


def check_room(folder: str, needed: int) -> None:
    """Refuse a folder that is none, or on a disk that has not enough room."""
    if not os.path.isdir(folder):
        raise NotADirectoryError(f"There is no folder {folder} for scratch files: give one that exists.")
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            f"The numbers of the table need a scratch file of {needed / 2**30:,.1f} GiB, but {folder} has "
            f"only {free / 2**30:,.1f} GiB left: give a folder on another disk as scratch, or set TMPDIR."
        )


def scratch_table(shape: tuple[int, int], dtype: Any) -> np.ndarray:
    """Return a table of zeros in a scratch file, to be written in any order."""
    folder, size = tempfile.gettempdir(), int(np.prod(shape)) * np.dtype(dtype).itemsize
    check_room(folder, size)
    with tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate") and size > 0:
            # The room is taken now: where a disk is full, writing through a map ends the process.
            os.posix_fallocate(file.fileno(), 0, size)
        # The map stays when the file is closed. A plain array: views of it know that they are mapped.
        return np.asarray(np.memmap(file, dtype, "r+" if size else "w+", shape=shape))


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
