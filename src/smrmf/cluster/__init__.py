"""Clustering that is not a factorisation of the table itself."""

from smrmf.cluster.esc import ESC

__all__ = ["ESC"]
