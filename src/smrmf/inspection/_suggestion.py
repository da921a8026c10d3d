"""How many clusters? Evidence for every number side by side, and what it adds up to, if anything."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from smrmf._arrays import feature_attributes, finite_array
from smrmf._parallel import Pool, thread_pool
from smrmf._validation import ParameterError, shown
from smrmf.factorization._points import Problem, prepare
from smrmf.factorization._results import column_warnings
from smrmf.factorization.fast_smrmf import FastSMRMF
from smrmf.graph.halves import Agreement, agreements, nested_labels
from smrmf.inspection._table import like

# How often the points are split into halves, and of how many the silhouette is taken.
SPLITS, SILHOUETTE_POINTS = 3, 500
# Clusters are there if they are found again so well (adjusted Rand index), all of them at least so far ...
FIRM, WEAKEST = 0.82, 0.5
# ... or a little less well, if the graph has a gap that a continuum does not have.
FAIRLY_FIRM, GAP = 0.65, 0.2
# Numbers whose support differs by less are equal: then the largest one, which shows more, comes first.
EQUAL = 0.03
# At least so many points for every cluster, and the largest number that is tried unless told otherwise.
POINTS_PER_CLUSTER, USUAL_MOST = 8, 20


@dataclass(frozen=True)
class Suggestion:
    """The evidence for several numbers of clusters, and what follows from it.

    Attributes
    ----------
    table : PlainTable or frame
        A row for every number: ``n_clusters``, and the evidence of :func:`suggest_n_clusters`.
    ranked : tuple of int
        All numbers, the best supported first.
    n_clusters : int or None
        The suggested number; None where there is no clear answer.
    reason : str
        Why, in a sentence.
    """

    table: Any
    ranked: tuple[int, ...]
    n_clusters: int | None
    reason: str

    def __str__(self) -> str:
        return f"{self.reason}\n\n{self.table}"


def suggest_n_clusters(
    X: Any,
    n_clusters: Iterable[int] | None = None,
    *,
    metric: str = "euclidean",
    n_neighbors: int | str = "auto",
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = -1,
) -> Suggestion:
    """Suggest a number of clusters, with the evidence, or say that there is no clear answer.

    Neighbours are searched once, so that all numbers together cost about as much as two fits.

    ``stability``
        The points are split into random halves, each is clustered by itself, and the clusters of one,
        extended to the other by neighbours, are compared with those found there: the adjusted Rand index, 1
        if they are the same.
    ``weakest``
        The same comparison, but of the weakest cluster, which is found again worst: the share of its points
        that are.
    ``eigengap``
        How much better the graph falls into so many parts than a line of evenly spread points would: 1 if
        they do not touch, 0 or less for a line or a cloud. Rings and spheres have some gaps, too.
    ``silhouette``
        How much nearer points are to their own cluster than to the next one, on a sample; for round clusters.

    Parameters
    ----------
    X : array-like, frame or CSR matrix of shape (n_samples, n_features)
        The points.
    n_clusters : iterable of int, default=None
        The numbers to compare. None is 2 to 20, or fewer where there are not eight points for
        each cluster.
    metric : {"euclidean", "cosine"}, default="euclidean"
        How rows are compared, as in :class:`~smrmf.FastSMRMF`.
    n_neighbors : int, "auto" or "sqrt", default="auto"
        Neighbours of a point in the graph.
    random_state : int, RandomState or None, default=None
        Seed of the splits.
    n_jobs : int or None, default=-1
        Threads.

    Returns
    -------
    Suggestion
        A table of the evidence, the numbers ranked, the suggested one or None, and the reason.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from smrmf.inspection import suggest_n_clusters
    >>> X, _ = make_blobs(300, centers=4, cluster_std=0.8, random_state=1)
    >>> suggest_n_clusters(X, range(2, 8), random_state=0).n_clusters
    4
    """
    model = FastSMRMF(2, metric=metric, n_neighbors=n_neighbors, n_jobs=n_jobs)
    model._check_parameters()
    checked = finite_array(model, X, copy=True)
    numbers = checked_numbers(n_clusters, checked.shape[0])
    model.set_params(n_clusters=max(numbers))
    given, _ = model._prepare(checked)
    draws = check_random_state(random_state)
    with thread_pool(n_jobs) as pool:
        problem = prepare(given, type(model)._reduction, draws, pool, leave_copies_out=True)
        evidence = find_evidence(problem, numbers, draws, pool)
    for note, category in column_warnings(problem, feature_attributes(X).get("feature_names_in_")):
        warnings.warn(note, category, stacklevel=2)
    ranked, chosen, reason = decide(numbers, evidence)
    table = like(X, {"n_clusters": numbers} | evidence)
    return Suggestion(table, ranked, chosen, reason)


def checked_numbers(n_clusters: Iterable[int] | None, n_samples: int) -> list[int]:
    """Return the numbers to compare in order; refuse what is no number of clusters of so many points."""
    most = n_samples // POINTS_PER_CLUSTER
    if most < 2:
        raise ParameterError(
            f"X has n_samples={n_samples}, but to compare numbers of clusters at least "
            f"{2 * POINTS_PER_CLUSTER} points are needed: give more."
        )
    if n_clusters is None:
        return list(range(2, min(USUAL_MOST, most) + 1))
    numbers = list(n_clusters) if isinstance(n_clusters, Iterable) else [n_clusters]
    for number in numbers:
        if not isinstance(number, int | np.integer) or not 2 <= number <= most:
            raise ParameterError(
                f"n_clusters has {shown(number)}, but of {n_samples} points whole numbers from 2 to {most} "
                "can be compared."
            )
    if not numbers:
        raise ParameterError("n_clusters is empty: give numbers to compare, such as range(2, 11).")
    return sorted({int(number) for number in numbers})


def find_evidence(
    problem: Problem, numbers: list[int], draws: np.random.RandomState, pool: Pool
) -> dict[str, np.ndarray]:
    """Return the evidence for every number by its name."""
    X = problem.points.X
    found: dict[int, list[Agreement]] = {number: [] for number in numbers}
    for _ in range(SPLITS):
        for number, compared in agreements(X, problem.neighbors, numbers, draws, pool).items():
            found[number] += compared
    whole = nested_labels(X, problem.graph(), numbers, draws, pool)
    stability, weakest = np.array([np.mean(found[number], axis=0) for number in numbers]).T
    return {
        "stability": stability,
        "weakest": weakest,
        "eigengap": np.array([gap_beyond_continuum(whole.values, number) for number in numbers]),
        "silhouette": silhouettes(X, [whole.labels[number] for number in numbers], draws),
    }


def gap_beyond_continuum(values: np.ndarray, number: int) -> float:
    """Compare the gap after an eigenvalue with that of points spread evenly on a line.

    What is missing to 1 grows there as 0, 1, 4, 9 ...: with the number-th less than ((number - 1) /
    number)^2 of the
    next, the parts are tied less than those of a line. NaN where the graph has no next eigenvalue.
    """
    if number >= len(values):
        return np.nan
    here, following = (max(1 - float(values[place]), 0.0) for place in (number - 1, number))
    # Rounding leaves a little where components have none. Between two of these there is no gap.
    if following <= np.finfo(np.float32).eps:
        return 0.0
    return max(-1.0, 1 - here / following / ((number - 1) / number) ** 2)


def silhouettes(X: Any, clusterings: list[np.ndarray], draws: np.random.RandomState) -> np.ndarray:
    """Return the mean silhouette of every clustering, on the same sample of points."""
    from sklearn.metrics import pairwise_distances, silhouette_score  # slow to import

    rows = draws.permutation(X.shape[0])[:SILHOUETTE_POINTS]
    distances = pairwise_distances(X[rows])
    found = []
    for labels in clusterings:
        present = len(np.unique(labels[rows]))
        judged = 1 < present < len(rows)
        found.append(silhouette_score(distances, labels[rows], metric="precomputed") if judged else np.nan)
    return np.array(found)


def decide(numbers: list[int], evidence: dict[str, np.ndarray]) -> tuple[tuple[int, ...], int | None, str]:
    """Rank the numbers, choose one if it is clear, and say why."""
    stability, weakest = evidence["stability"], evidence["weakest"]
    gap = np.nan_to_num(evidence["eigengap"], nan=-1.0)
    firm = (stability >= FIRM) | ((stability >= FAIRLY_FIRM) & (gap >= GAP))
    clear = firm & (weakest >= WEAKEST)
    support = (stability + weakest) / 2
    best = int(np.lexsort((support, clear))[-1])
    if clear.any():
        equal = clear & (support >= support[best] - EQUAL)
        best = int(np.flatnonzero(equal)[-1])
    # The chosen one, then the other clear ones, then those in doubt, each by their support.
    order = np.lexsort((-support, ~clear, np.arange(len(numbers)) != best))
    ranked = tuple(numbers[place] for place in order)
    if not clear.any():
        # No number is named: the one of the best stability may not be that of the best weakest cluster.
        doubt = (
            f"No clear answer: halves of the points do not agree on any number of clusters from {numbers[0]} "
            f"to {numbers[-1]} (stability at most {stability.max():.2f}, weakest cluster at most "
            f"{weakest.max():.0%}); there may be no clusters, but a continuum."
        )
        return ranked, None, doubt
    measured = f"stability {stability[best]:.2f}, weakest cluster {weakest[best]:.0%}"
    others = [str(numbers[place]) for place in order[1:] if clear[place]]
    also = f"also clear: {', '.join(others)}" if others else "no other number is as clear"
    return (
        ranked,
        numbers[best],
        f"{numbers[best]} clusters: halves of the points agree on them ({measured}); {also}.",
    )
