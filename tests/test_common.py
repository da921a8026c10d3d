"""scikit-learn's own checks, on every public estimator in its main configurations."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from smrmf import RMNMF, SMRMF, FastSMRMF

ESTIMATORS = [
    FastSMRMF(),
    FastSMRMF(dissimilarity="kernel", smoothness=1.0),
    RMNMF(),
    SMRMF(),
    SMRMF(selection="l2", exemplars=0.9, dissimilarity="euclidean"),
    SMRMF(selection=None, dissimilarity="sqeuclidean"),
]


# Without the selection constraint every point may come to represent itself alone (the paper's -NS
# does); the estimator says so, and the checks turn any warning into a failure.
@pytest.mark.filterwarnings("ignore:The learned graph is empty")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
