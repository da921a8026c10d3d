"""Many small fits in one process: memory, threads and open files are those of the beginning. Linux only."""

from __future__ import annotations

import gc
import itertools
import os
from pathlib import Path

from cases import POINTS
from estimators import CASES
from support import quietly
from test_refusals import refused

FITS, WARM_UP = 1500, 300
# What the allocator keeps in pieces; an array of one fit that is not freed would be 1200 times 2 kB.
MEGABYTES = 12


def attack(number: int) -> None:
    """Fit all cases in turns, and compare the process with itself after a warm-up."""
    samples = []
    for done, case in enumerate(itertools.islice(itertools.cycle(CASES), FITS), 1):
        model = case.make(n_jobs=1 + done % 2)
        quietly(model.fit, case.usual()[:40] if case.data(POINTS).shape[1] == 5 else case.usual())
        if case.has("predict"):
            model.predict(case.usual())
        refused(case.make(n_jobs=0), case.usual(), ValueError, "n_jobs=0")
        if done in (WARM_UP, FITS):
            del model
            gc.collect()
            samples.append(usage())
    before, after = samples
    assert after["threads"] <= before["threads"], samples
    assert after["files"] <= before["files"], samples
    assert after["megabytes"] <= before["megabytes"] + MEGABYTES, samples


def usage() -> dict[str, float]:
    """Return what this process has of the system."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "megabytes": pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        "threads": len(os.listdir("/proc/self/task")),
        "files": len(os.listdir("/proc/self/fd")),
    }
