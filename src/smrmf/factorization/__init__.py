"""Factorisations that cluster: most are one augmented-Lagrangian loop with a graph in its slot."""

from smrmf.factorization.amrmf import AMRMF
from smrmf.factorization.apmf import APMF
from smrmf.factorization.deep_semi_nmf import DeepSemiNMF
from smrmf.factorization.fast_smrmf import FastSMRMF
from smrmf.factorization.gnmf import GNMF
from smrmf.factorization.nmf import NMFClustering
from smrmf.factorization.rmnmf import RMNMF
from smrmf.factorization.selective_rmnmf import SelectiveRMNMF
from smrmf.factorization.smrmf import SMRMF

__all__ = [
    "AMRMF",
    "APMF",
    "GNMF",
    "RMNMF",
    "SMRMF",
    "DeepSemiNMF",
    "FastSMRMF",
    "NMFClustering",
    "SelectiveRMNMF",
]
