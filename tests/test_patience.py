"""The helper that starts commands for other tests: it waits long enough and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import group, patience, run_command, started, wait_until

pytestmark = pytest.mark.slow

# Starts another process and waits for it, longer than any test; both are in the group it writes down.
HANGS = "sleep 3600 & echo $$ > {note}; wait"
# A test of somebody's that starts such a command and is cut off by pytest.
CUT_OFF = """
import pytest
from patience import run_command

@pytest.mark.timeout({seconds})
def test_hangs():
    run_command(["bash", "-c", {command!r}], seconds=3600)
"""


def hanging(note):
    return ["bash", "-c", HANGS.format(note=note)]


def test_a_command_that_takes_too_long_leaves_no_process_behind(tmp_path):
    note = tmp_path / "leader"
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(hanging(note), seconds=2)
    wait_until(lambda: not group(int(note.read_text())))


def test_a_test_that_is_cut_off_leaves_no_process_behind(tmp_path):
    note, test = tmp_path / "leader", tmp_path / "test_cut_off.py"
    test.write_text(CUT_OFF.format(command=hanging(note)[-1], seconds=patience(3)))
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", tmp_path, test]
    done = run_command(words, env=os.environ | {"PYTHONPATH": path}, cwd=tmp_path)
    assert done.returncode == 1
    assert "Timeout" in done.stdout
    wait_until(lambda: not group(int(note.read_text())))


def test_what_a_finished_command_leaves_running_is_ended_too(tmp_path):
    with started(["bash", "-c", "sleep 3600 &"]) as process:
        process.wait(patience(60))
        assert group(process.pid)
    wait_until(lambda: not group(process.pid))


def test_a_command_ends_with_its_code_and_all_that_it_printed():
    done = run_command(["bash", "-c", "echo one; echo two >&2; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "one\n", "two\n")


@pytest.mark.parametrize(("load", "expected"), [(0.0, 10), (1.0, 10), (3.0, 30)])
def test_a_busy_machine_gets_more_time(monkeypatch, load, expected):
    monkeypatch.setattr("patience.cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (2 * load, 0.0, 0.0))
    assert patience(10) == pytest.approx(expected)
