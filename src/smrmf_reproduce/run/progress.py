"""Show a long evaluation while it runs: what is under way, how much is done, how long it will take."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn
from rich.table import Table
from rich.text import Text

from smrmf_reproduce.run.plan import Run
from smrmf_reproduce.run.store import Record, Store

SIMULATED_SIZE = 500
# Seconds grow about so with the number of points: between n, as fixed costs let them, and n^2.
GROWTH = 1.5
# Seconds for a run nothing is known of, per n^1.5.
USUAL_RATE = 3e-5
# Seconds between two lines of a log file.
LOG_PAUSE = 30.0


class Forecast:
    """Predict the seconds of a run from those of its method, on the same data set where there are any.

    Seconds on other data sets are scaled by their sizes. The rate is the sum of all seconds over the sum of
    all sizes, not a mean of rates, so that large sets weigh most: they are most of the work that remains.
    """

    def __init__(self, records: Iterable[Record], n_points: Mapping[str, int]) -> None:
        self._points = n_points
        self._seconds: dict[tuple[str, ...], float] = defaultdict(float)
        self._sizes: dict[tuple[str, ...], float] = defaultdict(float)
        for record in records:
            self.learn(record)

    def learn(self, record: Record) -> None:
        """Take in a finished run."""
        # What was spent, not ``seconds``: shared work is not done again, so it takes no time here either.
        if record["spent"] is not None:
            for known in ((record["method"],), (record["method"], record["data"])):
                # In this order: the display asks from another thread, and must not divide by nothing.
                self._sizes[known] += self._size(record["data"])
                self._seconds[known] += record["spent"]

    def __call__(self, run: Run) -> float:
        """Return the predicted seconds."""
        known = (run.method, run.data) if (run.method, run.data) in self._seconds else (run.method,)
        rate = self._seconds[known] / self._sizes[known] if known in self._seconds else USUAL_RATE
        return rate * self._size(run.data)

    def _size(self, data: str) -> float:
        return float(self._points.get(data, SIMULATED_SIZE) ** GROWTH)


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
            lines.add_row(clock(max(0.0, time.time() - mark.began)), Text(mark.words))
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

    def finished(self, record: Record) -> None:
        """Count a run that has just finished, and learn from it."""
        self._forecast.learn(record)
        self._left.pop(record["key"], None)
        if self._console.is_terminal:
            self._bar.update(self._task, completed=self._total - len(self._left))

    def line(self) -> str:
        """Return in words how many runs are done, and how long it took and will take."""
        # A copy, because finished() removes runs while the display asks from its own thread.
        left = sum(self._forecast(run) for run in list(self._left.values())) / self._jobs
        so_far = clock(time.monotonic() - self._began)
        done = self._total - len(self._left)
        return f"{done} of {self._total} runs, {so_far} so far, about {clock(left)} left"

    def _log(self) -> None:
        # The event is also the clock: __exit__ ends the pause at once.
        while not self._stop.wait(LOG_PAUSE):
            self._console.print(self.line(), highlight=False)


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
