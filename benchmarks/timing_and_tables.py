"""What all benchmarks share: the ``--data`` option, timing of work that takes turns, and lines of tables."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Work = Callable[[], Any]


def argument_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the option ``--data``, the ``data_home`` of ``smrmf.datasets.load``."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="folder of the data sets (default: $SMRMF_DATA, then the cache, then a download)",
    )
    return parser


def seconds(work: Work) -> float:
    """Run some work and return how long it took."""
    # Monotonic, unlike time.time, which the system may set back.
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def seconds_in_turns(*works: Work, repeats: int = 7, summary: Callable[..., Any] = np.median) -> list[float]:
    """Return the median time of each piece of work, or another summary; they are warm and take turns."""
    # Once without a clock: compiles kernels, fills caches, starts threads.
    for work in works:
        work()
    # repeats x works. In turns and not one after the other: a slow phase of the machine then slows
    # all of them down, and ratios stay right.
    times = [[seconds(work) for work in works] for _ in range(repeats)]
    return [float(value) for value in summary(times, axis=0)]


def table_line(title: str, cells: Sequence[str], title_width: int = 22, width: int = 11) -> str:
    """Return a line of a table: a title to the left, cells to the right of their columns."""
    return f"{title:{title_width}s}" + "".join(f"{cell:>{width}s}" for cell in cells)
