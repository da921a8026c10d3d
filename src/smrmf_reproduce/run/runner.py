"""Do all runs that have no result yet, on all cores; stop at any moment and go on later."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import AbstractContextManager
from pathlib import Path

from joblib.externals.loky.process_executor import ProcessPoolExecutor, TerminatedWorkerError
from threadpoolctl import threadpool_limits

from smrmf_reproduce.run.measure import failed, measure
from smrmf_reproduce.run.plan import Run
from smrmf_reproduce.run.store import Store, sole_use

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
    with sole_use(store.results.parent), display:
        store.forget_marks()
        while pending:
            try:
                _execute_together(pending, store, jobs, data_home)
            except TerminatedWorkerError:
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


def _execute_together(runs: Sequence[Run], store: Store, jobs: int, data_home: str | None) -> None:
    """Do the runs in as many processes; raise TerminatedWorkerError if one of them is killed.

    Also one job has a process of its own, which a lack of memory may end. Ctrl-C is for this process
    alone: it ends the others, and their end cannot be taken for anything else.
    """
    folder, asker = store.results.parent, os.getpid()
    ignore_interrupts = (signal.SIGINT, signal.SIG_IGN)
    workers = ProcessPoolExecutor(jobs, initializer=signal.signal, initargs=ignore_interrupts)
    work = (workers.submit(do_batch, batch, folder, data_home, asker) for batch in batches(runs))
    try:
        # One more than can run at once: workers cannot be ended quietly while more are waiting.
        under_way = set(itertools.islice(work, jobs + 1))
        while under_way:
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for batch in done:
                batch.result()
            under_way |= set(itertools.islice(work, len(done)))
    finally:
        workers.shutdown(kill_workers=True)


def _execute_alone(run: Run, store: Store, data_home: str | None) -> None:
    try:
        _execute_together([run], store, 1, data_home)
    except TerminatedWorkerError as error:
        store.forget_marks()
        store.save(failed(run, ended_by(error)))


def ended_by(error: TerminatedWorkerError) -> str:
    """Say what ended a process, from the exit codes at the end of the error, as ``{SIGKILL(-9)}``."""
    _, _, codes = str(error).rpartition("{")
    if "SIGKILL" in codes:
        return KILLED
    return f"the process ended with {codes.rstrip('}') or 'no exit code'}"


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
