"""IPM: rows whose span holds most of the data, by iterative projection and matching."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh_tridiagonal
from sklearn.utils import Tags

from smrmf._arrays import check_memory
from smrmf._estimator import FitReporter, Fitted
from smrmf._parallel import Pool
from smrmf._validation import Constraints, OneOf, count_exemplars
from smrmf.kernels.distances import squared_norms
from smrmf.kernels.principal_axes import Axes, orthogonal_remainder, principal_axes
from smrmf.kernels.scaling import divide_by_largest, matmul, unit_rows
from smrmf.selection._base import SelectionInput, Selector

# A remainder of a squared length below this share of the whole is rounding.
NOTHING_LEFT = 1e-12
# Scores this close are equal: rounding must not decide between them.
SAME_SCORE = 1 - 1e-8
# Steps of one Lanczos run, which bound its memory; a further run starts from the best direction so far.
LANCZOS_STEPS = 250
LANCZOS_RUNS = 20
CHECK_EVERY = 8
# A direction is found when its angle to the true one is this small, or no more than rounding.
ANGLE = 1e-9
PRODUCT_ROUNDING = 1e-14


class Pick(NamedTuple):
    """A row, the share of all squared lengths by which it extends the span, and the restarts before it."""

    row: int
    share: float
    n_restarts: int


class IPM(Selector):
    """Choose the rows whose span holds most of the data: iterative projection and matching.

    Solves, greedily, ``max ||projection of X on the span of its rows S||_F^2`` over sets S of a given size:
    find the direction in which the remainder of the data is longest, choose the row best aligned with it,
    remove the span of that row from all of them, and repeat.

    Pick it for a deterministic, ranked selection that covers the main directions of the data, when the
    points are not to be grouped. Directions are seen from the origin: centre the data first if their mean
    says nothing. The choice is that of the plain algorithm, which decomposes the residual of all data for
    every pick. Here the n points of m features are brought to their principal axes once, in
    O(n m min(n, m)); no residual is ever formed, and a pick costs O(n m) (the entries, if sparse) and
    some products with the earlier ones.

    Parameters
    ----------
    exemplars : float or int, default=0.1
        How many rows to choose: a share of the points or a count.
    matching : {"original", "residual"}, default="original"
        What is compared with the longest direction: the points themselves, as the authors' program does, or
        what is left of them, as their article says. The second prefers points that are nearly explained.
    n_jobs : int or None, default=-1
        Threads; the result does not depend on it.

    Attributes
    ----------
    exemplar_indices_ : array of shape (n_exemplars,)
        The rows chosen, in the order of choice.
    exemplar_scores_ : array of shape (n_exemplars,)
        Share of the squared length of all points, ``||X||_F^2``, by which each choice extended the span;
        their sum is the share that the span holds. After a restart the shares are of the points that were
        left.
    n_restarts_ : int
        Number of times that the chosen rows span all the data, after which the choice starts again among the
        others. Rows of zeros come last.
    n_features_in_ : int
        Features seen by ``fit``.
    feature_names_in_ : array
        Their names, if all are strings.

    References
    ----------
    Zaeemzadeh, Joneidi, Rahnavard, Shah: Iterative projection and matching: finding structure-preserving
    representatives and its application to computer vision, CVPR 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from smrmf import IPM
    >>> X = np.array([[9.0, 0.0], [8.0, 1.0], [7.0, 0.0], [0.0, 2.0], [1.0, 3.0]])
    >>> selector = IPM(exemplars=2).fit(X)
    >>> selector.exemplar_indices_
    array([0, 3])
    >>> round(float(selector.exemplar_scores_.sum()), 6)
    1.0
    """

    _constraints: ClassVar[Constraints] = {"matching": (OneOf("original", "residual"),)}
    n_restarts_: int

    def __init__(
        self, exemplars: float = 0.1, *, matching: str = "original", n_jobs: int | None = -1
    ) -> None:
        self.exemplars = exemplars
        self.matching = matching
        self.n_jobs = n_jobs

    def _prepare(self, X: np.ndarray | sp.csr_array) -> tuple[SelectionInput, int]:
        n_exemplars = count_exemplars(self.exemplars, X.shape[0])
        side = min(X.shape)
        check_memory(
            "IPM",
            5 * 8 * side * side,
            f"5 arrays of {side} x {side}",
            "reduce the features first, for instance with sklearn.decomposition.TruncatedSVD",
        )
        return SelectionInput(X, n_exemplars), n_exemplars

    def _solve(self, given: SelectionInput, pool: Pool, report: FitReporter) -> Fitted:
        picks: list[Pick] = []

        def attributes() -> dict[str, Any]:
            return {
                "exemplar_indices_": np.array([pick.row for pick in picks], dtype=np.intp),
                "exemplar_scores_": np.array([pick.share for pick in picks], dtype=given.X.dtype),
                "n_restarts_": picks[-1].n_restarts,
            }

        unit, lengths = unit_rows(given.X)
        for pick in _ranked_rows(unit, lengths, self.matching == "residual", pool):
            picks.append(pick)
            stop = report({"n_iter": len(picks), "n_exemplars": len(picks)}, attributes)
            if stop or len(picks) == given.n_exemplars:
                break
        return Fitted(attributes(), [])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _ranked_rows(
    unit: np.ndarray | sp.csr_array, lengths: np.ndarray, residual: bool, pool: Pool
) -> Iterator[Pick]:
    """Rank all rows: once those chosen span the others, start again among these."""
    rows = np.arange(len(lengths))
    n_restarts = 0
    while lengths.any():
        # A pass ends at the rank: beyond it rounding would decide what is chosen (paper note 43).
        axes = principal_axes(unit, lengths, pool)
        taken = []
        for place, share in _one_pass(axes, lengths, residual, pool):
            taken.append(place)
            yield Pick(int(rows[place]), share, n_restarts)
        left = np.delete(np.arange(len(rows)), taken)
        unit = _shorten(unit, axes, lengths, pool)[left]
        rows, lengths = rows[left], lengths[left]
        lengths = divide_by_largest(lengths) if len(left) else lengths
        n_restarts += 1
    for row in rows:
        yield Pick(int(row), 0.0, n_restarts)


def _shorten(
    unit: np.ndarray | sp.csr_array, axes: Axes, lengths: np.ndarray, pool: Pool
) -> np.ndarray | sp.csr_array:
    """Return the rows in coordinates of the axes, if these are much fewer and lose no length.

    Data of low rank restart often, and every restart decomposes the rows again.
    """
    n, m = unit.shape
    # Coordinates are dense: of sparse rows they may not take more than the Gram matrix does.
    too_many = sp.issparse(unit) and n * len(axes.energies) > min(n, m) ** 2
    if too_many or 2 * len(axes.energies) > m:
        return unit
    short = matmul(axes.points, axes.basis, pool)
    kept = squared_norms(short)
    return short if (np.abs(kept - 1)[lengths > 0] < NOTHING_LEFT).all() else unit


def _one_pass(axes: Axes, lengths: np.ndarray, residual: bool, pool: Pool) -> Iterator[tuple[int, float]]:
    """Choose rows until they span all the others; give each with the share by which it extends the span.

    On the principal axes the data have the second moment ``diag(energies)``, and what is left of them has
    ``P diag(energies) P``, where P takes the span of the rows chosen away: only the orthonormal basis of
    that grows. The longest direction lies outside it, so that a point and what is left of it have the
    same product with that direction.
    """
    rank = len(axes.energies)
    span = np.empty((rank, rank))
    total = left = axes.energies.sum()
    free = lengths > 0
    remainder = np.ones(len(lengths))
    # Random, with a part along every axis: the last direction may lie in an invariant subspace, which a
    # Lanczos iteration never leaves, and as a start it saves no steps.
    start = np.random.RandomState(0).normal(size=rank) * np.sqrt(axes.energies)
    for t in range(rank):
        direction = longest_direction(axes.energies, span[:t], start)
        # The cosine with the direction, as rows have unit length; its sign is arbitrary.
        score = np.abs(matmul(axes.points, axes.basis @ direction, pool))
        if residual:
            # Cosines of the remainders. When one direction is left all are 1, up to rounding of short ones.
            score = np.minimum(score / np.sqrt(np.where(remainder > NOTHING_LEFT, remainder, np.inf)), 1)
        score[~free] = -1
        # Ties, and scores that differ by rounding, go to the lower index.
        row = int(np.flatnonzero(score >= SAME_SCORE * score.max())[0])
        free[row] = False
        span[t] = orthogonal_remainder(span[:t], (axes.points[[row]] @ axes.basis)[0])
        # The squared length of the data along the new direction s: s' diag(energies) s.
        gain = axes.energies @ span[t] ** 2
        yield row, float(gain / total)
        left -= gain
        if left <= NOTHING_LEFT * total:
            return
        if residual:
            remainder -= matmul(axes.points, axes.basis @ span[t], pool) ** 2


def longest_direction(energies: np.ndarray, span: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Solve ``max u' diag(energies) u`` over unit vectors u orthogonal to the rows of ``span``."""
    n_steps = min(len(energies) - len(span), LANCZOS_STEPS)
    for _ in range(LANCZOS_RUNS):
        start, settled = _lanczos(energies, span, orthogonal_remainder(span, start), n_steps)
        if settled:
            break
    return start


