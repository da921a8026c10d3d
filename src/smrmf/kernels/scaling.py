"""Numbers that neither overflow nor vanish: safe units for whole tables and for single rows.

Tables may be dense or sparse, in single or double precision.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from smrmf.kernels.distances import squared_norms


def scale_to_safe_range(X):
    """Divide by a power of two where squares of the data would overflow or vanish; return it too."""
    largest = float(abs(X).max()) if X.size else 1.0
    limit = np.finfo(X.dtype).max ** 0.25
    if largest == 0 or 1 / limit < largest < limit:
        return X, 1.0
    magnitude = 2.0 ** np.floor(np.log2(largest))
    return divide_keeping_dtype(X, magnitude), magnitude


def divide_keeping_dtype(X, divisor):
    """Return ``X / divisor`` in the precision of X; SciPy would widen a sparse one."""
    if not sp.issparse(X):
        return X / X.dtype.type(divisor)
    return sp.csr_array((X.data / X.dtype.type(divisor), X.indices, X.indptr), shape=X.shape)


def squared_frobenius_norm(X):
    """Return ``||X||_F^2`` of a dense or sparse X."""
    values = (X.data if sp.issparse(X) else X).ravel()
    return float(np.einsum("i,i->", values, values, dtype=np.float64))


def unit_rows(X):
    """Split every row into a direction of length one and its length in units of the largest entry.

    Squares neither overflow nor vanish, whatever the unit of the data; a row of zeros stays one.
    """
    if sp.issparse(X):
        unit = sp.csr_array(X, dtype=np.float64)
        unit.sum_duplicates()
        row = np.repeat(np.arange(unit.shape[0]), np.diff(unit.indptr))
        peak = np.zeros(unit.shape[0])
        np.maximum.at(peak, row, np.abs(unit.data))
        unit.data /= np.where(peak > 0, peak, 1)[row]
        norm = np.sqrt(np.bincount(row, unit.data**2, minlength=len(peak)))
        unit.data /= np.where(norm > 0, norm, 1)[row]
    else:
        unit = X.astype(np.float64)
        peak = np.maximum(unit.max(axis=1), -unit.min(axis=1))
        unit /= np.where(peak > 0, peak, 1)[:, None]
        norm = np.sqrt(squared_norms(unit))
        unit /= np.where(norm > 0, norm, 1)[:, None]
    return unit, divide_by_largest(peak) * norm


def divide_by_largest(lengths):
    """Divide by the largest, if there is one."""
    return lengths / (lengths.max() or 1.0)


def matmul(X, M, pool):
    """Compute ``X @ M`` for a dense or sparse X."""
    return X @ M if sp.issparse(X) else pool.matmul(X, M)
