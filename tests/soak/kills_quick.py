"""The same on ``smrmf reproduce --quick``, whose runs are those of the paper: some minutes for one trial."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
from kills import endure
from moons_plan import COMMAND, heed_signals, results
from patience import started
from reproductions import check_complete, check_end, scratch, surely

TIMES = 20


def begin(output: Path, **options: Any) -> Any:
    """Start the command on two processes."""
    command = [*COMMAND, "--quick", "--jobs", "2", "--output", str(output)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return started(command, preexec_fn=heed_signals, **pipes | options)


def attack(number: int) -> None:
    """Do it once in peace, and once with kills."""
    with scratch() as scene:
        began = time.monotonic()
        with begin(scene / "peace") as process:
            check_end(process, surely(process), 0)
        seconds = time.monotonic() - began
        expected = results(scene / "peace")
        assert len(expected) > 50
        rng = np.random.default_rng(number)
        # So early that some runs are left for the last start, and late enough for the first ones to be done.
        endure(lambda **options: begin(scene / "out", **options), scene, TIMES, seconds / 6, rng)
        check_complete(scene / "out", expected)
