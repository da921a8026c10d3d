"""Who is told how far a piece of work is: by default nobody."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

# Called after every step of a piece of work, in the thread that asked for the work.
Step = Callable[[], object]


def no_step() -> None:
    """Tell nobody that a step is done."""


class Progress(ABC):
    """Somebody who is told how far a piece of work is; it changes nothing of the work but by raising."""

    @abstractmethod
    def steps(self, total: int) -> Step:
        """Return what to call after each of so many steps."""


class Silence(Progress):
    """Nobody."""

    def steps(self, total: int) -> Step:
        return no_step


NOBODY = Silence()
