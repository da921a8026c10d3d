"""Where the loop starts: it decides more than anything else how good the clusters are.

``spectral`` finds clusters of any shape on the simplex graph, f-SMRMF's own first Z; ``kmeans`` finds
round ones; ``nndsvd`` is the paper's non-negative SVD.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from smrmf._parallel import Pool
from smrmf.graph.neighbors import Neighbors, neighbor_graph, symmetrize
from smrmf.graph.spectral import graph_labels
from smrmf.kernels.simplex import neighbor_smoothness, solve_columns

# Steps of diffusion on the graph: eigenvectors count by their eigenvalue to this power, so the
# least smooth ones, which are mostly noise, count least. Two to ten make no difference to speak of.
DIFFUSION_STEPS = 5


def indicator(labels: np.ndarray, n_clusters: int, dtype: np.dtype) -> np.ndarray:
    """Return the orthonormal indicator of a clustering; an empty cluster is a column of zeros."""
    G = np.zeros((len(labels), n_clusters), dtype)
    sizes = np.bincount(labels, minlength=n_clusters)
    G[np.arange(len(labels)), labels] = 1 / np.sqrt(sizes[labels])
    return G


def simplex_graph(neighbors: Neighbors, n_neighbors: int, n_columns: int | None = None) -> sp.csr_array:
    """Solve the column problem of f-SMRMF on squared distances, with k neighbours each; row j is z_j."""
    distances = np.ascontiguousarray(neighbors.squared[:, : n_neighbors + 1])
    n, width = distances.shape
    delta = neighbor_smoothness(distances, n_neighbors)
    z = np.empty(n * width, distances.dtype)
    indptr = np.arange(0, n * width + 1, width)
    outside = np.full(n, np.inf, distances.dtype)
    solve_columns(indptr, distances.ravel(), delta, outside, z, np.empty_like(delta))
    return neighbor_graph(neighbors.indices[:, :width], z.reshape(n, width), n_columns)


def spectral_labels(
    X: np.ndarray,
    neighbors: Neighbors,
    n_neighbors: int,
    n_clusters: int,
    random_state: np.random.RandomState,
    pool: Pool,
) -> np.ndarray:
    """Cluster by the smoothest functions on the simplex graph."""
    W = symmetrize(simplex_graph(neighbors, n_neighbors))
    return graph_labels(X, W, n_clusters, random_state, pool, diffusion_steps=DIFFUSION_STEPS)
