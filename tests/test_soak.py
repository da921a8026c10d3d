"""`make soak` itself: what does not hold is found and can be repeated, also where it hangs or dies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from patience import run_command

pytestmark = pytest.mark.slow

SOAK = Path(__file__).with_name("soak")
# An attack that holds, fails, dies and hangs.
ATTACK = """
import os, time
def attack(number):
    assert number != 1, "one is odd"
    if number == 2:
        os._exit(7)
    if number == 3:
        time.sleep(10_000)
"""
PROGRAM = """
import sys
sys.path[:0] = [{here!r}, {soak!r}]
import run, watchdog
if __name__ == "__main__":
    watchdog.LOOK = 0.1
    run.ATTACKS = {{"attack_of_a_test": run.Attack("a number", 1, 2, 2, 6)}}
    sys.exit(run.main())
"""


@pytest.fixture
def soak(tmp_path):
    (tmp_path / "attack_of_a_test.py").write_text(ATTACK)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(here=str(tmp_path), soak=str(SOAK)))
    return lambda *words: run_command([sys.executable, program, *words])


def test_what_does_not_hold_is_told_with_the_command_that_repeats_it(soak):
    done = soak("--minutes", "1")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].split()[:5] == ["attack_of_a_test", "a", "number", "6", "3"]
    for number, words in {1: "one is odd", 2: "exit code 7", 3: "no end after"}.items():
        told, _, again = done.stdout.partition(f"--trial {number}\n")
        assert again
        assert words in told.rpartition("did not hold")[2]


def test_one_trial_can_be_repeated(soak):
    for number, code in {0: 0, 1: 1}.items():
        done = soak("--trial", str(number), "--markdown")
        assert done.returncode == code, done.stderr
        assert f"| attack_of_a_test | a number | 1 | {1 - code} |" in done.stdout


def test_every_case_and_every_surrounding_has_its_trial():
    code = (
        f"import sys; sys.path.insert(0, {str(SOAK)!r}); import run, estimators, surroundings;"
        "assert run.ATTACKS['lines'].count == len(estimators.CASES);"
        "assert run.ATTACKS['surroundings'].count == len(surroundings.TRIALS)"
    )
    done = run_command([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr


def test_an_attack_that_cannot_begin_has_not_held(soak, tmp_path):
    (tmp_path / "attack_of_a_test.py").write_text("import no_such_module")
    assert soak("--minutes", "1").returncode == 1


# Trials that did not hold once: rows of APMF whose entries came and went for ever, and a row that left IPM no
# direction.
@pytest.mark.parametrize("trial", ["9577", "8820"])
def test_what_was_found_once_is_mended(trial):
    done = run_command([sys.executable, SOAK / "run.py", "--only", "fuzz", "--trial", trial])
    assert done.returncode == 0, done.stdout
