"""Show a long evaluation while it runs: what is under way, how much is done, how long it will take."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn
from rich.table import Table
from rich.text import Text

from smrmf_reproduce.run.forecast import Forecast, time_left
from smrmf_reproduce.run.plan import Run
from smrmf_reproduce.run.store import Mark, Record, Store

# Seconds between two lines of a log file.
LOG_PAUSE = 30.0


class RunsBar(Progress):
    """How far all runs are, in words and as a bar, and a line for each run under way."""

    def __init__(self, words: Callable[[], str], store: Store, console: Console) -> None:
        self._words = words
        self._store = store
        columns = (BarColumn(60), TaskProgressColumn())
        super().__init__(*columns, console=console, transient=True, refresh_per_second=2)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Return the words, the bar, and the runs under way as their marks tell."""
        yield Text(self._words(), style="bold")
        yield self.make_tasks_table(self.tasks)
        lines = Table.grid(padding=(0, 2))
        lines.add_column(justify="right", min_width=8)
        lines.add_column(no_wrap=True, overflow="ellipsis")
        for mark in sorted(self._store.under_way().values(), key=lambda mark: mark.process):
            lines.add_row(clock(elapsed(mark)), Text(mark.words))
        yield lines


class RunProgress:
    """Tell how far the runs are: a bar on a terminal, a line now and then in a log file.

    Parameters
    ----------
    pending : sequence of Run
        What is to be done.
    n_done : int
        How many runs were done before.
    forecast : Forecast
        What to expect of a run; learns from every one that finishes.
    """

    def __init__(
        self,
        pending: Sequence[Run],
        n_done: int,
        forecast: Forecast,
        *,
        store: Store,
        jobs: int,
        console: Console,
    ) -> None:
        self._left = {run.key: run for run in pending}
        self._total = n_done + len(pending)
        self._forecast = forecast
        self._jobs = jobs
        self._store = store
        self._console = console
        self._began = time.monotonic()
        self._bar = RunsBar(self.line, store, console)
        self._stop = threading.Event()

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        if self._console.is_terminal:
            done = self._total - len(self._left)
            self._task = self._bar.add_task("runs", total=self._total, completed=done)
            self._bar.start()
        else:
            # A daemon, so that an error in the main thread does not leave the program waiting for it.
            self._thread = threading.Thread(target=self._log, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._console.is_terminal:
            self._bar.stop()
        else:
            self._thread.join()

    def expect(self, pending: Sequence[Run]) -> None:
        """Take in what is to be done now, in place of what was expected before."""
        self._total += len(pending) - len(self._left)
        self._left = {run.key: run for run in pending}
        if self._console.is_terminal:
            self._bar.update(self._task, total=self._total, completed=self._total - len(pending))

    def finished(self, record: Record) -> None:
        """Count a run that has just finished, and learn from it."""
        self._forecast.learn(record)
        self._left.pop(record["key"], None)
        if self._console.is_terminal:
            self._bar.update(self._task, completed=self._total - len(self._left))

    def line(self) -> str:
        """Return in words how many runs are done, and how long it took and will take."""
        under_way = {key: elapsed(mark) for key, mark in self._store.under_way().items()}
        # A copy, because finished() removes runs while the display asks from its own thread.
        left = time_left(self._left.copy(), self._forecast, self._jobs, under_way)
        so_far = clock(time.monotonic() - self._began)
        done = self._total - len(self._left)
        return f"{done} of {self._total} runs, {so_far} so far, about {clock(left)} left"

    def _log(self) -> None:
        # The event is also the clock: __exit__ ends the pause at once.
        while not self._stop.wait(LOG_PAUSE):
            self._console.print(self.line(), highlight=False)


def elapsed(mark: Mark) -> float:
    """Return the seconds since a run began."""
    # Never below zero, although the clock of the machine may be set back.
    return max(0.0, time.time() - mark.began)


def clock(seconds: float) -> str:
    """Write seconds as people say them.

    Examples
    --------
    >>> clock(7.4), clock(312), clock(7500)
    ('7 s', '5 min', '2 h 05 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
