"""Compile numerical kernels on their first call, so that ``import smrmf`` never imports numba.

A kernel is written as a plain function and marked with :func:`kernel`. Its first call imports numba
and compiles it, together with the kernels it calls: serial, without the GIL (threads come from
:mod:`smrmf._parallel`), and cached on disk.
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

# Sums may be reordered so that they vectorise. "nnan" and "ninf" are left out, so that NaN and infinity keep
# their meaning: kernels compare with infinite levels and bounds.
FASTMATH = {"reassoc", "contract", "nsz", "arcp"}
# Kernels are part of those that call them. Otherwise a process that has compiled both would call the one code
# of the callee, and a process that has read both from the cache the other, with sums in another order.
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FASTMATH, "forceinline": True}

# Reentrant: compiling a kernel compiles the kernels that it calls, in the same thread.
_lock = threading.RLock()


def _begin_child() -> None:
    """Forget who compiles at a fork, which copies no other thread, but the lock that one may hold."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_begin_child)


class CompiledKernel:
    """A function that numba compiles when it is first called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        assert isinstance(function, FunctionType)
        self.function = function
        self._dispatcher: Callable[..., Any] | None = None
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any) -> Any:
        # Without the lock: the attribute is set once, and reading it is atomic.
        dispatcher = self._dispatcher
        if dispatcher is None:
            dispatcher = self.compile()
        try:
            return dispatcher(*args)
        except OSError:
            # Of the cache, on a full disk for instance: kernels use no files, and none of them has run yet.
            return self.compile(cached=False)(*args)

    def compile(self, cached: bool = True) -> Callable[..., Any]:
        """Return the compiled function, compiling it and the kernels it names if need be."""
        with _lock:
            if self._dispatcher is None or not cached:
                from numba import njit

                source = self._source(cached)
                try:
                    self._dispatcher = njit(cache=cached, **OPTIONS)(source)
                except RuntimeError:  # there is no folder for the cache that this user may write to
                    self._dispatcher = njit(**OPTIONS)(source)
            return self._dispatcher

    def _source(self, cached: bool) -> FunctionType:
        """Return a copy of the function for numba, which needs two things the original cannot have.

        Its globals must name compiled functions, where those of the module name kernels not yet compiled.
        And as numba's cache on disk only watches the file of a function itself, the copy carries the
        fingerprint of all it calls in its name: code compiled from an older callee is never used.
        """
        original = self.function
        namespace = {
            name: value.compile(cached) if isinstance(value, CompiledKernel) and value is not self else value
            for name, value in self._globals_in_use().items()
        }
        copy = FunctionType(original.__code__, namespace, original.__name__, original.__defaults__)
        copy.__module__ = original.__module__
        copy.__qualname__ = f"{original.__qualname__}-{self.fingerprint()}"
        return copy

    def fingerprint(self) -> str:
        """Return a short hash of this kernel's code, of all it calls, and of how it is compiled."""
        code = self.function.__code__
        uses = sorted(self._globals_in_use().items())
        callees = [value.fingerprint() for _, value in uses if isinstance(value, CompiledKernel)]
        # Numba compiles global numbers in as constants, so a new value needs new code.
        constants = [repr(value) for _, value in uses if isinstance(value, int | float)]
        options = sorted(FASTMATH), OPTIONS["forceinline"]
        text = repr((code.co_code, code.co_consts, code.co_names, callees, constants, options))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def _globals_in_use(self) -> dict[str, Any]:
        everything = self.function.__globals__
        used = set(self.function.__code__.co_names) | {"__name__", "__file__", "__builtins__"}
        return {name: everything[name] for name in used if name in everything}


def kernel(function: Callable[..., Any]) -> CompiledKernel:
    """Mark a function as a kernel: compiled by numba on its first call."""
    return CompiledKernel(function)
