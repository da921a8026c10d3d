"""The list of cases is whole, and refuses only what is a law."""

from __future__ import annotations

import inspect

from estimators import CASES, LAWS
from sklearn.base import BaseEstimator

import smrmf


def test_every_public_estimator_has_a_case():
    public = {getattr(smrmf, name) for name in smrmf.__all__}
    estimators = {found for found in public if inspect.isclass(found) and issubclass(found, BaseEstimator)}
    assert len(estimators) >= 13
    assert estimators <= {type(case.estimator) for case in CASES}


def test_cases_refuse_laws_by_their_names_and_with_reasons():
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        assert case.refuses.keys() <= LAWS
        for reason in (*case.refuses.values(), *case.failed_checks.values()):
            assert len(reason.split()) > 3
