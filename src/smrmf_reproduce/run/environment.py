"""What a run ran on: versions, machine, and the memory it took."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import version
from typing import Any

LIBRARIES = ("smrmf", "numpy", "scipy", "scikit-learn", "numba")


@cache
def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that compute."""
    return {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES}


@cache
def machine() -> dict[str, Any]:
    """Describe the machine, without its name."""
    # No host name: records are published with the page.
    found: dict[str, Any] = {"system": platform.system(), "cpu": _processor(), "cores": os.cpu_count()}
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        found["memory_gb"] = round(memory / 1e9, 1)
    return found


def _processor() -> str:
    try:
        # platform.processor() is empty or only the architecture on many Linux systems.
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or platform.machine()


def forget_peak_memory() -> None:
    """Reset the peak of memory to what is held at this moment, where the system can (Linux)."""
    try:
        # 5 resets VmHWM, the peak. Without it the largest run of a process would be the peak of all after it.
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def peak_memory() -> float | None:
    """Return the most memory this process has held, in MB; None where the system does not say."""
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
            sizes = dict(line.split(":", 1) for line in file)
        return int(sizes["VmHWM"].split()[0]) / 1024
    except (OSError, KeyError):
        return None
