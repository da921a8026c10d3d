"""Arrays that are larger than memory, in files without a name."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np


def in_scratch(
    blocks: Iterable[np.ndarray], shape: tuple[int, int], dtype: str, folder: str | os.PathLike[str] | None
) -> np.memmap:
    """Write rows block by block into a file in a folder, and return them as an array that is mapped.

    The file has no name, so that the system takes it away when nobody maps it any more: with the array, or
    with the process, however that ends.
    """
    folder = tempfile.gettempdir() if folder is None else os.fspath(folder)
    _check_room(folder, shape[0] * shape[1] * np.dtype(dtype).itemsize)
    with tempfile.TemporaryFile(dir=folder) as file:
        # Not through a map: where a disk is full, a map ends the process, and a write raises an error.
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype=dtype).data)
        file.flush()
        return np.memmap(file, dtype=dtype, mode="r", shape=shape)


def slices(array: np.memmap, n_rows: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the rows of a mapped array so many at a time, with the place of the first."""
    for begin in range(0, len(array), n_rows):
        yield begin, np.array(array[begin : begin + n_rows])
        _let_go(array)


def every(array: np.memmap, step: int, n_rows: int) -> np.ndarray:
    """Return every ``step``-th row of a mapped array, of which so many are looked at at a time."""
    found = []
    for begin in range(0, len(array), n_rows):
        found.append(np.array(array[begin + -begin % step : begin + n_rows : step]))
        _let_go(array)
    return np.concatenate(found)


def _let_go(array: np.memmap) -> None:
    """Give back the memory of what has been read: it is read again where it is needed."""
    held: Any = getattr(array, "_mmap", None)
    if hasattr(held, "madvise") and hasattr(mmap, "MADV_DONTNEED"):
        held.madvise(mmap.MADV_DONTNEED)


def _check_room(folder: str, needed: int) -> None:
    """Refuse a folder that is none, or on a disk that has not enough room."""
    if not os.path.isdir(folder):
        raise NotADirectoryError(f"There is no folder {folder} for scratch files: give one that exists.")
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            f"The numbers of the table need a scratch file of {needed / 2**30:,.1f} GiB, but {folder} has "
            f"only {free / 2**30:,.1f} GiB left: give a folder on another disk as scratch, or set TMPDIR."
        )
