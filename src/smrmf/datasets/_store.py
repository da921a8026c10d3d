"""Tables as files, and the one number that tells whether a table is the right one."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

Table = tuple[Any, np.ndarray]


def fingerprint(X: Any, y: np.ndarray) -> str:
    """Return a SHA-256 that depends on the values only, not on file format, stored type or memory order."""
    digest = hashlib.sha256(f"{X.shape[0]} {X.shape[1]}".encode())
    if sp.issparse(X):
        X = sp.csr_array(X, copy=True)
        X.sum_duplicates()
        parts = [(X.indptr, "<i8"), (X.indices, "<i8"), (X.data, "<f8"), (y, "<i8")]
    else:
        parts = [(X, "<f8"), (y, "<i8")]
    for values, kind in parts:
        # Some copies write -0.0 where others write 0.0; the sum makes them the same.
        digest.update(np.ascontiguousarray(values + np.zeros((), dtype=kind), dtype=kind).tobytes())
    return digest.hexdigest()


def read_table(path: Path) -> Table:
    """Return X and y of an .npz file; a sparse X is stored by the three arrays of its CSR form."""
    # Opened here, as np.load leaves the file open when it is damaged.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        y = stored["y"].astype(np.int64)
        if "indptr" not in stored:
            return np.ascontiguousarray(stored["X"], dtype=np.float64), y
        parts = stored["data"], stored["indices"], stored["indptr"]
        return sp.csr_array(parts, shape=tuple(stored["shape"])), y


def write_table(path: Path, X: Any, y: np.ndarray) -> None:
    """Write an .npz file that ``read_table`` reads."""
    if sp.issparse(X):
        arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
    else:
        arrays = {"X": X}
    np.savez_compressed(path, allow_pickle=False, y=y, **arrays)
