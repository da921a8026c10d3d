"""k-DPP: draw a random set of rows that are unlike each other."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Tags, check_random_state

from smrmf._arrays import check_memory
from smrmf._estimator import FitReporter, Fitted
from smrmf._parallel import Pool
from smrmf._validation import AUTO, Constraints, Interval, OneOf, ParameterError, count_exemplars
from smrmf.graph.exemplars import best_first
from smrmf.kernels.distances import squared_norms
from smrmf.kernels.principal_axes import Axes, eigenpairs, gram, principal_axes
from smrmf.kernels.scaling import matmul, unit_rows
from smrmf.selection._base import SelectionInput, Selector
from smrmf.selection._determinantal import draw_rows, draw_values, log_elementary, random_complement

# What "auto" adds to the diagonal, as a share of its mean, where the rank is too small.
AUTO_REGULARIZATION = 1e-3
# Allowed asymmetry and negative eigenvalues of a given kernel, relative to its largest entry or eigenvalue.
KERNEL_TOLERANCE = 1e-5
# This many points suffice to estimate the median distance.
MANY_POINTS = 1000


class LowRankSimilarity(NamedTuple):
    """``L = C C' / scale + added I``, where row j of C is row j of the axes times its length."""

    axes: Axes
    lengths: np.ndarray
    scale: float
    added: float

    def log_values(self) -> np.ndarray:
        """Return the logarithms of the positive eigenvalues, those that belong to columns of C first."""
        values = self.axes.energies / self.scale + self.added
        # added I gives all n - rank directions outside the span of C the same eigenvalue.
        beyond = len(self.lengths) - len(values) if self.added else 0
        return np.log(np.concatenate([values, np.full(beyond, self.added)]))

    def vectors(self, which: np.ndarray | slice, pool: Pool) -> np.ndarray:
        """Return eigenvectors that belong to columns of C."""
        # Columns of C are orthogonal with squared lengths e: divided by sqrt(e), eigenvectors of C C'.
        basis = self.axes.basis[:, which] / np.sqrt(self.axes.energies[which])
        vectors = self.lengths[:, None] * matmul(self.axes.points, basis, pool)
        return np.linalg.qr(vectors)[0]  # rounding has spoilt those of small eigenvalues

    def log_volume(self, rows: np.ndarray) -> float:
        """Return the logarithm of the determinant of L on some rows."""
        C = self.lengths[rows, None] * (self.axes.points[rows] @ self.axes.basis)
        return float(np.linalg.slogdet(C @ C.T / self.scale + self.added * np.eye(len(rows)))[1])


