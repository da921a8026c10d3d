"""What all factorisations offer once fitted: embeddings, labels and components, also for new points.

Each point is represented by its nearest training points, and takes embedding and label from them. The rule
is the column problem (5.18) on squared distances, each point with k neighbours, with its weights divided by
the squared distance. The division makes it interpolate: a training point is represented by itself and its
duplicates alone, so ``predict`` of training points is the labels and ``transform`` of distinct ones the
embedding, and the answer changes continuously as a point moves away. Labels also ask the means of the
clusters, as far as the nearest training points are too far away to know more (:mod:`smrmf.graph.means`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from smrmf._arrays import as_dense, check_memory, divide_keeping_dtype, finite_array
from smrmf._estimator import AbstractEstimator
from smrmf._parallel import Pool, thread_pool
from smrmf._validation import safe_limit
from smrmf.graph.candidates import Neighbors
from smrmf.graph.graphs import neighbor_graph, simplex_graph
from smrmf.graph.means import ClusterMeans, votes_of_means
from smrmf.graph.membership import favor_labels, mean_distances, one_hot, outlyingness
from smrmf.graph.neighbors import MeasuredPoints
from smrmf.graph.search import InCells, SearchAmong
from smrmf.kernels.scaling import directions

# What rows are compared by: as they are, or by their directions alone.
COMPARED: dict[str, Callable[..., Any]] = {"euclidean": lambda X, n_columns=None: X, "cosine": directions}


# Answers for new points, in the form of the training points, from their neighbours.
Answer = Callable[[Any, Neighbors], np.ndarray]
# So many numbers of new points are looked at at a time, and so many points at the most and at the least.
BATCH_ENTRIES, MOST_ROWS, FEWEST_ROWS = 2**23, 2**17, 2**10


class Factorization(
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    AbstractEstimator,
):
    """Rows of X as mixtures of components, ``X ~ G F``, with a label for every row.

    A fit sets ``labels_``, ``embedding_`` (G), ``components_`` (F), what :func:`~smrmf.factorization.
    _certainty.certainty` says, and for new points the training data ``_fit_data``, divided by
    ``_magnitude``, and the number of neighbours ``_fit_neighbors`` to ask. Where rows are not compared as
    they are, it also sets ``_fit_metric``, and where it has looked for neighbours in cells
    (:class:`~smrmf.graph.search.InCells`), ``_fit_centers``, ``_fit_cell_of`` and ``_fit_asked``.
    """

    _fit_metric: str = "euclidean"
    _fit_centers: np.ndarray | None = None
    _fit_cell_of: np.ndarray | None = None
    _fit_asked: int | None = None

    def fit_transform(self, X: Any, y: None = None) -> np.ndarray:
        """Cluster the rows of X and return their embedding.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The points.
        y : None
            Ignored.

        Returns
        -------
        embedding : array of shape (n_samples, n_components)
            The factor G.
        """
        return self.fit(X, y).embedding_

    def transform(self, X: Any) -> np.ndarray:
        """Embed points: each is a mixture of its nearest training points.

        A distinct training point gets its own row of ``embedding_``, duplicates the mean of theirs.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The points.

        Returns
        -------
        embedding : array of shape (n_samples, n_components)
            Weighted means of rows of ``embedding_``.
        """
        return self._answer(X, lambda points: lambda queries, near: self._weights(near) @ self.embedding_)

    def predict(self, X: Any) -> np.ndarray:
        """Assign points to clusters by the vote of their nearest training points.

        Where even the nearest is farther away than the mean of a cluster, as among texts, the mean votes too.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The points.

        Returns
        -------
        labels : array of shape (n_samples,)
            Indices of clusters; for training points, ``labels_``.
        """
        return self._answer(X, self._asked_for_labels)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Say how sure it is to which cluster points belong.

        A point takes the mean membership of its nearest training points, weighed as in ``predict``. There
        are no labels to calibrate by: a share of 0.9 says that nine in ten of the neighbourhoods and
        clusterings asked agree, not that nine in ten such points are right. How far a point lies from
        all others, ``outlier_scores`` says.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The points.

        Returns
        -------
        shares : array of shape (n_samples, n_clusters found)
            One row per point, which sums to one and is largest at the cluster that ``predict`` returns; for
            distinct training points, ``membership_``.
        """
        return self._answer(X, self._asked_for_shares)

    def outlier_scores(self, X: Any) -> np.ndarray:
        """Say how far points lie from all training points, as ``outlier_scores_`` does for these.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The points.

        Returns
        -------
        scores : array of shape (n_samples,)
            0 amid others, 1/2 if the neighbours are twice as far away as they are from theirs, nearly 1 far
            from everything.
        """
        return self._answer(X, lambda points: self._apartness)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Rebuild points from embeddings, ``G F``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Embeddings.

        Returns
        -------
        X_original : array of shape (n_samples, n_features)
            Points in the original features; where ``metric="cosine"`` saw only directions, these.
        """
        check_is_fitted(self)
        G = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if G.shape[1] != len(self.components_):
            raise ValueError(
                f"X has shape {G.shape}, but inverse_transform takes embeddings with "
                f"{len(self.components_)} columns, as transform returns them."
            )
        n, m = G.shape[0], self.components_.shape[1]
        # Also of points that came sparse: what is rebuilt has no zeros.
        needed = n * m * np.result_type(G.dtype, self.components_.dtype).itemsize
        check_memory(
            type(self).__name__, needed, f"a dense array of {n} x {m}", "rebuild fewer rows at a time"
        )
        return G @ self.components_

    def _answer(self, X: Any, ask: Callable[[MeasuredPoints], Answer]) -> np.ndarray:
        """Answer for new points by their nearest training points; so many at a time, whatever their number.

        ``ask`` is told the training points once, and returns who answers for queries and their neighbours.
        """
        checked = self._checked(X)
        with thread_pool(self.n_jobs) as pool:
            search = self._search(pool)
            answer, parts = ask(search.points), []
            for rows in batches(*checked.shape):
                queries = search.points.queries(self._comparable(checked[rows]))
                parts.append(answer(queries, search.nearest(queries, pool)))
        return np.concatenate(parts)

    def _asked_for_labels(self, points: MeasuredPoints) -> Answer:
        """Return who votes on clusters."""
        means = self._means(points)
        return lambda queries, near: self._vote(
            self._weights(near), votes_of_means(means, queries, near.squared[:, 0])
        )

    def _asked_for_shares(self, points: MeasuredPoints) -> Answer:
        """Return who says how much points belong to each cluster."""
        means = self._means(points)

        def answer(queries: Any, near: Neighbors) -> np.ndarray:
            weights, votes = self._weights(near), votes_of_means(means, queries, near.squared[:, 0])
            shares = (weights @ self.membership_ + votes).astype(self.membership_.dtype)
            return favor_labels(shares, self._vote(weights, votes))

        return answer

    def _means(self, points: MeasuredPoints) -> ClusterMeans:
        """Return the means of the clusters."""
        return ClusterMeans.of(points, self.labels_, int(self.labels_.max()) + 1)

    def _vote(self, weights: sp.csr_array, means: np.ndarray) -> np.ndarray:
        """Return the cluster with the most votes."""
        # Of labels, not of memberships: where clusters overlap, these would let the larger one win.
        return (weights @ one_hot(self.labels_, means.shape[1], weights.dtype) + means).argmax(axis=1)

    def _apartness(self, queries: Any, near: Neighbors) -> np.ndarray:
        """Return how far points lie from all training points."""
        k = min(self._fit_neighbors, near.squared.shape[1])
        # A copy of a training point does not count itself among its neighbours.
        skipped = (near.squared[:, 0] == 0) & (near.squared.shape[1] > k)
        places = np.arange(k) + skipped[:, None]
        indices, squared = (np.take_along_axis(part, places, 1) for part in near[:2])
        return outlyingness(mean_distances(squared), indices, self._fit_reach)

    def _checked(self, X: Any) -> Any:
        """Return new points, checked."""
        check_is_fitted(self)
        checked = finite_array(self, X)
        validate_data(self, X, skip_check_array=True, reset=False)
        return checked

    def _comparable(self, checked: Any) -> Any:
        """Return new points in the form and the unit of the training data."""
        # A copy: the clip below must not write to the caller's array.
        own = checked.copy()
        if sp.issparse(own):
            own.sum_duplicates()  # which sorts, too, as the training data are
        compared = COMPARED[self._fit_metric](own, self._fit_data.shape[1])
        compared = compared.astype(self._fit_data.dtype, copy=False)
        data = divide_keeping_dtype(compared, self._magnitude)
        # Squares of larger entries could overflow. Fitted data have none, so a clipped point still lies at
        # their edge or beyond.
        furthest = safe_limit(data.dtype)
        values = data.data if sp.issparse(data) else data
        np.clip(values, -furthest, furthest, out=values)
        if not sp.issparse(self._fit_data):
            data = as_dense(type(self).__name__, data, 1)
        return data

    def _search(self, pool: Pool) -> SearchAmong:
        """Return a search among the training points for new ones."""
        # One more than k: (5.18) gives k neighbours a share by the distance of the next one.
        count = min(self._fit_neighbors + 1, self._fit_data.shape[0])
        # Neighbours that were given say nothing of new points.
        how = getattr(self, "neighbors", "auto")
        how = how if isinstance(how, str) else "auto"
        known = None
        if self._fit_centers is not None and self._fit_cell_of is not None:
            known = InCells(self._fit_centers, self._fit_cell_of, self._fit_asked)
        return SearchAmong.prepare(self._fit_data, count, how, pool, known)

    def _weights(self, near: Neighbors) -> sp.csr_array:
        """Return the weight of every training point for every new one; rows sum to one."""
        n = len(self.labels_)
        z = simplex_graph(near, min(self._fit_neighbors, n), n).data.reshape(near.squared.shape)
        return neighbor_graph(near.indices, inverse_distance_weights(near, z), n)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def inverse_distance_weights(near: Neighbors, z: np.ndarray) -> np.ndarray:
    """Divide each representation by the squared distance; points at distance zero take all of it."""
    same = near.squared == 0
    # z / d^2 up to a factor per row, which the last line removes: ratios to the nearest are at most 1, where
    # 1 / d^2 could overflow.
    nearest = near.squared[:, :1]
    ratio = np.divide(nearest, near.squared, out=np.zeros_like(near.squared), where=~same)
    weights = np.where(same.any(axis=1, keepdims=True), same.astype(z.dtype), z * ratio)
    return weights / weights.sum(axis=1, keepdims=True)


def batches(n_rows: int, n_columns: int) -> list[slice]:
    """Cut a table into blocks of rows that need little memory."""
    size = min(MOST_ROWS, max(FEWEST_ROWS, BATCH_ENTRIES // n_columns))
    return [slice(start, start + size) for start in range(0, n_rows, size)]
