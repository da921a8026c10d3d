"""Squared distances, the adaptive Gaussian kernel (4.9) and its dissimilarity (4.10)."""

from __future__ import annotations

import numpy as np

from smrmf._numba import kernel


def squared_norms(X):
    """Return the squared length of every row."""
    return np.einsum("ij,ij->i", X, X)


def squared_distances(X, Y, x_norms=None, y_norms=None, out=None):
    """Compute ``||x_i - y_j||^2`` for all pairs of rows, by one matrix product.

    The product form loses digits when the points lie far from the origin: centre them first.
    """
    x_norms = squared_norms(X) if x_norms is None else x_norms
    y_norms = squared_norms(Y) if y_norms is None else y_norms
    out = np.matmul(X, Y.T, out=out)
    out *= -2
    out += x_norms[:, None]
    out += y_norms[None, :]
    return np.maximum(out, 0, out=out)


@kernel
def pair_squared_distances(X, Y, neighbors, out):
    """Compute ``||x_i - y_j||^2`` for the listed ``j`` of every row ``i``, without cancellation."""
    for i in range(neighbors.shape[0]):
        for q in range(neighbors.shape[1]):
            j = neighbors[i, q]
            total = 0.0
            for f in range(X.shape[1]):
                difference = X[i, f] - Y[j, f]
                total += difference * difference
            out[i, q] = total


def over_bandwidth(squared, bandwidth, out=None):
    """Return the exponent ``-d^2 / (2 sigma^2)``; minus infinity where a bandwidth has vanished."""
    with np.errstate(over="ignore"):
        return np.divide(squared, -2 * bandwidth**2, out=out)


@kernel
def refine_small(block, rows, X, row_norms, norms, share):
    """Recompute the squared distances that the product form has mostly lost, as sums of differences."""
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            if block[i, j] < share * (row_norms[i] + norms[j]):
                total = 0.0
                for f in range(X.shape[1]):
                    difference = rows[i, f] - X[j, f]
                    total += difference * difference
                block[i, j] = total


def adaptive_gaussian(squared, bandwidth):
    """Evaluate (4.9), ``K_ij = exp(-d_ij^2 / (2 sigma_i^2))``: row i has its own bandwidth."""
    return np.exp(over_bandwidth(squared, bandwidth[:, None]))


def symmetric_kernel_dissimilarity(squared, row_bandwidth, column_bandwidth):
    """Evaluate (4.10), ``-(K_ij + K_ji) / 2``, for a block of symmetric squared distances, in place.

    Values lie in [-1, 0]; a point and itself, or its duplicate, have -1.
    """
    transposed = over_bandwidth(squared, column_bandwidth[None, :])
    np.exp(transposed, out=transposed)
    np.exp(over_bandwidth(squared, row_bandwidth[:, None], out=squared), out=squared)
    squared += transposed
    squared *= -0.5
    return squared


def neighbor_bandwidth(kth_squared, bandwidth):
    """Turn squared distances to the k-th neighbour into bandwidths.

    ``"distance"`` is the main text's rule and does not depend on the scale of the data,
    ``"squared-distance"`` the supplement's for real data of unit norm (paper note 29). Duplicates may
    have no distance at all: the smallest positive number keeps the kernel finite.
    """
    width = kth_squared if bandwidth == "squared-distance" else np.sqrt(kth_squared)
    # The kernel squares the bandwidth, so its square must not vanish either.
    return np.maximum(width, np.sqrt(np.finfo(width.dtype).tiny) * 2)
