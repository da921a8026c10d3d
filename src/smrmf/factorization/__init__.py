"""Factorisations that cluster: one augmented-Lagrangian loop, and a graph in its slot."""

from smrmf.factorization.fast_smrmf import FastSMRMF
from smrmf.factorization.rmnmf import RMNMF
from smrmf.factorization.smrmf import SMRMF

__all__ = ["RMNMF", "SMRMF", "FastSMRMF"]
