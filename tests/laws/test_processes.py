"""Fits at once in threads and processes, also forked ones: each has the result of one alone."""

from __future__ import annotations

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from estimators import CASES
from loky import get_reusable_executor
from patience import patience, run_command
from support import fitted, results

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("forked_fits.py")


def fit_by_name(name):
    """Fit the usual data of a case, on two threads where it has so many."""
    case = next(case for case in CASES if case.name == name)
    return results(case.make(n_jobs=2).fit(case.usual()))


# One test for all cases: the workers, and the program, take some seconds to begin.


@pytest.mark.filterwarnings("ignore:The graph is empty")
def test_fits_at_once_have_the_result_of_one_alone():
    spawning = multiprocessing.get_context("spawn")
    # Workers of loky are spawned, too: of the plain ones one fit tells enough.
    workers = [
        (ThreadPoolExecutor(3), CASES),
        (get_reusable_executor(2), CASES),
        (ProcessPoolExecutor(1, mp_context=spawning), CASES[:1]),
    ]
    try:
        found = [pool.map(fit_by_name, [case.name for case in cases]) for pool, cases in workers]
        for (pool, cases), outcomes in zip(workers, found, strict=True):
            for case, outcome in zip(cases, outcomes, strict=True):
                same_results(outcome, results(fitted(case)), f"{case} in {type(pool)}")
    finally:
        for pool, _ in workers:
            pool.shutdown()


def same_results(found, alone, where):
    assert found.keys() == alone.keys(), where
    for name, value in alone.items():
        np.testing.assert_array_equal(found[name], value, err_msg=f"{name} of {where}")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_forked_while_a_thread_fits_can_fit():
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, PROGRAM, str(patience(20))]
    done = run_command(command, seconds=250, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [case.name for case in CASES]
