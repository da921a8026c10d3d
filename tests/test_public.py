"""What the package promises by name: every class is found, documented and listed."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import smrmf

ESTIMATORS = [name for name in smrmf.__all__ if name != "metrics"]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_docstring_says_what_when_whence_and_how(name):
    doc = inspect.getdoc(getattr(smrmf, name))
    for part in ("Parameters\n---", "Attributes\n---", "References\n---", "Examples\n---", ">>> "):
        assert part in doc
    assert "Pick it" in doc
    assert any(word in doc for word in (" cost", "operations", "O("))
    for parameter in inspect.signature(getattr(smrmf, name)).parameters:
        assert f"\n{parameter} : " in doc, parameter


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_readme_lists_it(name):
    assert f"`{name}`" in (Path(__file__).parent.parent / "README.md").read_text()


def test_all_names_are_found_and_others_are_not():
    assert set(smrmf.__all__) <= set(dir(smrmf))
    with pytest.raises(AttributeError, match=r"smrmf.*KMeans"):
        smrmf.KMeans  # noqa: B018
