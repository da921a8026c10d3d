"""Any number that a parameter may be, with data of any size: a finite result, or one sentence of refusal."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from cases import POINTS
from estimators import CASES, each, each_of
from support import assert_finite

from smrmf._validation import CONSTRAINTS, Interval

# `make soak` tries what lies between.
SIZES = (1e-300, 1.0, 1e150)
SINGLE_SIZES = (1e-36, 1.0, 1e18)
NUMBERS = (0.0, 1e-300, 0.9, 1e300)
# Of single precision the limits are others, and numbers beyond them are still numbers.
SINGLE_NUMBERS = (0.0, 1e-300, 1e-30, 0.9, 1e30, 1e300)


def numeric_parameters(case, numbers=NUMBERS):
    """Return the real parameters of a case and the numbers that each may be."""
    constraints = {**CONSTRAINTS, **case.estimator._constraints}
    found = {}
    for name in case.estimator.get_params(deep=False):
        intervals = [c for c in constraints[name] if isinstance(c, Interval) and not c.integer]
        if intervals:
            found[name] = [value for value in numbers if any(c.accepts(value) for c in intervals)]
    return found


TRIALS = [
    pytest.param(case, name, id=f"{case}-{name}") for case in CASES for name in numeric_parameters(case)
]


def is_one_sentence(error, name):
    """Tell whether a refusal is one line that says what to do, about the parameter or the data."""
    text = str(error)
    return "\n" not in text and text.endswith(".") and (name in text or "scale the data" in text)


def try_fit(model, X, name):
    """Fit, and check that the result is finite or refused in one sentence; return whether it was refused."""
    before = dict(vars(model))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # which the few iterations and empty graphs give
        try:
            model.fit(X)
        except ValueError as error:
            refusal = error
        else:
            assert_finite(model)
            return False
    assert is_one_sentence(refusal, name), refusal
    assert vars(model) == before
    return True


def try_sizes(case, name, dtype, sizes, **others):
    few = others | ({"max_iter": 4} if case.has("max_iter") else {})
    numbers = SINGLE_NUMBERS if dtype is np.float32 else NUMBERS
    for size in sizes:
        X = case.data(POINTS[:30] * size).astype(dtype)
        for number in numeric_parameters(case, numbers)[name]:
            refused = try_fit(case.make(**few | {name: number}), X, name)
            # What is asked for most, weights of about one for data of about one, is always done.
            assert not (refused and size == 1 and number == 0.9)


@pytest.mark.parametrize(("case", "name"), TRIALS)
def test_any_number_with_data_of_any_size_is_finite_or_refused(case, name):
    try_sizes(case, name, float, SIZES)


@pytest.mark.parametrize(
    ("case", "name"), [trial for trial in TRIALS if "weight" in trial.id or "penal" in trial.id]
)
def test_any_weight_in_single_precision_is_finite_or_refused(case, name):
    try_sizes(case, name, np.float32, SINGLE_SIZES)


@pytest.mark.parametrize(
    ("case", "name"), [trial for trial in TRIALS if re.search("(selection|projection)_w|penalty$", trial.id)]
)
@pytest.mark.parametrize("dtype", [float, np.float32], ids=["double", "single"])
def test_any_weight_beside_a_manifold_weight_of_zero_is_finite_or_refused(case, name, dtype):
    if case.has("manifold_weight"):
        # Between the smallest size and one, weights that divide each other are furthest apart.
        sizes = (1e-300, 1e-60, 1.0) if dtype is float else (1e-36, 1.0)
        try_sizes(case, name, dtype, sizes, manifold_weight=0)


@each("manifold_weight")
def test_a_manifold_weight_that_is_next_to_nothing_is_finite(case):
    # In the unit of the loop it is no normal number, and shares of it may round to zero.
    model = case.make(manifold_weight=1e-300, max_iter=4)
    assert not try_fit(model, case.data(POINTS[:30] * 1e21), "manifold_weight")


@each_of("name", ["selection_weight", "projection_weight"])
def test_a_weight_for_the_smallest_data_there_are_is_finite_or_refused(case, name):
    # One entry, whose share of five clusters is no number any more.
    X = np.zeros((30, 3))
    X[0, 0] = np.nextafter(0, 1)
    try_fit(case.make(n_clusters=5, max_iter=4, **{name: 0.9}), X, name)


@each("init", "penalty")
@pytest.mark.parametrize("penalty", ["auto", 0.1])
def test_a_start_of_any_size_is_finite_or_refused(case, penalty):
    G = np.abs(np.random.default_rng(0).normal(size=(30, 3)))
    for size in (0.0, 1e-320, 1e-300, 1e-100, 1e-60, 1.0, 1e60, 1e100, 1e300):
        model = case.make(n_clusters=3, init=G * size, penalty=penalty, max_iter=4)
        refused = try_fit(model, case.data(POINTS[:30]), "init has entries of up to")
        # With an automatic penalty only its directions count.
        assert refused == (penalty != "auto" and (0 < size < 1e-77 or size > 1e77)), size
