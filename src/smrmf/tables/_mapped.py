"""Rows of arrays that are larger than memory, so many at a time."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np


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
