"""Fits on the same points repeat work: neighbours, start, first representation. Do it once.

Inside ``with shared_work() as shared:`` what a fit computes by :func:`remember` is kept, the last result of
every function, and returned again for equal arguments. Outside nothing is kept. A grid of fits on one
data set then pays for its start once, and ``shared.saved`` says how many seconds it did not have to spend.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, ParamSpec, TypeVar

import joblib

from smrmf._parallel import Pool

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class CachedResult(NamedTuple):
    """One result, a hash of what it was made of, and how long that took."""

    key: str
    result: Any
    seconds: float


@dataclass
class SharedWork:
    """The last result of every function that was remembered, and the seconds that were saved so far."""

    results: dict[str, CachedResult] = field(default_factory=dict)
    saved: float = 0.0


_active: ContextVar[SharedWork | None] = ContextVar("shared_work", default=None)


@contextmanager
def shared_work(shared: SharedWork | None = None) -> Iterator[SharedWork]:
    """Share work among the fits inside, and with earlier ones if their ``SharedWork`` is given."""
    shared = SharedWork() if shared is None else shared
    token = _active.set(shared)
    try:
        yield shared
    finally:
        _active.reset(token)


def remember(
    function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Call a function of arrays and numbers, whose result depends on nothing else, or recall its result."""
    shared = _active.get()
    if shared is None:
        return function(*args, **kwargs)
    # Threads never change a result.
    named = sorted((name, value) for name, value in kwargs.items() if not isinstance(value, Pool))
    key = joblib.hash(([value for value in args if not isinstance(value, Pool)], named))
    place = f"{function.__module__}.{function.__qualname__}"
    known = shared.results.get(place)
    if known is not None and known.key == key:
        shared.saved += known.seconds
    else:
        start = time.perf_counter()
        result = function(*args, **kwargs)
        known = shared.results[place] = CachedResult(key, result, time.perf_counter() - start)
    # A copy: the caller may change it in place.
    return deepcopy(known.result)
