"""Promises about memory are tests, not sentences."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs

from smrmf import DS3, RMNMF, SMRMF, FastSMRMF, _arrays


def peak_of(fit):
    """Return the peak of what a call allocates, in bytes."""
    tracemalloc.start()
    try:
        fit()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("selection", "dtype"), [("linf", np.float64), ("l2", np.float32)])
def test_smrmf_holds_at_most_five_square_arrays(selection, dtype):
    n = 1000
    X, _ = make_blobs(n, 10, centers=5, random_state=0)
    X = X.astype(dtype)
    # Compiled code is not counted; 300 points make more than one tile, as the real fit does.
    SMRMF(5, selection=selection, exemplars=0.5, random_state=0).fit(X[:300])
    # All arrays are made in the first iterations, and the results at the end of any.
    model = SMRMF(5, selection=selection, random_state=0, max_iter=3, tol=0)
    assert peak_of(lambda: model.fit(X)) <= 5 * n * n * X.itemsize


@pytest.mark.parametrize("kind", [FastSMRMF, RMNMF])
def test_sparse_graphs_never_make_a_square_array(kind):
    n = 6000
    X, _ = make_blobs(n, 10, centers=5, cluster_std=4.0, random_state=0)
    kind(5, random_state=0).fit(X[:100])
    model = kind(5, random_state=0).fit(X[:500])
    assert peak_of(lambda: model.fit(X)) < n * n * X.itemsize / 4
    assert peak_of(lambda: model.predict(X)) < n * n * X.itemsize / 4
    assert model.representation_.nnz <= n * 11


@pytest.mark.parametrize("parameters", [{"exemplars": 10}, {"regularization": 0.2, "norm": "l2"}], ids=str)
def test_ds3_holds_at_most_five_square_arrays(parameters):
    n = 1200
    X, _ = make_blobs(n, 10, centers=5, random_state=0)
    model = DS3(max_iter=20, tol=0, **parameters).fit(X[:300])
    assert peak_of(lambda: model.fit(X)) <= 5 * n * n * X.itemsize


def test_smrmf_asks_for_five_square_arrays_and_the_others_for_none(monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 4))
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 5 * 30 * 30 * 8 - 1)
    with pytest.raises(MemoryError, match=r"5 arrays of 30 x 30.*FastSMRMF"):
        SMRMF(3).fit(X)
    SMRMF(3, random_state=0).fit(X.astype(np.float32))
    FastSMRMF(3, random_state=0).fit(X)
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 6 * 30 * 4 * 8 - 1)
    with pytest.raises(MemoryError, match=r"30 x 4.*TruncatedSVD"):
        FastSMRMF(3).fit(sp.csr_array(X))
