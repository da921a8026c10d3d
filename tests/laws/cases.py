"""One estimator as the laws see it: what it has, which data suit it, what it promises and what it refuses."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_blobs

# Three groups of distinct points of any sign, in an order that hides them.
POINTS, GROUPS = make_blobs(60, 5, centers=3, cluster_std=0.8, random_state=3)


def signed(X: np.ndarray) -> np.ndarray:
    """Take the points as they are."""
    return X


def nonnegative(X: np.ndarray) -> np.ndarray:
    """Drop the signs."""
    return abs(X)


def distances(X: np.ndarray) -> np.ndarray:
    """Return the distances of all pairs; the unit is taken out first, as squares would overflow."""
    unit = float(abs(X).max()) or 1.0
    return cdist(X / unit, X / unit) * unit


def similarities(X: np.ndarray) -> np.ndarray:
    """Return the inner products of all pairs in the unit of the points."""
    unit = float(abs(X).max()) or 1.0
    return (X / unit) @ (X / unit).T * unit


@cache
def documented_attributes(owner: type) -> frozenset[str]:
    """Return the attributes that a fit sets by the docstring of a class."""
    section = inspect.getdoc(owner).partition("\nAttributes\n----------\n")[2].partition("\n\n")[0]
    # Descriptions are indented; "n_iter_, converged_ : int, bool" documents two.
    heads = [line.partition(" :")[0] for line in section.splitlines() if not line.startswith(" ")]
    return frozenset(name for head in heads for name in head.split(", "))


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """An estimator, what makes data for it from points, and the laws it refuses, with the reasons.

    ``embedding`` is the kind of its embedding, "orthonormal" or "non-negative", whatever the data.
    ``unfinished`` are parameters with which a fit does not converge, ``starved`` parameters and points
    with which one of three clusters gets no point of its own. ``says`` opens a warning that every fit
    gives, and ``failed_checks`` are checks of scikit-learn that cannot be passed. ``documented_by`` is the
    class that lists the fitted attributes, if the estimator does not do so itself.
    """

    name: str
    estimator: BaseEstimator
    data: Callable[[np.ndarray], np.ndarray] = signed
    refuses: Mapping[str, str] = field(default_factory=dict)
    embedding: str = ""
    unfinished: Mapping[str, Any] = field(default_factory=lambda: {"max_iter": 2, "tol": 1e-12})
    starved: tuple[Mapping[str, Any], np.ndarray] = ({}, np.zeros((20, 3)))
    says: str = ""
    failed_checks: Mapping[str, str] = field(default_factory=dict)
    documented_by: type | None = None

    def __repr__(self) -> str:
        return self.name

    def make(self, **parameters: Any) -> Any:
        """Return a new estimator, on one thread and with a seed unless told otherwise."""
        own = self.estimator.get_params(deep=False)
        settings = {"n_jobs": 1} | ({"random_state": 0} if "random_state" in own else {})
        return clone(self.estimator).set_params(**settings | parameters)

    @property
    def attributes(self) -> frozenset[str]:
        """Return the attributes that a fit sets, as documented."""
        return documented_attributes(self.documented_by or type(self.estimator))

    def has(self, *names: str) -> bool:
        """Tell whether the estimator has these parameters or methods, or sets these attributes in a fit."""
        own = self.estimator.get_params(deep=False).keys() | self.attributes
        return all(name in own or hasattr(self.estimator, name) for name in names)

    def usual(self) -> np.ndarray:
        """Return the usual data."""
        return self.data(POINTS)
