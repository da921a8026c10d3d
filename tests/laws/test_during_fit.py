"""What is seen of a fit while it runs: callbacks, interruptions and warnings at the caller's line."""

from __future__ import annotations

import linecache
import threading
import warnings
from functools import partial

import numpy as np
import pytest
from callbacks import Recorder, Watcher
from cases import POINTS
from estimators import each
from sklearn.exceptions import ConvergenceWarning
from support import assert_same, fitted, quietly, results

from smrmf import Checkpoint

# Callbacks


@each()
def test_callbacks_see_the_fit_and_change_nothing(case):
    recorder = Recorder()
    model = case.make().set_callbacks(recorder).fit(case.usual())
    assert_same(fitted(case), model)
    assert recorder.torn_down
    if case.has("n_iter_"):
        assert recorder.steps[-1]["n_iter"] == model.n_iter_
    objectives = [step.get("objective") for step in recorder.steps]
    if case.has("objective_history_"):
        np.testing.assert_allclose(objectives, model.objective_history_)
    if case.has("reconstruction_err_"):
        assert objectives == [model.reconstruction_err_]


@each(law="callbacks see steps")
def test_callbacks_count_the_steps_from_one(case):
    recorder = Recorder()
    case.make().set_callbacks(recorder).fit(case.usual())
    counts = [step["n_iter"] for step in recorder.steps]
    assert counts == list(range(1, len(counts) + 1))
    assert len(counts) > 1


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
    final, seen = results(model), results(recorder.models[-1])
    promised = ("embedding_", "components_") if case.has("transform") else ("exemplar_indices_",)
    for name in ("n_features_in_", *promised, *case.attributes & {"labels_"}):
        np.testing.assert_array_equal(seen[name], final[name], err_msg=name)
    if case.has("predict"):
        np.testing.assert_array_equal(recorder.models[-1].predict(case.usual()), model.labels_)


@each(law="callbacks can stop")
def test_callbacks_can_stop_the_fit(case):
    settings = {"tol": 0} if case.has("max_iter") else {}
    recorder = Recorder(stop_after=2)
    model = case.make(**settings).set_callbacks(recorder)
    # Who asked for the end is not warned of it.
    assert not said_by(model.fit, case.usual())
    assert len(recorder.steps) == 2
    if case.has("converged_"):
        assert not model.converged_
    if case.has("max_iter"):
        assert model.n_iter_ == 2
    else:
        assert len(model.exemplar_indices_) == 2


@each()
def test_callbacks_are_called_in_the_thread_of_the_fit_and_tasks_end_in_their_order(case):
    watcher = Watcher(asks_to_stop=True)
    settings = {"n_jobs": 2} if case.has("n_jobs") else {}
    model = case.make(**settings).set_callbacks(watcher).fit(case.usual())
    assert watcher.threads == {threading.get_ident()}
    assert sorted(watcher.begun) == sorted(watcher.ended)
    assert watcher.begun[0] == watcher.ended[-1] == "fit"
    # Nothing but iterations can be stopped.
    assert_same(fitted(case), model)


@each("penalty")
def test_callbacks_see_three_stages_of_the_loop(case):
    watcher = Watcher()
    model = case.make().set_callbacks(watcher).fit(case.usual())
    stages = ["fit/search", "fit/start", "fit/loop"]
    assert [path for path in watcher.ended if path.count("/") == 1] == stages
    assert watcher.counts()["fit/loop/iteration"] == model.n_iter_
    assert watcher.counts()["fit/search/part"] > 0


def unchanged(model, before):
    """Tell whether an estimator has the very attributes that it had."""
    return vars(model).keys() == before.keys() and all(vars(model)[name] is before[name] for name in before)


def interrupt(case, make):
    """Interrupt a first fit and a second one by a callback, and check what is left of both."""
    new = case.make().set_callbacks(make())
    before = dict(vars(new))
    with pytest.raises(KeyboardInterrupt):
        new.fit(case.usual())
    assert unchanged(new, before)

    recorder = make()
    old = case.make().fit(case.usual()).set_callbacks(recorder)
    before = dict(vars(old))
    with pytest.raises(KeyboardInterrupt):
        old.fit(case.data(POINTS[:40, :4] * 2))
    assert recorder.torn_down
    assert unchanged(old, before)
    assert_same(fitted(case), old)


