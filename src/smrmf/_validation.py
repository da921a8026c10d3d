"""Checks of parameters before a fit: constraints written as a table, and sizes that fit the data.

Every refusal is one sentence with the value, the limit, and what to do instead.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

import numpy as np
import scipy.sparse as sp

DEFAULT_NEIGHBORS = 10
LONGEST_SHOWN = 100  # letters of a value in a sentence


class ParameterError(ValueError, TypeError):
    """A parameter has a value or a type that it cannot have; callers may expect either kind of error."""


@dataclass(frozen=True)
class Interval:
    """A finite number within limits; with ``above`` the lower limit itself is not allowed."""

    low: float | None = None
    high: float | None = None
    above: bool = False
    integer: bool = False

    def accepts(self, value: Any) -> bool:
        """Tell whether the value is such a number."""
        kind = numbers.Integral if self.integer else numbers.Real
        # True is an Integral to Python, but n_clusters=True is a mistake.
        if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
            return False
        try:
            number = float(value)
        except OverflowError:  # an integer beyond the largest float
            return False
        too_low = self.low is not None and (number <= self.low if self.above else number < self.low)
        too_high = self.high is not None and number > self.high
        return bool(np.isfinite(number)) and not too_low and not too_high

    def __str__(self) -> str:
        noun = "an integer" if self.integer else "a number"
        limits = []
        if self.low is not None:
            limits.append(f"above {self.low:g}" if self.above else f"of at least {self.low:g}")
        if self.high is not None:
            limits.append(f"at most {self.high:g}")
        return " ".join([noun, " and ".join(limits)]).strip()


class OneOf:
    """One of some words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def accepts(self, value: Any) -> bool:
        """Tell whether the value is one of the words."""
        return isinstance(value, str) and value in self.words

    def __str__(self) -> str:
        return " or ".join(repr(word) for word in self.words)


class InstanceOf:
    """An instance of some types, described in words."""

    def __init__(self, description: str, *types: Any) -> None:
        self.description = description
        self.types = types

    def accepts(self, value: Any) -> bool:
        """Tell whether the value is an instance."""
        return isinstance(value, self.types)

    def __str__(self) -> str:
        return self.description


class PairOf:
    """A tuple or list of two values that a constraint accepts, described in words."""

    def __init__(self, description: str, each: Interval) -> None:
        self.description = description
        self.each = each

    def accepts(self, value: Any) -> bool:
        """Tell whether the value is such a pair."""
        return isinstance(value, tuple | list) and len(value) == 2 and all(map(self.each.accepts, value))

    def __str__(self) -> str:
        return self.description


class GivenNeighbors:
    """Neighbours in one of the forms that people have them in; what they are is checked with the data."""

    def accepts(self, value: Any) -> bool:
        """Tell whether the value may be neighbours."""
        is_pair = isinstance(value, tuple | list) and len(value) == 2
        # An estimator, but not its class.
        makes_graph = hasattr(value, "fit") and not isinstance(value, type)
        return sp.issparse(value) or is_pair or makes_graph

    def __str__(self) -> str:
        return "a sparse graph of distances, a pair (indices, distances), or a neighbours transformer"


Constraint = Interval | OneOf | InstanceOf | PairOf | GivenNeighbors
Constraints = Mapping[str, tuple[Constraint, ...]]

COUNT = Interval(1, integer=True)
SHARE = Interval(0, 1, above=True)
AUTO = OneOf("auto")
# For exemplars="auto": the share of points whose neighbourhoods a graph keeps.
KEPT_SHARE = 0.1
NONE = InstanceOf("None", type(None))

# What a parameter of this name may be in every estimator whose own constraints do not replace it.
CONSTRAINTS: Constraints = {
    "n_clusters": (COUNT,),
    "exemplars": (COUNT, SHARE),
    "exemplar_rule": (OneOf("mass", "norm"),),
    "n_neighbors": (COUNT, OneOf("auto", "sqrt")),
    "neighborhoods": (OneOf("affinity", "input"),),
    "dissimilarity": (OneOf("kernel", "euclidean", "sqeuclidean"),),
    "bandwidth": (OneOf("distance", "squared-distance"),),
    "metric": (OneOf("euclidean", "cosine"),),
    "neighbors": (OneOf("auto", "exact", "approximate"), GivenNeighbors()),
    "manifold_weight": (Interval(0), AUTO),
    "selection_weight": (Interval(1e-100), AUTO),
    "projection_weight": (Interval(1e-100), AUTO),
    "init": (OneOf("spectral", "nndsvd", "kmeans"), InstanceOf("an array", np.ndarray)),
    "labels": (OneOf("argmax", "kmeans"),),
    "penalty": (Interval(0, above=True), AUTO),
    "penalty_growth": (Interval(1),),
    "max_iter": (Interval(1, 10**9, integer=True),),
    "tol": (Interval(0),),
    "freeze_tol": (Interval(0),),
    "random_state": (
        InstanceOf("None, a RandomState", type(None), np.random.RandomState),
        Interval(0, 2**32 - 1, integer=True),
    ),
    "n_jobs": (NONE, COUNT, Interval(high=-1, integer=True)),
}


