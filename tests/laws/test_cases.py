"""The list of cases is whole, and what it says of the estimators is true."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest
from estimators import CASES, HEARD
from sklearn.base import BaseEstimator
from support import quietly
from test_laws import EMBEDDINGS

import smrmf


def test_every_public_estimator_has_a_case():
    public = {getattr(smrmf, name) for name in smrmf.__all__}
    estimators = {found for found in public if inspect.isclass(found) and issubclass(found, BaseEstimator)}
    assert len(estimators) >= 13
    assert estimators <= {type(case.estimator) for case in CASES}


def test_cases_refuse_with_reasons_what_is_a_law_for_them():
    for path in Path(__file__).parent.glob("test_*.py"):  # where the laws are asked for
        importlib.import_module(path.stem)
    assert len({case.name for case in CASES}) == len(CASES)
    assert {(case.name, law) for case in CASES for law in case.refuses} == HEARD
    for case in CASES:
        for reason in (*case.refuses.values(), *case.failed_checks.values()):
            assert len(reason.split()) > 3


def test_whoever_has_an_embedding_promises_its_kind():
    promised = {case.name: case.embedding for case in CASES if case.embedding}
    assert promised.keys() == {case.name for case in CASES if case.has("embedding_")}
    assert set(promised.values()) == EMBEDDINGS.keys()


@pytest.mark.parametrize("case", [case for case in CASES if case.says], ids=str)
def test_what_every_fit_says_is_said(case):
    said = quietly(case.make().fit, case.usual())
    assert [str(w.message).startswith(case.says) for w in said] == [True]
