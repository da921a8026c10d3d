"""The principal axes of a table: all lengths and inner products of its rows in the fewest numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from smrmf._parallel import row_blocks
from smrmf.kernels.distances import squared_norms


class Axes(NamedTuple):
    """Row j of the table, divided by its length, is ``points[j] @ basis`` on the principal axes.

    ``energies`` are the squared lengths of the table along the axes, largest first. The product is left
    undone: each of its rows is as exact as the row it stands for, however short that is, and sparse points
    stay sparse.
    """

    points: np.ndarray | sp.csr_array
    basis: np.ndarray
    energies: np.ndarray


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
    return unit, relative(peak) * norm


def relative(lengths):
    """Divide by the largest, if there is one."""
    return lengths / (lengths.max() or 1.0)


def times(X, M, pool):
    """Compute ``X @ M`` for a dense or sparse X."""
    return X @ M if sp.issparse(X) else pool.matmul(X, M)


def outside(span, vector):
    """Return the unit vector along what is left of a vector outside the span of orthonormal rows."""
    for _ in range(2):  # rounding leaves a little of the span the first time
        vector = vector - (span @ vector) @ span
        vector /= np.linalg.norm(vector)
    return vector


def gram(X, pool):
    """Compute the inner products of all pairs of rows, each pair once."""
    if sp.issparse(X):
        return (X @ X.T).toarray()
    out = np.empty((len(X), len(X)))

    def fill(block):
        out[block, : block.stop] = X[block] @ X[: block.stop].T
        out[: block.start, block] = out[block, : block.start].T

    pool.map(fill, row_blocks(*X.shape))
    return out


def eigenpairs(G, size):
    """Diagonalise a symmetric positive semi-definite matrix, which is overwritten.

    Returns the positive eigenvalues, largest first, their vectors, and the smallest eigenvalue of all.
    Positive is what is well above the errors: the rounding of inner products of ``size`` terms, and
    eigenvalues below zero.
    """
    values, vectors = scipy.linalg.eigh(G, driver="evd", overwrite_a=True, check_finite=False)
    rounding = max(values[-1], 0) * size * np.finfo(values.dtype).eps
    positive = np.flatnonzero(values > max(rounding, -10 * values[0]))[::-1]
    return values[positive], np.ascontiguousarray(vectors[:, positive]), values[0]


def principal_axes(unit, lengths, pool):
    """Diagonalise the table ``diag(lengths) @ unit`` through the smaller of its two Gram matrices."""
    n, m = unit.shape
    if n <= m:
        cosines = gram(unit, pool)
        energies, vectors, _ = eigenpairs(cosines * np.outer(lengths, lengths), m)
        vectors *= lengths[:, None]
        return Axes(cosines, vectors / np.sqrt(energies), energies)
    table = sp.diags_array(lengths) @ unit if sp.issparse(unit) else unit * lengths[:, None]
    energies, vectors, _ = eigenpairs(gram(table.T, pool), n)
    return Axes(unit, vectors, energies)
