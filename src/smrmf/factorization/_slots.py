"""What a method fills in: where the graph comes from, which points are factorised, which are exemplars.

The loop knows nothing else of a method. The variants differ here only:

========================  ==============================================================================
RMNMF, selective RMNMF    :class:`FixedAffinity`, a graph that never changes
SMRMF, -Euc, -NS          :class:`~smrmf.factorization._row_sparse.RowSparseAffinity`, (4.12) and (4.13)
f-SMRMF                   :class:`~smrmf.factorization._closed_form.ClosedFormAffinity`, (5.18)
AMRMF                     :class:`~smrmf.factorization._closed_form.AdaptiveAffinity`
APMF                      :class:`~smrmf.factorization._projected.ProjectedAffinity` and ``ProjectedPoints``
========================  ==============================================================================

Z is stored transposed (``Zt``), so that each simplex vector is contiguous in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from smrmf.graph.exemplars import ExemplarRule, Matrix, rank_exemplars

State = TypeVar("State")
# An array with a row for every point, or blocks of such rows that lie elsewhere.
Rows: TypeAlias = Any


class OutOfRangeError(FloatingPointError):
    """Numbers of the loop or of a slot come out as infinite; the fit says what to do."""


class GraphTerm(NamedTuple):
    """Symmetric weights for the Laplacian, and the affinity's own term of the objective.

    ``kept`` are the points whose neighbourhoods the graph is made of; None is all of them.
    """

    weights: Matrix  # n x n
    value: Any  # a number, which may be put off
    kept: Rows | None = None


class AbstractAffinity(ABC, Generic[State]):
    """Where the graph comes from. The object itself never changes; its state may, in place if need be."""

    @abstractmethod
    def init(self, X: Rows) -> tuple[State, GraphTerm]:
        """Return the first state and its graph, for the points that the loop starts with."""

    @abstractmethod
    def update(
        self, state: State, X: Rows, G: Rows, H: Rows, lam: float, mu: float
    ) -> tuple[State, GraphTerm | None]:
        """Return the next state and its graph; None says that graph and value are unchanged."""

    @abstractmethod
    def representation(self, state: State) -> Matrix:
        """Return Zt: row j holds how much each point represents point j."""


class PointsTerm(NamedTuple):
    """The points that are factorised, and their own term of the objective."""

    X: Rows
    value: float


class AbstractPoints(ABC, Generic[State]):
    """The points that are factorised: as they are, or a projection of them that is learned.

    The loop begins with the points of the start, and with the state that the start has for them.
    """

    @abstractmethod
    def update(
        self, state: State, Zt: Callable[[], Matrix], target: Callable[[], np.ndarray], mu: float
    ) -> tuple[State, PointsTerm | None]:
        """Move the points towards the target ``GF + E - L1/mu``; None says that nothing moved."""

    @abstractmethod
    def restore(self, state: State, F: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
        """Return F in the coordinates before projection, and fitted attributes of its own by public name."""


class AbstractExemplars(ABC):
    """Which points are reported to stand for the others."""

    @abstractmethod
    def attributes(self, Zt: Matrix, labels: np.ndarray) -> dict[str, Any]:
        """Return ``exemplar_indices_``, best first, ``exemplar_scores_``, and what else there is."""


@dataclass(frozen=True)
class Slots:
    """All that a method supplies to the loop."""

    affinity: AbstractAffinity[Any]
    points: AbstractPoints[Any]
    exemplars: AbstractExemplars


@dataclass(frozen=True)
class FixedAffinity(AbstractAffinity[None]):
    """A graph given once and for all (RMNMF), and the representation that goes with it."""

    weights: sp.csr_array
    Zt: sp.csr_array
    kept: np.ndarray | None = None

    def init(self, X: np.ndarray) -> tuple[None, GraphTerm]:
        # A fixed graph adds no term of its own to the objective.
        return None, GraphTerm(self.weights, 0.0, self.kept)

    def update(
        self, state: None, X: np.ndarray, G: np.ndarray, H: np.ndarray, lam: float, mu: float
    ) -> tuple[None, None]:
        return None, None

    def representation(self, state: None) -> sp.csr_array:
        return self.Zt


@dataclass(frozen=True)
class FixedPoints(AbstractPoints[None]):
    """The points as they are."""

    def update(
        self, state: None, Zt: Callable[[], Matrix], target: Callable[[], np.ndarray], mu: float
    ) -> tuple[None, None]:
        return None, None

    def restore(self, state: None, F: np.ndarray) -> tuple[np.ndarray, dict[str, Any]]:
        return F, {}


@dataclass(frozen=True)
class RankedExemplars(AbstractExemplars):
    """The points that represent the most, by one of the rules; without a count a few of every cluster.

    ``groups()`` tells which points are identical: of these one is enough among a few.
    """

    rule: ExemplarRule
    count: int | None
    groups: Callable[[], np.ndarray] | None = None

    def attributes(self, Zt: Matrix, labels: np.ndarray) -> dict[str, Any]:
        # Ranked even in SMRMF: tau bounds a sum of norms and does not count rows (paper note 7).
        groups = None if self.groups is None else self.groups()
        indices, scores = rank_exemplars(Zt, labels, self.count, self.rule, groups)
        return {"exemplar_indices_": indices, "exemplar_scores_": scores}


@dataclass(frozen=True)
class GivenExemplars(AbstractExemplars):
    """The points that a fitted selector has chosen; if it gives no scores, all have the score one."""

    selector: Any

    def attributes(self, Zt: Matrix, labels: np.ndarray) -> dict[str, Any]:
        indices = np.asarray(self.selector.exemplar_indices_)
        scores = getattr(self.selector, "exemplar_scores_", np.ones(len(indices)))
        return {"selector_": self.selector, "exemplar_indices_": indices, "exemplar_scores_": scores}


# What fillings promise, checked where the loop and the results take their answers.


def check_pair(returned: Any, kinds: tuple[type, ...], owner: object, method: str) -> tuple[Any, Any]:
    """Return a pair whose second part is of one of the kinds; refuse what else a filling has returned."""
    # A GraphTerm is a tuple of two as well, so its type is asked for and not its length alone.
    if type(returned) is tuple and len(returned) == 2 and isinstance(returned[1], kinds):
        return returned
    found = [type(part).__name__ for part in (returned if type(returned) is tuple else [returned])]
    wanted = " or ".join(kind.__name__ for kind in kinds)
    raise TypeError(
        f"{type(owner).__name__}.{method} returned {', '.join(found)}, but must return a pair whose second "
        f"part is {wanted}."
    )


def check_graph(weights: Any, n_samples: int, owner: str) -> None:
    """Refuse a graph that has no Laplacian; ``owner`` is the affinity that returned it."""
    if weights.shape != (n_samples, n_samples):
        raise ValueError(
            f"{owner} returned a graph of shape {weights.shape} for {n_samples} points: it must have one row "
            "and one column per point."
        )
    values = weights.data if sp.issparse(weights) else weights
    if (sp.issparse(weights) and weights.format != "csr") or values.dtype.kind != "f":
        raise ValueError(
            f"{owner} returned a graph as {type(weights).__name__} of {weights.dtype}: it must be an array "
            "or a CSR matrix of floating-point numbers."
        )
    if values.size and not 0 <= values.min() <= values.max() < np.inf:  # which NaN does not pass
        raise ValueError(f"{owner} returned a graph with weights that are negative or not finite.")
    # A random vector sees any difference between W and its transpose, at the price of two products.
    probe = np.random.RandomState(0).uniform(0.5, 1.5, n_samples).astype(weights.dtype)
    rows, columns = np.asarray(weights @ probe), np.asarray(weights.T @ probe)
    rounding = float(np.finfo(rows.dtype).eps) ** 0.5
    if not np.allclose(rows, columns, rtol=rounding, atol=rounding * float(np.abs(rows).max())):
        raise ValueError(f"{owner} returned a graph that is not symmetric: return (W + W.T) / 2.")


def check_points(moved: np.ndarray, X: np.ndarray, owner: str) -> None:
    """Refuse points that do not fit the factors; ``owner`` is the slot that returned them."""
    if moved.shape != X.shape:
        raise ValueError(
            f"{owner} returned points of shape {moved.shape}, but the loop began with points of shape "
            f"{X.shape}: they must keep it."
        )


def exemplar_attributes(exemplars: AbstractExemplars, Zt: Matrix, labels: np.ndarray) -> dict[str, Any]:
    """Ask which points to report; refuse an answer without rows and their scores."""
    found = exemplars.attributes(Zt, labels)
    rows, scores = (np.asarray(found.get(f"exemplar_{name}_", ())) for name in ("indices", "scores"))
    if not 0 < len(rows) == len(scores) or not np.isin(rows, np.arange(len(labels))).all():
        raise ValueError(
            f"{type(exemplars).__name__}.attributes must have exemplar_indices_, some of the rows 0 to "
            f"{len(labels) - 1}, and exemplar_scores_, as many numbers."
        )
    return found | {"exemplar_labels_": labels[rows]}
