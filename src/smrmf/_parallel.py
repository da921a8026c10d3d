"""Spread row blocks over threads, with the same answer on any number of them.

Blocks have a fixed size that does not depend on the number of threads, each block is computed by
one thread with single-threaded BLAS, and sums over blocks are taken in the order of the blocks.
"""

from __future__ import annotations

import contextvars
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

import joblib
import numpy as np
from threadpoolctl import LibController, OpenBLASController, ThreadpoolController

from smrmf._progress import NOBODY, Progress

B = TypeVar("B")
T = TypeVar("T")

# A block of a megabyte outweighs the hand-over to a thread and still fits in its cache.
BLOCK_ENTRIES = 2**17


def row_blocks(n_rows: int, width: int) -> list[slice]:
    """Cut an array of ``n_rows`` rows and ``width`` columns into consecutive slices of rows."""
    # By the shape only, never by the number of threads: the same blocks, and so the same rounding.
    size = max(1, BLOCK_ENTRIES // max(width, 1))
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


class Pool:
    """Threads for row blocks; one thread runs them in place."""

    def __init__(self, executor: ThreadPoolExecutor | None = None) -> None:
        self._executor = executor

    def map(self, function: Callable[[B], T], blocks: Sequence[B], progress: Progress = NOBODY) -> list[T]:
        """Apply ``function`` to every block; results come in the order of the blocks.

        ``progress`` is told of them in this order, in the thread that calls.
        """
        step, found = progress.steps(len(blocks)), []
        # Who is told may raise: then blocks that no thread has begun are not run.
        with closing(self._results(function, blocks)) as results:
            for result in results:
                found.append(result)
                step()
        return found

    def _results(self, function: Callable[[B], T], blocks: Sequence[B]) -> Generator[T]:
        """Yield the results of the blocks in their order."""
        if self._executor is None or len(blocks) == 1:
            yield from map(function, blocks)
            return
        # What the caller has told NumPy of overflow, a context variable, holds in the threads, too. Each
        # block has a context of its own, as one context is entered by one thread at a time.
        contexts = [contextvars.copy_context() for _ in blocks]
        # Blocks are taken by free threads in any order, results are returned in the order of the blocks.
        yield from self._executor.map(lambda context, block: context.run(function, block), contexts, blocks)

    def over_rows(
        self, function: Callable[..., T], arrays: Sequence[np.ndarray], *parameters: Any
    ) -> list[T]:
        """Apply ``function(*rows, *parameters)`` to blocks of rows cut from all the arrays alike."""
        blocks = row_blocks(*arrays[0].shape)
        return self.map(lambda block: function(*(a[block] for a in arrays), *parameters), blocks)

    def matmul(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return ``A @ B`` of a large dense matrix and another or a vector, by blocks of rows of A."""
        # At least 64 rows: a product of fewer reads all of B for little work.
        size = max(64, BLOCK_ENTRIES // max(A.shape[1], 1))
        out = np.empty((A.shape[0], *B.shape[1:]), np.result_type(A, B))
        blocks = [slice(start, start + size) for start in range(0, A.shape[0], size)]
        self.map(lambda block: np.matmul(A[block], B, out=out[block]), blocks)
        return out


SERIAL = Pool()


@dataclass(frozen=True, eq=False)
class _Use:
    """One fit that needs serial libraries, and the thread it runs in."""

    thread: int = field(default_factory=threading.get_ident)


class _SerialLibraries:
    """Keep BLAS and OpenMP to one thread while any fit runs, in however many threads fits run.

    Most BLAS have one limit for the process: any fit sets it and the last one out lifts it, or fits that
    overlap would lift it for each other. OpenMP has one for every thread, and so a last one out in every
    thread, and a limit to set in every thread that works for a fit.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # Weak, so that a fit which Ctrl-C keeps from signing off is forgotten with its frame: the next one
        # then lifts the limits for both.
        self._uses: weakref.WeakSet[_Use] = weakref.WeakSet()
        # What the limits were, by file and, where every thread has its own, thread.
        self._before: dict[tuple[str, int | None], tuple[LibController, int]] = {}
        if hasattr(os, "register_at_fork"):  # Windows has no fork
            os.register_at_fork(after_in_child=self._begin_child)

    @contextmanager
    def limited(self) -> Iterator[Callable[[], None]]:
        """Limit the libraries to one thread inside; gives what does so in a thread that is started there."""
        use = _Use()
        try:
            libraries = self._enter(use)
            yield partial(limit_this_thread, libraries)
        finally:
            try:
                self._leave(use)
            except BaseException:  # Ctrl-C in the middle of it
                self._leave(use)
                raise

    def _enter(self, use: _Use) -> list[LibController]:
        with self._lock:
            self._uses.add(use)
            libraries = ThreadpoolController().lib_controllers
            for library in libraries:
                owner = use.thread if has_limit_per_thread(library) else None
                # What is known already is limited: its number of now is not its own.
                self._before.setdefault((library.filepath, owner), (library, library.num_threads))
                set_threads(library, 1)
            return libraries

    def _leave(self, use: _Use) -> None:
        with self._lock:
            self._uses.discard(use)
            in_use = {None, *(other.thread for other in self._uses)} if self._uses else set()
            for file, owner in [key for key in self._before if key[1] in {None, use.thread} - in_use]:
                library, n_threads = self._before[file, owner]
                set_threads(library, n_threads)
                del self._before[file, owner]

    def _begin_child(self) -> None:
        """Forget the threads that a fork does not copy; one of them may have held the lock."""
        self._lock = threading.RLock()
        # Their limits stay until the next fit in this process ends: a fork is no moment to start threads.
        self._uses = weakref.WeakSet(use for use in self._uses if use.thread == threading.get_ident())


def has_limit_per_thread(library: LibController) -> bool:
    """Tell whether every thread has a limit of its own: OpenMP, what is built on it, and MKL."""
    layer = getattr(library, "threading_layer", "") if library.internal_api == "openblas" else ""
    return library.user_api == "openmp" or library.internal_api == "mkl" or layer == "openmp"


def set_threads(library: LibController, n_threads: int) -> None:
    """Set the number of threads of a library, from any thread."""
    # Of a limit for the process threadpoolctl gives the control to the first thread that sets it, and ignores
    # all others. Here the lock keeps threads apart, so whoever has it takes control and gives it back.
    OpenBLASController.clear_controlling_thread(force=True)
    library.set_num_threads(n_threads)
    OpenBLASController.clear_controlling_thread(force=True)


def limit_this_thread(libraries: list[LibController]) -> None:
    """Limit libraries that have a limit per thread in a thread that works for a fit and ends with it."""
    for library in libraries:
        if has_limit_per_thread(library):
            set_threads(library, 1)


SERIAL_LIBRARIES = _SerialLibraries()


class _WarningFilters:
    """Change the filters of warnings for a while, one thread after the other.

    They belong to the whole process: of two threads that change them at the same time, the second to leave
    would bring back the changes of the first, for good.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        # Changes that are to be undone, each with the thread that made it.
        self._changes: list[tuple[int, warnings.catch_warnings[Any]]] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_child)

    @contextmanager
    def changed(self, action: Literal["ignore", "always"]) -> Iterator[list[warnings.WarningMessage]]:
        """Ignore or record all warnings inside."""
        change = warnings.catch_warnings(record=True)
        with self.lock, change as caught:
            self._changes.append((threading.get_ident(), change))
            try:
                warnings.simplefilter(action)
                yield caught
            finally:
                self._changes.pop()

    def _begin_child(self) -> None:
        """Undo the changes of a thread that a fork does not copy."""
        self.lock = threading.RLock()
        while self._changes and self._changes[-1][0] != threading.get_ident():
            self._changes.pop()[1].__exit__(None, None, None)


WARNING_FILTERS = _WarningFilters()


@contextmanager
def thread_pool(n_jobs: int | None) -> Iterator[Pool]:
    """Open a pool of ``n_jobs`` threads (joblib's meaning: -1 is all cores) with serial BLAS inside."""
    n_threads = joblib.effective_n_jobs(n_jobs)
    with SERIAL_LIBRARIES.limited() as limit_here:
        if n_threads == 1:
            yield SERIAL
            return
        with ThreadPoolExecutor(n_threads, initializer=limit_here) as executor:
            yield Pool(executor)
