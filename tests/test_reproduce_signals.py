"""``smrmf reproduce`` ended from outside: nothing of it stays alive, and it says how to go on."""

from __future__ import annotations

import fcntl
import os
import signal
import termios

import pytest
from moons_plan import PLAN, heed_signals, start, told
from patience import group, wait_until

from smrmf.cli._shared import Stopped, stopped_by_signals
from smrmf_reproduce.run.plan import Plan
from smrmf_reproduce.run.store import Store

pytestmark = pytest.mark.slow

# One run that never ends, so that one of two workers is at it and the other has nothing to do.
ENDLESS = PLAN.replace("[0.001, 0.01, 0.1, 1.0, 10.0, 30.0]", "[0.1]").replace(
    "tol = [1e-4, 2e-4, 5e-4]", "tol = [0.0]\nmax_iter = [1_000_000_000]"
)


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "plan.toml"
    path.write_text(ENDLESS)
    assert len(Plan.read(path).select(["RMNMF"])) == 1
    return path


def start_endless(plan, folder, **options):
    return start(plan, folder, "--only", "RMNMF", **options)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (signal.SIGKILL, -signal.SIGKILL),
        (signal.SIGTERM, 128 + signal.SIGTERM),
    ],
    ids=["KILL", "TERM"],
)
def test_no_process_outlives_the_main_one(endless, tmp_path, end, code):
    with start_endless(endless, tmp_path) as process:
        wait_until(lambda: Store(tmp_path).under_way())
        assert len(group(process.pid)) >= 3  # one worker at work, one idle
        process.send_signal(end)  # to the main process alone
        said = told(process)
        wait_until(lambda: not group(process.pid), seconds=60)
    assert process.returncode == code
    if end != signal.SIGKILL:
        assert said.count("goes on from here") == 1
        assert "Traceback" not in said
    assert not list((tmp_path / "runs").iterdir())


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGHUP], ids=["INT", "HUP"])
def test_a_signal_to_all_processes_ends_them_in_order(endless, tmp_path, end):
    with start_endless(endless, tmp_path) as process:
        wait_until(lambda: Store(tmp_path).under_way())
        os.killpg(process.pid, end)
        said = told(process)
        wait_until(lambda: not group(process.pid), seconds=60)
    assert process.returncode == 128 + end
    assert said.count("goes on from here") == 1
    # Of the processes that clean up after workers, too.
    assert "Traceback" not in said
    assert "resource_tracker" not in said


def test_a_worker_that_has_just_begun_does_not_outlive_the_main_process(endless, tmp_path):
    with start_endless(endless, tmp_path) as process:
        # Itself, at most two processes that clean up after workers, and a worker.
        wait_until(lambda: len(group(process.pid)) >= 4, pause=0)
        process.kill()
        wait_until(lambda: not group(process.pid), seconds=60)


def test_a_closed_terminal_ends_all_processes(endless, tmp_path):
    screen, terminal = os.openpty()

    def take_the_terminal():
        heed_signals()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)

    on_it = dict.fromkeys(("stdin", "stdout", "stderr"), terminal)
    with start_endless(endless, tmp_path, preexec_fn=take_the_terminal, **on_it) as process:
        os.close(terminal)
        wait_until(lambda: Store(tmp_path).under_way())
        os.close(screen)  # all processes are told, as the kernel does when a window is closed
        wait_until(lambda: not group(process.pid), seconds=60)


@pytest.fixture
def untouched():
    """Signals as a new process has them; as they were afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    yield
    for number, how in before.items():
        signal.signal(number, how)


def stop_oneself(number):
    with stopped_by_signals():
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        try:
            os.kill(os.getpid(), number)
        finally:
            assert signal.getsignal(number) is signal.SIG_DFL  # the next one ends it at once


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_a_command_once_and_leaves_others_as_they_were(untouched, number):
    with pytest.raises(Stopped) as caught:
        stop_oneself(number)
    assert caught.value.number == number
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
