"""Promises about memory are tests, not sentences."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from many_points import overlapping, sheets
from sklearn.datasets import make_blobs

from smrmf import (
    AMRMF,
    DS3,
    ESC,
    GNMF,
    IPM,
    KDPP,
    RMNMF,
    SMRMF,
    DeepSemiNMF,
    FastSMRMF,
    NMFClustering,
    SelectiveRMNMF,
    _arrays,
    _estimator,
)
from smrmf.graph import spectrum
from smrmf.kernels import truncated_svd

pytestmark = pytest.mark.slow

# SMRMF makes all its arrays in the first iterations, and its results at the end of any. What has lists may
# make them longer later: FastSMRMF is measured until it settles.
FEW = {"max_iter": 3, "tol": 0, "random_state": 0}


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
    SMRMF(5, selection=selection, exemplars=0.5, **FEW).fit(X[:300])
    model = SMRMF(5, selection=selection, **FEW)
    assert peak_of(lambda: model.fit(X)) <= 5 * n * n * X.itemsize


@pytest.mark.parametrize("kind", [FastSMRMF, RMNMF])
def test_sparse_graphs_never_make_a_square_array(kind):
    n = 4000
    X, _ = make_blobs(n, 10, centers=5, cluster_std=4.0, random_state=0)
    kind(5, **FEW).fit(X[:100])
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


def words(n, m, per_row, seed=0):
    """Return a sparse table of few entries."""
    rng = np.random.default_rng(seed)
    # Some words are frequent, most are rare.
    columns = (m * rng.random((n, per_row)) ** 3).astype(int)
    rows = np.repeat(np.arange(n), per_row)
    return sp.csr_array((rng.random(n * per_row), (rows, columns.ravel())), shape=(n, m))


@pytest.mark.filterwarnings("ignore:.*clusters came out empty")  # after so few iterations
@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        (FastSMRMF, "euclidean"),
        (FastSMRMF, "cosine"),
        (RMNMF, "euclidean"),
        (AMRMF, "cosine"),
        (SelectiveRMNMF, "euclidean"),
    ],
)
def test_sparse_points_never_become_a_dense_table(kind, metric):
    n, m = 1500, 100_000
    X = words(n, m, 30)
    model = kind(5, metric=metric, **{"random_state": 0} if kind is FastSMRMF else FEW)
    if kind is SelectiveRMNMF:
        model.set_params(selector=ESC(5, exemplars=20, random_state=0))
    model.fit(X[:1100])
    # As dense the table has 1.2 GB. Most of what is left are lists of neighbours of AMRMF, nearly n x n here.
    assert peak_of(lambda: model.fit(X)) < n * m * 8 / 5
    assert peak_of(lambda: model.predict(X)) < n * m * 8 / 100
    assert peak_of(lambda: model.transform(X)) < n * m * 8 / 100
    assert sp.issparse(model._fit_data)
    assert model.components_.shape == (5, m)
    assert 0 < model.neglected_share_ < 1


def test_sparse_points_ask_for_the_arrays_of_the_loop_before_they_make_them(monkeypatch):
    X = words(400, 900, 6)
    # All coordinates, as there are few points.
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 6 * 400 * 400 * 8 - 1)
    with pytest.raises(MemoryError, match=r"6 dense arrays of 400 x 400.*fewer points"):
        FastSMRMF(3).fit(X)
    FastSMRMF(3, **FEW).fit(X.astype(np.float32))
    monkeypatch.setattr(truncated_svd, "FEW_ROWS", 0)
    FastSMRMF(3, **FEW).fit(X)
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 6 * 400 * 128 * 8 - 1)
    with pytest.raises(MemoryError, match="400 x 128"):
        FastSMRMF(3).fit(X)
    # With more clusters come more coordinates.
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 6 * 400 * 132 * 8 - 1)
    FastSMRMF(3, **FEW).fit(X)
    with pytest.raises(MemoryError, match="400 x 132"):
        FastSMRMF(33).fit(X)
    # Few columns are dense coordinates themselves, and so is what is mostly filled.
    for full in (X[:, :200], sp.csr_array(np.ones((40, 900)))):
        needed = 6 * full.shape[0] * full.shape[1] * 8
        monkeypatch.setattr(_arrays, "available_bytes", lambda needed=needed: needed - 1)
        with pytest.raises(MemoryError, match=rf"{full.shape[0]} x {full.shape[1]}.*TruncatedSVD"):
            FastSMRMF(3).fit(full)


def test_points_are_rebuilt_as_dense_only_where_these_fit(monkeypatch):
    X = words(40, 900, 6)
    model = FastSMRMF(3, **FEW).fit(X)
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 40 * 900 * 8 - 1)
    with pytest.raises(MemoryError, match=r"dense array of 40 x 900.*fewer rows"):
        model.inverse_transform(model.embedding_)
    assert model.inverse_transform(model.embedding_[:39]).shape == (39, 900)


@pytest.mark.parametrize("shape", [(300, 2000), (1500, 300), (400, 400)], ids=str)
def test_deep_semi_nmf_asks_for_the_dense_arrays_it_makes(shape, monkeypatch):
    X = words(*shape, 10)
    model = DeepSemiNMF(4, max_iter=5, tol=0, n_init=1, random_state=0).fit(X[:60])
    peak = peak_of(lambda: model.fit(X))
    monkeypatch.setattr(_arrays, "available_bytes", lambda: peak)
    with pytest.raises(MemoryError, match=f"{shape[0]} x {shape[1]}"):
        model.fit(X)
    # And not for much more.
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 1.5 * peak)
    model.fit(X)


WIDE = (1500, 60_000)


@pytest.mark.parametrize(
    "model",
    [
        GNMF(5, random_state=0, max_iter=20, tol=0),
        NMFClustering(5, random_state=0, tol=0.1),
        IPM(exemplars=20),
        KDPP(exemplars=20, random_state=0),
        DS3(exemplars=5, max_iter=5, tol=0),
        ESC(5, exemplars=20, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_other_methods_keep_sparse_points_sparse(model):
    X = words(*WIDE, 30)
    model.fit(X[:200])
    assert peak_of(lambda: model.fit(X)) < WIDE[0] * WIDE[1] * 8 / 6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("table", [sheets, overlapping])
@pytest.mark.parametrize(("n", "how"), [(12_000, "approximate"), (4_000, "exact")])
def test_the_memory_of_a_fit_is_told_beforehand(table, dtype, n, how, monkeypatch):
    monkeypatch.setattr(spectrum, "MANY_POINTS", 5000)
    X, _ = table(n, m=40, dtype=dtype)
    model = FastSMRMF(5, neighbors=how, random_state=0)
    model.fit(X)
    told = model.memory_needed(*X.shape, dtype)
    assert 0.7 * told < peak_of(lambda: model.fit(X)) < 1.1 * told


def test_memory_grows_with_points_and_a_file_needs_less():
    model = FastSMRMF(10)
    needed = model.memory_needed(1_000_000, 50, np.float32)
    # With the user's table less than eight times that.
    assert needed < 7 * 1_000_000 * 50 * 4
    assert model.memory_needed(2_000_000, 50, np.float32) == pytest.approx(2 * needed, rel=1e-6)
    assert needed - model.memory_needed(1_000_000, 50, np.float32, in_file=True) > 1_000_000 * 50 * 4
    assert 1.5 * needed < model.memory_needed(1_000_000, 50) < 2 * needed


def test_a_fit_without_room_is_refused_before_the_table_is_copied(monkeypatch):
    X = np.zeros((21_000, 300))
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 10 * 2**20)
    monkeypatch.setattr(_estimator, "finite_array", lambda *args, **kwargs: pytest.fail("copied"))
    message = r"FastSMRMF needs .* of 21000 points, 0\.1 GiB, but only 0\.0 GiB are available; give num"
    with pytest.raises(MemoryError, match=message):
        FastSMRMF(3).fit(X)
