"""Do work that fits on the same points have in common once: neighbours, start, first representation.

Inside ``with shared_work() as shared:`` what a fit computes by :func:`remember` is kept, the last result of
every function, and returned again for equal arguments. Outside nothing is kept. A grid of fits on one
data set then pays for its start once, and ``shared.saved`` is the number of seconds saved.
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
from smrmf._progress import Progress

__all__ = ["SharedWork", "remember", "shared_work"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
# Arguments on which no result depends.
UNSEEN = (Pool, Progress)


class CachedResult(NamedTuple):
    """One result, a hash of the arguments it follows from, and the seconds it took."""

    key: str
    result: Any
    seconds: float


@dataclass
class SharedWork:
    """The last result of every remembered function, and the seconds saved."""

    results: dict[str, CachedResult] = field(default_factory=dict)
    saved: float = 0.0


# A context variable instead of a global: fits that run in other threads at the same time have their own.
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
    # Left out of the key: neither the number of threads nor who is told changes a result.
    named = sorted((name, value) for name, value in kwargs.items() if not isinstance(value, UNSEEN))
    key = joblib.hash(([value for value in args if not isinstance(value, UNSEEN)], named))
    place = f"{function.__module__}.{function.__qualname__}"
    known = shared.results.get(place)
    if known is not None and known.key == key:
        shared.saved += known.seconds
    else:
        start = time.perf_counter()
        result = function(*args, **kwargs)
        known = shared.results[place] = CachedResult(key, result, time.perf_counter() - start)
    # A copy, because callers work in place: the loop overwrites its first Z and multiplier.
    return deepcopy(known.result)
