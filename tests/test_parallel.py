"""Row blocks and the pool of threads."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import sklearn.cluster  # noqa: F401  (loads OpenMP)
from hypothesis import given
from hypothesis import strategies as st
from patience import patience, run_command
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

from smrmf import RMNMF
from smrmf._parallel import BLOCK_ENTRIES, SERIAL, WARNING_FILTERS, row_blocks, thread_pool

POINTS = np.random.default_rng(0).random((40, 3))


@given(st.integers(0, 5000), st.integers(0, 2 * BLOCK_ENTRIES))
def test_blocks_cover_every_row_once_and_stay_small(n_rows, width):
    blocks = row_blocks(n_rows, width)
    rows = [row for block in blocks for row in range(block.start, block.stop)]
    assert rows == list(range(n_rows))
    sizes = [block.stop - block.start for block in blocks]
    assert all(size == 1 or size * width <= BLOCK_ENTRIES for size in sizes)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_results_come_in_the_order_of_the_blocks(n_jobs):
    blocks = row_blocks(40, BLOCK_ENTRIES // 2)
    with thread_pool(n_jobs) as pool:
        assert pool.map(lambda block: block.start, blocks) == list(range(0, 40, 2))
        assert pool.map(lambda block: block.start, []) == []


def test_two_threads_work_at_the_same_time():
    meeting = threading.Barrier(2, timeout=patience(60))
    with thread_pool(2) as pool:
        pool.map(lambda block: meeting.wait(), [slice(0, 1), slice(1, 2)])


def test_one_thread_works_in_place():
    with thread_pool(1) as pool:
        assert pool is SERIAL
        here = pool.map(lambda block: threading.get_ident(), [slice(0, 1), slice(1, 2)])
    assert here == [threading.get_ident()] * 2


def test_rows_of_all_arrays_are_cut_alike():
    A = np.arange(3.0 * BLOCK_ENTRIES).reshape(-1, BLOCK_ENTRIES // 4)
    B = 2 * A
    with thread_pool(2) as pool:
        parts = pool.over_rows(lambda a, b, weight: (b - weight * a).sum(), (A, B), 1.5)
    assert len(parts) == 3
    assert sum(parts) == pytest.approx(0.5 * A.sum())


def test_blas_is_serial_inside_and_restored_outside():
    A = np.ones((2, 2))
    before = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    with thread_pool(2):
        A @ A
        inside = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    after = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert inside
    assert set(inside) == {1}
    assert after == before


def test_errors_in_a_thread_reach_the_caller():
    def fail(block):
        raise ValueError(f"block {block.start}")

    with thread_pool(2) as pool, pytest.raises(ValueError, match="block 0"):
        pool.map(fail, [slice(0, 1), slice(1, 2)])


def test_what_numpy_is_told_of_overflow_holds_in_every_thread():
    meeting = threading.Barrier(2, timeout=patience(60))

    def overflow(block):
        meeting.wait()  # so that both threads take a block
        return np.full(2, 1e308) * 10

    with thread_pool(2) as pool:
        with np.errstate(over="ignore"):
            assert np.isinf(pool.map(overflow, [slice(0, 1), slice(1, 2)])).all()
        with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
            pool.map(overflow, [slice(0, 1), slice(1, 2)])


def test_all_cores_may_be_asked_for():
    with thread_pool(-1) as pool:
        assert pool.map(lambda block: block.stop, row_blocks(3, BLOCK_ENTRIES)) == [1, 2, 3]
        assert (pool is SERIAL) == (joblib.cpu_count() == 1)


def test_overlapping_pools_leave_the_libraries_as_they_were():
    def threads():
        return [library["num_threads"] for library in threadpool_info()]

    before = threads()
    first, second = thread_pool(2), thread_pool(2)
    first.__enter__()
    second.__enter__()
    assert set(threads()) == {1}
    first.__exit__(None, None, None)
    assert set(threads()) == {1}
    second.__exit__(None, None, None)
    assert threads() == before


def openmp_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"]


def test_overlapping_pools_in_two_threads_leave_openmp_as_it_was_in_both():
    # OpenMP counts its threads for every thread: who leaves last cannot lift the limit of the other.
    inside, left = threading.Event(), threading.Event()
    seen = []

    def first():
        before = openmp_threads()
        with thread_pool(1):
            inside.set()
            assert left.wait(patience(30))
        seen.append((before, openmp_threads()))

    def second():
        before = openmp_threads()
        assert inside.wait(patience(30))
        with thread_pool(1):
            seen.append(({1}, set(openmp_threads())))
        seen.append((before, openmp_threads()))
        left.set()

    workers = [threading.Thread(target=work) for work in (first, second)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(seen) == 3
    assert all(expected == found for expected, found in seen), seen


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.skipif(joblib.cpu_count() == 1, reason="one core has one thread in any case")
def test_blas_is_serial_in_any_thread_and_lifted_by_whoever_leaves_last():
    before = blas_threads()
    # Every step in a thread of its own, all alive to the end: none of them has a right of the first.
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        first, second = thread_pool(1), thread_pool(1)
        one.submit(first.__enter__).result()
        assert set(one.submit(blas_threads).result()) == {1}
        two.submit(second.__enter__).result()
        one.submit(first.__exit__, None, None, None).result()
        assert set(two.submit(blas_threads).result()) == {1}
        two.submit(second.__exit__, None, None, None).result()
        assert blas_threads() == before
        with thread_pool(1):
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


def test_openmp_is_serial_in_the_threads_of_a_pool():
    blocks = [slice(0, 1), slice(1, 2)]
    with thread_pool(2) as pool:
        assert pool.map(lambda block: set(openmp_threads()), blocks) == [{1}, {1}]


# A child that warns, forked while a thread of the parent has the filters changed.
FORKED = """
import os, threading, warnings
from smrmf import RMNMF
from smrmf._parallel import WARNING_FILTERS
inside, left = threading.Event(), threading.Event()
def change():
    with WARNING_FILTERS.changed("ignore"), WARNING_FILTERS.changed("always"):
        inside.set()
        left.wait()
worker = threading.Thread(target=change)
worker.start()
inside.wait()
child = os.fork()
if child == 0:
    warnings.warn("said in the child")
    os._exit(0)
left.set()
worker.join()
os.waitpid(child, 0)
warnings.warn("said in the parent")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_while_another_thread_changes_the_filters_has_those_of_before():
    done = run_command([sys.executable, "-c", FORKED])
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("said in the child") == done.stderr.count("said in the parent") == 1


def test_a_fit_warns_while_no_other_thread_has_the_filters_changed():
    # Else its warning would be ignored with the other's, or taken for one of them.
    model = RMNMF(2, init="nndsvd", max_iter=1)  # a start that does not change the filters itself
    inside, fitted = threading.Event(), threading.Event()

    def change():
        with WARNING_FILTERS.changed("always") as caught:
            inside.set()
            fitted.wait(1.0)
        return list(caught)

    def fit_beside():
        with ThreadPoolExecutor(1) as other:
            changing = other.submit(change)
            assert inside.wait(patience(60))
            model.fit(POINTS)
            fitted.set()
            assert changing.result() == []

    with pytest.warns(ConvergenceWarning):
        model.fit(POINTS)  # compiles
    with pytest.warns(ConvergenceWarning):
        fit_beside()


def test_filters_of_warnings_are_changed_by_one_thread_after_the_other():
    filters, inside = list(warnings.filters), []

    def change(_):
        with WARNING_FILTERS.changed("ignore"):
            inside.append(1)
            assert len(inside) == 1
            time.sleep(0.01)
            inside.pop()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(change, range(12)))
    assert warnings.filters == filters
