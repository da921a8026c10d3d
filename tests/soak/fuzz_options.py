"""Random options: every parameter drawn from the table of what it may be, extremes first."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors

from smrmf import DS3, ESC, IPM, KDPP
from smrmf._validation import CONSTRAINTS, Constraint, InstanceOf, Interval, OneOf, PairOf

Generator = np.random.Generator

REALS = (0.0, 1e-300, 1e-100, 1e-30, 1e-9, 1e-3, 0.1, 0.5, 0.9, 1.0, 1.05, 2.0, 10.0, 1e3, 1e9, 1e30, 1e300)
INTEGERS = (1, 2, 3, 4, 5, 8, 10, 20, 40, 60, 61, 10**6, 2**32 - 1, 2**62, -1, -2, -(10**6))
# Work that is asked for takes its time: these count steps.
STEPS = {"max_iter": (1, 2, 3, 10, 100), "n_init": (1, 2, 5), "n_jobs": (1, 2, 3, -1, -2, -(10**6), 100)}
# How often a parameter keeps its default: of many at once, one would be refused nearly always.
KEPT = 0.75


def random_options(owner: type[BaseEstimator], shape: tuple[int, ...], rng: Generator) -> dict[str, Any]:
    """Return parameters for a table of this shape, in a few draws also ones that do not fit it."""
    constraints = {**CONSTRAINTS, **owner._constraints}
    n = shape[0]
    options: dict[str, Any] = {}
    for name, default in owner().get_params(deep=False).items():
        # Newer than the trials that have numbers: its draws are its own, and theirs stay as they were.
        if name == "neighbors":
            options[name] = random_neighbors(n, rng.spawn(1)[0])
            continue
        constraint = constraints[name][rng.integers(len(constraints[name]))]
        value = drawn(name, constraint, (n, int(options.get("n_clusters") or 3)), rng)
        if name == "n_clusters":  # the default, 8, is too many for most small tables
            options[name] = value if rng.random() < 0.2 else int(rng.integers(1, min(n, 5) + 1))
        elif name in STEPS or rng.random() > KEPT:
            options[name] = value
        elif name == "random_state":
            options[name] = 0
        else:
            options[name] = default
    return options


def drawn(name: str, constraint: Constraint, size: tuple[int, int], rng: Generator) -> Any:
    """Return a value that a constraint accepts; of arrays and objects also such as do not fit."""
    if isinstance(constraint, OneOf):
        return str(rng.choice(constraint.words))
    if isinstance(constraint, PairOf):
        return tuple(drawn(name, constraint.each, size, rng) for _ in range(2))
    if isinstance(constraint, Interval):
        candidates = STEPS.get(name) or numbers_of(constraint)
        fitting = [value for value in candidates if constraint.accepts(value)]
        return fitting[rng.integers(len(fitting))]
    assert isinstance(constraint, InstanceOf)
    return instance(name, constraint, size, rng)


def random_neighbors(n: int, rng: Generator) -> Any:
    """Return a word, or neighbours of other points in one of their forms, also too few and wrong ones."""
    if rng.random() < KEPT:
        return str(rng.choice(["auto", "exact", "approximate"]))
    wrong = rng.random() < 0.2
    count = int(rng.integers(1, n + wrong)) if n > 1 else 1
    if rng.random() < 0.3:
        return KNeighborsTransformer(n_neighbors=count)
    near = NearestNeighbors(n_neighbors=min(count, max(n - 1, 1))).fit(rng.integers(0, 5, (max(n, 2), 2)))
    if rng.random() < 0.5:
        return near.kneighbors_graph(mode="distance")
    distances, indices = near.kneighbors()
    return (distances, indices) if wrong else (indices, distances)


def numbers_of(interval: Interval) -> tuple[float, ...]:
    """Return numbers to choose from, with the ends of an interval among them."""
    ends = tuple(end for end in (interval.low, interval.high) if end is not None)
    return (INTEGERS if interval.integer else REALS) + ends


def instance(name: str, constraint: InstanceOf, size: tuple[int, int], rng: Generator) -> Any:
    """Return something of one of the types of a constraint."""
    n, c = size
    if name == "init":
        return random_start(n, c, rng)
    if name == "graph" and np.ndarray in constraint.types:
        return random_graph(n, rng)
    if name == "selector" and BaseEstimator in constraint.types:
        return [IPM(), IPM(1.0), KDPP(1), KDPP(0.5), DS3(2), ESC(2), KMeans(2)][rng.integers(7)]
    if name == "metric":
        return largest_difference
    if np.random.RandomState in constraint.types and rng.random() < 0.5:
        return np.random.RandomState(3)
    return None


def largest_difference(a: Any, b: Any) -> float:
    """Return a distance of two rows, dense or sparse."""
    return float(abs(a - b).max())


def random_start(n: int, c: int, rng: Generator) -> np.ndarray:
    kind = rng.integers(6)
    G = rng.random((n + (kind == 0), c))
    return {1: G - 0.5, 2: G * 0, 3: (G > 0.5).astype(int), 4: G.astype(np.float32), 5: G * 1e200}.get(
        kind, G
    )


def random_graph(n: int, rng: Generator) -> Any:
    kind = rng.integers(7)
    W = rng.random((n, n)) * (rng.random((n, n)) < 0.3)
    W = (W + W.T) / 2
    forms = {
        0: W[1:],
        1: W - 0.1,
        2: np.triu(W),
        3: sp.csr_array(W),
        4: sp.coo_matrix(W),
        5: W * 0,
    }
    return forms.get(kind, W)
