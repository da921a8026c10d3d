"""Fits on the same points repeat work: neighbours, start, first representation. Do it once.

Inside ``with shared_work() as shared:`` a function marked ``@shareable`` remembers its last result and
returns it again for equal arguments. Outside nothing is remembered. A grid of fits on one data set then
pays for its start once, and ``shared.saved`` says how many seconds it did not have to spend.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import joblib

from smrmf._parallel import Pool

Function = TypeVar("Function", bound=Callable[..., Any])


class Memory(NamedTuple):
    """One result, what it was made of, and how long that took."""

    key: str
    result: Any
    seconds: float


@dataclass
class SharedWork:
    """The last result of every shareable function, and the seconds that were saved so far."""

    memories: dict[str, Memory] = field(default_factory=dict)
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


def shareable(function: Function) -> Function:
    """Mark a function of arrays and numbers whose result depends on nothing else."""
    name = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        shared = _active.get()
        if shared is None:
            return function(*args, **kwargs)
        # Threads never change a result.
        named = sorted((word, value) for word, value in kwargs.items() if not isinstance(value, Pool))
        key = joblib.hash(([value for value in args if not isinstance(value, Pool)], named))
        known = shared.memories.get(name)
        if known is not None and known.key == key:
            shared.saved += known.seconds
        else:
            start = time.perf_counter()
            result = function(*args, **kwargs)
            known = shared.memories[name] = Memory(key, result, time.perf_counter() - start)
        # A copy: the caller may go on in place.
        return deepcopy(known.result)

    return wrapper  # type: ignore[return-value]
