"""What people would use instead, at the defaults of each, with the number of clusters given where it can be.

UMAP is followed by k-means or a Gaussian mixture in ten dimensions, with the settings that its authors advise
for clustering. Leiden finds its own number of clusters, on the graph of fifteen neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.decomposition import NMF, TruncatedSVD
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import kneighbors_graph

NEIGHBORS = 15
# Dense methods on text get what people give them: a hundred coordinates.
TEXT_COORDINATES = 100
Labels = np.ndarray


def few_coordinates(X: Any, seed: int) -> np.ndarray:
    """Return dense points: those given, or of a sparse table its leading coordinates."""
    if not sp.issparse(X):
        return X
    return TruncatedSVD(TEXT_COORDINATES, random_state=seed).fit_transform(X)


def kmeans(X: Any, c: int, seed: int) -> Labels:
    return KMeans(c, n_init=10, random_state=seed).fit_predict(X)


def ward(X: Any, c: int, seed: int) -> Labels:
    return AgglomerativeClustering(c).fit_predict(few_coordinates(X, seed))


def mixture(X: Any, c: int, seed: int) -> Labels:
    X = few_coordinates(X, seed)
    # Full covariances of more features than points cannot be estimated.
    kind = "full" if X.shape[1] <= 50 else "diag"
    return GaussianMixture(c, covariance_type=kind, reg_covar=1e-4, random_state=seed).fit_predict(X)


def spectral(X: Any, c: int, seed: int) -> Labels:
    return SpectralClustering(c, affinity="nearest_neighbors", random_state=seed).fit_predict(X)


def nmf(X: Any, c: int, seed: int) -> Labels:
    X = X - X.min(axis=0) if not sp.issparse(X) and X.min() < 0 else X
    return NMF(c, random_state=seed).fit_transform(X).argmax(axis=1)


def leiden(X: Any, c: int, seed: int) -> Labels:
    import random

    import igraph

    W = kneighbors_graph(X, min(NEIGHBORS, X.shape[0] - 1))
    rows, columns = sp.triu(W.maximum(W.T), 1).nonzero()
    graph = igraph.Graph(X.shape[0], np.column_stack([rows, columns]))
    generator = random.Random(seed)
    igraph.set_random_number_generator(generator)
    return np.array(graph.community_leiden("modularity", n_iterations=-1).membership)


def umap_kmeans(X: Any, c: int, seed: int) -> Labels:
    return kmeans(umap_points(X, seed), c, seed)


def umap_mixture(X: Any, c: int, seed: int) -> Labels:
    points = umap_points(X, seed)
    return GaussianMixture(c, reg_covar=1e-4, random_state=seed).fit_predict(points)


class UmapPoints:
    """Points of the last table, which two methods cluster: UMAP takes longer than all the rest."""

    last: tuple[Any, int, np.ndarray] | None = None

    def __call__(self, X: Any, seed: int) -> np.ndarray:
        """Return the points of a table, made anew only for another table or seed."""
        if self.last is None or self.last[0] is not X or self.last[1] != seed:
            self.last = X, seed, self.embed(X, seed)
        return self.last[2]

    def embed(self, X: Any, seed: int) -> np.ndarray:
        """Embed with the settings that are advised for clustering."""
        from umap import UMAP

        n = X.shape[0]
        model = UMAP(
            n_neighbors=min(NEIGHBORS, n - 1),
            min_dist=0.0,
            n_components=min(10, n - 2),
            random_state=seed,
            n_jobs=1,
        )
        # It knows sparse matrices only, not arrays.
        return model.fit_transform(sp.csr_matrix(X) if sp.issparse(X) else X)


umap_points = UmapPoints()
PEERS: dict[str, Callable[[Any, int, int], Labels]] = {
    "KMeans": kmeans,
    "Ward": ward,
    "GMM": mixture,
    "NMF": nmf,
    "Leiden": leiden,
    "Spectral": spectral,
    "UMAP+KMeans": umap_kmeans,
    "UMAP+GMM": umap_mixture,
}
