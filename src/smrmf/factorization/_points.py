"""From data and parameters to the numbers the loop needs: sizes, start, and scale-free weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from smrmf._parallel import Pool
from smrmf._validation import ParameterError, check_n_clusters, check_n_neighbors, count_exemplars
from smrmf.factorization._loop import least_squares_basis
from smrmf.factorization._start import indicator, spectral_labels
from smrmf.graph.exemplars import Neighborhoods
from smrmf.graph.neighbors import Neighbors
from smrmf.graph.spectral import kmeans_labels
from smrmf.kernels.nonnegative_svd import nndsvd
from smrmf.sharing import remember

DEFAULT_NEIGHBORS = 10
# The first penalty, in units of one over the typical residual. A start that is a clustering is
# refined, and a large penalty keeps the loop from forgetting it; any other start is only a direction,
# and a small penalty lets the loop explore.
REFINE, EXPLORE = 10.0, 0.01


@dataclass(frozen=True)
class Sizes:
    """The whole numbers of a problem, checked against each other."""

    n_samples: int
    n_clusters: int
    n_neighbors: int
    n_exemplars: int

    @classmethod
    def from_parameters(
        cls,
        n_samples: int,
        n_clusters: int,
        n_neighbors: int | str,
        exemplars: float,
        usual_neighbors: int = DEFAULT_NEIGHBORS,
    ) -> Sizes:
        """Resolve words and fractions; refuse what does not fit the data."""
        n = n_samples
        check_n_clusters(n_clusters, n)
        if isinstance(n_neighbors, str):
            wanted = usual_neighbors if n_neighbors == "auto" else int(np.sqrt(n))
            n_neighbors = min(wanted, n - 1)
        else:
            check_n_neighbors(n_neighbors, n, "lower n_neighbors or use 'auto'")
        # A share never leaves a cluster without an exemplar.
        count = count_exemplars(exemplars, n, n_clusters)
        return cls(n, n_clusters, int(n_neighbors), count)


@dataclass(frozen=True)
class Weights:
    """The scale of the data and the weights of the scaled problem.

    The loop runs on ``X / scale``. With an automatic penalty the scale makes ``||X||_F = sqrt(c)``, which
    gives the three terms of the G step about equal weight for data of any unit and any number of
    points; with the paper's fixed penalty it is one.
    """

    scale: float
    lam: float
    mu: float

    @classmethod
    def from_start(
        cls,
        X: np.ndarray,
        G: np.ndarray,
        manifold_weight: float | str,
        penalty: float | str,
        magnitude: float,
        pool: Pool,
    ) -> Weights:
        """Measure the residuals of the start and set what is left to the library.

        Given weights are meant for ``X * magnitude``, the data before they were tamed.
        """
        # Plain floats throughout: NumPy's float64 scalars would promote float32 data.
        n, c = G.shape
        norm = float(np.linalg.norm(X))
        residuals = np.linalg.norm(X - G @ least_squares_basis(G, X, pool), axis=1)
        # Points that fit exactly must not make the penalty infinite.
        typical = max(float(np.median(residuals)), 1e-6 * norm / n**0.5) or 1.0
        # The trace is bounded by about c while the loss grows with n: their ratio is the unit.
        lam = typical * n / c if isinstance(manifold_weight, str) else float(manifold_weight) / magnitude
        if not isinstance(penalty, str):
            return cls(1.0, lam, float(penalty) * magnitude)
        scale = norm / c**0.5 if norm > 0 else 1.0
        strength = REFINE if is_clustering(G) else EXPLORE
        return cls(scale, lam / scale, strength * scale / typical)


def is_clustering(G: np.ndarray) -> bool:
    """Tell whether every point belongs to at most one column of a non-negative G."""
    return bool(G.min() >= 0) and bool(((G > 0).sum(axis=1) <= 1).all())


@dataclass(frozen=True)
class Problem:
    """All that an affinity may need to know: X is the data with fewer coordinates.

    ``projection`` is set by a method that factorises projected points, ``X @ projection``, instead.
    """

    data: np.ndarray
    X: np.ndarray
    sizes: Sizes
    neighbors: Neighbors
    magnitude: float
    random_state: np.random.RandomState
    pool: Pool
    projection: np.ndarray | None = None

    @cached_property
    def view(self) -> np.ndarray:
        """Return what the loop factorises at first."""
        return self.X if self.projection is None else self.pool.matmul(self.X, self.projection)

    def neighborhoods(self, rule: Any, where: str, n_exemplars: int | None) -> Neighborhoods:
        """Return how exemplars and their neighbourhoods are chosen."""
        k = self.sizes.n_neighbors
        lists = self.neighbors.indices[:, :k] if where == "input" else None
        return Neighborhoods(n_exemplars, k, rule, lists)


def start_indicator(
    init: Any,
    X: np.ndarray,
    reduced: np.ndarray,
    neighbors: Neighbors,
    sizes: Sizes,
    random_state: np.random.RandomState,
    pool: Pool,
) -> np.ndarray:
    """Return the first G for a named start or a given array."""
    c = sizes.n_clusters
    if not isinstance(init, str):
        return np.ascontiguousarray(init, dtype=X.dtype)
    if init == "nndsvd":
        return remember(nndsvd, X, c)
    if init == "kmeans":
        labels = kmeans_labels(reduced, c, random_state)
    else:
        labels = spectral_labels(reduced, neighbors, sizes.n_neighbors, c, random_state, pool)
    return indicator(labels, c, X.dtype)


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
