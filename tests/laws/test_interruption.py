"""Ctrl-C at every line: an interrupted fit leaves the estimator as it was or as it will be, never between."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import pytest
from cases import POINTS, Case
from estimators import CASES, each
from support import assert_same, quietly, results
from threadpoolctl import threadpool_info

from smrmf import _estimator, _parallel

# `make soak` does the same in all other files.
Line = tuple[str, int]


@contextmanager
def tracing(files: Callable[[str], bool], on_line: Callable[[Line], None]) -> Iterator[None]:
    """Call ``on_line`` before every line that runs in some files."""

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not files(frame.f_code.co_filename):
            return None
        if event == "line":
            on_line((frame.f_code.co_filename, frame.f_lineno))
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(outer)


def lines_of(fit: Callable[[], Any], files: Callable[[str], bool]) -> list[Line]:
    """Return the lines that a fit runs, each once, in the order of their first time."""
    seen: dict[Line, None] = {}
    with tracing(files, lambda line: seen.setdefault(line)):
        fit()
    return list(seen)


def interrupt_at(line: Line, fit: Callable[[], Any], files: Callable[[str], bool]) -> None:
    """Run a fit with Ctrl-C before the first time that it comes to a line."""

    def press(now: Line) -> None:
        if now == line:
            sys.settrace(None)  # once: what is undone after it runs in peace
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), tracing(files, press):
        fit()


def check_interruptions(case: Case, files: Callable[[str], bool]) -> int:
    """Interrupt the second fit of an estimator at every line of some files; return how many there are."""
    settings = {"max_iter": 2} if case.has("max_iter") else {}
    old, new = case.usual(), case.data(POINTS[:40] * 2 + 1)

    def fitted_to(X: np.ndarray) -> Any:
        model = case.make(**settings)
        quietly(model.fit, X)
        return model

    later = fitted_to(new)
    threads = blas_threads()
    # Of the fit alone: the making of an estimator has lines too.
    lines = lines_of(partial(quietly, case.make(**settings).fit, new), files)
    model = fitted_to(old)
    for line in lines:
        before = dict(vars(model))
        interrupt_at(line, partial(quietly, model.fit, new), files)
        now = vars(model)
        if now.keys() != before.keys() or any(now[name] is not before[name] for name in before):
            assert_same(later, model)
            assert np.array_equal(getattr(model, "_fit_data", 0), getattr(later, "_fit_data", 0)), line
            model = fitted_to(old)
    # Nothing of the interruptions is left in the libraries, nor in the next result.
    assert_same(later, fitted_to(new))
    assert blas_threads() == threads
    assert results(later)
    return len(lines)


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info()]


def in_files(names: Collection[str]) -> Callable[[str], bool]:
    return lambda name: name in names


@each()
def test_ctrl_c_at_any_line_of_fit_leaves_one_fit_or_the_other(case):
    assert check_interruptions(case, in_files([_estimator.__file__])) >= 15


@pytest.mark.parametrize("name", ["FastSMRMF", "SelectiveRMNMF"])  # one fit, and one with another inside
def test_ctrl_c_at_any_line_of_the_limits_on_threads_is_undone(name):
    (case,) = (case for case in CASES if case.name == name)
    assert check_interruptions(case, in_files([_parallel.__file__])) > 20
