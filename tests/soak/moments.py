"""Real SIGINTs at random moments of a fit, also in the middle of compiled code and of other libraries."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import numpy as np
from cases import POINTS
from estimators import CASES
from support import assert_same, quietly
from test_interruption import blas_threads

TIMES = 20


class Presses:
    """Ctrl-C once, after some seconds, if the block is still running then."""

    def __init__(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
        self._waiting = True

    def _interrupt(self, *_: Any) -> None:
        if self._waiting:
            self._waiting = False
            raise KeyboardInterrupt

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        self._timer.start()

    def __exit__(self, *_: Any) -> None:
        self._waiting = False
        self._timer.cancel()
        self._timer.join()
        signal.signal(signal.SIGINT, self._before)


def attack(number: int) -> None:
    """Interrupt the second fit of an estimator again and again."""
    rng = np.random.default_rng(number)
    case = CASES[rng.integers(len(CASES))]
    options = {"n_jobs": int(rng.integers(1, 3))}
    old, new = case.usual(), case.data(POINTS[:40] * 2 + 1)

    def fitted_to(X: np.ndarray) -> Any:
        model = case.make(**options)
        quietly(model.fit, X)
        return model

    try:
        threads, first = blas_threads(), fitted_to(old)
        began = time.perf_counter()
        later = fitted_to(new)
        usual = time.perf_counter() - began
        for _ in range(TIMES):
            model = fitted_to(old)
            before = dict(vars(model))
            interrupt(model, new, float(rng.uniform(0, 1.1 * usual)))
            unchanged = all(vars(model).get(name) is value for name, value in before.items())
            assert_same(first if unchanged else later, model)
            # At the latest after the next fit nothing of the interruption is left.
            assert_same(later, fitted_to(new))
            assert blas_threads() == threads
    except Exception as error:
        error.add_note(f"in {case}, {options}")
        raise


def interrupt(model: Any, X: np.ndarray, seconds: float) -> None:
    try:
        with Presses(seconds):
            quietly(model.fit, X)
    except KeyboardInterrupt:
        return
