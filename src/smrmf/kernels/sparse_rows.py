"""Passes over the rows of sparse graphs, and from dense matrices to sparse rows."""

from __future__ import annotations

import numpy as np

from smrmf._numba import kernel


@kernel
def laplacian_rows(
    indptr,  # IN
    indices,  # IN
    weights,  # IN
    degrees,  # IN
    start,  # IN
    G,  # IN
    out,  # OUT
):
    """Compute rows of ``(Deg - W) G``."""
    for r in range(out.shape[0]):
        i = start + r
        for q in range(G.shape[1]):
            out[r, q] = degrees[i] * G[i, q]
        for p in range(indptr[i], indptr[i + 1]):
            w = weights[p]
            j = indices[p]
            for q in range(G.shape[1]):
                out[r, q] -= w * G[j, q]


@kernel
def count_positive(M, chosen, counts):
    """Count the positive entries of some columns of a dense matrix, row by row."""
    for j in range(M.shape[0]):
        for q in range(chosen.shape[0]):
            counts[q] += M[j, chosen[q]] > 0


@kernel
def gather_positive(M, chosen, position, indices, data):
    """Write the positive entries of some columns behind each other; ``position`` is where each begins."""
    for j in range(M.shape[0]):
        for q in range(chosen.shape[0]):
            value = M[j, chosen[q]]
            if value > 0:
                indices[position[q]] = j
                data[position[q]] = value
                position[q] += 1


@kernel
def keep_largest(
    indptr,  # IN
    data,  # IN
    unlikeness,  # IN
    limit,  # IN
    resolution,  # IN
    keep,  # OUT
):
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
