"""Clustering by matrix factorisation that listens only to the neighbourhoods worth listening to."""

from importlib import import_module
from typing import Any

from smrmf.factorization import RMNMF, SMRMF, FastSMRMF

__version__ = "0.1.0"

__all__ = ["RMNMF", "SMRMF", "FastSMRMF", "metrics"]


def __getattr__(name: str) -> Any:
    """Import the submodules that ``import smrmf`` leaves out, when they are first used."""
    if name == "metrics":
        return import_module("smrmf.metrics")
    raise AttributeError(f"module 'smrmf' has no attribute {name!r}")
