"""A small evaluation on the moons, some seconds long, and how tests of the reproduction carry it out."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

from patience import USUAL, patience, started, wait_until

from smrmf_reproduce.run.runner import execute
from smrmf_reproduce.run.session import Session
from smrmf_reproduce.run.store import Store

PLAN = """
[names]
quick = ["2d-moons"]
[readings]
main = { penalty = 0.1, fill = 0.0 }
[methods.RMNMF]
estimator = "RMNMF"
readings = ["penalty", "fill"]
[methods.RMNMF.grid]
manifold_weight = [0.001, 0.01, 0.1, 1.0, 10.0, 30.0]
tol = [1e-4, 2e-4, 5e-4]
[methods.KMeans]
estimator = "KMeans"
settings = "default"
seeds = 3
[methods.GNMF]
estimator = "GNMF"
grid = { manifold_weight = [-1.0] }
[[experiments]]
name = "moons"
data = ["2d-moons"]
methods = ["RMNMF", "KMeans", "GNMF"]
record = ["picture"]
[quick]
grid_points = 2
seeds = 1
"""
GOOD = ["RMNMF", "KMeans"]
COMMAND = [sys.executable, "-c", "from smrmf.cli import main; main()", "reproduce"]
RESULTS = ("accuracy", "nmi_max", "nmi_arithmetic", "objective", "n_iter", "converged", "params", "seed")


def carry_out(runs, folder, jobs=1):
    """Do the pending ones of these runs; return the session and the keys in the order of their end."""
    session = Session.open(runs, Store(folder))
    finished = []
    for record in execute(session.pending(), session.store, jobs=jobs, data_home=None):
        session.take(record)
        finished.append(record["key"])
    return session, finished


def heed_signals():
    """Undo what a shell does to commands in its background, and ``nohup`` to all, where tests may run."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def start(plan, folder, *more, preexec_fn=heed_signals, **options):
    """Start the command on two processes, in a group of its own that is killed at the end of ``with``."""
    command = [*COMMAND, "--plan", plan, "--output", folder, "--jobs", "2", "--only", ",".join(GOOD), *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return started(command, preexec_fn=preexec_fn, **pipes | options)


def told(process):
    """Return all that a command prints until the last of its processes has ended."""
    return process.communicate(timeout=patience(USUAL))[0]


def wait_for_records(folder, count, process):
    """Wait until a command has saved so many records."""

    def enough():
        assert process.poll() is None, process.stdout.read()
        return len(list((folder / "runs").glob("*.json"))) >= count

    wait_until(enough)


def results(folder):
    """What came out, by key, without what differs from one time to the next."""
    records = [json.loads(path.read_text()) for path in (folder / "runs").glob("*.json")]
    return {r["key"]: {name: r[name] for name in RESULTS} for r in records if r["status"] == "done"}
