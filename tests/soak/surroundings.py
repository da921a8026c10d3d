"""Commands where the disk, the folder, the pipe, the clock or the settings are bad: a sentence or success."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moons_plan import COMMAND, start, wait_for_records
from mounts import small_disk
from patience import run_command, wait_until
from reproductions import REFUSED, check_complete, check_end, finish, scratch, surely, undisturbed
from test_reproduce_names import ASCII

from smrmf_reproduce.run.store import Store

SMRMF = COMMAND[:-1]
FIT = """
import numpy as np
from smrmf import FastSMRMF
X = np.random.default_rng(0).normal(size=(40, 3))
print(FastSMRMF(2, random_state=0).fit(X).labels_.sum())
"""


def attack(number: int) -> None:
    """Do the trial of this number."""
    trial = TRIALS[number % len(TRIALS)]
    try:
        with scratch() as scene:
            trial(scene)
    except Exception as error:
        error.add_note(f"in {trial.__name__}")
        raise


# The disk


def full_disk(scene: Path) -> None:
    with small_disk(scene / "disk", "1m") as disk:  # room for some records
        output = disk.folder / "out"
        with start(scene / "plan.toml", output, **disk.limits) as process:
            check_end(process, surely(process), 2)
        assert all(json.loads(path.read_text()) for path in (output / "runs").glob("*.json"))
        disk.make_room()
        finish(scene, output)


def full_disk_for_the_page(scene: Path) -> None:
    with small_disk(scene / "disk", largest_file=4000) as disk:
        output = disk.folder / "out"
        finish(scene, output)
        page = (output / "index.html").read_bytes()
        with disk.filled(), start(scene / "plan.toml", output, **disk.limits) as process:
            check_end(process, surely(process), 2)
        assert (output / "index.html").read_bytes() == page
        finish(scene, output)


def full_cache(scene: Path) -> None:
    with small_disk(scene / "disk", "8k") as disk:
        check_fit(os.environ | {"NUMBA_CACHE_DIR": str(disk.folder)}, **disk.limits)


def read_only_folder(scene: Path) -> None:
    with small_disk(scene / "disk") as disk:
        disk.forbid_writing()
        for output in (disk.folder, disk.folder / "out"):
            with start(scene / "plan.toml", output) as process:
                check_end(process, surely(process), 2)


def read_only_cache(scene: Path) -> None:
    with small_disk(scene / "disk") as disk:
        disk.forbid_writing()
        check_fit(os.environ | {"NUMBA_CACHE_DIR": str(disk.folder), "HOME": str(disk.folder)})


def folder_removed_under_way(scene: Path) -> None:
    with start(scene / "plan.toml", scene / "out") as process:
        wait_for_records(scene / "out", 2, process)
        shutil.rmtree(scene / "out", ignore_errors=True)
        check_end(process, surely(process), 0, 1, 2)
    finish(scene, scene / "out")


# The terminal


def closed_pipe(scene: Path) -> None:
    for words in ("data", "reproduce --list", "--help", "reproduce --help"):
        for reader in ("true", "head -1"):
            # The shell's own exit code of the first command; 141 is what the system gives a closed pipe.
            command = ["bash", "-c", f'"$@" {words} | {reader}; exit ${{PIPESTATUS[0]}}', "bash", *SMRMF]
            done = run_command(command)
            assert done.returncode in (0, 1, 141), (words, done)
            assert not done.stderr, (words, reader, done.stderr)


def closed_pipe_under_way(scene: Path) -> None:
    reading, writing = os.pipe()
    with start(scene / "plan.toml", scene / "out", stdout=writing, stderr=subprocess.PIPE) as process:
        os.close(writing)
        os.close(reading)
        process.wait()
        said = process.communicate()[1]
    assert "Traceback" not in said, said
    finish(scene, scene / "out")


def ascii_locale(scene: Path) -> None:
    finish(scene, scene / "où", env=os.environ | ASCII)


# The clock

JUMPS = """
import random, time
real, wall = time.time, random.Random(3)
time.time = lambda: real() + wall.choice([-1e9, -3600, 0, 0, 3600, 1e9])
"""


def jumping_clock(scene: Path) -> None:
    (scene / "sitecustomize.py").write_text(JUMPS)
    path = os.pathsep.join([str(scene), os.environ.get("PYTHONPATH", "")])
    finish(scene, scene / "out", env=os.environ | {"PYTHONPATH": path})


def records_of_the_future(scene: Path) -> None:
    finish(scene, scene / "out")
    records = sorted((scene / "out" / "runs").glob("*.json"))
    moments = ("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "2999-01-01T00:00:00+00:00")
    for path, moment in zip(records, moments, strict=False):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"started": moment}))
        os.utime(path, (2**33, 2**33))
    finish(scene, scene / "out")


# The rest


def no_home(scene: Path) -> None:
    bare = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    for environment in (bare, bare | {"HOME": "/nowhere"}):
        listed = run_command([*SMRMF, "data"], env=environment)
        assert (listed.returncode, listed.stderr) == (0, "")
        check_fit(environment)
    finish(scene, scene / "out", env=bare | {"HOME": "/nowhere"})


def check_fit(environment: dict[str, str], **options: Any) -> None:
    done = run_command([COMMAND[0], "-c", FIT], env=environment, **options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().isdigit()


def two_commands_at_once(scene: Path) -> None:
    with start(scene / "plan.toml", scene / "out") as first:
        wait_until(lambda: (scene / "out").is_dir() and Store(scene / "out").under_way())
        with start(scene / "plan.toml", scene / "out") as second:
            check_end(second, surely(second), 0, 2)
        check_end(first, surely(first), 0)
    check_complete(scene / "out", undisturbed().results)


def stopped_twice(scene: Path) -> None:
    """Ctrl-C by someone who cannot wait, and presses it again."""
    with start(scene / "plan.toml", scene / "out") as process:
        wait_for_records(scene / "out", 2, process)
        for _ in range(3):
            process.send_signal(2)
            time.sleep(0.05)
        said = surely(process)
    assert REFUSED not in said
    finish(scene, scene / "out")


TRIALS: tuple[Callable[[Path], Any], ...] = (
    full_disk,
    full_disk_for_the_page,
    full_cache,
    read_only_folder,
    read_only_cache,
    folder_removed_under_way,
    closed_pipe,
    closed_pipe_under_way,
    ascii_locale,
    jumping_clock,
    records_of_the_future,
    no_home,
    two_commands_at_once,
    stopped_twice,
)
