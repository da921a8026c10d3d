"""A reproduction that is killed at random moments and started again ends as an undisturbed one."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from moons_plan import start
from patience import group
from reproductions import check_complete, check_end, scratch, surely, undisturbed

from smrmf_reproduce.run.store import Store

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
TIMES = 2
Begin = Callable[..., Any]


def attack(number: int) -> None:
    """Kill the small reproduction of the moons, and let it end."""
    rng = np.random.default_rng(number)
    expected = undisturbed()
    with scratch() as scene:
        begin = lambda **options: start(scene / "plan.toml", scene / "out", **options)  # noqa: E731
        endure(begin, scene, TIMES, expected.seconds, rng)
        check_complete(scene / "out", expected.results)


def endure(begin: Begin, scene: Path, times: int, seconds: float, rng: np.random.Generator) -> None:
    """Start a command, disturb it so many times, and let it end; nothing of it may stay behind."""
    temporary = scene / "temporary"
    temporary.mkdir()
    environment = os.environ | {"TMPDIR": str(temporary)}
    done = []
    try:
        for _ in range(times):
            with begin(env=environment) as process:
                time.sleep(float(rng.uniform(0.1, seconds)))
                number = SIGNALS[rng.integers(len(SIGNALS))]
                done.append(f"{number.name} to {disturb(process, scene / 'out', number, rng)}")
                said = surely(process)
            # A signal that comes before Python has begun, or to the group, ends it as any program.
            check_end(process, said, 0, 1, 128 + number, -number)
        with begin(env=environment) as process:
            check_end(process, surely(process), 0)
        left = list(temporary.rglob("*"))
        assert not left, left
    except Exception as error:
        error.add_note(", then ".join(done))
        raise


def disturb(process: Any, folder: Path, number: signal.Signals, rng: np.random.Generator) -> str:
    """Send a signal to the main process, to the whole group, or to a worker; return to whom."""
    victim = ("the main process", "the group", "a worker")[rng.integers(3)]
    with suppress(ProcessLookupError):  # it may have ended by now
        if victim == "the group":
            os.killpg(process.pid, number)
        elif victim == "a worker" and (workers := at_work(folder, process)):
            os.kill(workers[rng.integers(len(workers))], number)
        else:
            victim = "the main process"
            process.send_signal(number)
    return victim


def at_work(folder: Path, process: Any) -> list[int]:
    """Return the processes that have marked a run as theirs."""
    if not (folder / "running").is_dir():
        return []
    return [mark.process for mark in Store(folder).under_way().values() if mark.process in group(process.pid)]
