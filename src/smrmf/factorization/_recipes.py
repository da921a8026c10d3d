"""What the recipes of the variants share: dissimilarities, weights, and the paper's settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf._validation import Word
from smrmf.factorization._dissimilarity import (
    AbstractDissimilarity,
    EuclideanDissimilarity,
    KernelDissimilarity,
    Points,
)
from smrmf.factorization._points import Problem, Weights
from smrmf.graph.neighbors import neighbor_graph
from smrmf.kernels.distances import adaptive_gaussian, neighbor_bandwidth

BANDWIDTHS = Word(("distance", "squared-distance"))
DISSIMILARITIES = Word(("kernel", "euclidean", "sqeuclidean"))
NEIGHBORHOODS = Word(("affinity", "input"))

# The protocol of the paper's manifold methods (paper notes 9, 13 and 32). Its weights were tuned with
# labels over 1e-3, 1e-2, 1e-1, 1.
PAPER_SETTINGS: dict[str, Any] = {
    "exemplars": 0.1,
    "n_neighbors": "sqrt",
    "exemplar_rule": "norm",
    "init": "nndsvd",
    "penalty": 0.1,
    "penalty_growth": 1.05,
    "max_iter": 1000,
    "tol": 1e-4,
}


def make_dissimilarity(
    name: str, bandwidth: Any, mean_latent_width: bool, problem: Problem
) -> AbstractDissimilarity:
    """Return the named dissimilarity of the problem's points."""
    points = Points.from_data(problem.X, problem.neighbors, problem.sizes.n_neighbors, problem.pool)
    if name == "kernel":
        return KernelDissimilarity(points, bandwidth, mean_latent_width)
    return EuclideanDissimilarity.from_points(points, 1 if name == "euclidean" else 2)


def scaled_selection_weight(
    given: float | str, dissimilarity: AbstractDissimilarity, problem: Problem, weights: Weights
) -> float:
    """Return beta of the scaled problem; automatic, both terms of D-hat weigh about the same."""
    sizes = problem.sizes
    if not isinstance(given, str):
        return float(given) / (weights.scale * problem.magnitude)
    ratio = dissimilarity.balanced_ratio(sizes.n_samples, sizes.n_clusters)
    return weights.lam / ratio if weights.lam > 0 else 1.0


def heat_graph(problem: Problem, bandwidth: str) -> sp.csr_array:
    """Return the adaptive heat weights (4.9) of every point's nearest neighbours, one row per point."""
    k = problem.sizes.n_neighbors
    squared = problem.neighbors.squared[:, :k]
    width = neighbor_bandwidth(squared[:, -1], bandwidth)
    indices = np.ascontiguousarray(problem.neighbors.indices[:, :k])
    return neighbor_graph(indices, adaptive_gaussian(squared, width))
