"""A callback for tests of any estimator."""

from __future__ import annotations

from typing import Any


class Recorder:
    """A callback that keeps what it saw and may stop or interrupt the fit."""

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