def _lanczos(
    energies: np.ndarray, span: np.ndarray, vector: np.ndarray, n_steps: int
) -> tuple[np.ndarray, bool]:
    """Return the best direction in a Krylov space of ``n_steps`` dimensions, and whether it is exact enough.

    The operator is ``P diag(energies) P``, with P the projection off the rows of ``span``.
    """
    basis = np.empty((n_steps, len(vector)))
    diagonal, beside = np.empty(n_steps), np.empty(n_steps)
    for step in range(n_steps):
        basis[step] = vector
        product = energies * vector
        rounding = PRODUCT_ROUNDING * np.linalg.norm(product)
        diagonal[step] = vector @ product
        known = basis[: step + 1]
        # Full orthogonalisation, twice for the known vectors: the three-term recurrence of Lanczos would let
        # rounding errors grow with every step, and the largest eigenvalue would appear in copies.
        for others in (known, span, known):
            product -= (others @ product) @ others
        beside[step] = np.linalg.norm(product)
        last = step == n_steps - 1 or beside[step] <= rounding
        if last or step % CHECK_EVERY == CHECK_EVERY - 1:
            values, vectors = eigh_tridiagonal(
                diagonal[: step + 1], beside[:step], select="i", select_range=(max(step - 1, 0), step)
            )
            # ||A u - value u|| is beside[step] times the last entry of the eigenvector. Divided by the gap of
            # the two largest eigenvalues it estimates the angle to the true direction.
            error = beside[step] * abs(vectors[-1, -1])
            settled = bool(error <= max(ANGLE * (values[-1] - values[0]), rounding))
            if settled or last:
                break
        vector = product / beside[step]
    return vectors[:, -1] @ known, settled
