"""What makes a cluster? Typical values of every feature, and how far they set it apart from the others."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import narwhals.stable.v2 as nw
import narwhals.stable.v2.selectors as selectors
import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.utils.validation import check_array, check_is_fitted

from smrmf._validation import COUNT, NONE, check_parameters
from smrmf.graph.groups import membership
from smrmf.inspection._table import feature_names as names_of
from smrmf.inspection._table import last_step, like

# Ranks of so many entries at a time: the table is not copied as a whole.
BLOCK_ENTRIES = 2**22
# Of a cluster that has quartiles: those of fewer points lie so near each other that nothing is between.
FEWEST_ROWS = 5


def cluster_profiles(model: Any, X: Any, *, n_features: int | None = 10, feature_names: Any = None) -> Any:
    """Say what makes every cluster: the features that set it apart most, with their typical values.

    Parameters
    ----------
    model : fitted clusterer
        Anything with ``labels_``, or a pipeline that ends with it; the label -1 is no cluster.
    X : array-like, frame or CSR matrix of shape (n_samples, n_columns)
        A row for every point of the fit, in the units to report: the table before scaling, say, or other
        columns of the same points. Of sparse texts the columns are words. Columns of a frame that are not
        numbers are left out.
    n_features : int or None, default=10
        How many features of every cluster, those that set it apart most; None is all.
    feature_names : array-like of str, default=None
        Names of the columns, if X has none.

    Returns
    -------
    PlainTable or frame
        A row for every cluster and feature: ``cluster``, its ``size``, the ``feature``; ``typical``, the
        median of the cluster, ``low`` and ``high``, its quartiles, and ``elsewhere``, the median of all other
        points; ``effect``, from -1 to 1, how much more often a point of the cluster has the larger value than
        one from elsewhere (Cliff's delta): 1 if always, 0 if as often as not; ``apart``, from 0 to 1, how
        rarely points from elsewhere lie between the quartiles, where half of the cluster does: 1 if never, 0
        if as often, which also finds clusters between others (0 of clusters of up to four points, whose
        quartiles say nothing). Features are ranked by the larger of the two sizes, alike ones by the
        difference of means. Of sparse X ``typical`` and ``elsewhere`` are means, and quartiles and ``apart``
        are left out.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from smrmf import FastSMRMF
    >>> from smrmf.inspection import cluster_profiles
    >>> iris = load_iris()
    >>> model = FastSMRMF(n_clusters=3, random_state=0).fit(iris.data)
    >>> cluster_profiles(model, iris.data, n_features=2, feature_names=iris.feature_names)
    cluster  size  feature            typical    low   high  elsewhere  effect   apart
          0    64  petal length (cm)      4.5  4.075    4.8        1.6   0.165       1
          0    64  petal width (cm)       1.4    1.3    1.6        0.4  0.2126  0.9535
          1    50  petal length (cm)      1.5    1.4  1.575        4.9      -1       1
          1    50  petal width (cm)       0.2    0.2    0.3        1.6      -1       1
          2    36  petal length (cm)      5.7    5.5  6.025       3.75  0.9971       1
          2    36  petal width (cm)       2.1    1.9    2.3       1.05  0.9332  0.9123
    """
    check_parameters("cluster_profiles", {"n_features": n_features}, {"n_features": (COUNT, NONE)})
    X = numeric_columns(X)
    labels = labels_of(model, X.shape[0])
    names = names_of(X, model, feature_names)
    values = check_array(
        X,
        accept_sparse="csc",
        dtype=[np.float64, np.float32],
        ensure_all_finite=True if sp.issparse(X) else "allow-nan",
    )
    n_clusters = int(labels.max()) + 1
    effects = cliffs_delta(values, labels)
    # Most words are absent nearly everywhere, and quartiles say nothing of them.
    apart = np.zeros_like(effects) if sp.issparse(values) else outside_quartiles(values, labels)
    count = values.shape[1] if n_features is None else min(n_features, values.shape[1])
    order = feature_order(np.maximum(np.abs(effects), apart), values, labels)[:, :count]
    clusters, columns = np.repeat(np.arange(n_clusters), count), order.ravel()
    sizes = np.bincount(labels[labels >= 0])
    answer = {"cluster": clusters, "size": sizes[clusters], "feature": names[columns]}
    answer |= typical_values(values, labels, clusters, columns)
    answer["effect"] = effects[clusters, columns]
    if not sp.issparse(values):
        answer["apart"] = apart[clusters, columns]
    return like(X, answer)


def labels_of(model: Any, n_rows: int) -> np.ndarray:
    """Return the labels of a clusterer, or of the last step of a pipeline; refuse another number of rows."""
    model = last_step(model)
    if not hasattr(model, "labels_"):
        check_is_fitted(model, "labels_")
    labels = np.asarray(model.labels_)
    if len(labels) != n_rows:
        raise ValueError(
            f"X has {n_rows} rows, but the model was fitted to {len(labels)}: give a row for every point of "
            "the fit."
        )
    if labels.max() < 0:
        raise ValueError("The model has put no point into a cluster, so there is none to describe.")
    return labels


def numeric_columns(X: Any) -> Any:
    """Return the columns of numbers of a frame; an array is taken as it is."""
    if not nw.dependencies.is_into_dataframe(X):
        return X if sp.issparse(X) else np.asarray(X)
    frame = nw.from_native(X, eager_only=True)
    numbers = frame.select(selectors.numeric() | selectors.boolean())
    if not numbers.columns:
        raise ValueError(f"X has no column of numbers among {frame.columns}: give some.")
    return numbers.to_native()


def cliffs_delta(values: Any, labels: np.ndarray) -> np.ndarray:
    """Return for every cluster (row) and feature how much more often it has the larger value, from -1 to 1.

    By sums of ranks, as in the test of Mann and Whitney: ties count half. Missing values do not count, and
    points of no cluster, with the label -1, are elsewhere.
    """
    n_clusters = int(labels.max()) + 1
    members = membership(np.where(labels < 0, n_clusters, labels), n_clusters + 1, np.float64)
    sizes = np.asarray(members.sum(axis=1)).reshape(-1, 1)
    found = np.zeros((n_clusters + 1, values.shape[1]))
    for block, ranks, middle, known in ranked_blocks(values):
        inside = sizes if known is None else members @ known
        total = inside.sum(axis=0)
        pairs = inside * (total - inside)
        sums = members @ ranks
        above = (sums.toarray() if sp.issparse(sums) else sums) + (middle - (total + 1) / 2) * inside
        found[:, block] = np.divide(2 * above, pairs, out=np.zeros_like(above), where=pairs > 0)
    return found[:n_clusters]


def outside_quartiles(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return how rarely points from elsewhere lie between the quartiles of a cluster: 1 never, 0 as often."""
    found = np.zeros((int(labels.max()) + 1, values.shape[1]))
    all_known = np.count_nonzero(~np.isnan(values), axis=0)
    for cluster, row in enumerate(found):
        mine = values[labels == cluster]
        if len(mine) < FEWEST_ROWS:
            continue
        low, high = quantiles(mine, [0.25, 0.75])
        # Of all rows less those of the cluster: the others, which are most, are not copied for every cluster.
        known = all_known - np.count_nonzero(~np.isnan(mine), axis=0)
        here, there = (np.count_nonzero((part >= low) & (part <= high), axis=0) for part in (mine, values))
        between = (there - here) / np.maximum(known, 1)
        row[:] = np.where(np.isnan(low) | (known == 0), 0, np.clip(1 - 2 * between, 0, 1))
    return found


def quantiles(values: np.ndarray, levels: list[float]) -> np.ndarray:
    """Return quantiles of the columns of a table that has rows; NaN of a column that is missing in all."""
    if not np.isnan(values).any():  # many times faster
        return np.quantile(values, levels, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanquantile(values, levels, axis=0)


def feature_order(strength: np.ndarray, values: Any, labels: np.ndarray) -> np.ndarray:
    """Return for every cluster the features, strongest first, and of equal ones those that differ most."""
    return np.lexsort((-differences(values, labels), -strength.round(9)), axis=1)


def differences(values: Any, labels: np.ndarray) -> np.ndarray:
    """Return how many standard deviations lie between the mean of a cluster and that of all; 0 of sparse."""
    n_clusters = int(labels.max()) + 1
    if sp.issparse(values):
        return np.zeros((n_clusters, values.shape[1]))
    found = np.zeros((n_clusters, values.shape[1]))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns that are missing in all of a cluster
        middle, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
        for cluster, row in enumerate(found):
            row[:] = np.abs(np.nanmean(values[labels == cluster], axis=0) - middle) / spread
    return np.nan_to_num(found, posinf=0.0).round(9)


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
    columns = sp.csc_array(columns, dtype=np.float64, copy=True)
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
        n_clusters = int(labels.max()) + 1
        members = membership(np.where(labels < 0, n_clusters, labels), n_clusters + 1, np.float64)
        sums, sizes = (members @ values).tocsr(), np.bincount(labels[labels >= 0])
        inside, total = np.asarray(sums[clusters, columns]).ravel(), np.asarray(values.sum(axis=0)).ravel()
        others = len(labels) - sizes[clusters]
        rest = np.divide(total[columns] - inside, others, out=np.full(len(others), np.nan), where=others > 0)
        return {"typical": inside / sizes[clusters], "elsewhere": rest}
    found = np.empty((len(columns), 4))
    for place, (cluster, column) in enumerate(zip(clusters, columns, strict=True)):
        mine = labels == cluster
        part, rest = values[mine, column], values[~mine, column]
        quartiles = np.nanquantile(part, [0.5, 0.25, 0.75]) if not np.isnan(part).all() else [np.nan] * 3
        found[place] = *quartiles, np.nanmedian(rest) if not np.isnan(rest).all() else np.nan
    return dict(zip(("typical", "low", "high", "elsewhere"), found.T, strict=True))
