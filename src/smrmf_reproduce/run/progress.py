"""Show a long evaluation while it runs: what is under way, how much is done, how long it will take."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from smrmf.datasets import list_datasets
from smrmf_reproduce.run.plan import Run
from smrmf_reproduce.run.store import DONE, Store

MOONS_SIZE = 500
# Seconds grow about so with the number of points: between n, as fixed costs let them, and n^2.
GROWTH = 1.5
# Seconds for a run nothing is known of, per n^1.5.
USUAL_RATE = 3e-5


class Forecast:
    """Expect of a run what runs of its method took, those on the same data set first.

    Seconds on other data sets are scaled by their sizes, all of them together, so that the large ones, which
    say most about what is to come, weigh most.
    """

    def __init__(self, records: Sequence[dict[str, Any]], data_home: str | None) -> None:
        self._points = {info.name: info.n or info.raw_n for info in list_datasets(data_home)}
        self._seconds: dict[tuple[str, ...], float] = defaultdict(float)
        self._sizes: dict[tuple[str, ...], float] = defaultdict(float)
        for record in records:
            self.learn(record)

    def learn(self, record: dict[str, Any]) -> None:
        """Take in a finished run."""
        if record["spent"] is not None:
            for known in ((record["method"],), (record["method"], record["data"])):
                self._seconds[known] += record["spent"]
                self._sizes[known] += self._size(record["data"])

    def __call__(self, run: Run) -> float:
        """Return the seconds to expect."""
        known = (run.method, run.data) if (run.method, run.data) in self._seconds else (run.method,)
        rate = self._seconds[known] / self._sizes[known] if known in self._seconds else USUAL_RATE
        return rate * self._size(run.data)

    def _size(self, data: str) -> float:
        return float(self._points.get(data, MOONS_SIZE) ** GROWTH)


class Display:
    """A live display of the runs, fed by what the workers write to the store."""

    def __init__(
        self, runs: Sequence[Run], store: Store, jobs: int, console: Any, data_home: str | None = None
    ) -> None:
        self._runs = {run.key: run for run in runs}
        self._store = store
        self._jobs = jobs
        self._console = console
        self._data_home = data_home
        self._stop = threading.Event()
        self._seen: dict[str, float] = {}

    def __enter__(self) -> Self:
        from rich.live import Live

        records = self._store.records(self._runs.values())
        done = [record for record in records if record["status"] == DONE]
        self._forecast = Forecast(done, self._data_home)
        self._known = {record["key"] for record in done}
        # What failed at an earlier start is tried again: its record counts from the next one on.
        self._tried = {record["key"]: record["started"] for record in records}
        self._began = time.monotonic()
        self._live = Live(console=self._console, refresh_per_second=2, transient=True)
        self._live.start()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._live.stop()

    def _watch(self) -> None:
        announced = time.monotonic()
        while not self._stop.wait(0.5):
            self._learn()
            if self._console.is_terminal:
                self._live.update(self._screen())
            elif time.monotonic() - announced > 30:  # a log file gets a line now and then
                announced = time.monotonic()
                self._console.print(self._line(), highlight=False)

    def _learn(self) -> None:
        for key in self._store.recorded() - self._known:
            record = self._store.read(key) if key in self._runs else None
            if record and record["started"] != self._tried.get(key):
                self._forecast.learn(record)
                self._known.add(key)

    def _line(self) -> str:
        left = sum(self._forecast(run) for key, run in self._runs.items() if key not in self._known)
        so_far, to_go = clock(time.monotonic() - self._began), clock(left / self._jobs)
        return f"{len(self._known)} of {len(self._runs)} runs, {so_far} so far, about {to_go} left"

    def _screen(self) -> Any:
        from rich.console import Group
        from rich.padding import Padding
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        now = time.monotonic()
        under_way = self._store.under_way()
        self._seen = {key: self._seen.get(key, now) for key in under_way}
        lines = [f"  {clock(now - self._seen[key]):>8}  {mark.words}" for key, mark in under_way.items()]
        bar = ProgressBar(total=len(self._runs), completed=len(self._known), width=60)
        return Group(
            Text(self._line(), style="bold"), Padding(bar, (0, 2)), Text("\n".join(lines), style="dim")
        )


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
