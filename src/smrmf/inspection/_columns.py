"""Do the columns of a table go together? What a fit warns of, before any fit."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from smrmf._arrays import finite_array, scale_to_safe_range
from smrmf._parallel import thread_pool
from smrmf._validation import COUNT, check_parameters
from smrmf.factorization.fast_smrmf import FastSMRMF
from smrmf.graph.columns import ColumnsWarning as ColumnsWarning
from smrmf.graph.columns import column_notes
from smrmf.graph.search import search
from smrmf.inspection._table import feature_names as names_of


def check_columns(
    X: Any, *, n_neighbors: int = 10, feature_names: Any = None, n_jobs: int | None = -1
) -> list[str]:
    """Say whether some columns rule the distances without being meant to.

    Two things are looked for: columns in units so different that some hardly count, and columns of few
    values, such as whole numbers, whose steps part the neighbourhoods, so that clusters follow them. A fit
    gives the same sentences as :class:`ColumnsWarning`.

    Parameters
    ----------
    X : array-like or frame of shape (n_samples, n_features)
        The table, as it would be fitted. Of sparse tables nothing is said: their columns are of one kind.
    n_neighbors : int, default=10
        Neighbours of a point.
    feature_names : array-like of str, default=None
        Names of the columns, if X has none.
    n_jobs : int or None, default=-1
        Threads.

    Returns
    -------
    list of str
        A sentence for each finding; empty if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from smrmf.inspection import check_columns
    >>> draws = np.random.default_rng(0)
    >>> table = draws.normal(size=(200, 2)) * [1, 5000]
    >>> len(check_columns(table, feature_names=["height", "weight"]))
    1
    >>> check_columns(table / table.std(axis=0))
    []
    """
    names = names_of(X, None, feature_names)
    checked = finite_array(FastSMRMF(), X, copy=False)
    if sp.issparse(checked) or checked.shape[0] < 2:
        return []
    check_parameters("check_columns", {"n_neighbors": n_neighbors}, {"n_neighbors": (COUNT,)})
    data, magnitude = scale_to_safe_range(checked)
    with thread_pool(n_jobs) as pool:
        _, neighbors = search(data, min(n_neighbors, len(data) - 1), pool)
    return column_notes(data, neighbors, n_neighbors, names, magnitude)
