"""Tables in files: the same fit as of an array in memory, which never holds the table."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
from many_points import sheets
from numpy.testing import assert_array_equal

from smrmf import AMRMF, GNMF, RMNMF, SMRMF, FastSMRMF, _scratch, load, save
from smrmf._scratch import is_mapped, scratch_table, table_in_order, table_of_rows
from smrmf.graph import search

NAMES = ("labels_", "embedding_", "components_", "confidence_", "exemplar_indices_", "objective_history_")


@pytest.fixture(autouse=True)
def few_numbers_at_a_time(monkeypatch):
    """Let also small tables be moved in several blocks."""
    monkeypatch.setattr(_scratch, "MOVED_ENTRIES", 2**12)


def mapped(path, X):
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def fit(X, owner=FastSMRMF, **parameters):
    return owner(**{"n_clusters": 5, "neighbors": "approximate", "random_state": 0} | parameters).fit(X)


def scratch_files():
    """Return how many files without a name this process holds."""
    with open("/proc/self/maps") as maps:
        return sum("/smrmf-" in line or ("(deleted)" in line and "/#" in line) for line in maps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("owner", [AMRMF, FastSMRMF, RMNMF])
def test_a_fit_of_a_file_is_that_of_the_array(owner, dtype, tmp_path):
    X, _ = sheets(2500, dtype=dtype)
    there, here = fit(mapped(tmp_path / "X.npy", X), owner), fit(X, owner)
    for name in NAMES:
        assert_array_equal(getattr(there, name), getattr(here, name))
    new = X[::7] + dtype(0.01)
    for method in ("predict", "transform", "predict_proba", "outlier_scores"):
        assert_array_equal(getattr(there, method)(new), getattr(here, method)(new))


def test_the_model_keeps_the_file_and_not_its_rows(tmp_path):
    X = mapped(tmp_path / "X.npy", sheets(2200)[0])
    model = fit(X)
    assert np.shares_memory(model._fit_data, X)
    assert_array_equal(model.predict(X), model.labels_)
    # Also of an array that is a view of the file.
    assert np.shares_memory(fit(np.asarray(X))._fit_data, X)


def test_copies_of_rows_are_left_out_of_a_file_too(tmp_path):
    X = sheets(2300)[0]
    times = np.r_[np.repeat(np.arange(40), 20), np.arange(40, 2300)]
    times = np.random.default_rng(0).permutation(times)
    there, here = fit(mapped(tmp_path / "X.npy", X[times])), fit(X[times])
    for name in NAMES:
        assert_array_equal(getattr(there, name), getattr(here, name))


@pytest.mark.parametrize(
    ("parameters", "change"),
    [
        ({"neighbors": "exact"}, lambda X: X),
        ({"metric": "cosine"}, lambda X: X),
        ({}, lambda X: 1e200 * X),
        ({}, lambda X: X[:1500]),
        ({"owner": GNMF, "neighbors": None, "n_clusters": 3}, lambda X: abs(X[:300])),
        ({"owner": SMRMF, "max_iter": 5, "tol": 1}, lambda X: X[:300]),
    ],
)
def test_what_is_not_read_from_the_file_is_read_into_memory(parameters, change, tmp_path):
    X = change(sheets(2100)[0])
    parameters = {name: value for name, value in parameters.items() if value is not None}
    if parameters.get("owner") is GNMF:
        there, here = (GNMF(3, random_state=0).fit(data) for data in (mapped(tmp_path / "X.npy", X), X))
    else:
        there, here = fit(mapped(tmp_path / "X.npy", X), **parameters), fit(X, **parameters)
    assert not is_mapped(there._fit_data)
    assert_array_equal(there.labels_, here.labels_)


def test_a_model_of_a_file_travels_with_its_rows(tmp_path):
    X, _ = sheets(2200)
    model = fit(mapped(tmp_path / "X.npy", X))
    save(model, tmp_path / "model.smrmf")
    for other in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model.smrmf")):
        assert not is_mapped(other._fit_data)
        assert_array_equal(other.predict(X[:50]), model.labels_[:50])


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_the_first_number_that_is_none_is_named(wrong, tmp_path):
    X, _ = sheets(2100)
    X[2000, 3] = X[2050, 1] = wrong
    with pytest.raises(ValueError, match=r"row 2000, column 3 \(2 such values in all\)"):
        fit(mapped(tmp_path / "X.npy", X))


def test_tables_of_files_and_of_memory():
    X = np.zeros((3, 2))
    table = scratch_table((3, 2), np.float32)
    assert table.dtype == np.float32
    assert table.shape == (3, 2)
    assert type(table) is np.ndarray
    assert not table.any()
    for part in (table, table[1:], np.asarray(table[:, :1])):
        assert is_mapped(part)
    for part in (X, table.copy(), table + 1, table[[1, 0]], [[1.0]], "X", None):
        assert not is_mapped(part)


@pytest.mark.parametrize("n", [1, 5, 1000, 1021])
def test_rows_move_to_their_places(n):
    rng = np.random.default_rng(n)
    table = scratch_table((n, 7), float)
    table[:] = X = rng.random((n, 7))
    order = rng.permutation(n).astype(np.int32)
    moved = table_in_order(table, order)
    assert is_mapped(moved)
    assert_array_equal(moved, X[order])
    assert_array_equal(table_in_order(X, order), X[order])
    rows = np.flatnonzero(rng.random(n) < 0.6)
    assert_array_equal(table_of_rows(table, rows), X[rows])
    assert_array_equal(table_of_rows(X, rows), X[rows])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_scratch_files_go_with_their_tables(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    X = mapped(tmp_path / "X.npy", sheets(2200)[0])
    gc.collect()  # what earlier tests have left
    before = scratch_files()
    table = scratch_table((1000, 10), float)
    assert scratch_files() == before + 1
    assert [path.name for path in tmp_path.iterdir()] == ["X.npy"]
    del table
    model = fit(X)
    gc.collect()
    assert scratch_files() == before
    assert hasattr(model, "labels_")
    monkeypatch.setattr(search, "find_in_cells", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fit(X)
    gc.collect()
    assert scratch_files() == before


def test_a_disk_without_room_is_said_before_anything_is_written(monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=2**28))
    with pytest.raises(OSError, match=r"scratch file of 0\.7 GiB, but .* has only 0\.2 GiB left.*TMPDIR"):
        scratch_table((1_000_000, 90), float)


LIMITED = """
    import resource, sys
    import numpy as np
    from smrmf import FastSMRMF
    few = np.load(sys.argv[1], mmap_mode="r")[:2500]
    FastSMRMF(3, random_state=0, n_jobs=1, neighbors="approximate").fit(few)
    X = np.load(sys.argv[1], mmap_mode="r")
    with open("/proc/self/status") as status:
        used = next(int(line.split()[1]) for line in status if line.startswith("VmData")) * 1024
    # Private memory that may be written, of which a table in a file is none.
    resource.setrlimit(resource.RLIMIT_DATA, (used + int(float(sys.argv[2]) * X.nbytes),) * 2)
    model = FastSMRMF(3, random_state=0, n_jobs=1).fit(X if sys.argv[3] == "file" else np.array(X))
    assert (model.predict(X[:5000]) == model.labels_[:5000]).all()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
@pytest.mark.parametrize("storage", ["file", "memory"])
def test_a_table_larger_than_memory(storage, tmp_path):
    # 21,000 rows of 1,500 numbers, 126 MB: lists, c numbers and what is beside them are far less.
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(6, 1500)).astype(np.float32)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float32, (21_000, 1500))
    labels = rng.integers(3, size=len(X))
    for start in range(0, len(X), 1000):
        rows = slice(start, start + 1000)
        places = rng.normal(size=(1000, 6)) + 12 * np.eye(3, 6)[labels[rows]]
        X[rows] = places.astype(np.float32) @ basis
    X.flush()
    command = [sys.executable, "-c", textwrap.dedent(LIMITED), str(tmp_path / "X.npy"), "0.9", storage]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"MALLOC_ARENA_MAX": "1"})
    assert (done.returncode == 0) == (storage == "file"), done.stderr[-2000:]
    assert storage == "file" or "MemoryError" in done.stderr
