"""From a graph or an embedding to clusters.

Normalised spectral clustering never splits a component of the graph by rounding; a non-negative embedding has
clusters by its largest columns or by k-means.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from smrmf._parallel import WARNING_FILTERS, Pool
from smrmf.graph.components import join_components
from smrmf.graph.duplicates import agreeing_labels
from smrmf.graph.groups import sums_of_groups
from smrmf.graph.spectrum import smoothest

KMEANS_STARTS = 10
# Centres are found on so many rows at most: more of them move no centre by what a label could see.
MOST_ROWS = 20_000


def relabel_by_size(labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the labels renumbered by size, largest cluster first, and of equal ones by their first point."""
    # So equal partitions have equal labels, whatever found them.
    first = np.full(n_clusters, len(labels))
    np.minimum.at(first, labels, np.arange(len(labels)))
    order = np.lexsort((first, -np.bincount(labels, minlength=n_clusters)))
    rank = np.empty(n_clusters, dtype=np.intp)
    rank[order] = np.arange(n_clusters)
    return rank[labels]


def kmeans_labels(
    X: np.ndarray,
    n_clusters: int,
    random_state: np.random.RandomState,
    n_starts: int = KMEANS_STARTS,
    weights: np.ndarray | None = None,
    max_iter: int = 300,
) -> np.ndarray:
    """Return the clusters of rows by k-means, the best of several starts, largest cluster first.

    With weights a row counts as so many. Of very many rows the centres are those of a sample.
    """
    from sklearn.cluster import KMeans  # slow to import, and needed by fit only

    model = KMeans(n_clusters, n_init=n_starts, max_iter=max_iter, random_state=random_state)
    # Of fewer distinct points than clusters: the estimator repairs the labels and says so itself.
    with WARNING_FILTERS.changed("ignore"):
        if len(X) <= MOST_ROWS:
            return relabel_by_size(model.fit_predict(X, sample_weight=weights), n_clusters)
        rows = np.sort(random_state.choice(len(X), MOST_ROWS, replace=False))
        model.fit(X[rows], sample_weight=None if weights is None else weights[rows])
        return relabel_by_size(model.predict(X), n_clusters)


def graph_labels(
    X: Any,
    W: sp.csr_array,
    n_clusters: int,
    random_state: np.random.RandomState,
    pool: Pool,
    n_starts: int = KMEANS_STARTS,
) -> np.ndarray:
    """Cluster the rows of X by the smoothest functions on a symmetric graph of them.

    Components of the graph are never split by rounding: where there are more of them than clusters,
    the surplus of small ones is tied to the largest, and where their number is that of the clusters
    they are the answer.
    """
    W, components = join_components(X, W, n_clusters, pool)
    # The eigenvalue one belongs to the indicators of the components: k-means could only find them again.
    if components.number == n_clusters:
        return relabel_by_size(components.of_point, n_clusters)
    embedding = smoothest(W, components, n_clusters, random_state, pool).embedding(n_clusters)
    return kmeans_labels(embedding, n_clusters, random_state, n_starts)


def consecutive_labels(G: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, list[int]]:
    """Return the largest column of every row; an empty cluster gets the point nearest to it.

    Identical points, those of a group, have one label, that of their sum. The second result lists the points
    moved to empty clusters, by the first of their group. With fewer groups than columns some stay empty.
    """
    sums = sums_of_groups(G, groups)
    labels = sums.argmax(axis=1)
    sizes = np.bincount(labels, minlength=G.shape[1])
    moved = []
    for empty in np.flatnonzero(sizes == 0)[: max(0, len(sums) - np.count_nonzero(sizes))]:
        # Only from clusters of two or more, so that filling one does not empty another.
        group = int(np.argmax(np.where(sizes[labels] > 1, sums[:, empty], -np.inf)))
        sizes[labels[group]] -= 1
        sizes[empty] = 1
        labels[group] = empty
        moved.append(int(np.argmax(groups == group)))
    return labels[groups], moved


def empty_columns_last(labels: np.ndarray, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return an order of the columns of G in which those without points come last, and the labels in it."""
    order = np.argsort(np.bincount(labels, minlength=n_columns) == 0, kind="stable")
    return order, np.argsort(order)[labels]


def label_rows(
    G: np.ndarray, rule: str, n_clusters: int, random_state: np.random.RandomState, groups: np.ndarray
) -> tuple[np.ndarray, list[int]]:
    """Label the rows of an embedding by the named rule; also list the points moved to empty clusters."""
    if rule == "argmax":
        return consecutive_labels(G, groups)
    return agreeing_labels(kmeans_labels(G, n_clusters, random_state), groups), []


def empty_cluster_warnings(
    labels: np.ndarray, moved: list[int], n_clusters: int, groups: np.ndarray
) -> list[tuple[str, type[Warning]]]:
    """Return the warnings that clusters came out empty, if any did; identical points are of one group."""
    found, n_distinct = int(labels.max()) + 1, int(groups.max()) + 1
    if n_distinct < n_clusters:
        rows = "1 distinct row" if n_distinct == 1 else f"{n_distinct} distinct rows"
        what = f"Only {found} of {n_clusters} clusters were found, as X has only {rows}"
        return [(f"{what}: lower n_clusters.", ConvergenceWarning)]
    if moved:
        what = f"{len(moved)} of {n_clusters} clusters came out empty and were given one point each "
        what += f"(points {moved})"
    elif found < n_clusters:
        what = f"Only {found} of {n_clusters} clusters were found, the others have no points"
    else:
        return []
    return [(f"{what}: the data may have fewer clusters, lower n_clusters.", ConvergenceWarning)]


def indicator(labels: np.ndarray, n_clusters: int, dtype: np.dtype) -> np.ndarray:
    """Return G with ``G'G = I`` and ``G >= 0`` of a clustering; an empty cluster is a column of zeros."""
    G = np.zeros((len(labels), n_clusters), dtype)
    sizes = np.bincount(labels, minlength=n_clusters)
    G[np.arange(len(labels)), labels] = 1 / np.sqrt(sizes[labels])
    return G
