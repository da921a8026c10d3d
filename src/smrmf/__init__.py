"""Clustering by matrix factorisation that listens only to the neighbourhoods worth listening to."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smrmf import metrics
    from smrmf.factorization import RMNMF, SMRMF, FastSMRMF

__version__ = "0.1.0"

__all__ = ["RMNMF", "SMRMF", "FastSMRMF", "metrics"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is first used: ``import smrmf`` itself costs next to nothing."""
    if name == "metrics":
        return import_module("smrmf.metrics")
    if name in __all__:
        return getattr(import_module("smrmf.factorization"), name)
    raise AttributeError(f"module 'smrmf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
