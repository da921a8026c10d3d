"""Where the loop starts: it decides more than anything else how good the clusters are.

``spectral`` finds clusters of any shape on the simplex graph, f-SMRMF's own first Z; ``kmeans`` finds
round ones; ``nndsvd`` is the paper's non-negative SVD. The weights of the loop are measured on the start,
so that they do not depend on the unit of the data.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smrmf._parallel import Pool
from smrmf._validation import ParameterError
from smrmf.factorization._points import Problem, Sizes
from smrmf.graph.graphs import symmetrize
from smrmf.graph.spectral import graph_labels, kmeans_labels
from smrmf.kernels.nonnegative_svd import nndsvd
from smrmf.kernels.prox import least_squares_basis
from smrmf.sharing import remember

# Steps of diffusion on the graph: eigenvectors count by their eigenvalue to this power, so the
# least smooth ones, which are mostly noise, count least. Two to ten make no difference to speak of.
DIFFUSION_STEPS = 5
# The first penalty, in units of one over the typical residual. A start that is a clustering is
# refined, and a large penalty keeps the loop from forgetting it; any other start is only a direction,
# and a small penalty lets the loop explore.
PENALTY_TO_REFINE, PENALTY_TO_EXPLORE = 10.0, 0.01


class Start(NamedTuple):
    """The points divided by ``scale``, their first factors, and the weights measured on them."""

    scaled: np.ndarray
    G: np.ndarray
    F: np.ndarray
    scale: float
    lam: float
    mu: float

    def balanced_weight(self, ratio: float) -> float:
        """Return the beta at which lambda / beta is ``ratio``."""
        return self.lam / ratio if self.lam > 0 else 1.0


def first_indicator(init: str | np.ndarray, problem: Problem) -> np.ndarray:
    """Return the first G for a named start or a given array."""
    c, dtype = problem.sizes.n_clusters, problem.data.dtype
    if not isinstance(init, str):
        return np.ascontiguousarray(init, dtype=dtype)
    if init == "nndsvd":
        return remember(nndsvd, problem.data, c)
    if init == "kmeans":
        return indicator(kmeans_labels(problem.reduced, c, problem.random_state), c, dtype)
    return indicator(spectral_labels(problem), c, dtype)


def spectral_labels(problem: Problem) -> np.ndarray:
    """Cluster by the smoothest functions on the simplex graph."""
    return graph_labels(
        problem.reduced,
        symmetrize(problem.representation),
        problem.sizes.n_clusters,
        problem.random_state,
        problem.pool,
        diffusion_steps=DIFFUSION_STEPS,
    )


def indicator(labels: np.ndarray, n_clusters: int, dtype: np.dtype) -> np.ndarray:
    """Return the orthonormal indicator of a clustering; an empty cluster is a column of zeros."""
    G = np.zeros((len(labels), n_clusters), dtype)
    sizes = np.bincount(labels, minlength=n_clusters)
    G[np.arange(len(labels)), labels] = 1 / np.sqrt(sizes[labels])
    return G


def is_indicator(G: np.ndarray) -> bool:
    """Tell whether every point belongs to at most one column of a non-negative G."""
    return bool(G.min() >= 0) and bool(((G > 0).sum(axis=1) <= 1).all())


def weigh(
    X: np.ndarray,
    G: np.ndarray,
    manifold_weight: float | str,
    penalty: float | str,
    magnitude: float,
    pool: Pool,
) -> Start:
    """Scale the points, measure the residuals of the start, and set the weights left to the library.

    With an automatic penalty the scale makes ``||X||_F = sqrt(c)``, which gives the three terms of the G
    step about equal weight for data of any unit and any number of points; with the paper's fixed
    penalty it is one. Given weights are meant for ``X * magnitude``, the data as they came.
    """
    # Plain floats throughout: NumPy's float64 scalars would promote float32 data.
    n, c = G.shape
    norm = float(np.linalg.norm(X))
    scale = norm / c**0.5 if isinstance(penalty, str) and norm > 0 else 1.0
    scaled = X / scale
    F = least_squares_basis(G, scaled, pool)
    residuals = np.linalg.norm(scaled - G @ F, axis=1)
    # Points that fit exactly must not make the penalty infinite.
    typical = max(float(np.median(residuals)), 1e-6 * norm / scale / n**0.5) or 1.0
    # The trace is bounded by about c while the loss grows with n: their ratio is the unit of lambda.
    automatic = typical * n / c
    lam = automatic if isinstance(manifold_weight, str) else float(manifold_weight) / magnitude / scale
    if isinstance(penalty, str):
        mu = (PENALTY_TO_REFINE if is_indicator(G) else PENALTY_TO_EXPLORE) / typical
    else:
        mu = float(penalty) * magnitude
    return Start(scaled, G, F, scale, lam, mu)


def check_init(init: Any, X: Any, sizes: Sizes) -> None:
    """Refuse a start that does not fit the data."""
    n, c = sizes.n_samples, sizes.n_clusters
    if isinstance(init, str):
        if init == "nndsvd" and X.min() < 0:
            raise ParameterError(
                f"init='nndsvd' needs data without negative values, but the smallest is {X.min():g}: "
                "use init='spectral' or scale the features to [0, 1]."
            )
        if init == "nndsvd" and c > min(X.shape):
            raise ParameterError(
                f"init='nndsvd' needs n_clusters={c} to be at most min(n_samples, n_features)="
                f"{min(X.shape)}: use init='spectral'."
            )
    elif init.shape != (n, c):
        raise ParameterError(
            f"init has shape {init.shape}, but must have shape (n_samples, n_clusters)=({n}, {c})."
        )
    elif not np.issubdtype(init.dtype, np.number) or not np.isfinite(init).all():
        raise ParameterError(f"init has {_first_not_finite(init)}: give finite numbers, or init='spectral'.")


def _first_not_finite(init: np.ndarray) -> str:
    if not np.issubdtype(init.dtype, np.number):
        return f"entries of type {init.dtype}"
    row, column = np.argwhere(~np.isfinite(init))[0]
    return f"{init[row, column]} at row {row}, column {column}"
