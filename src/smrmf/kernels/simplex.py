"""The column problem of f-SMRMF (5.18), solved in closed form on short candidate lists.

``min_z  d'z + delta/2 ||z||^2  s.t.  z >= 0, sum(z) = 1`` is the projection of ``-d / delta`` on the
simplex: ``z_i = max(nu - d_i, 0) / delta``. Its support is the smallest entries of d, so a list of
candidates suffices; one comparison of the level nu with what lies outside the list certifies it.
"""

from __future__ import annotations

import numpy as np

from smrmf._numba import kernel
from smrmf.kernels.balls import simplex_threshold


def neighbor_smoothness(sorted_dissimilarity, n_neighbors):
    """Find the delta of each column that gives it exactly ``n_neighbors`` neighbours.

    Rows hold the smallest dissimilarities of a column in ascending order, self excluded. At
    ``delta = k d_(k+1) - sum of the k smallest`` the level nu is d_(k+1), so the k nearest share the
    mass and the next one gets none. Where no (k+1)-th exists, its place is taken one step further.
    """
    k = n_neighbors
    nearest = sorted_dissimilarity[:, :k]
    if sorted_dissimilarity.shape[1] > k:
        following = sorted_dissimilarity[:, k]
    else:
        following = 2 * nearest[:, -1] - nearest[:, 0] + (nearest[:, -1] == nearest[:, 0])
    delta = (following[:, None] - nearest).sum(axis=1)
    limits = np.finfo(delta.dtype)
    # A hair less, or rounding would let a trace of mass reach the (k+1)-th.
    delta *= 1 - 8 * k * float(limits.eps)
    # All k+1 equal: any small delta spreads the mass evenly over the ties.
    return np.maximum(delta, limits.tiny)


@kernel
def solve_columns(indptr, dissimilarity, delta, outside, z, level):
    """Solve (5.18) for each candidate list; return how many solutions are certified.

    ``indptr`` delimits the lists in ``dissimilarity`` and in the solution ``z``. ``outside`` bounds from
    below what the entries outside each list can be; a list is certified when its ``level`` nu does
    not exceed that bound, and then its solution is that of the whole column.
    """
    longest = 0
    for j in range(indptr.shape[0] - 1):
        longest = max(longest, indptr[j + 1] - indptr[j])
    shifted = np.empty(longest, dissimilarity.dtype)
    active = np.empty(longest, dissimilarity.dtype)
    certified = 0
    for j in range(indptr.shape[0] - 1):
        start = indptr[j]
        size = indptr[j + 1] - start
        smooth = delta[j]
        smallest = _smallest(dissimilarity[start : start + size])
        for q in range(size):
            shifted[q] = (smallest - dissimilarity[start + q]) / smooth
        theta = simplex_threshold(shifted[:size], 1.0, active)
        for q in range(size):
            z[start + q] = max(shifted[q] - theta, 0.0)
        level[j] = smallest - smooth * theta
        certified += level[j] <= outside[j]
    return certified


@kernel
def _smallest(values):
    """Return the smallest entry; four at a time, as a single chain of minima would wait for itself."""
    a = b = c = d = values[0]
    for q in range(0, values.shape[0] - 3, 4):
        a = min(a, values[q])
        b = min(b, values[q + 1])
        c = min(c, values[q + 2])
        d = min(d, values[q + 3])
    for q in range(values.shape[0] - values.shape[0] % 4, values.shape[0]):
        a = min(a, values[q])
    return min(min(a, b), min(c, d))


@kernel
def columns_value(indptr, dissimilarity, delta, z):
    """Return the objective of (5.18), summed over the columns; most of z is zero."""
    total = 0.0
    for j in range(indptr.shape[0] - 1):
        linear = 0.0
        square = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            if z[p] > 0:
                linear += dissimilarity[p] * z[p]
                square += z[p] * z[p]
        total += linear + 0.5 * delta[j] * square
    return total


def solve_column(dissimilarity, delta):
    """Solve ``min d'z + delta/2 ||z||^2`` over the simplex for one whole column."""
    z = np.empty_like(dissimilarity)
    solve_columns(
        np.array([0, len(dissimilarity)]),
        dissimilarity,
        np.array([delta], dissimilarity.dtype),
        np.array([np.inf], dissimilarity.dtype),
        z,
        np.empty(1, dissimilarity.dtype),
    )
    return z


