"""Many small fits in one process: memory, threads and open files are those of the beginning. Linux only."""

from __future__ import annotations

import gc
import itertools
import os
import tracemalloc
from pathlib import Path

from cases import POINTS
from estimators import CASES
from support import quietly
from test_refusals import refused

FITS, WARM_UP = 1500, 300
# What the allocator keeps in pieces, of arrays and of other libraries.
MEGABYTES = 12
# What Python and NumPy may keep of the second half of the fits: a table of one case that is not freed, 2 kB
# in every 25th fit, would be more.
KILOBYTES = 32


def attack(number: int) -> None:
    """Fit all cases in turns, and compare the process with itself after a warm-up."""
    samples = []
    for done, case in enumerate(itertools.islice(itertools.cycle(CASES), FITS), 1):
        model = case.make(n_jobs=1 + done % 2)
        quietly(model.fit, case.usual()[:40] if case.data(POINTS).shape[1] == 5 else case.usual())
        if case.has("predict"):
            model.predict(case.usual())
        refused(case.make(n_jobs=0), case.usual(), ValueError, "n_jobs=0")
        if done == WARM_UP:
            tracemalloc.start()
        if done in (WARM_UP, (WARM_UP + FITS) // 2, FITS):
            del model
            gc.collect()
            samples.append(usage())
    before, between, after = samples
    assert after["threads"] <= before["threads"], samples
    assert after["files"] <= before["files"], samples
    assert after["megabytes"] <= before["megabytes"] + MEGABYTES, samples
    assert after["kilobytes"] <= between["kilobytes"] + KILOBYTES, samples


def usage() -> dict[str, float]:
    """Return what this process has of the system."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "megabytes": pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        "kilobytes": tracemalloc.get_traced_memory()[0] / 2**10,
        "threads": len(os.listdir("/proc/self/task")),
        "files": len(os.listdir("/proc/self/fd")),
    }
