"""Every public estimator in its configurations, each with data that suit it.

A new estimator or configuration is one more line of CASES, and then meets every law. A case can refuse a law
only by a written reason; the law is still run and must fail, so that a refusal without need is found. Where
rounding decides, and so the processor, it may hold or fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from add_a_variant import AgreeingRMNMF
from cases import GROUPS, POINTS, Case, distances, nonnegative, signed, similarities

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

# How a reason begins where another processor may keep the law.
ROUNDING = "rounding decides: "
# The refusals that a law has asked for, by names of case and law.
HEARD: set[tuple[str, str]] = set()


def marks(case: Case, law: str) -> list[Any]:
    """Return what a test of the law must know about the case; who refuses the law must fail the test."""
    found = [pytest.mark.filterwarnings(f"ignore:{case.says}")] if case.says else []
    if law in case.refuses:
        HEARD.add((case.name, law))
        reason = case.refuses[law]
        found.append(pytest.mark.xfail(reason=reason, strict=not reason.startswith(ROUNDING)))
    return found


def each(*names: str, law: str = "") -> Any:
    """Run a test for every case that has these parameters, methods or attributes; ``law`` can be refused."""
    cases = [case for case in CASES if case.has(*names)]
    assert cases, names
    return pytest.mark.parametrize("case", [pytest.param(c, id=c.name, marks=marks(c, law)) for c in cases])


def each_with(argument: str, values: Iterable[str], *names: str, law: str = "") -> Any:
    """Run a test for every such case and every value; ``{}`` in the name of the law stands for the value."""
    pairs = [(case, value) for value in values for case in CASES if case.has(*names)]
    return _parametrized(argument, pairs, law)


def each_of(argument: str, names: Iterable[str]) -> Any:
    """Run a test for every case and every one of these parameters, methods or attributes that it has."""
    return _parametrized(argument, [(case, name) for name in names for case in CASES if case.has(name)], "")


def _parametrized(argument: str, pairs: list[tuple[Case, str]], law: str) -> Any:
    assert pairs, argument
    runs = [pytest.param(c, v, id=f"{c}-{v}", marks=marks(c, law.format(v))) for c, v in pairs]
    return pytest.mark.parametrize(("case", argument), runs)


# Reasons that several cases share.
ONCE = "the iterations are scikit-learn's own: the only step reported is the end"

LINEAR = {"memory for dense data": "its arrays grow with the points, not with their pairs"}
SPARSE = LINEAR | {"memory for sparse data": "never makes sparse data dense"}
DRAWN = {"exemplars in any order": "draws rows by number: a seed means other points in another order"}
EQUALS = {"exemplars in any order": "every point represents only itself: all are equal, and the row decides"}
CHOSEN = {"best exemplars first": "exemplars are in the order of choice, and a later one can add more"}
GIVEN = {"best exemplars first": "exemplars are in the order of the selector, which is that of choice in IPM"}
ONE_STEP = dict.fromkeys(("callbacks see steps", "callbacks can stop", "callbacks can interrupt later"), ONCE)
AT_MOST = {
    "missing clusters are said": "n_clusters is a limit: an exemplar that wins no target has no cluster",
    "one point is no clustering": "labels come with the exemplars, and one point can stand for itself",
}


def restless(reason: str, *data: str) -> dict[str, str]:
    """Refuse to converge on these odd data."""
    return {f"settles on {odd}": reason for odd in data}


NOTHING = ROUNDING + "where there is nothing to represent, the loop may go on to max_iter"
ZEROS = restless(NOTHING, "zeros, many features")
FEW_ZEROS = restless(NOTHING, "zeros")
CREEPS = ROUNDING + "where points are alike, the objective may still rise after max_iter iterations"
ALIKE = restless(CREEPS, "constant", "constant, many features", "zeros")
FALLS = "a nearly exact fit: the objective falls towards zero, by more than tol of itself in every iteration"
SMOOTH = restless(
    FALLS,
    *("one feature", "two features", "two groups of duplicates", "one entry", "integers", "one huge outlier"),
)
FITTED = restless(FALLS, "constant", "two groups of duplicates", "integers", "very far from the origin")

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


def manifold(name: str, estimator: Any, refuses: Mapping[str, str] = LINEAR, **options: Any) -> Case:
    """Return the case of a method of the one loop."""
    # From a start that is far off, and with a small penalty, no method is done after two iterations.
    unfinished = {"max_iter": 2, "tol": 1e-12, "init": "kmeans", "penalty": 1e-3}
    # One step from the groups, one of them with the wrong sign, leaves its points below zero in its column.
    mirrored = np.eye(3)[GROUPS] * [1, 1, -1]
    starved = {"max_iter": 1, "tol": 0, "manifold_weight": 0, "init": mirrored}, POINTS
    return Case(
        name,
        estimator,
        signed,
        refuses,
        embedding="orthonormal",
        unfinished=unfinished,
        starved=starved,
        **options,
    )


def positive(name: str, estimator: Any, refuses: Mapping[str, str] = SPARSE) -> Case:
    """Return the case of a method for data without negative values."""
    return Case(name, estimator, nonnegative, refuses, "non-negative", failed_checks=NO_SIGNS)


CASES = [
    manifold("FastSMRMF", FastSMRMF(3), LINEAR | ZEROS),
    manifold("FastSMRMF-kernel", FastSMRMF(3, dissimilarity="kernel", smoothness=1.0)),
    manifold("variant of the docs", AgreeingRMNMF(3), documented_by=RMNMF),
    manifold("RMNMF", RMNMF(3)),
    manifold("SMRMF", SMRMF(3), {}),
    manifold("SMRMF-l2", SMRMF(3, selection="l2", exemplars=0.6, dissimilarity="euclidean"), FEW_ZEROS),
    manifold("SMRMF-all", SMRMF(3, selection=None, dissimilarity="sqeuclidean"), EQUALS, says=ALONE),
    manifold("AMRMF", AMRMF(3)),
    manifold("APMF", APMF(3), ALIKE),
    manifold("SelectiveRMNMF", SelectiveRMNMF(3), LINEAR | GIVEN),
    manifold("SelectiveRMNMF-KDPP", SelectiveRMNMF(3, selector=KDPP(0.5)), LINEAR | DRAWN),
    positive("GNMF", GNMF(3), SPARSE | SMOOTH),
    positive("GNMF-argmax", GNMF(3, manifold_weight=0.001, labels="argmax"), SPARSE | FITTED),
    positive("NMFClustering", NMFClustering(3), SPARSE | ONE_STEP),
    Case("DeepSemiNMF", DeepSemiNMF(3), signed, LINEAR, "non-negative"),
    Case("ESC", ESC(3), signed, DRAWN),
    Case("DS3", DS3(6), signed, AT_MOST),
    Case("DS3-price", DS3(regularization=0.2, norm="l2"), signed, AT_MOST),
    Case("DS3-given", DS3(metric="precomputed", n_clusters=3), distances, AT_MOST, failed_checks=NO_DISTANCE),
    Case("KDPP", KDPP(4), signed, DRAWN),
    Case("KDPP-linear", KDPP(4, kernel="linear"), signed, DRAWN),
    Case("KDPP-rbf", KDPP(0.3, kernel="rbf", regularization=0.01), signed, DRAWN),
    Case("KDPP-given", KDPP(4, kernel="precomputed"), similarities, DRAWN, failed_checks=NO_KERNEL),
    Case("IPM", IPM(8), signed, CHOSEN),
    Case("IPM-residual", IPM(4, matching="residual"), signed, CHOSEN),
]
