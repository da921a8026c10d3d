"""What makes a cluster? Typical values of every feature, and how far they set it apart from the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.utils.validation import check_array, check_is_fitted

from smrmf.graph.groups import membership
from smrmf.inspection._table import feature_names as names_of
from smrmf.inspection._table import like

# Ranks of so many entries at a time: the table is not copied as a whole.
BLOCK_ENTRIES = 2**22


def cluster_profiles(model: Any, X: Any, *, n_features: int | None = 10, feature_names: Any = None) -> Any:
    """Say what makes every cluster: the features that set it apart most, with their typical values.

    Parameters
    ----------
    model : fitted clusterer
        Anything with ``labels_``.
    X : array-like, frame or CSR matrix of shape (n_samples, n_columns)
        A row for every point of the fit, in the units to report: the table before scaling, say, or other
        columns of the same points. Of sparse texts the columns are words.
    n_features : int or None, default=10
        How many features of every cluster, those that set it apart most; None is all.
    feature_names : array-like of str, default=None
        Names of the columns, if X has none.

    Returns
    -------
    PlainTable or frame
        A row for every cluster and feature: ``cluster``, its ``size``, the ``feature``; ``typical``, the
        median of the cluster, ``low`` and ``high``, its quartiles, and ``elsewhere``, the
        median of all other points (for
        sparse X means, and the quartiles are left out); ``effect``, from -1 to 1, how much more
        often a point of the cluster
        has the larger value than one from elsewhere (Cliff's delta): 1 if always, 0 if as often as not.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from smrmf import FastSMRMF
    >>> from smrmf.inspection import cluster_profiles
    >>> iris = load_iris()
    >>> model = FastSMRMF(n_clusters=3, random_state=0).fit(iris.data)
    >>> cluster_profiles(model, iris.data, n_features=2, feature_names=iris.feature_names)
    cluster  size  feature            typical  low   high  elsewhere   effect
          0    64  sepal width (cm)       2.8  2.5      3        3.2  -0.7333
          0    64  petal width (cm)       1.4  1.3    1.6        0.4   0.2126
          1    50  petal length (cm)      1.5  1.4  1.575        4.9       -1
          1    50  petal width (cm)       0.2  0.2    0.3        1.6       -1
          2    36  petal length (cm)      5.7  5.5  6.025       3.75   0.9971
          2    36  petal width (cm)       2.1  1.9    2.3       1.05   0.9332
    """
    if not hasattr(model, "labels_"):
        check_is_fitted(model, "labels_")
    names = names_of(X, model, feature_names)
    values = check_array(
        X, accept_sparse="csc", dtype=[np.float64, np.float32], ensure_all_finite="allow-nan"
    )
    labels = np.asarray(model.labels_)
    if len(labels) != values.shape[0]:
        raise ValueError(
            f"X has {values.shape[0]} rows, but the model was fitted to {len(labels)}: give a row for every "
            "point of the fit."
        )
    effects = cliffs_delta(values, labels)
    count = values.shape[1] if n_features is None else min(n_features, values.shape[1])
    # Stable: of features that set apart alike the first come first.
    order = np.argsort(-np.abs(effects).round(9), axis=1, kind="stable")[:, :count]
    clusters = np.repeat(np.arange(len(effects)), count)
    columns = order.ravel()
    sizes = np.bincount(labels)
    return like(
        X,
        {"cluster": clusters, "size": sizes[clusters], "feature": names[columns]}
        | typical_values(values, labels, clusters, columns)
        | {"effect": effects[clusters, columns]},
    )


def cliffs_delta(values: Any, labels: np.ndarray) -> np.ndarray:
    """Return for every cluster (row) and feature how much more often it has the larger value, from -1 to 1.

    By the sum of ranks, as the test of Mann and Whitney: ties count half. Missing values do not count.
    """
    n_clusters = int(labels.max()) + 1
    members = membership(labels, n_clusters, np.float64)
    sizes = np.bincount(labels, minlength=n_clusters)[:, None].astype(float)
    found = np.zeros((n_clusters, values.shape[1]))
    for block, ranks, middle, known in ranked_blocks(values):
        inside = sizes if known is None else members @ known
        outside = inside.sum(axis=0) - inside
        # Ranks are relative to the middle one, so a sum of zero is a cluster like all others.
        sums = members @ ranks
        sums = sums.toarray() if sp.issparse(sums) else sums
        above = sums + (middle - (inside + outside + 1) / 2) * inside
        pairs = inside * outside
        found[:, block] = np.divide(2 * above, pairs, out=np.zeros_like(above), where=pairs > 0)
    return found


def ranked_blocks(values: Any) -> Iterator[tuple[slice, Any, Any, Any]]:
    """Yield columns as ranks, what is missing to these, and which values are known (None is all)."""
    n, width = values.shape
    step = max(1, BLOCK_ENTRIES // n)
    for start in range(0, width, step):
        block = slice(start, min(start + step, width))
        if sp.issparse(values):
            ranks, middle = sparse_ranks(values[:, block])
            yield block, ranks, middle, None
        else:
            part = values[:, block]
            missing = np.isnan(part)
            ranks = rankdata(part, axis=0, nan_policy="omit")
            known = (~missing).astype(float) if missing.any() else None
            yield block, np.where(missing, 0, ranks), 0.0, known


def sparse_ranks(columns: sp.csc_array) -> tuple[sp.csc_array, np.ndarray]:
    """Return the ranks of entries that are stored, less the rank of zeros, and that rank by column."""
    columns = sp.csc_array(columns, copy=True)
    columns.eliminate_zeros()
    n, middle = columns.shape[0], np.empty(columns.shape[1])
    for j in range(columns.shape[1]):
        entries = slice(columns.indptr[j], columns.indptr[j + 1])
        stored = columns.data[entries]
        zeros = n - len(stored)
        below = int(np.count_nonzero(stored < 0))
        middle[j] = below + (zeros + 1) / 2
        # Without the zeros, which lie between the negative and the positive ones.
        ranks = rankdata(stored)
        columns.data[entries] = ranks + np.where(stored > 0, zeros, 0) - middle[j]
    return columns, middle


def typical_values(
    values: Any, labels: np.ndarray, clusters: np.ndarray, columns: np.ndarray
) -> dict[str, np.ndarray]:
    """Return what is typical of the named features in the named clusters, and elsewhere."""
    if sp.issparse(values):
        sums = (membership(labels, int(labels.max()) + 1, np.float64) @ values).tocsr()
        sizes = np.bincount(labels)
        inside, total = np.asarray(sums[clusters, columns]).ravel(), np.asarray(values.sum(axis=0)).ravel()
        others = np.maximum(len(labels) - sizes[clusters], 1)
        return {"typical": inside / sizes[clusters], "elsewhere": (total[columns] - inside) / others}
    found = np.empty((len(columns), 4))
    for place, (cluster, column) in enumerate(zip(clusters, columns, strict=True)):
        mine = labels == cluster
        part, rest = values[mine, column], values[~mine, column]
        quartiles = np.nanquantile(part, [0.5, 0.25, 0.75]) if not np.isnan(part).all() else [np.nan] * 3
        found[place] = *quartiles, np.nanmedian(rest) if not np.isnan(rest).all() else np.nan
    return dict(zip(("typical", "low", "high", "elsewhere"), found.T, strict=True))
