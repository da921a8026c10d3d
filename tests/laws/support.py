"""What the laws share: fits, their results, comparisons, and a callback that records."""

from __future__ import annotations

import sys
import warnings
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from cases import Case
from sklearn.base import BaseEstimator


@cache
def fitted(case: Case) -> Any:
    """Return the estimator of a case, fitted to its usual data; nobody may change it."""
    return case.make().fit(case.usual())


def quietly(fit: Any, *arguments: Any) -> list[warnings.WarningMessage]:
    """Call and return the warnings instead of raising them."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit(*arguments)
    return said


def results(model: BaseEstimator) -> dict[str, Any]:
    """Return the public fitted attributes, in plain forms; a fitted part gives its own."""
    found = {}
    for name, value in vars(model).items():
        if name.startswith("_") or not name.endswith("_") or name == "feature_names_in_":
            continue
        found |= _plain(name, value)
    return found


def _plain(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, BaseEstimator):
        return {f"{name}.{part}": inner for part, inner in results(value).items()}
    if isinstance(value, list):
        return {f"{name}[{place}]": np.asarray(item) for place, item in enumerate(value)}
    return {name: value.toarray() if sp.issparse(value) else np.asarray(value)}


def assert_same(one: BaseEstimator, two: BaseEstimator) -> None:
    """Check that two fits have the same results to the last bit."""
    first, second = results(one), results(two)
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(second[name], value, err_msg=name)


def assert_close(one: BaseEstimator, two: BaseEstimator, tol: float) -> None:
    """Check that two fits have the same results up to rounding."""
    first, second = results(one), results(two)
    assert first.keys() == second.keys()
    for name, value in first.items():
        size = np.abs(value).max(initial=0)
        np.testing.assert_allclose(second[name], value, rtol=tol, atol=tol * size, err_msg=name)


def assert_finite(model: BaseEstimator) -> None:
    """Check that there are results and that all are finite numbers."""
    found = results(model)
    assert len(found) > 1
    for name, value in found.items():
        assert np.isfinite(value).all(), name


def small_blocks(monkeypatch: Any, entries: int) -> None:
    """Make the blocks of rows that threads take so small that few points make many of them."""
    owners = [
        module
        for name, module in sys.modules.items()
        if name.split(".")[0] == "smrmf" and "BLOCK_ENTRIES" in vars(module)
    ]
    assert owners
    for module in owners:
        monkeypatch.setattr(module, "BLOCK_ENTRIES", entries)
