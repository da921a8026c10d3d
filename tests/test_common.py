"""scikit-learn's own checks on public estimators in their main configurations.

Those of the other estimators are in the files of their own tests.
"""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from smrmf import DS3, ESC, IPM, RMNMF, SMRMF, FastSMRMF, SelectiveRMNMF

ESTIMATORS = [
    FastSMRMF(),
    FastSMRMF(dissimilarity="kernel", smoothness=1.0),
    RMNMF(),
    SMRMF(),
    SMRMF(selection="l2", exemplars=0.9, dissimilarity="euclidean"),
    SMRMF(selection=None, dissimilarity="sqeuclidean"),
    SelectiveRMNMF(),
    SelectiveRMNMF(selector=IPM(exemplars=0.5)),
    DS3(),
    DS3(regularization=0.2, norm="l2"),
    DS3(metric="precomputed", n_clusters=3),
    ESC(),
]


def expected_failures(estimator):
    """Name what dissimilarities of sources to targets cannot fulfil."""
    if getattr(estimator, "metric", None) != "precomputed":
        return {}
    similarities = "gives inner products, which are similarities, as dissimilarities"
    return {
        "check_nonsquare_error": "sources and targets may be different things",
        "check_clustering": similarities,
    }


# Without the selection constraint every point may come to represent itself alone (the paper's -NS
# does); the estimator says so, and the checks turn any warning into a failure.
@pytest.mark.filterwarnings("ignore:The learned graph is empty")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_check(estimator, check):
    check(estimator)
