"""Random tables and options: a fit ends well or is refused in one sentence, changes nothing, repeats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from cases import documented_attributes
from estimators import CASES
from fuzz_data import contents, random_form, random_table
from fuzz_options import random_options
from support import assert_finite, assert_same, quietly, small_blocks

OWNERS = list(dict.fromkeys(type(case.estimator) for case in CASES if case.documented_by is None))
# Not there where the user's table has no names.
SOMETIMES = {"feature_names_in_"}
# Two lines, and scikit-learn's own; its checks ask for these words.
OF_SKLEARN = "Reshape your data either using"


@dataclass(frozen=True)
class Trial:
    """An estimator and a table, both new, with words that say what they are."""

    model: Any
    X: Any
    words: str

    @classmethod
    def of(cls, number: int) -> Trial:
        """Return the trial of a number."""
        rng = np.random.default_rng(number)
        table, values = random_table(rng)
        X, form = random_form(table, rng)
        owner = OWNERS[rng.integers(len(OWNERS))]
        model = owner(**random_options(owner, table.shape, rng))
        return cls(model, X, f"{model} on {values}, {form}")

    @property
    def given(self) -> list[bytes]:
        """Return the bytes of all arrays that the caller gave."""
        options = self.model.get_params(deep=False).values()
        arrays = [value for value in options if isinstance(value, np.ndarray) or sp.issparse(value)]
        return [part for array in (self.X, *arrays) for part in contents(array)]


def attack(number: int) -> None:
    """Fit twice; check all that must hold of the result, or of the refusal."""
    trial = Trial.of(number)
    try:
        with pytest.MonkeyPatch.context() as patch:
            # Small tables are one block, which threads do not share, so half of the trials cut them up.
            if number % 2:
                small_blocks(patch, 64)
            attack_trial(trial, number)
    except Exception as error:
        error.add_note(" ".join(trial.words.split())[:900])
        raise


def attack_trial(trial: Trial, number: int) -> None:
    if fits(trial):
        check_results(trial)
        again = Trial.of(number)
        assert fits(again), "the second fit was refused"
        if trial.model.get_params().get("random_state", 0) is not None:
            assert_same(trial.model, again.model)


def fits(trial: Trial) -> bool:
    """Fit, and tell whether it was not refused; check that, and that no array of the caller changed."""
    before, given = dict(vars(trial.model)), trial.given
    refusal = None
    try:
        check_warnings(quietly(trial.model.fit, trial.X))
    except (ValueError, TypeError, MemoryError) as error:
        refusal = error
    assert trial.given == given, "an array of the caller has changed"
    if refusal is None:
        return True
    check_refusal(refusal)
    now = vars(trial.model)
    assert now.keys() == before.keys(), "a refused fit has left attributes"
    assert all(now[name] is before[name] for name in before), "a refused fit has changed a parameter"
    return False


def check_warnings(said: list[Any]) -> None:
    """Numbers that ran over, and what another library will no longer do, are faults of ours."""
    for warning in said:
        wrong = RuntimeWarning, DeprecationWarning, FutureWarning, sp.SparseEfficiencyWarning
        assert not issubclass(warning.category, wrong), (
            f"{warning.filename}:{warning.lineno} {warning.message}"
        )


def check_refusal(error: Exception) -> None:
    text = str(error)
    if OF_SKLEARN not in text and not ("\n" not in text and text.endswith(".")):
        raise AssertionError(f"not one sentence: {text!r}") from error


def check_results(trial: Trial) -> None:
    """Check attributes, their shapes, and what the model says of its own training points."""
    model, (n, m) = trial.model, np.shape(trial.X)
    assert_finite(model)
    missing = documented_attributes(type(model)) - SOMETIMES - vars(model).keys()
    assert not missing, f"documented, but not there: {sorted(missing)}"
    # Exemplars of DS3 represent columns of a table of dissimilarities.
    shapes = {"labels_": (n,), "affinity_": (n, n), "representation_": (n, n)}
    for name, shape in shapes.items():
        if hasattr(model, name) and getattr(model, "metric", "") != "precomputed":
            assert getattr(model, name).shape == shape, name
    if hasattr(model, "exemplar_indices_"):
        chosen = model.exemplar_indices_
        assert len(set(chosen)) == len(chosen) == len(model.exemplar_scores_)
        assert all(0 <= row < n for row in chosen)
    if hasattr(model, "components_"):
        c = len(model.components_)
        assert model.components_.shape == (c, m)
        assert model.embedding_.shape == (n, c)
        check_training_points(trial, n, c)


def check_training_points(trial: Trial, n: int, c: int) -> None:
    model, given, found = trial.model, trial.given, []

    def ask() -> None:
        found.extend([model.predict(trial.X), model.transform(trial.X)])

    check_warnings(quietly(ask))
    labels, embedding = found
    assert trial.given == given, "an array of the caller has changed in prediction"
    assert labels.shape == (n,)
    assert set(labels) <= set(model.labels_)
    assert embedding.shape == (n, c)
    assert np.isfinite(embedding).all()
