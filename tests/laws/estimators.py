"""Every public estimator in its configurations, each with data that suit it.

A new estimator or configuration is one more line of CASES, and then meets every law. A case can refuse a law
only by a written reason; the law is still run and must fail, so that a refusal without need is found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from add_a_variant import AgreeingRMNMF
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_blobs

from smrmf import (
    AMRMF,
    APMF,
    DS3,
    ESC,
    GNMF,
    IPM,
    KDPP,
    RMNMF,
    SMRMF,
    DeepSemiNMF,
    FastSMRMF,
    NMFClustering,
    SelectiveRMNMF,
)

# Three groups of distinct points of any sign, in an order that hides them.
POINTS = make_blobs(60, 5, centers=3, cluster_std=0.8, random_state=3)[0]

# What a case may refuse; every other law holds for all.
LAWS = frozenset(
    {
        "callbacks can stop",
        "callbacks can interrupt later",
        "exemplars in any order",
        "fewer clusters are said",
        "memory for dense data",
        "memory for sparse data",
        "nonsense for layers: empty",
        "nonsense for metric: word",
        "scores in single precision",
        "settles on zeros",
        "settles on zeros, many features",
    }
)


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


@dataclass(frozen=True, eq=False)
class Case:
    """An estimator, what makes data for it from points, and the laws it refuses, with the reasons.

    ``orthogonal`` promises an embedding with orthonormal columns and no empty cluster, whatever the data;
    all other embeddings are never negative. ``settles`` promises to converge on odd data, and ``ranked``
    exemplars by falling scores. ``unfinished`` are parameters with which a fit does not converge, ``says``
    opens a warning that every fit gives, and ``failed_checks`` are checks of scikit-learn that cannot be
    passed.
    """

    name: str
    estimator: BaseEstimator
    data: Callable[[np.ndarray], np.ndarray] = signed
    refuses: Mapping[str, str] = field(default_factory=dict)
    orthogonal: bool = False
    settles: bool = False
    unfinished: Mapping[str, Any] = field(default_factory=lambda: {"max_iter": 2, "tol": 1e-12})
    says: str = ""
    ranked: bool = True
    failed_checks: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def make(self, **parameters: Any) -> Any:
        """Return a new estimator, on one thread and with a seed unless told otherwise."""
        own = self.estimator.get_params(deep=False)
        settings = {"n_jobs": 1} | ({"random_state": 0} if "random_state" in own else {})
        return clone(self.estimator).set_params(**settings | parameters)

    def has(self, *names: str) -> bool:
        """Tell whether the estimator has these parameters or methods."""
        own = self.estimator.get_params(deep=False)
        return all(name in own or hasattr(self.estimator, name) for name in names)

    def usual(self) -> np.ndarray:
        """Return the usual data."""
        return self.data(POINTS)


def each(*names: str, law: str = "") -> Any:
    """Run a test for every case whose estimator has these parameters or methods.

    Those that refuse the law by its name must fail the test.
    """
    assert law in LAWS | {""}, law
    cases = [case for case in CASES if case.has(*names)]
    return pytest.mark.parametrize("case", [pytest.param(c, id=c.name, marks=marks(c, law)) for c in cases])


def marks(case: Case, law: str) -> list[Any]:
    """Return what a test of the law must know about the case."""
    found = [pytest.mark.filterwarnings(f"ignore:{case.says}")] if case.says else []
    if law in case.refuses:
        found.append(pytest.mark.xfail(reason=case.refuses[law], strict=True))
    return found


# Reasons that several cases share.
NO_SENTENCE = "fails today: the sentence is not the one that all parameters have"
ONCE = "the iterations are scikit-learn's own: the only step reported is the end"

LINEAR = {"memory for dense data": "its arrays grow with the points, not with their pairs"}
SPARSE = LINEAR | {"memory for sparse data": "never makes sparse data dense"}
DRAWN = {"exemplars in any order": "draws rows by number: a seed means other points in another order"}
ONE_STEP = {"callbacks can stop": ONCE, "callbacks can interrupt later": ONCE}
AT_MOST = {"fewer clusters are said": "n_clusters is a limit: an exemplar that wins no target has no cluster"}
DOUBLE = {"scores in single precision": "fails today: masses of rows are sums in double precision"}
RESTLESS = "fails today: the loop goes on to max_iter where there is nothing to represent"
ZEROS = {"settles on zeros, many features": RESTLESS}
FEW_ZEROS = {"settles on zeros": RESTLESS}
LAYERS = {"nonsense for layers: empty": NO_SENTENCE}
METRIC = {"nonsense for metric: word": NO_SENTENCE}

# Checks of scikit-learn that cannot be passed.
NO_SIGNS = {"check_clustering": "gives the points negative values"}
NO_DISTANCE = {
    "check_nonsquare_error": "sources and targets may be different things",
    "check_clustering": "gives inner products, which are similarities, as dissimilarities",
}
NO_KERNEL = {
    "check_positive_only_tag_during_fit": "shifts the kernel, which then has negative eigenvalues",
    "check_estimators_dtypes": "rounds the kernel to integers, with the same result",
}

# Without the selection every point may come to represent itself alone, as the paper's -NS does.
ALONE = "The graph is empty"


def manifold(name: str, estimator: Any, refuses: Mapping[str, str] = LINEAR | DOUBLE, **options: Any) -> Case:
    """Return the case of a method of the one loop."""
    # From a start that is far off, and with a small penalty, no method is done after two iterations.
    unfinished = {"max_iter": 2, "tol": 1e-12, "init": "kmeans", "penalty": 1e-3}
    promises = {"orthogonal": True, "settles": True} | options
    return Case(name, estimator, signed, refuses, unfinished=unfinished, **promises)


def positive(name: str, estimator: Any, refuses: Mapping[str, str] = SPARSE) -> Case:
    """Return the case of a method for data without negative values."""
    return Case(name, estimator, nonnegative, refuses, failed_checks=NO_SIGNS)


CASES = [
    manifold("FastSMRMF", FastSMRMF(3), LINEAR | DOUBLE | ZEROS),
    manifold("FastSMRMF-kernel", FastSMRMF(3, dissimilarity="kernel", smoothness=1.0)),
    manifold("variant of the docs", AgreeingRMNMF()),
    manifold("RMNMF", RMNMF(3)),
    manifold("SMRMF", SMRMF(3), DOUBLE),
    manifold(
        "SMRMF-l2", SMRMF(3, selection="l2", exemplars=0.6, dissimilarity="euclidean"), DOUBLE | FEW_ZEROS
    ),
    manifold("SMRMF-all", SMRMF(3, selection=None, dissimilarity="sqeuclidean"), DOUBLE, says=ALONE),
    manifold("AMRMF", AMRMF(3)),
    manifold("APMF", APMF(3), DOUBLE, settles=False),
    manifold("SelectiveRMNMF", SelectiveRMNMF(3), LINEAR, ranked=False),
    manifold("SelectiveRMNMF-KDPP", SelectiveRMNMF(3, selector=KDPP(0.5)), LINEAR | DRAWN),
    positive("GNMF", GNMF(3)),
    positive("GNMF-argmax", GNMF(3, manifold_weight=0.001, labels="argmax")),
    positive("NMFClustering", NMFClustering(3), SPARSE | ONE_STEP),
    Case("DeepSemiNMF", DeepSemiNMF(3), signed, LINEAR | LAYERS),
    Case("ESC", ESC(3), signed, DRAWN, ranked=False),
    Case("DS3", DS3(6), signed, AT_MOST | METRIC),
    Case("DS3-price", DS3(regularization=0.2, norm="l2"), signed, AT_MOST),
    Case("DS3-given", DS3(metric="precomputed", n_clusters=3), distances, AT_MOST, failed_checks=NO_DISTANCE),
    Case("KDPP", KDPP(4), signed, DRAWN),
    Case("KDPP-linear", KDPP(4, kernel="linear"), signed, DRAWN),
    Case("KDPP-rbf", KDPP(0.3, kernel="rbf", regularization=0.01), signed, DRAWN),
    Case("KDPP-given", KDPP(4, kernel="precomputed"), similarities, DRAWN, failed_checks=NO_KERNEL),
    Case("IPM", IPM(8), ranked=False),
    Case("IPM-residual", IPM(4, matching="residual"), ranked=False),
]
