"""The smoothest functions on a graph of very many points: found on a coarse graph, smoothed on the fine one.

Lanczos iterations take long where the eigenvalues wanted lie close together, as they do on a manifold, and in
the bulk that noise has. But a smooth function is nearly the same at neighbours. Points are taken as one with
their closest neighbours, again and again, until few are left; the functions of that graph are found exactly,
and on the way back a filter takes from them what is rough, by a fixed number of products with the graph.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from smrmf._numba import kernel
from smrmf._parallel import BLOCK_ENTRIES, Pool, row_blocks
from smrmf.graph.graphs import multiply

# Rounds of the filter on every graph, and its degree: clusters do not depend on more (benchmarks/scale.py).
ROUNDS, DEGREE = 2, 8
# Functions beside those wanted, as those that are found last are the least smooth.
GUARD = 4
# Combinations of functions shorter than this, in squares, are rounding.
NOTHING = 1e-10


def closest_as_one(W: sp.csr_array) -> np.ndarray:
    """Return groups of points that are closest neighbours of one of them, numbered from 0."""
    groups = np.full(W.shape[0], -1, W.indices.dtype)
    _group_closest(W.indptr, W.indices, W.data, groups)
    return groups


def spread_to_members(vectors: np.ndarray, degrees: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return eigenvectors of a coarse normalised graph as vectors on the points, the same in every group."""
    # An eigenvector is a function times the root of the degrees.
    functions = vectors / np.sqrt(np.bincount(groups, degrees))[:, None]
    return (functions[groups] * np.sqrt(degrees)[:, None]).astype(vectors.dtype)


def smooth(
    M: sp.csr_array, values: np.ndarray, vectors: np.ndarray, count: int, pool: Pool
) -> tuple[np.ndarray, np.ndarray]:
    """Filter approximate leading eigenvectors of a normalised graph; return the best combinations of them.

    Chebyshev polynomials of M grow fastest outside of the interval that has the unwanted eigenvalues, from
    -1 to the least one that is known; the best eigenvectors in the span of what is left are those of Ritz.
    """
    for _ in range(ROUNDS):
        vectors = chebyshev_filter(M, vectors, float(values.min()), pool)
        values, mixing = best_combinations(vectors, multiply(M, vectors, pool), count, pool)
        vectors = pool.matmul(vectors, mixing)
    return values, vectors


def chebyshev_filter(M: sp.csr_array, vectors: np.ndarray, cut: float, pool: Pool) -> np.ndarray:
    """Apply the Chebyshev polynomial that is 1 at the eigenvalue 1 and least from -1 to ``cut``."""
    center, half = (cut - 1) / 2, (cut + 1) / 2
    growth = first_growth = half / (1 - center)
    last, now = vectors, multiply(M, vectors, pool)
    now -= center * vectors
    now *= growth / half
    for _ in range(DEGREE - 1):
        following = 1 / (2 / first_growth - growth)
        new = multiply(M, now, pool)
        new -= center * now
        new *= 2 * following / half
        new -= (growth * following) * last
        last, now, growth = now, new, following
    return now


def best_combinations(
    vectors: np.ndarray, images: np.ndarray, count: int, pool: Pool
) -> tuple[np.ndarray, np.ndarray]:
    """Return Ritz values of M, the largest first, and the mixing of vectors with known images under M."""
    gram, products = _products(vectors, vectors, pool), _products(vectors, images, pool)
    scale = 1 / np.sqrt(gram.diagonal())
    squares, axes = scipy.linalg.eigh(gram * np.outer(scale, scale))
    kept = squares > NOTHING * squares[-1]
    basis = scale[:, None] * axes[:, kept] / np.sqrt(squares[kept])
    values, mixing = scipy.linalg.eigh(basis.T @ ((products + products.T) / 2) @ basis)
    return values[::-1][:count], (basis @ mixing[:, ::-1][:, :count]).astype(vectors.dtype)


def _products(A: np.ndarray, B: np.ndarray, pool: Pool) -> np.ndarray:
    """Return ``A'B``, added up in double precision."""
    blocks = row_blocks(len(A), max(A.shape[1], BLOCK_ENTRIES // 2**14))
    return np.sum(pool.map(lambda rows: A[rows].T.astype(np.float64) @ B[rows], blocks), axis=0)


@kernel
def _group_closest(
    indptr: np.ndarray,  # IN
    indices: np.ndarray,  # IN
    weights: np.ndarray,  # IN
    groups: np.ndarray,  # IN, OUT
) -> None:
    """Make a group of every point and its free neighbours of at least the mean weight, one by one."""
    n = indptr.shape[0] - 1
    count = 0
    for i in range(n):
        if groups[i] >= 0:
            continue
        total = 0.0
        number = 0
        for p in range(indptr[i], indptr[i + 1]):
            if indices[p] != i:
                total += weights[p]
                number += 1
        found = False
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            if j != i and groups[j] < 0 and weights[p] * number >= total:
                groups[j] = count
                found = True
        if found:
            groups[i] = count
            count += 1
    # What has found no free neighbour joins the one it is tied to most.
    for i in range(n):
        if groups[i] >= 0:
            continue
        largest = -1.0
        joined = count
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            if j != i and groups[j] >= 0 and weights[p] > largest:
                largest = weights[p]
                joined = groups[j]
        groups[i] = joined
        count += joined == count
