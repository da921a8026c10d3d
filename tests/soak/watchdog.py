"""Trials in a process of their own: one that hangs or dies is a failure, and the next goes on."""

from __future__ import annotations

import faulthandler
import importlib
import multiprocessing
import os
import signal
import sys
import time
import traceback
import warnings
from types import TracebackType
from typing import Any, Self

import pytest
from patience import patience

SPAWN = multiprocessing.get_context("spawn")
# Seconds between two looks at a trial, whose limit grows with the load of the machine.
LOOK = 5.0


class Worker:
    """A process that does trials of one attack, and is replaced when one of them hangs or kills it."""

    def __init__(self, attack: str, seconds: float) -> None:
        self._attack, self._seconds = attack, seconds
        self._begin()

    def _begin(self) -> None:
        self._line, theirs = SPAWN.Pipe()
        self._process = SPAWN.Process(target=serve, args=(self._attack, theirs), daemon=True)
        self._process.start()
        theirs.close()  # or its end would not be seen here
        self._line.recv()  # what it takes to begin is not part of a trial

    def failure_of(self, number: int) -> str:
        """Return what did not hold in a trial, or nothing."""
        self._line.send(number)
        began = time.monotonic()
        while not self._line.poll(LOOK):
            if time.monotonic() - began > patience(self._seconds):
                os.kill(self._process.pid, signal.SIGUSR1)  # prints where it hangs
                time.sleep(1)
                self._replace()
                return f"no end after {time.monotonic() - began:.0f} s"
        try:
            return self._line.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            self._replace()
            return f"the process died with exit code {code}"

    def _replace(self) -> None:
        self._end()
        self._begin()

    def _end(self) -> None:
        self._line.close()
        self._process.terminate()  # an exception in the trial, so that what it has started ends with it
        self._process.join(20)
        if self._process.is_alive():
            self._process.kill()
        self._process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


def serve(name: str, line: Any) -> None:
    """Do the trials whose numbers come over a pipe, and answer with what did not hold."""
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the main process, which ends this one
    # Warnings are no failures unless a trial says so; every trial hears each of them.
    warnings.simplefilter("ignore")
    attack = importlib.import_module(name).attack
    line.send("ready")
    while True:
        try:
            number = line.recv()
        except EOFError:
            return
        failure = ""
        try:
            attack(number)
        except (Exception, pytest.fail.Exception):  # which is none of the former
            failure = traceback.format_exc().strip()
        line.send(failure)
