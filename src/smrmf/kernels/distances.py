"""How unlike points are: squared distances, the adaptive Gaussian kernel (4.9) and its dissimilarity (4.10).

In the latent space the same is asked of G and H, for tiles of all pairs (SMRMF) or for the candidates of
each column of Z (f-SMRMF, AMRMF).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smrmf._numba import kernel
from smrmf._parallel import SERIAL, Pool, row_blocks


class LatentPoints(NamedTuple):
    """What (4.10) needs of points in the latent space, beside inner products.

    ``g`` and ``h`` are the squared lengths of their rows of G and H; ``decay`` is ``-1 / (2 gamma_i^2)``.
    """

    g: np.ndarray
    h: np.ndarray
    decay: np.ndarray

    @classmethod
    def from_widths(cls, G, H, widths):
        """Measure all points, given their latent bandwidths."""
        # neighbor_bandwidth keeps squared widths above zero: decays are finite, and 0 * decay is not NaN.
        return cls(squared_norms(G), squared_norms(H), -0.5 / widths**2)

    def part(self, rows):
        """Return the same for some points."""
        return LatentPoints(self.g[rows], self.h[rows], self.decay[rows])


def squared_norms(X):
    """Return the squared length of every row."""
    return np.einsum("ij,ij->i", X, X)


def squared_distances(X, Y, x_norms=None, y_norms=None):
    """Compute ``||x_i - y_j||^2`` for all pairs of rows, by one matrix product.

    The product form loses digits when the points lie far from the origin: centre them first.
    """
    x_norms = squared_norms(X) if x_norms is None else x_norms
    y_norms = squared_norms(Y) if y_norms is None else y_norms
    squared = X @ Y.T
    squared *= -2
    squared += x_norms[:, None]
    squared += y_norms[None, :]
    # Rounding may leave a small negative number for points that nearly coincide.
    return np.maximum(squared, 0, out=squared)


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
    # An overflow to minus infinity is right: the kernel is then 0. A duplicate gives 0 / width, hence 1.
    with np.errstate(over="ignore"):
        return np.divide(squared, -2 * bandwidth**2, out=out)


@kernel
def refine_small(
    block,  # IN, OUT
    rows,  # IN
    X,  # IN
    row_norms,  # IN
    norms,  # IN
    share,  # IN
):
    """Recompute the squared distances that the product form has mostly lost, as sums of differences.

    The product form has an error of about ``eps (|x|^2 + |y|^2)``, so distances of at least ``share`` of
    these norms have a relative error of at most about ``eps / share``; only smaller ones are recomputed.
    """
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            if block[i, j] < share * (row_norms[i] + norms[j]):
                total = 0.0
                for f in range(X.shape[1]):
                    difference = rows[i, f] - X[j, f]
                    total += difference * difference
                block[i, j] = total


def adaptive_gaussian(squared, bandwidth):
    """Evaluate (4.9), ``K_ij = exp(-d_ij^2 / (2 sigma_i^2))``; K is not symmetric (paper note 33)."""
    return np.exp(over_bandwidth(squared, bandwidth[:, None]))


def symmetric_kernel_dissimilarity(squared, row_bandwidth, column_bandwidth):
    """Evaluate (4.10), ``-(K_ij + K_ji) / 2``, for a block of symmetric squared distances, in place.

    Values lie in [-1, 0]; a point and itself, or its duplicate, have -1.
    """
    # d_ij = d_ji, so K_ji only needs the bandwidth of the column. It comes first, because K_ij overwrites the
    # distances.
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
    have distance zero: a tiny positive bandwidth keeps the kernel finite.
    """
    width = kth_squared if bandwidth == "squared-distance" else np.sqrt(kth_squared)
    # The kernel squares the bandwidth, so its square must not vanish either.
    return np.maximum(width, np.sqrt(np.finfo(width.dtype).tiny) * 2)


def latent_kth_squared(G, H, k, pool: Pool = SERIAL):
    """Find, for every ``g_i``, the squared distance to its k-th nearest ``h_j``, j != i (paper note 31)."""
    g_norms, h_norms = squared_norms(G), squared_norms(H)

    def search_block(block):
        # |g|^2 is the same for a whole row, so the order of the distances does not need it.
        values = G[block] @ H.T
        values *= -2
        values += h_norms
        values[np.arange(len(values)), np.arange(block.start, block.stop)] = np.inf
        values.partition(k - 1, axis=1)
        return np.maximum(g_norms[block] + values[:, k - 1], 0)

    return np.concatenate(pool.map(search_block, row_blocks(len(G), len(H))))


@kernel
def latent_squared_lists(
    indptr,  # IN
    indices,  # IN
    first,  # IN
    G,  # IN
    H,  # IN
    out,  # OUT
):
    """Compute ``||g_i - h_j||^2`` of (4.8) for the candidates i of each column j (paper note 16)."""
    # indptr is cut for a block of columns, but its places count in the lists of all of them: out is whole.
    for row in range(indptr.shape[0] - 1):
        j = first + row
        for p in range(indptr[row], indptr[row + 1]):
            i = indices[p]
            total = 0.0
            for q in range(G.shape[1]):
                difference = G[i, q] - H[j, q]
                total += difference * difference
            out[p] = total


