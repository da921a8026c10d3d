"""Which search finds the neighbours: exact, approximate, or none, as they are given."""

from __future__ import annotations

from typing import Any

from smrmf._parallel import SERIAL, Pool
from smrmf.graph.approximate import find_in_cells
from smrmf.graph.candidates import Neighbors
from smrmf.graph.dense_points import DensePoints
from smrmf.graph.given_neighbors import given_neighbors
from smrmf.graph.neighbors import MeasuredPoints, find_neighbors, measured_points

# So many pairs of points are compared within a second or two: 20,000 points with each other.
EXACT_PAIRS = 20_000**2


def search(
    X: Any, n_neighbors: int, pool: Pool, how: Any = "auto", needed: int = 1
) -> tuple[MeasuredPoints, Neighbors]:
    """Prepare the points for distances, and find the nearest others of every one, or take those given.

    Of given ones there may be fewer than ``n_neighbors``, but not fewer than ``needed``.
    """
    points = measured_points(X)
    if not isinstance(how, str):
        return points, given_neighbors(how, X, n_neighbors, needed)
    return points, nearest(X, n_neighbors, how=how, points=points, pool=pool)


def nearest(
    X: Any,
    n_neighbors: int,
    queries: Any = None,
    *,
    how: str = "auto",
    points: MeasuredPoints | None = None,
    pool: Pool = SERIAL,
) -> Neighbors:
    """Find the nearest rows of ``X`` to every query (by default to every row but itself).

    "auto" compares all pairs up to some hundred million of them, and beyond this points of near cells; sparse
    points are always compared with all.
    """
    points = measured_points(X) if points is None else points
    n_pairs = points.n_samples * (points.n_samples if queries is None else queries.shape[0])
    in_cells = how == "approximate" or (how == "auto" and n_pairs > EXACT_PAIRS)
    found = None
    if in_cells and isinstance(points, DensePoints):
        found = find_in_cells(points.X, n_neighbors, queries, pool)
    return find_neighbors(X, n_neighbors, queries, points=points, pool=pool) if found is None else found
