"""Random tables: shapes, values and types that people have, also by mistake, in any form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

Table = np.ndarray
Generator = np.random.Generator


def outlier(X: Table, rng: Generator) -> Table:
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = 1e12
    return X


def not_finite(X: Table, rng: Generator) -> Table:
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = rng.choice([np.nan, np.inf, -np.inf])
    return X


def mixed_units(X: Table, rng: Generator) -> Table:
    return X * 10.0 ** rng.integers(-12, 12, X.shape[1])


def rank_one(X: Table, rng: Generator) -> Table:
    return X[:, :1] * rng.normal(size=X.shape[1])


def mostly_zero(X: Table, rng: Generator) -> Table:
    return X * (rng.random(X.shape) < 0.1)


# Each changes normal points; several may be one after the other.
VALUES: dict[str, Callable[[Table, Generator], Table]] = {
    "as they are": lambda X, rng: X,
    "non-negative": lambda X, rng: abs(X),
    "groups": lambda X, rng: X + 6.0 * rng.integers(0, 3, len(X))[:, None],
    "duplicates": lambda X, rng: X[rng.integers(0, max(1, len(X) // 3), len(X))],
    "constant": lambda X, rng: np.full_like(X, X[0, 0]),
    "zeros": lambda X, rng: np.zeros_like(X),
    "constant columns": lambda X, rng: np.where(rng.random(X.shape[1]) < 0.5, 1.0, X),
    "rank one": rank_one,
    "mixed units": mixed_units,
    "mostly zero": mostly_zero,
    "integers": lambda X, rng: np.rint(X * 3),
    "far off": lambda X, rng: X + 10.0 ** rng.integers(3, 12),
    "outlier": outlier,
    "not finite": not_finite,
}
# How often each is drawn, against one: what is refused at once teaches little.
RARE = {"not finite": 0.2, "zeros": 0.3, "constant": 0.3}
SIZES = (1.0, 1.0, 1.0, 1.0, 1e-300, 1e-150, 1e-30, 1e-5, 1e5, 1e30, 1e100, 1e150)
TYPES = (*["float64"] * 6, "float32", "float32", "float16", "int64", "int8", "uint8", "bool", "object")


def random_table(rng: Generator) -> tuple[Table, str]:
    """Return a dense table of some type, and what it is in words."""
    n, m = int(rng.integers(1, 61)), int(rng.integers(1, 41))
    if rng.random() < 0.1:
        m = int(rng.integers(200, 600))
    X = rng.normal(size=(n, m))
    names = list(VALUES)
    weights = np.array([RARE.get(name, 1.0) for name in names])
    drawn = rng.choice(names, size=int(rng.integers(1, 4)), p=weights / weights.sum(), replace=False)
    for name in drawn:
        X = np.array(VALUES[name](X, rng))
    size, kind = float(rng.choice(SIZES)), str(rng.choice(TYPES))
    # Casts that overflow are part of it: what a user would get from the same cast.
    with np.errstate(all="ignore"):
        X = (X * size).astype(kind)
    return X, f"{n} x {m} {kind}, {', '.join(drawn)}, times {size:g}"


def strided(X: Table) -> Table:
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def read_only(X: Table) -> Table:
    X = X.copy()
    X.setflags(write=False)
    return X


def long_indices(X: Table) -> sp.csr_array:
    S = sp.csr_array(X)
    S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    return S


def unsorted_indices(X: Table) -> sp.csr_array:
    S, rng = sp.csr_array(X), np.random.default_rng(0)
    # Another order in every row: equal rows are then stored differently.
    mixed = [rng.permutation(np.arange(S.indptr[i], S.indptr[i + 1])) for i in range(X.shape[0])]
    order = np.concatenate([*mixed, np.empty(0, int)]).astype(int)
    return sp.csr_array((S.data[order], S.indices[order], S.indptr), shape=X.shape)


def stored_zeros(X: Table) -> sp.csr_array:
    n, m = X.shape
    return sp.csr_array((X.ravel(), np.tile(np.arange(m), n), np.arange(n + 1) * m), shape=X.shape)


def twice_stored(X: Table) -> sp.coo_array:
    """Return a COO array with entries that are to be added up."""
    S = sp.coo_array(X)
    return sp.coo_array((np.r_[S.data, S.data], (np.r_[S.row, S.row], np.r_[S.col, S.col])), shape=X.shape)


DENSE: dict[str, Callable[[Table], Any]] = {
    "array": np.ascontiguousarray,
    "Fortran array": np.asfortranarray,
    "strided view": strided,
    "read-only array": read_only,
    "frame": lambda X: pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])]),
    "frame without names": pd.DataFrame,
    "list": lambda X: X.tolist(),
    "one row too deep": lambda X: X[:, 0],
}
SPARSE: dict[str, Callable[[Table], Any]] = {
    "CSR array": sp.csr_array,
    "CSC array": sp.csc_array,
    "COO array": sp.coo_array,
    "CSR matrix": sp.csr_matrix,
    "CSC matrix": sp.csc_matrix,
    "COO matrix": sp.coo_matrix,
    "CSR, int64 indices": long_indices,
    "CSR, unsorted": unsorted_indices,
    "CSR, stored zeros": stored_zeros,
    "COO, summed": twice_stored,
}


def random_form(X: Table, rng: Generator) -> tuple[Any, str]:
    """Return the table in some form, and the name of the form."""
    forms = SPARSE if X.dtype.name not in ("object", "float16") and rng.random() < 0.4 else DENSE
    name = str(rng.choice(list(forms)))
    if name == "one row too deep" and rng.random() < 0.8:
        name = "array"
    return forms[name](X), name


def contents(X: Any) -> list[bytes]:
    """Return all that a caller could see change."""
    if sp.issparse(X):
        names = ("data", "indices", "indptr", "row", "col")
        return [np.asarray(getattr(X, name)).tobytes() for name in names if hasattr(X, name)]
    dense = np.asarray(X)
    return [repr(dense.tolist()).encode() if dense.dtype == object else dense.tobytes()]
