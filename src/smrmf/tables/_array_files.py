"""Arrays of NumPy and SciPy as tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from smrmf.tables._record import DataTable, TableError, check_different


def read_array(file: Path) -> DataTable:
    """Map a ``.npy`` file; nothing of it is read before it is used."""
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise _damaged(file, error) from error
    return DataTable(_checked(file, array), _names(array))


def array_slices(file: Path, n_rows: int) -> Iterator[np.ndarray]:
    """Yield the rows of a ``.npy`` file, so many at a time."""
    for begin in range(0, read_array(file).n_rows, n_rows):
        # Mapped anew, and copied: pages of a map that stays count as memory, all that were ever read.
        yield np.array(read_array(file).frame[begin : begin + n_rows])


def read_arrays(file: Path) -> DataTable:
    """Read a ``.npz`` file: a sparse array, the one array in it, or ``X`` and what goes with it."""
    try:
        with np.load(file, allow_pickle=False) as parts:
            found = {name: parts[name] for name in parts.files}
    except (ValueError, EOFError, OSError, BadZipFile) as error:
        raise _damaged(file, error) from error
    if {"format", "shape", "data"} <= found.keys():
        return _read_sparse(file)
    if len(found) == 1:
        found = {"X": next(iter(found.values()))}
    if "X" not in found:
        held = ", ".join(found) or "nothing"
        raise TableError(f"{file} holds {held}: give one array, or arrays X and, if there are, y and names.")
    X = _checked(file, found["X"])
    names, labels = found.get("feature_names"), found.get("y")
    for part, length, size in (("feature_names", names, X.shape[1]), ("y", labels, X.shape[0])):
        if length is not None and length.shape != (size,):
            raise TableError(f"{part} of {file} has the shape {length.shape}, but X needs ({size},).")
    called = _names(X) if names is None else [str(name) for name in names.tolist()]
    check_different(str(file), called)
    return DataTable(
        X,
        called,
        labels=None if labels is None else [str(label) for label in labels.tolist()],
    )


def _read_sparse(file: Path) -> DataTable:
    # Imported here: it takes longer than reading most tables.
    import scipy.sparse as sp

    try:
        array = sp.csr_array(sp.load_npz(file))
        array.check_format(full_check=True)
    except (ValueError, KeyError, OSError) as error:
        raise _damaged(file, error) from error
    return DataTable(array, _names(array))


def _checked(file: Path, array: np.ndarray) -> np.ndarray:
    if array.ndim != 2:
        raise TableError(f"{file} has an array of {array.ndim} dimensions: give one of two, rows by columns.")
    if array.dtype.kind not in "biuf":
        raise TableError(f"{file} has entries of type {array.dtype}: give numbers, or write words as .csv.")
    return array


def _names(array: Any) -> list[str]:
    return [f"x{place}" for place in range(array.shape[1])]


def _damaged(file: Path, error: Exception) -> TableError:
    # NumPy takes whatever it does not know for a pickle.
    with file.open("rb") as opened:
        known = opened.read(6).startswith((b"\x93NUMPY", b"PK"))
    if known and "allow_pickle" in str(error):
        return TableError(
            f"{file} has Python objects, which are never read: write numbers, or words as .csv."
        )
    reason = " ".join(str(error).split()) if known else "it begins as none does"
    return TableError(f"{file} is no file of arrays, or damaged ({reason:.200}): write it again.")
