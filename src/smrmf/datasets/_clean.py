"""The paper's preparation of a table: which features and rows stay, and how they are scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def clean(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Make features comparable and rows unit vectors: the paper's preparation of every table.

    In this order: features that do not vary are dropped; of equal rows the first is kept; every feature
    is shifted and scaled to [0, 1]; every row is divided by its Euclidean length. A row that is zero after
    the third step, the smallest value in all features, has no direction and is dropped.

    The order is the paper's, and doing it twice is not the same as doing it once: rows that differ only
    in length become equal in the last step and are both kept, and the last step takes features off [0, 1].

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Finite values. A sparse table stays sparse and must not be negative, because shifting a feature
        whose smallest value is negative would fill all its zeros.
    y : array of shape (n_samples,)
        Classes of the rows.

    Returns
    -------
    X : array or CSR array of shape (n_kept, n_varying)
        Values in [0, 1], rows of unit length, in the order given.
    y : array of shape (n_kept,)
        Classes of the rows that were kept.

    Examples
    --------
    >>> import numpy as np
    >>> from smrmf.datasets import clean
    >>> X = np.array([[1.0, 7.0, 4.0], [3.0, 7.0, 0.0], [1.0, 7.0, 4.0], [3.0, 7.0, 3.0]])
    >>> X, y = clean(X, [0, 1, 0, 1])
    >>> X
    array([[0. , 1. ],
           [1. , 0. ],
           [0.8, 0.6]])
    >>> y
    array([0, 1, 1])
    """
    X, y = _checked(X, y)
    # Exact, without a tolerance: a feature that hardly varies is scaled to [0, 1] like any other. After this
    # no feature has a range of zero, and dropping equal rows changes no range.
    X = X[:, _smallest_of_columns(X) < _largest(X)]
    if X.shape[1] == 0:
        raise ValueError(
            "No feature of X varies: nothing is left to compare rows by, so give other features."
        )
    first = _first_of_equal_rows(X)
    X = _to_unit_interval(X[first])
    lengths = np.sqrt(X.multiply(X).sum(axis=1)) if sp.issparse(X) else np.linalg.norm(X, axis=1)
    # Paper note 34: a zero row has no direction, and 0 / 0 would make it NaN.
    kept = np.flatnonzero(lengths > 0)
    if sp.issparse(X):
        return sp.csr_array(sp.diags_array(1 / lengths[kept]) @ X[kept]), y[first][kept]
    return X[kept] / lengths[kept, None], y[first][kept]


def _checked(X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Return a float table without stored zeros and as many classes as it has rows."""
    y = np.asarray(y)
    if sp.issparse(X):
        # A copy, because the two calls below work in place on what is the caller's.
        X = sp.csr_array(X, dtype=np.float64, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
    else:
        X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(f"X of shape {X.shape} needs one class per row, but y has shape {y.shape}.")
    values = X.data if sp.issparse(X) else X
    if not np.isfinite(values).all():
        raise ValueError("X contains NaN or infinity: remove these rows, or fill them first.")
    if sp.issparse(X) and (values < 0).any():
        raise ValueError("A sparse X must not be negative, as scaling would fill its zeros: use X.toarray().")
    return X, y


def _smallest_of_columns(X: Any) -> np.ndarray:
    return X.min(axis=0).toarray().ravel() if sp.issparse(X) else X.min(axis=0)


def _largest(X: Any) -> np.ndarray:
    return X.max(axis=0).toarray().ravel() if sp.issparse(X) else X.max(axis=0)


def _first_of_equal_rows(X: Any) -> np.ndarray:
    """Return the indices of the rows that equal no earlier row, in order."""
    if sp.issparse(X):
        # Equal rows must be equal bytes: sorted, without duplicates and without stored zeros (_checked).
        X.sort_indices()
        parts = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        keys = [(X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in parts]
    else:
        keys = [row.tobytes() for row in X + 0.0]  # the sum makes -0.0 and 0.0 the same bytes
    # By bytes in a dict, not by np.unique: linear in the table, and the first of equals stays in its place.
    first: dict[Any, int] = {}
    for index, key in enumerate(keys):
        first.setdefault(key, index)
    return np.fromiter(first.values(), dtype=np.intp)


def _to_unit_interval(X: Any) -> Any:
    """Scale every feature to [0, 1]."""
    low, high = _smallest_of_columns(X), _largest(X)
    if not sp.issparse(X):
        # The difference before the division: x = low gives exactly 0 and x = high exactly 1.
        return (X - low) / (high - low)
    # Where the smallest value is positive the column has no zeros that the shift could fill.
    scaled = (X.data - low[X.indices]) / (high - low)[X.indices]
    X = sp.csr_array((scaled, X.indices, X.indptr), shape=X.shape)
    X.eliminate_zeros()
    return X
