"""The benchmarks start: all that they import is where they look for it."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.skipif(not FOLDER.is_dir(), reason="the benchmarks are not distributed with the tests")
@pytest.mark.parametrize(
    "name",
    ["kernels.py", "methods.py", "quality.py", "scale.py", "speed.py", "spread.py", "usual_seconds.py"],
)
def test_help(name, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    monkeypatch.syspath_prepend(FOLDER)
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(FOLDER / name), run_name="__main__")
    assert end.value.code == 0
    assert name in capsys.readouterr().out
