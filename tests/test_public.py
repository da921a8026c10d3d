"""What the package promises by name: everything public is found, documented and listed."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator
from sklearn.callback import FitCallback

import smrmf
from smrmf import datasets, metrics, sharing, tables

CLASSES = [name for name in smrmf.__all__ if inspect.isclass(getattr(smrmf, name))]
ESTIMATORS = [name for name in CLASSES if issubclass(getattr(smrmf, name), BaseEstimator)]
CALLBACKS = [name for name in CLASSES if name not in ESTIMATORS]
FUNCTIONS = [name for name in smrmf.__all__ if inspect.isfunction(getattr(smrmf, name))]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_docstring_says_what_when_whence_and_how(name):
    doc = inspect.getdoc(getattr(smrmf, name))
    for part in ("Parameters\n---", "Attributes\n---", "References\n---", "Examples\n---", ">>> "):
        assert part in doc
    assert "Pick it" in doc
    assert any(word in doc for word in (" cost", "operations", "O("))
    for parameter in inspect.signature(getattr(smrmf, name)).parameters:
        assert f"\n{parameter} : " in doc, parameter


@pytest.mark.parametrize("name", CALLBACKS)
def test_all_other_classes_are_callbacks(name):
    assert issubclass(getattr(smrmf, name), FitCallback)
    doc = inspect.getdoc(getattr(smrmf, name))
    for part in ("Parameters\n---", "Examples\n---", ">>> "):
        assert part in doc
    for parameter in inspect.signature(getattr(smrmf, name)).parameters:
        assert f"\n{parameter} : " in doc, parameter


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_docstring_of_a_function_says_what_goes_in_and_out(name):
    doc = inspect.getdoc(getattr(smrmf, name))
    for part in ("Parameters\n---", "Returns\n---", "Examples\n---", ">>> "):
        assert part in doc
    for parameter in inspect.signature(getattr(smrmf, name)).parameters:
        assert f"\n{parameter} : " in doc, parameter


def test_a_public_name_is_an_estimator_a_function_or_a_module():
    assert set(smrmf.__all__) == {*CLASSES, *FUNCTIONS, "metrics", "plot"}


@pytest.mark.parametrize("module", [datasets, metrics, sharing, tables], ids=lambda module: module.__name__)
def test_a_public_module_names_all_that_it_defines_and_promises(module):
    defined = {name for name, found in vars(module).items() if inspect.isfunction(found)}
    own = {name for name in defined if getattr(module, name).__module__.startswith(module.__name__)}
    assert {name for name in own if not name.startswith("_")} <= set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("name", [*CLASSES, *FUNCTIONS])
def test_the_readme_lists_it(name):
    assert f"`{name}`" in (Path(__file__).parent.parent / "README.md").read_text()


def test_all_names_are_found_and_others_are_not():
    assert set(smrmf.__all__) <= set(dir(smrmf))
    with pytest.raises(AttributeError, match=r"smrmf.*KMeans"):
        smrmf.KMeans  # noqa: B018
