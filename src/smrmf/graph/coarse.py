"""The smoothest functions on a graph of very many points: found on a coarse graph, smoothed on the fine one.

Lanczos iterations take long where the eigenvalues wanted lie close together, as they do on a manifold, and in
the bulk that noise has. But a smooth function is nearly the same at neighbours. Points are taken as one with
their closest neighbours, again and again, until few are left; the functions of that graph are found exactly,
and on the way back a filter takes from them what is rough, by a fixed number of products with the graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from smrmf._numba import kernel
from smrmf._parallel import Pool, row_blocks

# Steps of the filter on every graph: clusters do not depend on more (benchmarks/scale.py).
DEGREE = 10
# Functions beside those wanted, as those that are found last are the least smooth.
GUARD = 4
# Combinations of functions shorter than this, in squares, are rounding.
NOTHING = 1e-10


def closest_as_one(W: sp.csr_array) -> np.ndarray:
    """Return groups of points that are closest neighbours of one of them, numbered from 0."""
    groups = np.full(W.shape[0], -1, W.indices.dtype)
    _group_closest(W.indptr, W.indices, W.data, groups)
    return groups


def smooth(
    W: sp.csr_array, degrees: np.ndarray, values: np.ndarray, functions: np.ndarray, count: int, pool: Pool
) -> tuple[np.ndarray, np.ndarray]:
    """Filter approximate smoothest functions on a graph; return the best combinations and their eigenvalues.

    A step of a walk on the graph takes the mean over the neighbours. Chebyshev polynomials of it grow fastest
    outside of the interval of the unwanted eigenvalues, from -1 to the least one that is known; the best
    functions in the span of what is left are those of Ritz. ``functions`` is overwritten.
    """
    walk = Walk(W, 1 / degrees)
    functions = chebyshev_filter(walk, functions, float(values.min()), pool)
    return best_combinations(walk, functions, count, pool)


class Walk(NamedTuple):
    """A walk on a graph, from every point to one of its neighbours by the weights of the edges."""

    W: sp.csr_array
    inverse_degrees: np.ndarray

    def step(
        self,
        functions: np.ndarray,
        rows: slice,
        factors: tuple[float, float, float],
        other: np.ndarray,
        out: np.ndarray,
    ) -> None:
        """Write a combination of means over the neighbours, functions, and others, for a block of rows."""
        W, kind = self.W, functions.dtype.type
        of_means, of_functions, of_others = map(kind, factors)
        _walk_rows(
            *(W.indptr, W.indices, W.data, self.inverse_degrees, rows.start),
            *(of_means, of_functions, of_others, functions, other, out),
        )


def chebyshev_steps(cut: float) -> Iterator[tuple[float, float, float]]:
    """Yield for every step of the filter the factors of means over neighbours, functions, and those before.

    Together they are the Chebyshev polynomial that is 1 at the eigenvalue 1 and least from -1 to ``cut``.
    """
    center, half = (cut - 1) / 2, (cut + 1) / 2
    growth = first_growth = half / (1 - center)
    yield growth / half, -growth / half * center, 0.0
    for _ in range(DEGREE - 1):
        following = 1 / (2 / first_growth - growth)
        scale = 2 * following / half
        yield scale, -scale * center, -growth * following
        growth = following


def chebyshev_filter(walk: Walk, functions: np.ndarray, cut: float, pool: Pool) -> np.ndarray:
    """Apply the filter to functions, whose array it may use."""
    blocks = row_blocks(len(functions), 8 * functions.shape[1])

    def advance(
        last: np.ndarray, now: np.ndarray, out: np.ndarray, factors: tuple[float, float, float]
    ) -> np.ndarray:
        # Row i of out is the only one that needs row i of the last one: it may take its place.
        pool.map(lambda rows: walk.step(now, rows, factors, last[rows], out[rows]), blocks)
        return out

    first, *rest = chebyshev_steps(cut)
    last, now = functions, advance(functions, functions, np.empty_like(functions), first)
    for factors in rest:
        last, now = now, advance(last, now, last, factors)
    return now


def best_combinations(
    walk: Walk, functions: np.ndarray, count: int, pool: Pool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the Ritz values of a walk, the largest first, and the combinations that have them."""
    degrees = 1 / walk.inverse_degrees

    def multiply_block(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        own, means = functions[rows], np.empty_like(functions[rows])
        walk.step(functions, rows, (1.0, 0.0, 0.0), own, means)
        return products_by_degree(own, means, degrees[rows])

    blocks = row_blocks(len(functions), 8 * functions.shape[1])
    gram, products = (np.sum(parts, axis=0) for parts in zip(*pool.map(multiply_block, blocks), strict=True))
    values, mixing = ritz(gram, products, count)
    return values, pool.matmul(functions, mixing.astype(functions.dtype))


def products_by_degree(
    functions: np.ndarray, means: np.ndarray, degrees: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return products of functions with each other, and with their means over the neighbours, of some points.

    They count every point by its degree: then the walk is symmetric.
    """
    weighted = (functions * degrees[:, None]).T.astype(np.float64)
    return weighted @ functions, weighted @ means


def ritz(gram: np.ndarray, products: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the best eigenvalues in the span of functions, the largest first, and how these are mixed."""
    scale = 1 / np.sqrt(gram.diagonal())
    squares, axes = scipy.linalg.eigh(gram * np.outer(scale, scale))
    kept = squares > NOTHING * squares[-1]
    basis = scale[:, None] * axes[:, kept] / np.sqrt(squares[kept])
    values, mixing = scipy.linalg.eigh(basis.T @ ((products + products.T) / 2) @ basis)
    return values[::-1][:count], basis @ mixing[:, ::-1][:, :count]


@kernel
def _walk_rows(
    indptr: np.ndarray,  # IN
    indices: np.ndarray,  # IN
    weights: np.ndarray,  # IN
    inverse_degrees: np.ndarray,  # IN
    start: int,  # IN
    of_means: float,  # IN
    of_functions: float,  # IN
    of_others: float,  # IN
    functions: np.ndarray,  # IN
    other: np.ndarray,  # IN
    out: np.ndarray,  # OUT, may be the array of other
) -> None:
    """Combine means over the neighbours, functions and others, for rows of the graph from ``start`` on."""
    # Functions in the inner loop: their rows are contiguous, and a row of out stays in cache.
    for r in range(out.shape[0]):
        i = start + r
        factor = of_means * inverse_degrees[i]
        for q in range(out.shape[1]):
            out[r, q] = of_functions * functions[i, q] + of_others * other[r, q]
        for p in range(indptr[i], indptr[i + 1]):
            w = factor * weights[p]
            j = indices[p]
            for q in range(out.shape[1]):
                out[r, q] += w * functions[j, q]


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