@each("penalty")
def test_errors_of_a_callback_stay_as_they_are(case):
    class Fails(Recorder):
        def on_fit_task_end(self, *arguments, **settings):
            raise FloatingPointError("of the callback")

    with pytest.raises(FloatingPointError, match=r"^of the callback$"):
        case.make().set_callbacks(Fails()).fit(case.usual())


@each()
def test_a_fit_interrupted_at_once_leaves_what_was(case):
    interrupt(case, partial(Recorder, interrupt_after=1))


@each(law="callbacks can interrupt later")
def test_a_fit_interrupted_later_leaves_what_was(case):
    interrupt(case, partial(Recorder, interrupt_after=2))


@pytest.mark.parametrize("stage", ["search/part", "search", "start", "loop"])
@each("penalty")
def test_a_fit_interrupted_in_any_stage_leaves_what_was(case, stage):
    interrupt(case, partial(Watcher, (f"fit/{stage}", 1)))


@pytest.mark.parametrize("moment", [("fit/search", 1), ("fit/start", 1), ("fit/loop/iteration", 1)], ids=str)
@each("penalty")
def test_an_interrupted_fit_goes_on_from_its_checkpoint(case, moment, tmp_path):
    checkpoint = Checkpoint(tmp_path / "fit.ckpt", seconds=0)
    with pytest.raises(KeyboardInterrupt):
        case.make().set_callbacks(checkpoint, Watcher(moment)).fit(case.usual())
    watcher = Watcher()
    model = case.make().set_callbacks(checkpoint, watcher).fit(case.usual())
    assert_same(fitted(case), model)
    assert "fit/search/part" not in watcher.counts()
    iterations = watcher.counts()["fit/loop/iteration"]
    assert iterations == model.n_iter_ - (moment[0] == "fit/loop/iteration")


# Warnings


def said_by(call, X, about_clusters=False):
    """Return what a call says about clusters, or about its end; the line of the call is ``THE_CALL``."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call(X)
    return [
        w
        for w in said
        if issubclass(w.category, ConvergenceWarning) and ("clusters" in str(w.message)) == about_clusters
    ]


# The line itself: the code that calls said_by is in this file, too, and one level too far up.
THE_CALL = (__file__, "call(X)")


def places(said):
    """Return the file and the line of code that every warning points at."""
    return [(w.filename, linecache.getline(w.filename, w.lineno).strip()) for w in said]


@each("max_iter")
def test_a_fit_that_does_not_converge_says_so_once(case):
    model = case.make(**case.unfinished)
    said = said_by(model.fit, case.usual())
    assert len(said) == 1
    assert "max_iter" in str(said[0].message) or "iterations" in str(said[0].message)
    if case.has("converged_"):
        assert not model.converged_
    assert model.n_iter_ == case.unfinished["max_iter"]


@each("max_iter")
def test_warnings_of_fit_are_at_its_line(case):
    said = said_by(case.make(**case.unfinished).fit, case.usual())
    assert places(said) == [THE_CALL]


@each("max_iter", "fit_predict")
def test_warnings_of_fit_predict_are_at_its_line(case):
    said = said_by(case.make(**case.unfinished).fit_predict, case.usual())
    assert places(said) == [THE_CALL]


@each("max_iter", "fit_transform")
def test_warnings_of_fit_transform_are_at_its_line(case):
    said = said_by(case.make(**case.unfinished).fit_transform, case.usual())
    assert places(said) == [THE_CALL]


@each("max_iter", "fit_select")
def test_warnings_of_fit_select_are_at_its_line(case):
    said = said_by(case.make(**case.unfinished).fit_select, case.usual())
    assert places(said) == [THE_CALL]


@each("n_clusters", law="missing clusters are said")
def test_missing_clusters_are_said_at_the_line_of_fit(case):
    settings, points = case.starved
    model = case.make(n_clusters=3, **settings)
    said = said_by(model.fit, case.data(points), about_clusters=True)
    assert places(said) == [THE_CALL]
    assert "lower n_clusters" in str(said[0].message)


@each("max_iter")
def test_a_tolerance_of_zero_does_all_iterations_in_silence(case):
    model = case.make(max_iter=3, tol=0)
    assert not said_by(model.fit, case.usual())
    assert model.n_iter_ == 3


@each("max_iter", "objective_history_")
def test_a_tolerance_of_zero_does_not_stop_at_equal_objectives(case):
    # On data of zeros the objective soon repeats to the last bit.
    model = case.make(max_iter=60, tol=0)
    quietly(model.fit, np.zeros((20, 3)))
    assert model.n_iter_ == 60
