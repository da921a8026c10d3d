"""Somebody who is told what is being done, and how far it is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

# What somebody is told while a stage goes on: an addition to its name, such as "iteration 12".
Tell = Callable[[str], None]
# Given the name of a stage, a context for it.
Stages = Callable[[str], AbstractContextManager[Tell]]


def silent(stage: str) -> AbstractContextManager[Tell]:
    """Tell nobody."""
    return nullcontext(lambda said: None)


class IterationTeller:
    """A callback of scikit-learn's that tells at which iteration a fit is."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell
        self.done = 0

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing: a fit begins."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing: a fit has ended."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing: iterations are told when they end."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Tell of an iteration; never ask to stop."""
        if context.task_name == "iteration":
            self.done += 1
            self.tell(f"iteration {self.done}")
        return False
