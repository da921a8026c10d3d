"""Do all runs that have no result yet, on all cores; stop at any moment and go on later."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import FrameType

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits

from smrmf.reproduce.measure import failed, measure
from smrmf.reproduce.plan import Run
from smrmf.reproduce.store import Store

# Runs that one process does in a row, so that they share their start.
BATCH = 8
KILLED = "the process was killed, most likely because memory ran out; free memory or use fewer --jobs"


def batches(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Cut the runs into batches of one method on one data set."""
    for _, group in itertools.groupby(runs, key=lambda run: (run.data, run.method)):
        while batch := list(itertools.islice(group, BATCH)):
            yield batch


def execute(
    runs: Sequence[Run],
    store: Store,
    *,
    jobs: int,
    data_home: str | None,
    display: AbstractContextManager[object],
) -> None:
    """Do the pending ones of these runs; every result is on disk as soon as it is there.

    A worker that is killed takes the others of its pool with it. What was under way then is done again,
    each run in a process of its own, and only a run that is killed alone is recorded as failed.
    """
    pending = store.pending(runs)
    # What failed at an earlier start has a record, and is tried again all the same.
    before = {record["key"]: record["started"] for record in store.records(pending)}
    store.forget_marks()
    with display, remembered_interrupt() as interrupted:
        while pending:
            try:
                _execute_together(pending, store, jobs, data_home)
            except TerminatedWorkerError:
                # Ctrl-C also ends the workers, and their end may hide it.
                if interrupted.is_set():
                    raise KeyboardInterrupt from None
                suspects = store.under_way()
                store.forget_marks()
                # Without a mark it died between two runs: then the next one goes alone, so that any
                # round, however often workers die, has one run less to do.
                for run in [run for run in pending if run.key in suspects] or pending[:1]:
                    _execute_alone(run, store, data_home)
            else:
                break
            now = {record["key"]: record["started"] for record in store.records(pending)}
            pending = [run for run in pending if now.get(run.key) == before.get(run.key)]


@contextmanager
def remembered_interrupt() -> Iterator[threading.Event]:
    """Remember that Ctrl-C was pressed, whatever becomes of its exception on the way."""
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # signals are not ours to handle
        yield pressed
        return
    usual = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: FrameType | None) -> None:
        pressed.set()
        if callable(usual):
            usual(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, usual)


def _execute_together(runs: Sequence[Run], store: Store, jobs: int, data_home: str | None) -> None:
    """Do the runs in as many processes; raise TerminatedWorkerError if one of them is killed."""
    if jobs == 1:  # joblib would do them in this process, which a lack of memory would end
        if status := _status_of_own_process(runs, store, data_home):
            raise TerminatedWorkerError(ended_by(status))
        return
    folder, asker = store.results.parent, os.getpid()
    with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        parallel = joblib.Parallel(batch_size=1, pre_dispatch="1.5*n_jobs", return_as="generator_unordered")
        work = (joblib.delayed(do_batch)(batch, folder, data_home, asker) for batch in batches(runs))
        for _ in parallel(work):
            pass


def _execute_alone(run: Run, store: Store, data_home: str | None) -> None:
    status = _status_of_own_process([run], store, data_home)
    store.forget_marks()
    if status:
        store.save(failed(run, ended_by(status)))


def _status_of_own_process(runs: Sequence[Run], store: Store, data_home: str | None) -> int | None:
    """Do the runs in a process of their own and return its exit status."""
    process = multiprocessing.get_context("spawn").Process(
        target=do_batch, args=(runs, store.results.parent, data_home, os.getpid()), daemon=True
    )
    process.start()
    process.join()
    return process.exitcode


def ended_by(status: int) -> str:
    """Say what ended a process, from its exit status."""
    if status == -signal.SIGKILL:
        return KILLED
    name = signal.Signals(-status).name if status < 0 else f"status {status}"
    return f"the process ended with {name}"


def do_batch(runs: Iterable[Run], folder: Path, data_home: str | None, asker: int) -> None:
    """Do some runs one after the other, in this process, as long as the one that asked for them lives."""
    store = Store(folder)
    with threadpool_limits(1):
        for run in runs:
            if asker != os.getppid():
                return
            store.begin(run)
            store.save(measure(run, data_home))
            store.end(run)
