"""Large tables of numbers are clustered from disk, as they would be from memory."""

from __future__ import annotations

import csv
import io
import json
import re
import sys

import numpy as np
import polars as pl
import pytest

from smrmf import _arrays
from smrmf.cli import run
from smrmf.metrics import clustering_accuracy
from smrmf.tables import TablePreparation, _record, read_table
from smrmf.tables._mapped import every, slices
from smrmf.tasks import _on_disk
from smrmf.tasks._fit import FitRequest, fit_table
from smrmf.tasks._on_disk import prepare_on_disk
from smrmf.tasks._tables import TableChoice, prepare_table

N_ROWS = 240


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Every table is large, and blocks are small."""
    monkeypatch.setattr(_on_disk, "SHARE", 10**15)
    monkeypatch.setattr(_record, "BLOCK_ROWS", 37)


@pytest.fixture
def sampled(monkeypatch):
    """Every fifth row is looked at."""
    monkeypatch.setattr(_on_disk, "SAMPLE_ROWS", N_ROWS // 5)


def table():
    draws = np.random.default_rng(0)
    kinds = np.repeat(np.arange(3), N_ROWS // 3)
    X = draws.normal(size=(N_ROWS, 4)) + 9 * kinds[:, None] * [1, -1, 0.5, 0]
    return kinds, X * [1, 100, 1, 1]


def write(path, X, **others):
    if path.suffix == ".npy":
        np.save(path, X)
    else:
        frame = pl.DataFrame(X, schema=[f"x{place}" for place in range(X.shape[1])])
        frame.with_columns(**others).write_parquet(path, row_group_size=50)
    return str(path)


def read(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))


@pytest.mark.parametrize("scale", ["auto", "none", "minmax"])
@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_the_results_are_those_of_the_table_in_memory(suffix, scale, tmp_path, monkeypatch):
    """Where all rows are looked at."""
    path = write(tmp_path / f"t{suffix}", table()[1])
    words = ["-k", "3", "--scale", scale, "--drop", "x3"]
    assert run(["fit", path, *words, "-o", str(tmp_path / "disk")]) == 0
    monkeypatch.undo()
    assert run(["fit", path, *words, "-o", str(tmp_path / "memory")]) == 0
    for name in ("labels.csv", "profiles.csv", "exemplars.csv"):
        assert (tmp_path / "disk" / name).read_text() == (tmp_path / "memory" / name).read_text()
    notes = [json.loads((tmp_path / at / "summary.json").read_text())["notes"] for at in ("disk", "memory")]
    assert notes[0][1:] == notes[1]
    said = (
        r"t\..* takes 0\.0 GiB, more than .*: it stays on disk, and 240 of 240 rows decide on the columns\."
    )
    assert re.search(said, notes[0][0])


def test_some_rows_decide_on_the_columns(sampled, tmp_path):
    _, X = table()
    X = np.column_stack([X, np.arange(N_ROWS) + 7, np.full(N_ROWS, 5.0)])
    path = write(tmp_path / "t.parquet", X)
    prepared = prepare_on_disk(TableChoice(path))
    same = TablePreparation().fit(X[::5][:, :4])
    np.testing.assert_array_equal(prepared.preparation.offsets_, same.offsets_)
    np.testing.assert_array_equal(prepared.preparation.divisors_, same.divisors_)
    np.testing.assert_array_equal(prepared.X, same.transform(np.ascontiguousarray(X[:, :4])))
    assert isinstance(prepared.X, np.memmap)
    said = " ".join(prepared.notes)
    assert "'x4' numbers the rows: left out" in said
    assert "'x5' is 5 in every row: left out" in said
    assert "stays on disk, and 48 of 240 rows decide on the columns." in said


def test_clusters_are_described_by_some_rows_of_each(sampled, tmp_path, capsys):
    kinds, X = table()
    keys = pl.Series([f"é{place}" for place in range(N_ROWS)])
    path = write(tmp_path / "t.parquet", X, key=keys, kind=pl.Series(kinds.astype(str)))
    words = ["-k", "3", "--id", "key", "--label-column", "kind", "-o", str(tmp_path / "out")]
    assert run(["fit", path, *words]) == 0
    labels, profiles = read(tmp_path / "out" / "labels.csv"), read(tmp_path / "out" / "profiles.csv")
    assert [row["key"] for row in labels] == keys.to_list()
    assert [row["class"] for row in labels] == kinds.astype(str).tolist()
    clusters = np.array([int(row["cluster"]) for row in labels])
    assert clustering_accuracy(kinds, clusters) == 1
    assert {row["size"] for row in profiles} == {"80"}
    mine = {int(row["cluster"]): float(row["typical"]) for row in profiles if row["feature"] == "x0"}
    for cluster, typical in mine.items():
        assert abs(typical - np.median(X[clusters == cluster, 0])) < 0.5
    exemplar = read(tmp_path / "out" / "exemplars.csv")[0]
    assert float(exemplar["x0"]) == X[int(exemplar["key"][1:]), 0]
    out = capsys.readouterr().out
    assert "Cluster 0: 80 rows" in out
    assert "accuracy 1.000" in out
    assert run(["predict", str(tmp_path / "out"), path, "-o", str(tmp_path / "p.csv")]) == 0
    assert [row["cluster"] for row in read(tmp_path / "p.csv")] == [row["cluster"] for row in labels]


def test_the_number_of_clusters_is_looked_for_among_some_rows(sampled, tmp_path, monkeypatch):
    path = write(tmp_path / "t.npy", table()[1])
    monkeypatch.setattr("smrmf.tasks._fit.MOST_ASKED", 120)
    fitted = fit_table(FitRequest(TableChoice(path, scale="none", drop=("x1", "x3"))))
    assert fitted.model.labels_.max() == 2
    assert len(fitted.model.labels_) == N_ROWS


def test_numbers_that_need_nothing_are_not_copied(tmp_path, monkeypatch):
    path = write(tmp_path / "t.npy", table()[1])
    monkeypatch.setattr(_on_disk, "in_scratch", lambda *_: pytest.fail("copied"))
    prepared = prepare_on_disk(TableChoice(path, scale="none"))
    assert prepared.X.filename == prepared.table.frame.filename
    np.testing.assert_array_equal(prepared.X, table()[1])


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
@pytest.mark.parametrize("scale", ["none", "standard"])
def test_gaps_are_filled_and_said_wherever_they_are(scale, suffix, sampled, tmp_path):
    X = table()[1]
    X[10, 0] = X[11, 1] = X[12, 1] = X[13, 0] = np.nan  # of these only row 10 is looked at
    path = write(tmp_path / f"t{suffix}", X)
    prepared = prepare_on_disk(TableChoice(path, scale=scale))
    preparation = TablePreparation(scale=scale).fit(X[::5])
    np.testing.assert_array_equal(prepared.X, preparation.transform(X))
    median = f"{np.nanmedian(X[::5, 0]):g}"
    assert f"'x0' has no value in 1 of 48 rows: filled with its median, {median}." in prepared.notes
    late = "'x1' has no value in 2 of 240 rows: filled with the median of the rows that decide."
    assert late in prepared.notes
    X[203, 2] = np.inf
    path = write(tmp_path / f"t{suffix}", X)
    with pytest.raises(ValueError, match="'x2' is infinite in row 204, counted from 1"):
        prepare_on_disk(TableChoice(path, scale=scale))


def test_other_tables_are_read_if_they_fit(tmp_path, monkeypatch):
    kinds, X = table()
    write(tmp_path / "t.parquet", X, word=pl.Series(kinds.astype(str)))
    pl.DataFrame(X).write_csv(tmp_path / "t.csv")
    np.savez(tmp_path / "t.npz", X)
    for name in ("t.parquet", "t.csv", "t.npz"):
        assert prepare_on_disk(TableChoice(str(tmp_path / name))) is None
    size = (tmp_path / "t.csv").stat().st_size
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 3 * size)
    assert prepare_on_disk(TableChoice(str(tmp_path / "t.csv"))) is None
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 3 * size - 1)
    monkeypatch.setattr("smrmf.tasks._tables.read_table", lambda *_, **__: pytest.fail("read"))
    for name in ("t.csv", "t.parquet"):
        if name == "t.parquet":
            monkeypatch.setattr(_arrays, "available_bytes", lambda: 3 * N_ROWS * 5 * 8 - 1)
        with pytest.raises(
            MemoryError, match=r"needs 3 times its size, .* available; make it smaller"
        ) as error:
            fit_table(FitRequest(TableChoice(str(tmp_path / name)), 3))
        assert "\n" not in str(error.value)
    # Without the word it stays on disk.
    assert prepare_on_disk(TableChoice(str(tmp_path / "t.parquet"), drop=("word",))) is not None


def test_small_tables_are_read_as_ever(tmp_path, monkeypatch):
    path = write(tmp_path / "t.npy", table()[1])
    monkeypatch.setattr(_on_disk, "SHARE", 8)
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 8 * N_ROWS * 4 * 8)
    assert prepare_on_disk(TableChoice(path)) is None
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 8 * N_ROWS * 4 * 8 - 1)
    assert prepare_on_disk(TableChoice(path)) is not None
    monkeypatch.setattr(sys, "stdin", None)
    assert prepare_on_disk(TableChoice("-")) is None


def test_wrong_choices_are_refused_as_in_memory(tmp_path, capsys, monkeypatch):
    path = write(tmp_path / "t.npy", table()[1])
    for choice in ({"drop": ("x",)}, {"columns": ("zzz",)}, {"id_column": "a"}):
        with pytest.raises(ValueError, match="no column") as error:
            prepare_on_disk(TableChoice(path, **choice))
        with pytest.raises(ValueError, match="no column") as wanted:
            prepare_table(TableChoice(path, **choice))
        assert str(error.value) == str(wanted.value)
    with pytest.raises(ValueError, match="is given as --id and as --label-column"):
        prepare_on_disk(TableChoice(path, id_column="x1", label_column="x1"))
    assert prepare_on_disk(TableChoice(path), report=True) is None
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 3 * N_ROWS * 4 * 8 - 1)
    assert run(["fit", path, "-k", "3", "--report", "-o", str(tmp_path / "out")]) == 2
    assert "leave --report out, and it stays on disk." in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    chosen = prepare_on_disk(TableChoice(path, columns=("x2", "x0"), id_column="x1", scale="none"))
    np.testing.assert_array_equal(chosen.X, table()[1][:, [2, 0]])
    assert chosen.rows.names == read_table(path, id_column="x1").ids


@pytest.mark.parametrize("step", [1, 3, 37, 100])
@pytest.mark.parametrize("n_rows", [1, 10, 37, 1000])
def test_rows_at_equal_distances_are_found_in_any_blocks(step, n_rows, tmp_path):
    X = np.arange(222).reshape(111, 2)
    np.save(tmp_path / "t.npy", X)
    mapped = np.load(tmp_path / "t.npy", mmap_mode="r")
    np.testing.assert_array_equal(every(mapped, step, n_rows), X[::step])
    parts = list(slices(mapped, n_rows))
    assert [begin for begin, _ in parts] == list(range(0, 111, n_rows))
    np.testing.assert_array_equal(np.concatenate([rows for _, rows in parts]), X)
