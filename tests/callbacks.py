"""Callbacks for tests of any estimator."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any


class Recorder:
    """A callback that keeps what it saw of the iterations and may stop or interrupt the fit."""

    def __init__(self, stop_after: int | None = None, interrupt_after: int | None = None) -> None:
        self.stop_after, self.interrupt_after = stop_after, interrupt_after
        self.steps: list[dict[str, Any]] = []
        self.models: list[Any] = []
        self.torn_down = False

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    def teardown(self, estimator: Any, context: Any) -> None:
        self.torn_down = True

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, metadata: Any = None, fitted_estimator: Any = None
    ) -> bool:
        if context.task_name != "iteration":
            return False
        self.steps.append(metadata)
        self.models.append(fitted_estimator)
        if len(self.steps) == self.interrupt_after:
            raise KeyboardInterrupt
        return len(self.steps) == self.stop_after


class Watcher:
    """A callback that keeps the path of every task, may interrupt or ask to stop at the end of one.

    A task is called by the names from the fit down, such as "fit/search/part". It asks to stop everywhere but
    at iterations, where a loop would heed it.
    """

    def __init__(self, interrupt_at: tuple[str, int] | None = None, asks_to_stop: bool = False) -> None:
        self.interrupt_at, self.asks_to_stop = interrupt_at, asks_to_stop
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.most: dict[str, int | None] = {}
        self.threads: set[int] = set()
        self.torn_down = False

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    def teardown(self, estimator: Any, context: Any) -> None:
        self.torn_down = True

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.threads.add(threading.get_ident())
        self.begun.append(path_of(context))
        self.most[path_of(context)] = context.max_subtasks

    def on_fit_task_end(self, estimator: Any, context: Any) -> bool:
        self.threads.add(threading.get_ident())
        self.ended.append(path_of(context))
        if self.interrupt_at == (self.ended[-1], self.ended.count(self.ended[-1])):
            raise KeyboardInterrupt
        return self.asks_to_stop and context.task_name != "iteration"

    def counts(self) -> Counter[str]:
        """Return how many tasks of every path have ended."""
        return Counter(self.ended)


def path_of(context: Any) -> str:
    """Return the names of a task and of all above it."""
    above = "" if context.parent is None else f"{path_of(context.parent)}/"
    return f"{above}{context.task_name}"
