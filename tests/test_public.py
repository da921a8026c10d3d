"""What the package promises by name: every class is found, documented and listed."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import smrmf

ESTIMATORS = [name for name in smrmf.__all__ if name != "metrics"]
FACTORIZATIONS = [
    "AMRMF",
    "APMF",
    "GNMF",
    "RMNMF",
    "SMRMF",
    "DeepSemiNMF",
    "FastSMRMF",
    "NMFClustering",
    "SelectiveRMNMF",
]
SELECTORS = ["DS3", "ESC", "IPM", "KDPP"]


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


@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_factorisations_share_one_interface(name):
    model = getattr(smrmf, name)(3, random_state=0)
    X = abs(np.random.default_rng(0).normal(size=(40, 8)))
    model.fit(X)
    assert model.labels_.shape == (40,)
    assert model.embedding_.shape == (40, len(model.components_))
    assert model.components_.shape[1] == 8
    assert (model.predict(X) == model.labels_).all()


@pytest.mark.parametrize("name", SELECTORS)
def test_selectors_share_one_interface(name):
    model = getattr(smrmf, name)(exemplars=5)
    X = np.random.default_rng(0).normal(size=(40, 8))
    if "n_clusters" in model.get_params():
        model.set_params(n_clusters=3)
    chosen = model.fit_select(X)
    assert chosen is model.exemplar_indices_
    assert len(set(chosen.tolist())) == len(chosen) == len(model.exemplar_scores_) == 5


def test_all_names_are_found_and_others_are_not():
    assert set(smrmf.__all__) <= set(dir(smrmf))
    with pytest.raises(AttributeError, match="module 'smrmf' has no attribute 'KMeans'"):
        smrmf.KMeans  # noqa: B018
