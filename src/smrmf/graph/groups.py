"""Points in groups and in order: numbers that do not depend on names, sums of members, places of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def numbered_by_first(keys: np.ndarray) -> np.ndarray:
    """Return the group of every point, equal keys being one, numbered in the order of their first points."""
    _, first, groups = np.unique(keys, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[groups]


def inverse_order(order: np.ndarray) -> np.ndarray:
    """Return the place of every row in an order of all rows."""
    places = np.empty_like(order)
    places[order] = np.arange(len(order), dtype=order.dtype)
    return places


def membership(groups: np.ndarray, n_groups: int, dtype: Any) -> sp.csr_array:
    """Return the matrix, groups x points, that adds up what the members of each group have."""
    n = len(groups)
    return sp.csr_array((np.ones(n, dtype), (groups, np.arange(n))), shape=(n_groups, n))


def sums_of_groups(G: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the sum of the rows of every group."""
    n_groups = int(groups.max()) + 1
    return G if n_groups == len(groups) else membership(groups, n_groups, G.dtype) @ G