def check_parameters(owner: str, values: Mapping[str, Any], own: Constraints) -> None:
    """Refuse the first parameter that none of its constraints accepts; ``own`` ones come before the table."""
    constraints = {**CONSTRAINTS, **own}
    for name, value in values.items():
        if name not in constraints:
            raise TypeError(f"{owner} has a parameter {name!r} without a constraint: add it to _constraints.")
        if not any(constraint.accepts(value) for constraint in constraints[name]):
            wanted = " or ".join(str(constraint) for constraint in constraints[name])
            raise ParameterError(f"{name}={shown(value)} is not valid for {owner}: it must be {wanted}.")


def shown(value: Any) -> str:
    """Return a value as a sentence can show it: on one line, and only the beginning of a long one."""
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def rounded(limit: float, up: bool) -> float:
    """Return a limit with two digits, rounded to the side on which it is accepted."""
    # From a little inside, beyond rounding errors: who gives the number must not be refused again.
    inside = limit * (1 + 1e-9 if up else 1 - 1e-9)
    return float(Context(prec=2, rounding=ROUND_CEILING if up else ROUND_FLOOR).create_decimal(inside))


def check_n_clusters(n_clusters: int, n_samples: int) -> None:
    """Refuse more clusters than points."""
    if n_samples < max(n_clusters, 2):
        raise ParameterError(
            f"n_clusters={n_clusters} needs at least {max(n_clusters, 2)} points, but X has "
            f"n_samples={n_samples}: give more points or ask for fewer clusters."
        )


def check_n_neighbors(n_neighbors: int, n_samples: int, way_out: str) -> None:
    """Refuse more neighbours than there are other points."""
    if n_neighbors >= n_samples:
        raise ParameterError(
            f"n_neighbors={n_neighbors} must be less than n_samples={n_samples}: a point is not its own "
            f"neighbour; {way_out}."
        )


def count_exemplars(exemplars: float, n_samples: int, at_least: int = 1) -> int:
    """Return the number of points that a count or a share means; a share gives ``at_least`` or more."""
    # By type, not by value: 1 is one point, 1.0 all of them.
    if not isinstance(exemplars, numbers.Integral):
        return min(max(round(exemplars * n_samples), at_least, 1), n_samples)
    if exemplars > n_samples:
        raise ParameterError(
            f"exemplars={exemplars} is more than n_samples={n_samples}: ask for at most {n_samples}, or "
            "for a share between 0 and 1."
        )
    return int(exemplars)


@dataclass(frozen=True)
class Sizes:
    """The whole numbers of a problem, checked against each other."""

    n_samples: int
    n_clusters: int
    n_neighbors: int
    n_exemplars: int  # in the graph
    n_reported: int | None = None  # as results; None is a few per cluster, as many as one can look at

    @classmethod
    def from_parameters(
        cls,
        n_samples: int,
        n_clusters: int,
        n_neighbors: int | str,
        exemplars: float | str | None = None,
        usual_neighbors: int = DEFAULT_NEIGHBORS,
    ) -> Sizes:
        """Return the sizes that words and shares mean for this data; refuse what does not fit it."""
        check_n_clusters(n_clusters, n_samples)
        if isinstance(n_neighbors, str):
            # The square root is rounded down (paper note 32).
            wanted = usual_neighbors if n_neighbors == "auto" else int(np.sqrt(n_samples))
            n_neighbors = min(wanted, n_samples - 1)
        else:
            check_n_neighbors(n_neighbors, n_samples, "lower n_neighbors or use 'auto'")
        # A share of the points never leaves a cluster without an exemplar.
        share = KEPT_SHARE if isinstance(exemplars, str) else exemplars
        count = 0 if share is None else count_exemplars(share, n_samples, n_clusters)
        reported = None if isinstance(exemplars, str) else count
        return cls(n_samples, n_clusters, int(n_neighbors), count, reported)


def check_init(init: Any, X: Any, n_clusters: int, penalty: float | str) -> None:
    """Refuse a start that does not fit the data."""
    n, c = X.shape[0], n_clusters
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
    elif init.dtype.kind not in "iuf" or not np.isfinite(init).all():
        raise ParameterError(
            f"init has {_first_not_finite(init)}: give finite real numbers, or init='spectral'."
        )
    elif not isinstance(penalty, str):  # an automatic one takes the size out
        _check_size(init, X.dtype)


def safe_limit(dtype: Any) -> float:
    """Return how large numbers may be, and one over it how small, to be squared, summed up and weighted."""
    # Squares then stay below the square root of the largest number: sums of them, and their products with
    # weights, have room.
    return float(np.finfo(dtype).max) ** 0.25


def _check_size(init: np.ndarray, dtype: np.dtype) -> None:
    """Refuse a start whose squares leave the range of the numbers."""
    limit = safe_limit(dtype)
    largest = float(np.abs(init).max())
    if largest > limit or 0 < largest < 1 / limit:
        raise ParameterError(
            f"init has entries of up to {largest:.2g}, but its largest one must be between "
            f"{rounded(1 / limit, up=True):g} and {rounded(limit, up=False):g}: divide init by "
            f"{largest:.2g}, or use init='spectral'."
        )


def _first_not_finite(init: np.ndarray) -> str:
    if init.dtype.kind not in "iuf":
        return f"entries of type {init.dtype}"
    row, column = np.argwhere(~np.isfinite(init))[0]
    return f"{init[row, column]} at row {row}, column {column}"
