"""scikit-learn's own checks, on every public estimator in its main configurations."""

from __future__ import annotations

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


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
