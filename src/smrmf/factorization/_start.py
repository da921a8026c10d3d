"""The first G of the loop, which decides more than anything else how good the clusters are.

``spectral`` finds clusters of any shape on the simplex graph, f-SMRMF's own first Z, by the edges that many
clusterings agree on; ``kmeans`` finds round ones; ``nndsvd`` is the paper's non-negative SVD. The weights of
the loop are measured on the start, so that they do not depend on the unit of the data.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array

from smrmf._arrays import check_nonnegative, scale_to_safe_range
from smrmf._parallel import Pool, row_blocks
from smrmf._progress import NOBODY, Progress
from smrmf._validation import CONSTRAINTS, Interval, ParameterError, rounded
from smrmf.factorization._points import Problem
from smrmf.graph.consensus import consensus_labels, n_steps
from smrmf.graph.labels import indicator, kmeans_labels
from smrmf.kernels.nonnegative_svd import nonnegative_svd
from smrmf.kernels.prox import least_squares_basis
from smrmf.sharing import remember

# The first penalty, in units of one over the typical residual. A start that is a clustering is
# refined, and a large penalty keeps the loop near it; any other start is a rough direction, and a small
# penalty lets the loop move away from it.
PENALTY_TO_REFINE, PENALTY_TO_EXPLORE = 10.0, 0.01
# Of the spectral start: of k neighbours, and of twice as many.
GRAPHS = 2


class FirstPoints(NamedTuple):
    """The points that the loop begins with, and the state of the points slot that belongs to them.

    Those that were made for the loop alone may be scaled in place.
    """

    X: np.ndarray  # n x m
    state: Any = None
    for_the_loop_alone: bool = False


class Start(NamedTuple):
    """The first points divided by ``scale``, their first factors, and the weights measured on them."""

    scaled: Any  # n x m
    G: Any  # n x c, orthonormal if it is a clustering without empty clusters
    F: np.ndarray  # c x m
    scale: float
    unit: float  # of the loop's objective, in units of that of the data as they came
    lam: float
    mu: float
    points_state: Any = None
    votes: np.ndarray | None = None  # n x c, of the clusterings that the start has tried

    def without_points(self) -> Start:
        """Return what is needed after the loop."""
        return self._replace(scaled=self.scaled[:0].copy(), G=self.G[:0].copy())

    def check_weight(self, name: str, given: float, weight: float, unit: float, divided: float) -> float:
        """Return the weight of a term that a method adds; refuse one too far from lambda and mu.

        ``divided`` is the largest weight that the method divides by this one.
        """
        widest = widest_ratio(self.F.dtype)
        # Also where nothing is divided it stays a normal number.
        low = max(divided / widest, float(np.finfo(float).tiny))
        return check_weight(name, given, weight, (low, widest * min(self.mu, 1.0)), unit)


class FirstIndicator(NamedTuple):
    """The first G, and what the default start knows of its clusters: how firm they are, and the votes."""

    G: np.ndarray
    stability: float | None = None
    votes: np.ndarray | None = None


def n_parts_of_start(init: str | np.ndarray) -> int:
    """Return of how many parts of a start callbacks are told."""
    return n_steps(GRAPHS) if isinstance(init, str) and init == "spectral" else 0


def first_indicator(
    init: str | np.ndarray, penalty: float | str, problem: Problem, progress: Progress = NOBODY
) -> FirstIndicator:
    """Return the first G for a named start or a given array.

    With an automatic penalty, which measures the data in a unit of its own, a start that has a unit is
    brought to the size of an orthonormal one: only its directions count, whatever the unit of the data.
    """
    c, dtype = problem.sizes.n_clusters, problem.data.dtype
    if not isinstance(init, str) or init == "nndsvd":
        # The non-negative SVD of the data as given: reduced coordinates may be negative.
        G = remember(nonnegative_svd, problem.data, c) if isinstance(init, str) else init
        G = at_orthonormal_size(G) if isinstance(penalty, str) else G
        return FirstIndicator(np.ascontiguousarray(G, dtype=dtype))
    if init == "kmeans":
        return FirstIndicator(indicator(kmeans_labels(problem.reduced, c, problem.random_state), c, dtype))
    # The wide graph is made when its turn comes, and gone when it is over.
    graphs = (make() for make in (problem.graph, problem.wide_graph))
    nearest = problem.measured.squared[:, 0]
    step = progress.steps(n_steps(GRAPHS))
    found = consensus_labels(problem.points, nearest, graphs, c, problem.random_state, problem.pool, step)
    return FirstIndicator(indicator(found.labels, c, dtype), found.stability, found.votes)


def at_orthonormal_size(G: np.ndarray) -> np.ndarray:
    """Return G times what gives it the Frobenius norm of orthonormal columns; zeros stay zeros."""
    if G.dtype.kind != "f":
        G = G.astype(np.float64)
    elif G.dtype not in (np.float32, np.float64):  # half or extended precision
        G = G.astype(np.longdouble)
        G = (G / (np.abs(G).max() or 1)).astype(np.float64)
    # By a power of two first: the squares of the norm neither overflow nor vanish.
    G, _ = scale_to_safe_range(G)
    size = float(np.linalg.norm(G))
    return G * (G.shape[1] ** 0.5 / size) if size > 0 else G


def nndsvd(X: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return a first G without negative entries, the paper's start: the plain non-negative SVD.

    What ``init="nndsvd"`` starts from, exact and unscaled (paper note 13); change it as you like and give
    it to ``init``.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Points without negative entries.
    n_clusters : int
        How many columns, at most the smaller side of X.

    Returns
    -------
    array of shape (n_samples, n_clusters)
        One column per singular pair, the largest first, in the precision of X.

    Examples
    --------
    >>> import numpy as np
    >>> nndsvd(np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 1.0]]), 2).round(3)
    array([[1.342, 0.   ],
           [1.789, 0.   ],
           [0.   , 1.   ]])
    """
    # For users: a fit has passed the door before, and takes the kernel itself.
    X = check_array(X, dtype=[np.float64, np.float32], input_name="X")
    check_nonnegative("nndsvd", float(X.min()))
    limit = min(X.shape)
    if not 1 <= n_clusters <= limit:
        raise ValueError(
            f"n_clusters={n_clusters} must be at least 1 and at most min(n_samples, n_features)={limit}."
        )
    return remember(nonnegative_svd, X, n_clusters)


