"""The principal axes of a table: all lengths and inner products of its rows in the fewest numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from smrmf._parallel import row_blocks


class Axes(NamedTuple):
    """Row j of the table, divided by its length, is ``points[j] @ basis`` on the principal axes.

    ``energies`` are the squared lengths of the table along the axes, largest first. The product is left
    undone: each of its rows is as exact as the row it stands for, however short that is, and sparse points
    stay sparse.
    """

    points: np.ndarray | sp.csr_array
    basis: np.ndarray
    energies: np.ndarray


def orthogonal_remainder(span, vector):
    """Return the unit vector along what is left of a vector outside the span of orthonormal rows.

    Where nothing at all is left it is zero.
    """
    for _ in range(2):  # rounding leaves a little of the span the first time
        vector = vector - (span @ vector) @ span
        vector /= np.linalg.norm(vector) or 1.0
    return vector


def gram(X, pool):
    """Compute the inner products of all pairs of rows, each pair once."""
    if sp.issparse(X):
        return (X @ X.T).toarray()
    out = np.empty((len(X), len(X)))

    # A block writes its rows up to its own diagonal and mirrors them into columns of earlier rows, which
    # their blocks leave alone: threads never write the same entry.
    def fill_block(block):
        out[block, : block.stop] = X[block] @ X[: block.stop].T
        out[: block.start, block] = out[block, : block.start].T

    pool.map(fill_block, row_blocks(*X.shape))
    return out


def eigenpairs(G, size):
    """Diagonalise a symmetric positive semi-definite matrix, which is overwritten.

    Returns the positive eigenvalues, largest first, their vectors, and the smallest eigenvalue of all.
    Positive is what is well above the errors: the rounding of inner products of ``size`` terms, and
    eigenvalues below zero.
    """
    values, vectors = scipy.linalg.eigh(G, driver="evd", overwrite_a=True, check_finite=False)
    # Exact eigenvalues are not negative, so a negative one shows the size of the errors.
    rounding = max(values[-1], 0) * size * np.finfo(values.dtype).eps
    positive = np.flatnonzero(values > max(rounding, -10 * values[0]))[::-1]
    return values[positive], np.ascontiguousarray(vectors[:, positive]), values[0]


def principal_axes(unit, lengths, pool):
    """Return the axes of the table ``diag(lengths) @ unit``, from the smaller of its two Gram matrices."""
    n, m = unit.shape
    if n <= m:
        cosines = gram(unit, pool)
        # The product is a new array, which eigenpairs may overwrite; the cosines are returned.
        energies, vectors, _ = eigenpairs(cosines * np.outer(lengths, lengths), m)
        # Axis a is v_a = table' u_a / sqrt(energy_a), so unit v_a = cosines (lengths u_a) / sqrt(energy_a).
        vectors *= lengths[:, None]
        return Axes(cosines, vectors / np.sqrt(energies), energies)
    table = sp.diags_array(lengths) @ unit if sp.issparse(unit) else unit * lengths[:, None]
    # Here table' table has the axes themselves as eigenvectors.
    energies, vectors, _ = eigenpairs(gram(table.T, pool), n)
    return Axes(unit, vectors, energies)
