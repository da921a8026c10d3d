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


# What is being done in the stages of a fit, as far as they have parts to count.
DOING = {"search": "searching neighbours", "start": "looking for a start"}


class FitTeller:
    """A callback of scikit-learn's that tells at which part of which stage, or which iteration, a fit is."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing: a fit begins."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing: a fit has ended."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Tell of a stage."""
        if context.task_name in DOING:
            self.tell(DOING[context.task_name])

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        """Tell of a part of a stage or of an iteration; never ask to stop."""
        if context.task_name == "iteration":
            self.tell(f"iteration {context.task_id + 1}")
        elif context.task_name == "part" and context.parent.task_name in DOING:
            share = (context.task_id + 1) / context.parent.max_subtasks
            self.tell(f"{DOING[context.parent.task_name]} {share:.0%}".replace("%", " %"))
        return False