def widest_ratio(dtype: np.dtype) -> float:
    """Return how far apart two weights of the loop may be."""
    return float(np.finfo(dtype).max) ** 0.5


def check_weight(name: str, given: float, weight: float, limits: tuple[float, float], unit: float) -> float:
    """Return the weight of the loop that was given in a unit of the user; refuse one outside of the limits.

    Beyond them products of weights leave the range of the numbers, and nothing finite comes out of the loop.
    """
    low, high = limits
    if low <= weight <= high:
        return weight
    way, limit = ("lower it to", high) if weight > high else ("raise it to", low)
    # In the unit of the user the limit may be no value that the parameter can have.
    advised = rounded(limit * unit, up=weight < low)
    possible = any(constraint.accepts(advised) for constraint in CONSTRAINTS.get(name, (Interval(),)))
    advice = f"{way} {advised:g}, " if possible else ""
    raise ParameterError(
        f"{name}={given:g} leaves the range of the numbers with this data and the other weights: {advice}"
        f"use {name}='auto', or scale the data to entries of about 1."
    )


def is_indicator(G: np.ndarray) -> bool:
    """Tell whether every point belongs to at most one column of a non-negative G."""
    return bool(G.min() >= 0) and bool(((G > 0).sum(axis=1) <= 1).all())


def lengths(X: np.ndarray) -> np.ndarray:
    """Return the length of every row."""
    return np.linalg.norm(X, axis=1)


def weigh(
    first: FirstPoints,
    found: FirstIndicator,
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
    X, G = first.X, found.G
    # Plain floats throughout: NumPy's float64 scalars would promote float32 data.
    n, c = G.shape
    norm = float(np.linalg.norm(X))
    scale = scale_of(norm, c, penalty)
    scaled = np.divide(X, X.dtype.type(scale), out=X if first.for_the_loop_alone else None)
    F = least_squares_basis(G, scaled, pool)
    parts = pool.map(lambda rows: lengths(scaled[rows] - G[rows] @ F), row_blocks(*X.shape))
    fit = FirstFit(n, norm, scale, float(np.median(np.concatenate(parts))), is_indicator(G), X.dtype)
    unit, lam, mu = weights_of(fit, c, manifold_weight, penalty, magnitude)
    return Start(scaled, G, F, scale, unit, lam, mu, first.state, found.votes)


def scale_of(norm: float, n_clusters: int, penalty: float | str) -> float:
    """Return what the points are divided by."""
    return norm / n_clusters**0.5 if isinstance(penalty, str) and norm > 0 else 1.0


class FirstFit(NamedTuple):
    """How well the start fits the points: all that the weights of the loop depend on.

    ``residual`` is the median length of the residuals of the scaled points, ``norm`` that of all points
    before.
    """

    n_samples: int
    norm: float
    scale: float
    residual: float
    refines: bool
    dtype: np.dtype


def weights_of(
    fit: FirstFit, n_clusters: int, manifold_weight: float | str, penalty: float | str, magnitude: float
) -> tuple[float, float, float]:
    """Return the unit of the loop's objective, lambda and mu."""
    n, scale = fit.n_samples, fit.scale
    # If most points fit exactly, 1e-6 of the root mean square length stands for the residual, as the penalty
    # divides by it; data of zeros have neither.
    typical = max(fit.residual, 1e-6 * fit.norm / scale / n**0.5) or 1.0
    # The loss is about n times the typical residual; tr(G' L G) is at most c times the largest eigenvalue of
    # L, as G'G = I. Their ratio is the unit of lambda.
    lam = typical * n / n_clusters
    # Their ratios are multiplied with the data and with each other.
    widest = widest_ratio(fit.dtype)
    mu = (PENALTY_TO_REFINE if fit.refines else PENALTY_TO_EXPLORE) / typical
    if not isinstance(penalty, str):
        limits = 1 / widest, widest
        mu = check_weight("penalty", penalty, float(penalty) * magnitude, limits, 1 / magnitude)
    if not isinstance(manifold_weight, str):
        raw, limits = float(manifold_weight) / magnitude / scale, (0.0, widest * min(mu, 1.0))
        lam = check_weight("manifold_weight", manifold_weight, raw, limits, magnitude * scale)
    # A weight next to nothing moves nothing, and is divided by.
    lam = lam if lam >= 1 / widest else 0.0
    # The unit is divided by, and may vanish where the data next to do.
    return scale * magnitude or math.ulp(0.0), lam, mu