@kernel
def latent_squared_lists(indptr, indices, first, G, H, out):
    """Compute ``||g_i - h_j||^2`` for the candidates i of each column j (paper note 16)."""
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
def latent_roughness_lists(indptr, indices, first, G, H, out):
    """Compute ``(g_i - g_j)'(h_i - h_j) / 2`` for the candidates i of each column j (paper note 52)."""
    for row in range(indptr.shape[0] - 1):
        j = first + row
        for p in range(indptr[row], indptr[row + 1]):
            i = indices[p]
            total = 0.0
            for q in range(G.shape[1]):
                total += (G[i, q] - G[j, q]) * (H[i, q] - H[j, q])
            out[p] = 0.5 * total


@kernel
def gather_roughness_lists(indptr, indices, first, cross, own, out):
    """Do the same where the lists are long: ``cross`` holds all g_j'h_i + h_j'g_i, ``own`` all g_i'h_i."""
    for row in range(indptr.shape[0] - 1):
        j = first + row
        for p in range(indptr[row], indptr[row + 1]):
            i = indices[p]
            out[p] = 0.5 * (own[i] + own[j] - cross[row, i])


@kernel
def kernel_entry(forward, backward, decay, other_decay):
    """Return an entry of the latent part of (4.10) from two squared distances.

    A decay is ``-1 / (2 gamma^2)``; exponents below -40 count as minus infinity.
    """
    similar = 0.0
    here = max(forward, 0.0) * decay
    there = max(backward, 0.0) * other_decay
    if here > -40.0:
        similar += np.exp(here)
    if there > -40.0:
        similar += np.exp(there)
    return -0.5 * similar


@kernel
def latent_kernel_lists(indptr, indices, first, G, H, decay, out):
    """Compute the latent part of (4.10) for the candidates i of each column j, decay per point."""
    for row in range(indptr.shape[0] - 1):
        j = first + row
        for p in range(indptr[row], indptr[row + 1]):
            i = indices[p]
            forward = 0.0
            backward = 0.0
            for q in range(G.shape[1]):
                forward += (G[i, q] - H[j, q]) ** 2
                backward += (G[j, q] - H[i, q]) ** 2
            out[p] = kernel_entry(forward, backward, decay[i], decay[j])


@kernel
def gather_kernel_lists(indptr, indices, first, P, Q, g, h, decay, out):
    """Do the same where the lists are long: ``P`` and ``Q`` hold all h_j'g_i and g_j'h_i of the columns."""
    for row in range(indptr.shape[0] - 1):
        j = first + row
        for p in range(indptr[row], indptr[row + 1]):
            i = indices[p]
            forward = g[i] + h[j] - 2 * P[row, i]
            backward = g[j] + h[i] - 2 * Q[row, i]
            out[p] = kernel_entry(forward, backward, decay[i], decay[j])


@kernel
def positive_columns(M, chosen, counts):
    """Count the positive entries of some columns of a dense matrix, row by row."""
    for j in range(M.shape[0]):
        for q in range(chosen.shape[0]):
            counts[q] += M[j, chosen[q]] > 0


@kernel
def gather_columns(M, chosen, position, indices, data):
    """Write the positive entries of some columns behind each other; ``position`` is where each begins."""
    for j in range(M.shape[0]):
        for q in range(chosen.shape[0]):
            value = M[j, chosen[q]]
            if value > 0:
                indices[position[q]] = j
                data[position[q]] = value
                position[q] += 1


@kernel
def keep_largest(indptr, data, unlikeness, limit, resolution, keep):
    """Mark the ``limit`` largest positive entries of each row.

    Entries closer than ``resolution`` are equal: a ball clips whole rows to one level, and rounding
    must not choose among them. Among equals the less unlike one wins, then the earlier one.
    """
    for row in range(indptr.shape[0] - 1):
        start = indptr[row]
        stop = indptr[row + 1]
        likely = np.argsort(unlikeness[start:stop], kind="mergesort")
        rank = np.argsort(-np.rint(data[start:stop] / resolution)[likely], kind="mergesort")
        for q in range(min(limit, stop - start)):
            p = start + likely[rank[q]]
            keep[p] = data[p] > 0
