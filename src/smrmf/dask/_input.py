"""From a Dask array to points in parts: checked, of one type, in a safe range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp

from smrmf._arrays import all_finite, divide_keeping_dtype, largest_entry
from smrmf._validation import ParameterError, safe_limit
from smrmf.dask._blocks import Blocks, blocks_of
from smrmf.factorization._new_points import COMPARED


@dataclass(frozen=True)
class Input:
    """Points in the chunks in which they came, as they are compared, divided by ``magnitude``."""

    X: Blocks
    chunk_sizes: list[int]
    n_features: int
    n_columns: int
    dtype: np.dtype
    magnitude: float

    @property
    def row_bytes(self) -> int:
        """Return how many bytes a row takes."""
        return self.n_columns * self.dtype.itemsize


def row_chunks(X: Any) -> Any:
    """Return the array with chunks of whole rows, of known sizes; refuse what is no table."""
    if not isinstance(X, da.Array):
        raise ParameterError(
            f"X is a {type(X).__name__}, but smrmf.dask takes Dask arrays: use smrmf.FastSMRMF for data in "
            "memory, or dask.array.from_array(X, chunks=(rows, -1))."
        )
    if X.ndim != 2:
        raise ParameterError(f"X has {X.ndim} dimensions, but must have two: a row for every point.")
    if X.dtype.kind not in "biuf":
        raise ParameterError(f"X has entries of type {X.dtype}, but points must be real numbers.")
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if np.isnan(X.shape[0]):
        X = X.copy().compute_chunk_sizes()
    if 0 in X.shape:
        raise ParameterError(f"X has shape {X.shape}, but there must be a point and a feature at least.")
    return X


def parts_of(X: Any) -> tuple[Blocks, list[int]]:
    """Return the chunks of an array that have rows, and how many."""
    chunks = zip(X.to_delayed().ravel(), X.chunks[0], strict=True)
    parts, sizes = zip(*((part, int(size)) for part, size in chunks if size > 0), strict=True)
    return blocks_of(parts), list(sizes)


def taken_in(X: Any, metric: str) -> Input:
    """Check the points, which are looked at once, and bring them into the form in which they are compared."""
    X = row_chunks(X)
    dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    parts, chunk_sizes = parts_of(X)
    blocks = parts.map(as_table, dtype=dtype)
    facts = blocks.map(facts_of).compute()
    for chunk, (_, count, _) in enumerate(facts):
        refuse_not_finite(count, f" in chunk {chunk} of its rows")
    largest, zeros = max(fact[0] for fact in facts), any(fact[2] for fact in facts)
    n_columns = X.shape[1] + (metric == "cosine" and zeros)
    largest = largest if metric == "euclidean" else 1.0
    limit = safe_limit(dtype)
    safe = largest == 0 or 1 / limit < largest < limit
    magnitude = 1.0 if safe else float(2.0 ** np.floor(np.log2(largest)))
    compared = blocks.map(comparable, metric=metric, n_columns=n_columns, magnitude=magnitude)
    return Input(compared, chunk_sizes, X.shape[1], n_columns, dtype, magnitude)


def as_table(part: Any, dtype: np.dtype) -> np.ndarray:
    """Return a chunk as a dense table."""
    if sp.issparse(part):
        return part.astype(dtype).toarray()
    return np.ascontiguousarray(part, dtype=dtype)


def facts_of(X: np.ndarray) -> tuple[float, int, bool]:
    """Return the largest entry of a chunk, how many are not finite, and whether a row is all zeros."""
    wrong = 0 if all_finite(X) else int(np.count_nonzero(~np.isfinite(X)))
    return (0.0 if wrong else largest_entry(X)), wrong, bool((~X.any(axis=1)).any())


def refuse_not_finite(count: int, where: str = "") -> None:
    """Refuse points of which so many entries are no numbers."""
    if count:
        raise ParameterError(
            f"X contains NaN or infinity{where} ({count} such values there): remove these rows, or fill them "
            "first."
        )


def queries_of(part: Any, dtype: np.dtype, metric: str, n_columns: int, magnitude: float) -> np.ndarray:
    """Return new points in the form of those of a fit."""
    X = as_table(part, dtype)
    refuse_not_finite(int(np.count_nonzero(~np.isfinite(X))))
    compared = comparable(X, metric, n_columns, magnitude)
    # Squares of larger entries could overflow. A clipped point still lies at the edge of all others.
    furthest = safe_limit(dtype)
    return np.clip(compared, -furthest, furthest)


def comparable(X: np.ndarray, metric: str, n_columns: int, magnitude: float) -> np.ndarray:
    """Return points in the form in which they are compared."""
    compared = COMPARED[metric](X, n_columns)
    return divide_keeping_dtype(compared, magnitude) if magnitude != 1 else compared
