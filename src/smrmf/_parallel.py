"""Spread row blocks over threads, with the same answer on any number of them.

Blocks have a fixed size that does not depend on the number of threads, each block is computed by
one thread with single-threaded BLAS, and sums over blocks are taken in the order of the blocks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

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

    def map(self, function: Callable[[B], T], blocks: Sequence[B]) -> list[T]:
        """Apply ``function`` to every block; results come in the order of the blocks."""
        if self._executor is None or len(blocks) == 1:
            return [function(block) for block in blocks]
        # Blocks are taken by free threads in any order, results are returned in the order of the blocks.
        return list(self._executor.map(function, blocks))

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


class _SerialLibraries:
    """Keep BLAS and OpenMP to one thread while any fit runs, in however many threads fits run.

    The first one in sets the limit and the last one out lifts it: otherwise fits that overlap would
    restore each other's limits.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limits: threadpool_limits | None = None

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Limit the libraries to one thread inside."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._limits = threadpool_limits(limits=1)
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0 and self._limits is not None:
                    self._limits.restore_original_limits()


SERIAL_LIBRARIES = _SerialLibraries()


@contextmanager
def thread_pool(n_jobs: int | None) -> Iterator[Pool]:
    """Open a pool of ``n_jobs`` threads (joblib's meaning: -1 is all cores) with serial BLAS inside."""
    n_threads = joblib.effective_n_jobs(n_jobs)
    with SERIAL_LIBRARIES.limited():
        if n_threads == 1:
            yield SERIAL
            return
        with ThreadPoolExecutor(n_threads) as executor:
            yield Pool(executor)
