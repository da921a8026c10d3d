"""Where the points of a model go on a map."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf._parallel import thread_pool
from smrmf._validation import ParameterError, shown
from smrmf.graph.copies import Copies
from smrmf.graph.duplicates import distinct_rows
from smrmf.graph.exemplars import keep_largest, tie_resolution
from smrmf.graph.graphs import heat_representation, keep_entries, symmetrize, without_diagonal
from smrmf.graph.layout import layout_graph
from smrmf.graph.neighbors import find_neighbors
from smrmf.graph.search import nearest
from smrmf.plot._model import check_model

N_NEIGHBORS = 10
# Of a dense Z so many representatives of each point count: more would take long and show no more.
N_REPRESENTATIVES = 15
# Copies lie around their point, as far away as this share of the usual distance of neighbours on the map.
COPIES_REACH = 0.6


def layout(model: Any, random_state: int = 0, *, graph: str = "data") -> np.ndarray:
    """Place the points of a model in the plane, neighbours near each other.

    What counts is who is near whom. Lengths of gaps, sizes of groups and directions mean little.

    Parameters
    ----------
    model : estimator
        A fitted factorisation of this library.
    random_state : int, default=0
        Seed; the same one gives the same places on any number of threads.
    graph : {"data", "model"}, default="data"
        What ties points: the ten nearest neighbours in the data, which know nothing of the clusters, so that
        a gap is one of the data; or who represents whom in ``representation_``, which has listened to the
        clusters, so that these come out apart even where the data have no gap between them. Models
        without ``representation_`` have the former only.

    Returns
    -------
    coordinates : array of shape (n_samples, 2)
        For the pictures that are maps, or for your own.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from smrmf import FastSMRMF
    >>> from smrmf.plot import layout
    >>> model = FastSMRMF(n_clusters=3, random_state=0).fit(load_iris().data)
    >>> layout(model).shape
    (150, 2)
    """
    if not isinstance(graph, str) or graph not in ("model", "data"):
        raise ParameterError(f"graph={shown(graph)} is not valid for layout: it must be 'model' or 'data'.")
    check_model(model)
    if not hasattr(model, "_fit_data"):
        raise ParameterError(
            f"{type(model).__name__} keeps no points to place: take a factorisation, such as FastSMRMF, "
            "or give coordinates of your own."
        )
    Z = getattr(model, "representation_", None) if graph == "model" else None
    if Z is not None:
        return layout_graph(symmetrize(_representatives(Z)), model._fit_data, random_state)
    copies = Copies.to_leave_out(groups := distinct_rows(model._fit_data), N_NEIGHBORS)
    X = copies.distinct(model._fit_data)
    places = layout_graph(symmetrize(_neighbors(X, model.n_jobs)), X, random_state)
    return copies.rows(places) if copies.groups is None else copies.rows(places) + around(groups, places)


def around(groups: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return how far every copy lies from the place of its point: all of them fill a small disc."""
    counts = np.bincount(groups)
    by_group = np.argsort(groups, kind="stable")
    turn = np.empty(len(groups))
    turn[by_group] = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    # Seeds of a sunflower: so many on equal areas, the first in the middle.
    gap = float(np.median(find_neighbors(places, 1).squared)) ** 0.5
    radius = COPIES_REACH * gap * np.sqrt(turn / counts.max())
    angle = turn * np.pi * (3 - 5**0.5)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _representatives(Z: Any) -> sp.csr_array:
    """Return the largest entries of every column of Z as rows of a sparse matrix."""
    Zt = without_diagonal(sp.csr_array(Z.T))
    keep = np.zeros(Zt.nnz, bool)
    unlikeness = np.zeros_like(Zt.data)  # among equals the earlier one
    keep_largest(Zt.indptr, Zt.data, unlikeness, N_REPRESENTATIVES, tie_resolution(Zt.dtype), keep)
    return keep_entries(Zt, keep)


def _neighbors(X: Any, n_jobs: int | None) -> sp.csr_array:
    """Return the nearest neighbours of every point by their weights."""
    count = min(N_NEIGHBORS, X.shape[0] - 1)
    with thread_pool(n_jobs) as pool:
        return heat_representation(nearest(X, count, pool=pool), count, "distance")
