"""Do all runs that have no result yet, in several processes; safe to stop at any moment and to continue."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from loky.backend import resource_tracker
from loky.process_executor import ProcessPoolExecutor, TerminatedWorkerError
from threadpoolctl import threadpool_limits

from smrmf_reproduce.run.measure import Worker, failed
from smrmf_reproduce.run.plan import Run
from smrmf_reproduce.run.store import Record, Store, sole_use

# Runs that one process does in a row, so that they share their start. Longer batches leave cores
# without work at the end, shorter ones repeat the start in more processes.
BATCH = 8
# Seconds between two looks for new records.
PAUSE = 0.25
KILLED = "the process was killed, most likely because memory ran out; free memory or use fewer --jobs"


def batches(runs: Sequence[Run]) -> Iterator[list[Run]]:
    """Cut the runs into batches of one method on one data set."""
    # Adjacent runs only, not sorted: the plan's order, small sets first, is the order of the work.
    for _, group in itertools.groupby(runs, key=lambda run: (run.data, run.method)):
        while batch := list(itertools.islice(group, BATCH)):
            yield batch


class Awaited:
    """Runs that have no new record yet; what failed at an earlier start has an old one."""

    def __init__(self, runs: Iterable[Run], store: Store) -> None:
        self._store = store
        self._runs = {run.key: run for run in runs}
        self._before = {key: store.stamp(key) for key in self._runs}

    @property
    def runs(self) -> list[Run]:
        """The runs that are still awaited."""
        return list(self._runs.values())

    def arrived(self, runs: Iterable[Run]) -> Iterator[Record]:
        """Return the new records of some of the runs, each once."""
        for key in [run.key for run in runs if run.key in self._runs]:
            # Failed runs are done again and have an old record, which must not be taken for the new one.
            if self._store.stamp(key) != self._before[key] and (record := self._store.read(key)):
                del self._runs[key]
                yield record


def execute(
    runs: Sequence[Run], store: Store, *, jobs: int, data_home: str | None
) -> Generator[Record, None, None]:
    """Do these runs and yield their records; every result is on disk as soon as it is there.

    A worker that is killed takes the others of its pool with it. What was under way then is done again,
    each run in a process of its own, and only a run that is killed alone is recorded as failed.
    """
    with sole_use(store.folder):
        store.forget_marks()
        awaited = Awaited(runs, store)
        while awaited.runs:
            try:
                yield from _execute_together(awaited.runs, awaited, store, jobs, data_home)
            except TerminatedWorkerError:
                # All workers of the broken pool are dead here, so marks do not change any more.
                suspects = store.under_way()
                store.forget_marks()
                # Saved between the last look and the death; a run killed after its save is no suspect either.
                yield from awaited.arrived(awaited.runs)
                # Without a mark it died between two runs: then the next one goes alone, so that any
                # round, however often workers die, has one run less to do.
                for run in [run for run in awaited.runs if run.key in suspects] or awaited.runs[:1]:
                    yield from _execute_alone(run, awaited, store, data_home)
            else:
                break


def _execute_together(
    runs: Sequence[Run], awaited: Awaited, store: Store, jobs: int, data_home: str | None
) -> Iterator[Record]:
    """Do the runs in ``jobs`` processes; raise TerminatedWorkerError if one of them is killed.

    A single job has its own process too, because a lack of memory may end it. Ctrl-C acts on this process
    alone, which then ends the others.
    """
    with worker_pool(jobs, store, data_home) as workers:
        work = ((workers.submit(do_batch, batch), batch) for batch in batches(runs))
        # One more than can run at once: workers cannot be ended quietly while more are waiting.
        under_way: dict[Future[None], list[Run]] = dict(itertools.islice(work, jobs + 1))
        while under_way:
            # Wait first, look second: a record is on disk before its batch is done, so none is missed
            # when the batch leaves under_way.
            done, _ = wait(under_way, timeout=PAUSE, return_when=FIRST_COMPLETED)
            yield from awaited.arrived(run for batch in under_way.values() for run in batch)
            for future in done:
                # Raises what ended a worker.
                future.result()
                del under_way[future]
            under_way |= dict(itertools.islice(work, len(done)))


@contextmanager
def worker_pool(jobs: int, store: Store, data_home: str | None) -> Iterator[ProcessPoolExecutor]:
    """Give processes for runs that end with the block, and with this process, whatever ends it."""
    # Only this process has the second end of the pipe, so only its end, or this block's, closes it. A worker
    # cannot ask for its parent's id instead: on some systems that stays the same.
    life, held = Pipe(duplex=False)
    with life, held:
        start_tracker()
        workers = ProcessPoolExecutor(
            jobs, initializer=begin_process, initargs=(store.folder, data_home, life)
        )
        try:
            yield workers
        finally:
            # Also on Ctrl-C and when the caller closes the generator of records. Runs that are cut off have
            # no record and are pending at the next start.
            workers.shutdown(kill_workers=True)


def start_tracker() -> None:
    """Start the process in which loky keeps its books, such that a closed terminal does not end it."""
    # It ignores Ctrl-C and SIGTERM. Ended by SIGHUP, it would be started again without its books, and print a
    # traceback for every entry that is closed. A signal that is blocked stays blocked in a new process.
    hang_up = [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []  # Windows has none
    before = signal.pthread_sigmask(signal.SIG_BLOCK, hang_up) if hang_up else set()
    try:
        resource_tracker.ensure_running()
    finally:
        if hang_up:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _execute_alone(run: Run, awaited: Awaited, store: Store, data_home: str | None) -> Iterator[Record]:
    try:
        yield from _execute_together([run], awaited, store, 1, data_home)
    except TerminatedWorkerError as error:
        store.forget_marks()
        yield from awaited.arrived([run])  # a run killed after its save has a result
        if run in awaited.runs:
            store.save(failed(run, ended_by(error)))
            yield from awaited.arrived([run])


def ended_by(error: TerminatedWorkerError) -> str:
    """Say what ended a process, from the exit codes that the error has in braces, as ``{SIGKILL(-9)}``."""
    codes = str(error).rpartition("{")[2].partition("}")[0]
    if "SIGKILL" in codes:
        return KILLED
    return f"the process ended with {codes or 'no exit code'}"


@dataclass(frozen=True)
class WorkerProcess:
    """What a worker process keeps from one batch to the next."""

    store: Store
    worker: Worker


# Set in worker processes alone, when they begin.
_process: WorkerProcess | None = None


def begin_process(folder: Path, data_home: str | None, life: Connection) -> None:
    """Prepare a worker process for its batches."""
    global _process
    # Ctrl-C and a closed terminal reach all processes. Only the parent acts on them: a worker that ended by
    # them could be taken for one that was killed.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    # Kernels let other threads run, so this one acts in the middle of a run and of any wait.
    threading.Thread(target=end_with, args=(life,), daemon=True).start()
    _process = WorkerProcess(Store(folder), Worker(data_home))


def end_with(life: Connection) -> None:
    """End this process as soon as the other end of a pipe is closed."""
    with suppress(OSError):  # which is how Windows tells it
        life.poll(None)
    # At once: the run at hand has no record and is pending, and a file half-written is a dot-file that the
    # next start removes. The processes that clean up after workers end when the last worker has.
    os._exit(1)


def do_batch(runs: Iterable[Run]) -> None:
    """Do some runs one after the other, in this process."""
    assert _process is not None, "a batch needs a process that began with begin_process"
    store = _process.store
    # One thread each: processes fill the cores, and seconds of runs stay comparable.
    with threadpool_limits(1):
        for run in runs:
            # A kill between begin and save leaves a mark without a record, which names the run as a suspect;
            # one between save and end leaves both, and the record counts.
            store.begin(run)
            store.save(_process.worker.measure(run))
            store.end(run)
