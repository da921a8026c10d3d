"""What attacks on ``smrmf reproduce`` share: the plan on disk, undisturbed results, how a command ended."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from moons_plan import PLAN, results, start, told
from patience import group, wait_until

# How the refusal of a command begins; then the sentence.
REFUSED = "smrmf reproduce: "


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder that is removed at the end, with the plan in it."""
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        (Path(folder) / "plan.toml").write_text(PLAN)
        yield Path(folder)


def surely(process: Any) -> str:
    """Return all that a command prints until it ends; check that nothing of it stays alive."""
    said = told(process)
    wait_until(lambda: not group(process.pid), seconds=60)
    return said


def check_end(process: Any, said: str, *codes: int) -> None:
    """Check the exit code, and that a person is told what is wrong and nothing else."""
    assert process.returncode in codes, (process.returncode, said)
    assert "Traceback" not in said, said
    if process.returncode == 2:
        assert said.count(REFUSED) == 1, said


def check_complete(folder: Path, expected: dict[str, Any]) -> None:
    """Check that all results are there as in an undisturbed run, and nothing that was being written."""
    assert results(folder) == expected
    left = [path for path in folder.rglob("*") if path.name.startswith(".") or path.parent.name == "running"]
    assert not left, left
    assert (folder / "index.html").is_file()


def finish(scene: Path, output: Path, **options: Any) -> None:
    """Start the small reproduction again, undisturbed, and check that it ends as it should."""
    with start(scene / "plan.toml", output, **options) as process:
        check_end(process, surely(process), 0)
    check_complete(output, undisturbed().results)


class Undisturbed:
    """The results of a command that nobody disturbs, and how many seconds it took."""

    def __init__(self, found: dict[str, Any], seconds: float) -> None:
        self.results, self.seconds = found, seconds


@cache
def undisturbed() -> Undisturbed:
    """Do the small reproduction once."""
    with scratch() as scene:
        began = time.monotonic()
        with start(scene / "plan.toml", scene / "out") as process:
            check_end(process, surely(process), 0)
        found = results(scene / "out")
        assert len(found) == 21
        return Undisturbed(found, time.monotonic() - began)
