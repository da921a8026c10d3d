"""Spread row blocks over threads, with the same answer on any number of them.

Blocks have a fixed size that does not depend on the number of threads, each block is computed by
one thread with single-threaded BLAS, and sums over blocks are taken in the order of the blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import joblib
from threadpoolctl import threadpool_limits

T = TypeVar("T")

BLOCK_ROWS = 256


def row_blocks(n_rows: int, size: int = BLOCK_ROWS) -> list[slice]:
    """Cut ``n_rows`` into consecutive slices of ``size`` rows."""
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


class Pool:
    """Threads for row blocks; one thread runs them in place."""

    def __init__(self, executor: ThreadPoolExecutor | None = None) -> None:
        self._executor = executor

    def map(self, function: Callable[[slice], T], blocks: list[slice]) -> list[T]:
        """Apply ``function`` to every block; results come in the order of the blocks."""
        if self._executor is None or len(blocks) == 1:
            return [function(block) for block in blocks]
        return list(self._executor.map(function, blocks))


SERIAL = Pool()


@contextmanager
def thread_pool(n_jobs: int | None) -> Iterator[Pool]:
    """Open a pool of ``n_jobs`` threads (joblib's meaning: -1 is all cores) with serial BLAS inside."""
    n_threads = joblib.effective_n_jobs(n_jobs)
    with threadpool_limits(limits=1, user_api="blas"):
        if n_threads == 1:
            yield SERIAL
            return
        with ThreadPoolExecutor(n_threads) as executor:
            yield Pool(executor)
