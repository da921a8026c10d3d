"""docs/command_line.md, run as it stands there."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import palmerpenguins
import pytest

from smrmf.cli import run

PAGE = Path(__file__).parents[1] / "docs" / "command_line.md"
PENGUINS = Path(palmerpenguins.__file__).parent / "data" / "penguins.csv"


def test_the_page_says_what_the_commands_print(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = PENGUINS.read_text()
    Path("penguins.csv").write_text(table)
    Path("new.csv").write_text("\n".join(table.splitlines()[:3]))
    steps = re.findall(r"```console\n\$ smrmf (.*?)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(steps) == 5
    for words, wanted in steps:
        assert run(shlex.split(words)) == 0
        printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines()) + "\n"
        same = doctest.OutputChecker().check_output(wanted, printed, doctest.ELLIPSIS)
        if not same:
            pytest.fail(f"$ smrmf {words}\nprinted\n{printed}\nand the page has\n{wanted}")


def test_the_page_names_every_command_and_file_of_results():
    page = PAGE.read_text()
    for name in ("suggest", "fit", "explain", "predict", "select", "demo"):
        assert f"`smrmf {name}" in page
