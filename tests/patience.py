"""Commands that tests start: more time on a busy machine, and nothing that outlives the test."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import contextmanager, suppress

from joblib import cpu_count

# Many times what any command of the tests needs alone: only one that hangs is cut off.
USUAL = 300


def patience(seconds):
    """Return these seconds of an idle machine as seconds of this one: as many times more as work waits."""
    return seconds * max(1.0, os.getloadavg()[0] / cpu_count())


def wait_until(condition, seconds=USUAL, pause=0.02):
    """Wait until a condition holds; fail when patience is at its end."""
    deadline = time.monotonic() + patience(seconds)
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {condition.__name__}"
        time.sleep(pause)


def group(leader):
    """Return the processes that are alive in a process group."""
    # Zombies are dead: who has to collect them depends on the system, not on us.
    listed = subprocess.check_output(["ps", "-A", "-o", "pid=,pgid=,stat="], text=True)
    rows = (line.split() for line in listed.splitlines())
    return [int(pid) for pid, of, state in rows if int(of) == leader and not state.startswith("Z")]


@contextmanager
def started(command, **options):
    """Start a command in a process group of its own, and kill what is left of the group at the end."""
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            # Also when pytest's own timeout strikes, which raises in the test.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def run_command(command, seconds=USUAL, **options):
    """Run a command to its end and return what it printed; kill all that it started if it takes too long."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with started(command, **pipes | options) as process:
        printed = process.communicate(timeout=patience(seconds))
    return subprocess.CompletedProcess(command, process.returncode, *printed)
