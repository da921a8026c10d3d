"""The nearest neighbours of every point, exact, without an n x n array."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf._arrays import is_cheap_dense
from smrmf._parallel import SERIAL, Pool, row_blocks
from smrmf._progress import NOBODY, Progress
from smrmf._scratch import is_mapped
from smrmf.graph.candidates import (
    SPARE_CANDIDATES,
    Neighbors,
    by_distance,
    empty_lists,
    lost_in_rounding,
)
from smrmf.graph.dense_points import DensePoints, center_points, many_points
from smrmf.graph.sparse_points import SparsePoints

# Points among which distances are measured: their two forms have the same methods.
MeasuredPoints = DensePoints | SparsePoints


def measured_points(X: Any) -> MeasuredPoints:
    """Return the points in the form in which their distances are measured."""
    if sp.issparse(X) and not is_cheap_dense(X):
        return SparsePoints.of(X)
    if is_mapped(X):
        return many_points(X)
    return center_points(X.toarray() if sp.issparse(X) else X)


def find_neighbors(
    X: Any,
    n_neighbors: int,
    queries: Any = None,
    *,
    points: MeasuredPoints | None = None,
    pool: Pool = SERIAL,
    progress: Progress = NOBODY,
) -> Neighbors:
    """Find the ``n_neighbors`` nearest rows of ``X`` to every query (by default to every row but itself).

    Exact, by products of rows, so no n x n array exists, and a sparse X stays sparse. The distances returned
    are recomputed as sums of squared differences: a duplicate is at distance exactly zero. Queries for
    which the product form loses the distances (far from the middle, close to each other) are
    searched directly. ``points`` saves preparing X again.
    """
    points = measured_points(X) if points is None else points
    searched: Any = points.X if queries is None else points.queries(queries)
    n_queries = searched.shape[0]
    own = np.arange(n_queries) if queries is None else np.full(n_queries, -1)
    size = min(n_neighbors + SPARE_CANDIDATES, points.n_samples - (queries is None))

    # Product forms of sparse points are in double precision.
    kind = points.norms.dtype

    def search_block(block: slice) -> tuple[np.ndarray, np.ndarray]:
        rows, mine = searched[block], own[block]
        best, index = empty_lists(len(mine), size, kind, points.n_samples)
        norms = points.merge_nearest(rows, mine, best, index)
        exact = points.pair_distances(rows, index)
        exact, index = by_distance(exact, index)
        kth = exact[:, n_neighbors - 1]
        lost = lost_in_rounding(norms, best[:, -1], kth)
        if points.copies_tie:
            # Nothing is nearer than a copy.
            lost &= kth > 0
        if lost.any():
            exact[lost], index[lost] = points.search_directly(rows[lost], mine[lost], size)
        return index[:, :n_neighbors].copy(), exact[:, :n_neighbors].copy()

    parts = pool.map(search_block, row_blocks(n_queries, points.block_width), progress)
    indices, squared = map(np.concatenate, zip(*parts, strict=True))
    return Neighbors(indices, squared)