@kernel
def latent_roughness_lists(
    indptr,  # IN
    indices,  # IN
    first,  # IN
    G,  # IN
    H,  # IN
    out,  # OUT
):
    """Compute ``(g_i - g_j)'(h_i - h_j) / 2`` for the candidates i of each column j.

    The exact coefficient of z_ij in ``tr(G' L_Z H)`` (paper note 4), used by AMRMF (paper note 52).
    """
    for row in range(indptr.shape[0] - 1):
        j = first + row
        for p in range(indptr[row], indptr[row + 1]):
            i = indices[p]
            total = 0.0
            for q in range(G.shape[1]):
                total += (G[i, q] - G[j, q]) * (H[i, q] - H[j, q])
            out[p] = 0.5 * total


@kernel
def gather_roughness_lists(
    indptr,  # IN
    indices,  # IN
    first,  # IN
    cross,  # IN
    own,  # IN
    out,  # OUT
):
    """Compute what :func:`latent_roughness_lists` does from products with all points, for long lists.

    ``cross`` holds ``g_j'h_i + h_j'g_i`` for the columns j of the block, ``own`` all ``g_i'h_i``.
    """
    for row in range(indptr.shape[0] - 1):
        j = first + row
        for p in range(indptr[row], indptr[row + 1]):
            i = indices[p]
            # (g_i - g_j)'(h_i - h_j), expanded.
            out[p] = 0.5 * (own[i] + own[j] - cross[row, i])


@kernel
def kernel_entry(forward, backward, decay, other_decay):
    """Return an entry of the latent part of (4.10) from two squared distances.

    A decay is ``-1 / (2 gamma^2)``; exponents below -40 count as minus infinity.
    """
    # Most pairs are far apart, and exp(-40) = 4e-18 is less than the rounding of an entry of size one: the
    # test saves their exponentials. Squared distances from the product form may be slightly negative.
    similar = 0.0
    here = max(forward, 0.0) * decay
    there = max(backward, 0.0) * other_decay
    if here > -40.0:
        similar += np.exp(here)
    if there > -40.0:
        similar += np.exp(there)
    return -0.5 * similar


@kernel
def latent_kernel_lists(
    indptr,  # IN
    indices,  # IN
    first,  # IN
    G,  # IN
    H,  # IN
    decay,  # IN
    out,  # OUT
):
    """Compute the latent part of (4.10) for the candidates i of each column j, decay per point."""
    for row in range(indptr.shape[0] - 1):
        j = first + row
        for p in range(indptr[row], indptr[row + 1]):
            i = indices[p]
            forward = 0.0
            backward = 0.0
            # K^hg_ij and K^hg_ji of (4.9): G and H differ until the end, so both distances are needed.
            for q in range(G.shape[1]):
                forward += (G[i, q] - H[j, q]) ** 2
                backward += (G[j, q] - H[i, q]) ** 2
            out[p] = kernel_entry(forward, backward, decay[i], decay[j])


@kernel
def gather_kernel_lists(
    indptr,  # IN
    indices,  # IN
    first,  # IN
    P,  # IN
    Q,  # IN
    points,  # IN
    out,  # OUT
):
    """Compute what :func:`latent_kernel_lists` does from products with all points, for long lists.

    ``P`` and ``Q`` hold ``h_j'g_i`` and ``g_j'h_i`` for the columns j of the block; ``points`` is a
    :class:`LatentPoints`.
    """
    g, h, decay = points
    for row in range(indptr.shape[0] - 1):
        j = first + row
        for p in range(indptr[row], indptr[row + 1]):
            i = indices[p]
            forward = g[i] + h[j] - 2 * P[row, i]
            backward = g[j] + h[i] - 2 * Q[row, i]
            out[p] = kernel_entry(forward, backward, decay[i], decay[j])


@kernel
def latent_kernel_tile(
    P,  # IN
    Q,  # IN
    rows,  # IN
    columns,  # IN
    weight,  # IN
    out,  # OUT
):
    """Compute ``weight`` times the latent part of (4.10) for a tile of all pairs.

    ``P`` and ``Q`` hold the inner products ``g_i'h_j`` and ``g_j'h_i`` of the points i of the tile's rows and
    j of its columns, both :class:`LatentPoints`. ``Q`` is transposed: its rows are the points j.
    """
    g, h, decay = rows
    other_g, other_h, other_decay = columns
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            forward = g[i] + other_h[j] - 2 * P[i, j]
            backward = other_g[j] + h[i] - 2 * Q[j, i]
            out[i, j] = weight * kernel_entry(forward, backward, decay[i], other_decay[j])
