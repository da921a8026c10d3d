"""Fork while another thread fits, once for every case, and print the cases whose child ended well.

A program of its own: a fork copies the locks of all threads of its process, and that of the tests has many.
Run it with ``OPENBLAS_NUM_THREADS=1``: the fork handler of OpenBLAS can wait for its own threads for ever.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parents[1] / "docs")]

from estimators import CASES  # noqa: E402
from support import assert_same, fitted  # noqa: E402


def keep_fitting(case, stop):
    while not stop.is_set():
        case.make().fit(case.usual())


def ends_well(case, seconds):
    """Fit in a forked process; tell whether it ended with the usual result, and in time."""
    child = os.fork()
    if child == 0:
        try:
            assert_same(fitted(case), case.make().fit(case.usual()))
        except BaseException:
            os._exit(1)
        os._exit(0)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return False


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    shortest = CASES[-1]  # which spends most of its time on entering and leaving
    for case in (shortest, *CASES):
        fitted(case)
    stop = threading.Event()
    busy = threading.Thread(target=keep_fitting, args=(shortest, stop))
    busy.start()
    try:
        for case in CASES:
            time.sleep(0.01)
            if ends_well(case, float(sys.argv[1])):
                print(case, flush=True)
    finally:
        stop.set()
        busy.join()
