"""Neighbours that the user has found already, by any measure: a graph, two arrays, or what makes a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from smrmf._arrays import scale_to_safe_range
from smrmf._validation import ParameterError
from smrmf.graph.candidates import Neighbors, empty_lists

WAY_OUT = "give more neighbours per point, or lower n_neighbors"


def given_neighbors(given: Any, X: Any, wanted: int, needed: int) -> Neighbors:
    """Return the nearest of the given neighbours of every point, ``wanted`` of them, or as many as all have.

    Given are a sparse graph of distances, the arrays (indices, distances), or a neighbours transformer,
    fitted or not. That a point is its own neighbour, as in many graphs, is left out. Refused are lists of
    which some have fewer than ``needed`` neighbours.
    """
    if sp.issparse(given):
        lists = lists_of_graph(given, X.shape[0])
    elif isinstance(given, tuple | list):
        indices, distances = given
        lists = lists_of_arrays(indices, distances, X.shape[0])
    else:
        lists = lists_of_graph(graph_of_transformer(given, X), X.shape[0])
    rows, columns, distances = lists
    check_entries(rows, columns, distances, X.shape[0])
    return nearest_of_lists(rows, columns, distances.astype(X.dtype), X.shape[0], wanted, needed)


def lists_of_graph(graph: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, columns and distances of the stored entries of a sparse graph."""
    if graph.shape != (n_samples, n_samples):
        raise ParameterError(
            f"neighbors has shape {graph.shape}, but must have shape (n_samples, n_samples)="
            f"({n_samples}, {n_samples}): one row and one column per point."
        )
    # Not as COO: entries that are stored twice would be added up, and of distances neither is the sum.
    graph = sp.csr_array(graph)
    rows = np.repeat(np.arange(n_samples), np.diff(graph.indptr))
    return rows, graph.indices, graph.data


def lists_of_arrays(
    indices: Any, distances: Any, n_samples: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, columns and distances of lists of equal lengths."""
    indices, distances = np.asarray(indices), np.asarray(distances)
    if indices.shape != distances.shape or indices.ndim != 2 or len(indices) != n_samples:
        raise ParameterError(
            f"neighbors=(indices, distances) has shapes {indices.shape} and {distances.shape}, but both must "
            f"be (n_samples, n)=({n_samples}, n), a row of neighbours per point."
        )
    if indices.dtype.kind not in "iu":
        raise ParameterError(
            f"neighbors=(indices, distances) has indices of type {indices.dtype}, but they must be whole "
            "numbers: give the indices first, the distances second."
        )
    return np.repeat(np.arange(n_samples), indices.shape[1]), indices.ravel(), distances.ravel()


def graph_of_transformer(transformer: Any, X: Any) -> Any:
    """Return the graph of distances that a neighbours transformer makes; one that is not fitted learns X."""
    if getattr(transformer, "mode", "distance") != "distance":
        raise ParameterError(
            f"neighbors={type(transformer).__name__}(mode={transformer.mode!r}) gives no distances: use "
            "mode='distance'."
        )
    try:
        check_is_fitted(transformer)
    except NotFittedError:
        transformer = clone(transformer).fit(X)
    if hasattr(transformer, "transform"):
        return transformer.transform(X)
    # NearestNeighbors; without X it leaves out the point itself.
    return transformer.kneighbors_graph(mode="distance")


def check_entries(rows: np.ndarray, columns: np.ndarray, distances: np.ndarray, n_samples: int) -> None:
    """Refuse neighbours that are no points, and distances that are none."""
    wrong = np.flatnonzero((columns < 0) | (columns >= n_samples))
    if len(wrong) > 0:
        raise ParameterError(
            f"neighbors names point {columns[wrong[0]]} as a neighbour of point {rows[wrong[0]]}, but "
            f"indices must be between 0 and {n_samples - 1}."
        )
    if distances.dtype.kind not in "biuf":
        raise ParameterError(f"neighbors has distances of type {distances.dtype}, but they must be numbers.")
    wrong = np.flatnonzero(~((distances >= 0) & np.isfinite(distances)))
    if len(wrong) > 0:
        raise ParameterError(
            f"neighbors has the distance {distances[wrong[0]]:g} between points {rows[wrong[0]]} and "
            f"{columns[wrong[0]]}, but distances must be finite and at least 0."
        )


def nearest_of_lists(
    rows: np.ndarray, columns: np.ndarray, distances: np.ndarray, n_samples: int, wanted: int, needed: int
) -> Neighbors:
    """Cut lists of any lengths to one length, nearest first; squares stay in the range of the numbers."""
    others = rows != columns
    rows, columns, distances = rows[others], columns[others], distances[others]
    counts = np.bincount(rows, minlength=n_samples)
    shortest = int(counts.argmin())
    if counts[shortest] < needed:
        raise ParameterError(
            f"neighbors has {counts[shortest]} neighbours of point {shortest}, itself not counted, but needs "
            f"at least n_neighbors={needed}: {WAY_OUT}."
        )
    order = np.lexsort((columns, distances, rows))
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    count = min(wanted, int(counts.min()))
    places = order[starts[:, None] + np.arange(count)]
    squared, indices = empty_lists(n_samples, count, distances.dtype, n_samples)
    indices[:], squared[:] = columns[places], scale_to_safe_range(distances[places])[0] ** 2
    return Neighbors(indices, squared, exact=False)
