"""What a fit may remember of an earlier one that was interrupted: by default nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from smrmf._estimator import Warnings

T = TypeVar("T")


class LoopMemory(ABC):
    """The states of a loop, of which the last one may be asked for again."""

    @abstractmethod
    def recall(self, max_iter: int) -> Any:
        """Return the state from which a loop of so many iterations may go on, or None."""

    @abstractmethod
    def see(self, state: Any) -> None:
        """Keep the state after an iteration, if it is time."""

    @abstractmethod
    def end(self, state: Any) -> None:
        """Keep the last state."""


class Memory(ABC):
    """What the stages of a fit have found, each under its name, and may be asked for again.

    ``draws`` are the random numbers of the fit, ``warnings`` what the user must know of its memory.
    """

    draws: np.random.RandomState
    warnings: Warnings

    @abstractmethod
    def recall(self, stage: str) -> Any:
        """Return what a stage has found earlier, or None."""

    @abstractmethod
    def keep(self, stage: str, found: Any) -> None:
        """Keep what a stage has found."""

    @abstractmethod
    def of_loop(self, slots: Any, start: Any, tol: float) -> LoopMemory:
        """Return the same for the states of a loop with these slots, from this start."""

    def once(self, stage: str, find: Callable[[], T]) -> T:
        """Return what a stage has found earlier, or let it find and keep it."""
        found: T | None = self.recall(stage)
        if found is None:
            found = find()
            self.keep(stage, found)
        return found


class NoLoopMemory(LoopMemory):
    """No state is kept."""

    def recall(self, max_iter: int) -> None:
        return None

    def see(self, state: Any) -> None:
        return None

    def end(self, state: Any) -> None:
        return None


class NoMemory(Memory):
    """Nothing is kept."""

    def __init__(self, draws: np.random.RandomState) -> None:
        self.draws = draws
        self.warnings = []

    def recall(self, stage: str) -> None:
        return None

    def keep(self, stage: str, found: Any) -> None:
        return None

    def of_loop(self, slots: Any, start: Any, tol: float) -> LoopMemory:
        return NoLoopMemory()