class KDPP(Selector):
    """Draw a random set of rows that are unlike each other: k-determinantal point process.

    Draws a set Y of exactly k rows with probability ``det(L_Y) / e_k(L)``, where L holds the similarities of
    the points: the squared volume that the rows of Y span, which is small when any two are alike and zero
    for duplicates.

    Pick it to sample varied points without a model of the data, or to repeat an experiment over many
    equally good selections. The sample is exact. With linear similarities it costs
    O(n m min(n, m) + n k^2), with the others O(n^3); the polynomials e_k are kept as logarithms, as a few
    hundred rows make them larger than any floating-point number.

    Parameters
    ----------
    exemplars : float or int, default=0.1
        How many rows to choose, k: a share of the points or a count.
    kernel : {"cosine", "linear", "rbf", "precomputed"}, default="cosine"
        The similarities L: cosines; inner products, where long rows are more probable; ``exp(-d^2 / s)``
        with s the median squared distance (between at most a thousand points evenly spread over the
        rows); or X itself, which then is a symmetric positive semi-definite array.
    regularization : float or "auto", default="auto"
        Share of the mean similarity of a point with itself that is added to the diagonal of L.
        No set larger than the rank of L, at most the number of features where L is linear, has any volume:
        "auto" adds 0.001 for those, and nothing otherwise. The more, the more uniform the choice.
    random_state : int, RandomState or None, default=None
        Seed of the draw.
    n_jobs : int or None, default=-1
        Threads; the result does not depend on it.

    Attributes
    ----------
    exemplar_indices_ : array of shape (n_exemplars,)
        The rows chosen, highest score first.
    exemplar_scores_ : array of shape (n_exemplars,)
        Leverage of each in the space whose volume is sampled, between 0 and 1: the probability that the
        row is drawn from this space.
    regularization_ : float
        The share that is added to the diagonal; 0.0 if none is needed or asked for.
    log_likelihood_ : float
        Logarithm of the probability of the set among all of its size.
    n_features_in_ : int
        Features seen by ``fit``.
    feature_names_in_ : array
        Their names, if all are strings.

    References
    ----------
    Kulesza, Taskar: k-DPPs: fixed-size determinantal point processes, ICML 2011.

    Kulesza, Taskar: Determinantal point processes for machine learning, Foundations and Trends in Machine
    Learning 5(2-3), 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from smrmf import KDPP
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> selector = KDPP(exemplars=2, random_state=0).fit(X)  # never two of the same direction
    >>> sorted(int(row) // 2 for row in selector.exemplar_indices_)
    [0, 1]
    >>> round(float(np.exp(selector.log_likelihood_)), 6)
    0.25
    """

    _constraints: ClassVar[Constraints] = {
        "kernel": (OneOf("cosine", "linear", "rbf", "precomputed"),),
        "regularization": (Interval(0), AUTO),
    }
    regularization_: float
    log_likelihood_: float

    def __init__(
        self,
        exemplars: float = 0.1,
        *,
        kernel: str = "cosine",
        regularization: float | str = "auto",
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.exemplars = exemplars
        self.kernel = kernel
        self.regularization = regularization
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _prepare(self, X: np.ndarray | sp.csr_array) -> tuple[SelectionInput, int]:
        n = X.shape[0]
        count = count_exemplars(self.exemplars, n)
        side = min(X.shape) if self.kernel in ("cosine", "linear") else n
        check_memory(
            "KDPP",
            8 * (5 * side * side + 4 * n * count),
            f"5 arrays of {side} x {side} and 4 of {n} x {count}",
            "choose fewer exemplars, or from fewer points",
        )
        if self.kernel == "precomputed":
            _check_symmetric(X)
        return SelectionInput(X, count), count

    def _solve(self, given: SelectionInput, pool: Pool, report: FitReporter) -> Fitted:
        random_state = check_random_state(self.random_state)
        similarity = self._regularized(*_similarities(given.X, self.kernel, pool), given.n_exemplars)
        log_values = similarity.log_values()
        # Two stages (Kulesza, Taskar): draw eigenvectors by their values, then rows by the space that these
        # span. In logarithms, as e_k overflows (paper note 46).
        table = log_elementary(log_values, given.n_exemplars)
        basis = _basis(similarity, draw_values(log_values, table, random_state), random_state, pool)
        # Squared row norms of an orthonormal basis, the diagonal of the projection: at most 1 up to rounding.
        leverage = np.minimum(squared_norms(basis), 1.0)
        drawn: list[int] = []

        def attributes() -> dict[str, Any]:
            # Ties of the leverage go to the lower index, not to the order of the draw.
            rows = np.sort(np.array(drawn, dtype=np.intp))
            rows = rows[best_first(leverage[rows], len(rows))]
            return {
                "exemplar_indices_": rows,
                "exemplar_scores_": leverage[rows].astype(given.X.dtype),
                "regularization_": similarity.added,
                "log_likelihood_": similarity.log_volume(rows) - float(table[-1, len(rows)]),
            }

        for row in draw_rows(basis, random_state, pool):
            drawn.append(row)
            if report({"n_iter": len(drawn), "n_exemplars": len(drawn)}, attributes):
                break
        return Fitted(attributes(), [])

    def _regularized(self, axes: Axes, lengths: np.ndarray, count: int) -> LowRankSimilarity:
        """Return the kernel with a mean diagonal of one, and its regularisation."""
        rank = len(axes.energies)
        if self.regularization != "auto":
            added = float(self.regularization)
        else:
            added = AUTO_REGULARIZATION if count > rank else 0.0
        if count > rank and added == 0:
            raise ParameterError(
                f"exemplars={count} is more than the rank of the kernel, {rank}, so that no choice has any "
                f"probability: ask for at most {rank}, or set regularization='auto'."
            )
        # The trace of C C' is the sum of its eigenvalues. A scale multiplies all det(L_Y) by
        # the same factor, so without ``added`` it changes no probability.
        scale = float(axes.energies.sum()) / len(lengths) if rank else 1.0
        return LowRankSimilarity(axes, lengths, scale, added)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _basis(
    similarity: LowRankSimilarity, drawn: np.ndarray, random_state: np.random.RandomState, pool: Pool
) -> np.ndarray:
    """Return the eigenvectors drawn; those beyond the rank of C span a random part of what C leaves out.

    All of these have the same eigenvalue, so any orthonormal basis of their space will do, also a random one.
    """
    rank = len(similarity.axes.energies)
    inside = drawn[drawn < rank]
    if len(inside) == len(drawn):
        return similarity.vectors(inside, pool)
    vectors = similarity.vectors(slice(None), pool)
    beyond = random_complement(vectors, len(drawn) - len(inside), random_state)
    return np.hstack([vectors[:, inside], beyond])


def _similarities(X: np.ndarray | sp.csr_array, kernel: str, pool: Pool) -> tuple[Axes, np.ndarray]:
    """Return rows C with the similarities as their inner products: axes of unit rows, and their lengths."""
    same = np.ones(X.shape[0])
    if kernel in ("cosine", "linear"):
        unit, lengths = unit_rows(X)
        lengths = lengths if kernel == "linear" else same
        return principal_axes(unit, lengths, pool), lengths
    L = _gaussian(X, pool) if kernel == "rbf" else _given(X)
    energies, vectors, smallest = eigenpairs(L.copy(), len(L))
    largest = max(energies.max(initial=0), -smallest)
    if kernel == "precomputed" and smallest < -KERNEL_TOLERANCE * largest:
        raise ValueError(
            f"X has a negative eigenvalue, {smallest / largest:.2g} of the largest, but with "
            "kernel='precomputed' it must be positive semi-definite: pass similarities, such as inner "
            "products or sklearn.metrics.pairwise.rbf_kernel, not distances."
        )
    # L V / sqrt(E) = V sqrt(E) = C, with C C' = L: the same form as for points, with L as the points.
    return Axes(L, vectors / np.sqrt(energies), energies), same


def _gaussian(X: np.ndarray | sp.csr_array, pool: Pool) -> np.ndarray:
    """Evaluate ``exp(-d^2 / s)``, s the median squared distance, for all pairs of rows."""
    X = X.astype(np.float64) / (float(abs(X).max()) or 1.0)
    if not sp.issparse(X):
        # Far from the origin ||x||^2 + ||y||^2 - 2 x'y loses digits. Sparse rows would become dense.
        X -= np.median(X, axis=0)
    squared = gram(X, pool)
    norms = squared.diagonal().copy()
    squared *= -2
    squared += norms[:, None]
    squared += norms
    # Cancellation leaves small negative numbers between near points.
    np.maximum(squared, 0, out=squared)
    step = -(-len(squared) // MANY_POINTS)
    some = squared[::step, ::step]
    width = np.median(some[np.triu_indices(len(some), 1)]) if len(some) > 1 else 0.0
    if width == 0:  # most points are duplicates
        width = squared.mean() or 1.0
    squared /= -width
    return np.exp(squared, out=squared)


def _given(X: np.ndarray | sp.csr_array) -> np.ndarray:
    """Return a given kernel in units of its largest entry, exactly symmetric."""
    L = np.array(sp.csr_array(X).toarray() if sp.issparse(X) else X, dtype=np.float64)
    L /= abs(L).max() or 1.0
    return (L + L.T) / 2


def _check_symmetric(X: np.ndarray | sp.csr_array) -> None:
    """Refuse an array that is not square and symmetric."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X has shape {X.shape}, but with kernel='precomputed' it must be square, the similarities of "
            "all pairs of points: pass these, or the points with another kernel."
        )
    relative = X / (float(abs(X).max()) or 1.0)
    difference = abs(relative - relative.T).max()
    if difference > KERNEL_TOLERANCE:
        raise ValueError(
            f"X differs from its transpose by {difference:.2g} of its largest entry, but with "
            "kernel='precomputed' it must be symmetric: pass (X + X.T) / 2."
        )
