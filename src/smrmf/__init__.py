"""Clustering by matrix factorisation that listens only to the neighbourhoods worth listening to."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smrmf import metrics
    from smrmf.factorization import (
        AMRMF,
        APMF,
        GNMF,
        RMNMF,
        SMRMF,
        DeepSemiNMF,
        FastSMRMF,
        NMFClustering,
        SelectiveRMNMF,
    )
    from smrmf.selection import DS3, ESC, IPM, KDPP

__version__ = "0.1.0"

_HOMES = {
    "smrmf.factorization": (
        "AMRMF",
        "APMF",
        "DeepSemiNMF",
        "FastSMRMF",
        "GNMF",
        "NMFClustering",
        "RMNMF",
        "SMRMF",
        "SelectiveRMNMF",
    ),
    "smrmf.selection": ("DS3", "ESC", "IPM", "KDPP"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AMRMF",
    "APMF",
    "DS3",
    "ESC",
    "GNMF",
    "IPM",
    "KDPP",
    "RMNMF",
    "SMRMF",
    "DeepSemiNMF",
    "FastSMRMF",
    "NMFClustering",
    "SelectiveRMNMF",
    "metrics",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is first used: ``import smrmf`` itself costs next to nothing."""
    if name == "metrics":
        return import_module("smrmf.metrics")
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'smrmf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
