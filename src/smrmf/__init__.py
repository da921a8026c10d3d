"""Clustering by matrix factorisation that listens only to the neighbourhoods worth listening to."""

from smrmf.factorization import RMNMF, SMRMF, FastSMRMF

__version__ = "0.1.0"

__all__ = ["RMNMF", "SMRMF", "FastSMRMF"]
