"""Selectors: which rows of a table stand for the rest."""

from smrmf.selection.ds3 import DS3
from smrmf.selection.esc import ESC
from smrmf.selection.ipm import IPM
from smrmf.selection.kdpp import KDPP

__all__ = ["DS3", "ESC", "IPM", "KDPP"]
