"""Ctrl-C at every line of the library that a fit runs, for one case after the other."""

from __future__ import annotations

import os

from estimators import CASES
from test_interruption import check_interruptions

import smrmf

PACKAGE = os.path.join(os.path.dirname(smrmf.__file__), "")


def attack(number: int) -> None:
    """Interrupt a fit of the case with this number at every line, each in a fit of its own."""
    case = CASES[number % len(CASES)]
    try:
        assert check_interruptions(case, lambda name: name.startswith(PACKAGE)) > 100
    except BaseException as error:
        error.add_note(f"in {case}")
        raise
