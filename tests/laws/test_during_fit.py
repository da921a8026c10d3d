"""What is seen of a fit while it runs: callbacks, interruptions and warnings at the caller's line."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from estimators import POINTS, each
from sklearn.exceptions import ConvergenceWarning
from support import Recorder, assert_same, fitted, quietly, results

# Callbacks


@each()
def test_callbacks_see_every_step_and_change_nothing(case):
    recorder = Recorder()
    model = case.make().set_callbacks(recorder).fit(case.usual())
    assert_same(fitted(case), model)
    assert recorder.torn_down
    counts = [step["n_iter"] for step in recorder.steps]
    if len(counts) > 1:
        assert counts == list(range(1, len(counts) + 1))
    if hasattr(model, "n_iter_"):
        assert counts[-1] == model.n_iter_
    objectives = [step.get("objective") for step in recorder.steps]
    if hasattr(model, "objective_history_"):
        np.testing.assert_allclose(objectives, model.objective_history_)
    if hasattr(model, "reconstruction_err_"):
        assert objectives == [model.reconstruction_err_]


@each("random_state", "n_clusters")
def test_callbacks_draw_no_numbers(case):
    # So many clusters where there are none depend on every number drawn.
    X = case.data(np.random.default_rng(0).normal(size=(60, 4)))
    settings = {"n_clusters": 12} | ({"max_iter": 4, "tol": 0} if case.has("max_iter") else {})
    quiet, seen = case.make(**settings), case.make(**settings).set_callbacks(Recorder())
    for model in (quiet, seen):
        quietly(model.fit, X)
    assert_same(quiet, seen)


@each()
def test_callbacks_are_given_a_model_that_is_as_good_as_fitted(case):
    recorder = Recorder()
    model = case.make().set_callbacks(recorder).fit(case.usual())
    final, seen = results(model), results(recorder.last)
    assert {"labels_", "exemplar_indices_", "n_features_in_"} & seen.keys()
    for name in seen.keys() & {"labels_", "exemplar_indices_", "embedding_", "components_", "n_features_in_"}:
        np.testing.assert_array_equal(seen[name], final[name], err_msg=name)
    if case.has("predict"):
        np.testing.assert_array_equal(recorder.last.predict(case.usual()), model.labels_)


@each(law="callbacks can stop")
def test_callbacks_can_stop_the_fit(case):
    settings = {"tol": 0} if case.has("max_iter") else {}
    recorder = Recorder(stop_after=2)
    model = case.make(**settings).set_callbacks(recorder)
    # Who asked for the end is not warned of it.
    assert not said_by(model.fit, case.usual())
    assert len(recorder.steps) == 2
    assert not getattr(model, "converged_", False)
    if hasattr(model, "n_iter_"):
        assert model.n_iter_ == 2
    if not case.has("max_iter"):
        assert len(model.exemplar_indices_) == 2


def unchanged(model, before):
    """Tell whether an estimator has the very attributes that it had."""
    return vars(model).keys() == before.keys() and all(vars(model)[name] is before[name] for name in before)


def interrupt(case, moment):
    """Interrupt a first fit and a second one at some step, and check what is left of both."""
    new = case.make().set_callbacks(Recorder(interrupt_after=moment))
    before = dict(vars(new))
    with pytest.raises(KeyboardInterrupt):
        new.fit(case.usual())
    assert unchanged(new, before)

    recorder = Recorder(interrupt_after=moment)
    old = case.make().fit(case.usual()).set_callbacks(recorder)
    before = dict(vars(old))
    with pytest.raises(KeyboardInterrupt):
        old.fit(case.data(POINTS[:40, :4] * 2))
    assert recorder.torn_down
    assert unchanged(old, before)
    assert_same(fitted(case), old)


@each()
def test_a_fit_interrupted_at_once_leaves_what_was(case):
    interrupt(case, 1)


@each(law="callbacks can interrupt later")
def test_a_fit_interrupted_later_leaves_what_was(case):
    interrupt(case, 2)


# Warnings


def said_by(call, X):
    """Return the warnings of a call; the line of the caller is in this file."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call(X)
    return [
        w for w in said if issubclass(w.category, ConvergenceWarning) and "clusters" not in str(w.message)
    ]


@each("max_iter")
def test_a_fit_that_does_not_converge_says_so_once(case):
    model = case.make(**case.unfinished)
    said = said_by(model.fit, case.usual())
    assert len(said) == 1
    assert "max_iter" in str(said[0].message) or "iterations" in str(said[0].message)
    assert not getattr(model, "converged_", False)
    assert model.n_iter_ == case.unfinished["max_iter"]


@each("max_iter")
def test_warnings_of_fit_are_at_its_line(case):
    said = said_by(case.make(**case.unfinished).fit, case.usual())
    assert [w.filename for w in said] == [__file__]


@each("max_iter", "fit_predict")
def test_warnings_of_fit_predict_are_at_its_line(case):
    said = said_by(case.make(**case.unfinished).fit_predict, case.usual())
    assert [w.filename for w in said] == [__file__]


@each("max_iter", "fit_transform")
def test_warnings_of_fit_transform_are_at_its_line(case):
    said = said_by(case.make(**case.unfinished).fit_transform, case.usual())
    assert [w.filename for w in said] == [__file__]


@each("max_iter", "fit_select")
def test_warnings_of_fit_select_are_at_its_line(case):
    said = said_by(case.make(**case.unfinished).fit_select, case.usual())
    assert [w.filename for w in said] == [__file__]


@each("n_clusters")
def test_warnings_of_missing_clusters_are_at_the_line_of_fit(case):
    model, X = case.make(n_clusters=4), case.data(np.repeat([[0.0, 1.0], [4.0, 5.0]], 15, axis=0))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X)
    assert {w.filename for w in said} <= {__file__}


@each("max_iter")
def test_a_tolerance_of_zero_does_all_iterations_in_silence(case):
    model = case.make(max_iter=3, tol=0)
    said = [w for w in quietly(model.fit, case.usual()) if "clusters" not in str(w.message)]
    assert not [w for w in said if issubclass(w.category, ConvergenceWarning)]
    assert model.n_iter_ == 3
