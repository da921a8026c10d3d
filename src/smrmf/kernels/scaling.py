"""Lengths and products of tables that may be dense or sparse.

Rows are split into directions and lengths, so that squares neither overflow nor vanish.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from smrmf.kernels.distances import squared_norms


def squared_frobenius_norm(X):
    """Return ``||X||_F^2`` of a dense or sparse X."""
    values = (X.data if sp.issparse(X) else X).ravel()
    return float(np.einsum("i,i->", values, values, dtype=np.float64))


def unit_rows(X):
    """Split every row into a direction of length one and its length in units of the largest entry.

    Squares neither overflow nor vanish, whatever the unit of the data; a row of zeros stays one.
    """
    if sp.issparse(X):
        # A copy: without a change of type the arrays would be those of X, and they are divided in place.
        unit = sp.csr_array(X, dtype=np.float64, copy=True)
        # Entries stored twice would be squared one by one.
        unit.sum_duplicates()
        row = np.repeat(np.arange(unit.shape[0]), np.diff(unit.indptr))
        peak = np.zeros(unit.shape[0])
        np.maximum.at(peak, row, np.abs(unit.data))
        unit.data /= np.where(peak > 0, peak, 1)[row]
        norm = np.sqrt(np.bincount(row, unit.data**2, minlength=len(peak)))
        unit.data /= np.where(norm > 0, norm, 1)[row]
    else:
        # By the largest entry first: the norm then lies between 1 and sqrt(m), whatever the unit of the data.
        unit = X.astype(np.float64)
        peak = np.maximum(unit.max(axis=1), -unit.min(axis=1))
        unit /= np.where(peak > 0, peak, 1)[:, None]
        norm = np.sqrt(squared_norms(unit))
        unit /= np.where(norm > 0, norm, 1)[:, None]
    # peak * norm could overflow; lengths count relative to each other only.
    return unit, divide_by_largest(peak) * norm


def directions(X, n_columns=None):
    """Return every row divided by its length, in the precision of X.

    Rows of zeros get a direction of their own, at right angles to all others: a last column that is one for
    them. As zeros they would be nearer to most directions than these are to each other. ``n_columns`` says
    whether there is such a column; by default there is if some row needs it.
    """
    unit = unit_rows(X)[0].astype(X.dtype, copy=False)
    largest = abs(unit).max(axis=1)
    zero = (largest.toarray() if sp.issparse(X) else largest).ravel() == 0
    if not (zero.any() if n_columns is None else n_columns > X.shape[1]):
        return unit
    column = zero.astype(X.dtype)[:, None]
    return sp.hstack([unit, sp.csr_array(column)], "csr") if sp.issparse(X) else np.hstack([unit, column])


def rows_near_one(X):
    """Bring the largest entry of every row to between 1/2 and 1, by a power of two; a row of zeros stays one.

    All digits stay, short of underflow, and with them all results that do not depend on the lengths of rows.
    """
    if sp.issparse(X):
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        peak = np.zeros(X.shape[0], X.dtype)
        np.maximum.at(peak, row, np.abs(X.data))
        data = np.ldexp(X.data, -np.frexp(peak)[1][row])
        return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)
    peak = np.maximum(X.max(axis=1), -X.min(axis=1))
    return np.ldexp(X, -np.frexp(peak)[1][:, None])


def divide_by_largest(lengths):
    """Return the lengths divided by the largest; zeros stay as they are."""
    return lengths / (lengths.max() or 1.0)


def matmul(X, M, pool):
    """Compute ``X @ M`` for a dense or sparse X."""
    return X @ M if sp.issparse(X) else pool.matmul(X, M)
