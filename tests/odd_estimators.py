"""Estimators for tests of the reproduction: one that dies with its process, one that counts its fits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin

from smrmf_reproduce.run.store import Store


class DiesAfterSaving(ClusterMixin, BaseEstimator):
    """Ends its process at the first fit; at the next one, only when the record is saved."""

    def __init__(self, note=""):
        self.note = note

    def fit(self, X, y=None):
        if not Path(self.note).exists():
            Path(self.note).touch()
            os._exit(3)
        Store.end = lambda store, run: os._exit(4)
        self.labels_ = np.zeros(X.shape[0], dtype=int)
        return self


class CountsFits(ClusterMixin, BaseEstimator):
    """Writes down what it was fitted with."""

    fits: ClassVar[list[tuple]] = []

    def __init__(self, weight=1.0, form="one", init="any"):
        self.weight = weight
        self.form = form
        self.init = init

    def fit(self, X, y=None):
        kind = (sp.issparse(X), X.dtype, X.shape[0] < 100)
        self.fits.append((self.weight, self.form, kind))
        self.labels_ = np.zeros(X.shape[0], dtype=int)
        return self
