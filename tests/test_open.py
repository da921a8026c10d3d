"""Tables that are opened without reading them: the same numbers, in files that leave nothing behind."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections import namedtuple

import numpy as np
import polars as pl
import pytest
from patience import run_command

from smrmf import FastSMRMF
from smrmf.tables import TableError, _record, open_table, read_table


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture(params=[1, 3, 50_000])
def blocks(request, monkeypatch):
    """Blocks of so many rows."""
    monkeypatch.setattr(_record, "BLOCK_ROWS", request.param)


def mapped_scratch(folder):
    """Tell whether this process maps a file of a folder that has no name any more."""
    with open("/proc/self/maps") as maps:
        return any(str(folder) in line and "deleted" in line for line in maps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_in_rows_are_mapped_as_they_are(dtype, tmp_path, scratch):
    X = np.random.default_rng(0).normal(size=(9, 4)).astype(dtype)
    np.save(tmp_path / "t.npy", X)
    found = open_table(tmp_path / "t.npy", scratch=tmp_path / "nowhere")  # of which it has no need
    assert isinstance(found, np.memmap)
    assert (found.dtype, found.mode) == (np.dtype(dtype), "r")
    assert os.path.samefile(found.filename, tmp_path / "t.npy")
    np.testing.assert_array_equal(found, X)


COPIED = {
    "integers": lambda X: X.astype(np.int16),
    "unsigned": lambda X: abs(X).astype(np.uint64),
    "boolean": lambda X: X > 0,
    "half": lambda X: X.astype(np.float16),
    "other end first": lambda X: X.astype(">f8"),
    "Fortran": np.asfortranarray,
    "Fortran, single": lambda X: np.asfortranarray(X.astype(np.float32)),
}


@pytest.mark.parametrize("form", COPIED)
def test_other_arrays_are_copied_block_by_block(form, blocks, tmp_path, scratch):
    X = COPIED[form](100 * np.random.default_rng(0).normal(size=(11, 4)))
    np.save(tmp_path / "t.npy", X)
    found = open_table(tmp_path / "t.npy", scratch=scratch)
    assert isinstance(found, np.memmap)
    assert found.flags.c_contiguous
    assert not found.flags.writeable
    assert found.dtype == (np.float32 if form == "Fortran, single" else np.float64)
    np.testing.assert_array_equal(found, X)


def test_columns_are_chosen_by_name(blocks, tmp_path, scratch):
    X = np.random.default_rng(0).normal(size=(11, 4))
    np.save(tmp_path / "t.npy", X)
    pl.DataFrame(X, schema=["a", "b", "ç", "d"]).write_parquet(tmp_path / "t.parquet")
    found = open_table(tmp_path / "t.npy", columns=["x3", "x0", "x3", "x1"], drop=["x1"], scratch=scratch)
    np.testing.assert_array_equal(found, X[:, [3, 0]])
    found = open_table(tmp_path / "t.parquet", columns=["ç", "a"], scratch=scratch)
    np.testing.assert_array_equal(found, X[:, [2, 0]])
    np.testing.assert_array_equal(open_table(tmp_path / "t.parquet", drop="b"), X[:, [0, 2, 3]])
    with pytest.raises(TableError, match=r"no column 'x': did you mean|no column 'x': it has"):
        open_table(tmp_path / "t.parquet", columns=["x"])
    with pytest.raises(TableError, match="has no column left: give other columns, or drop fewer"):
        open_table(tmp_path / "t.npy", columns=["x1"], drop=["x1"])


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("row_group_size", [2, 5, 100])
def test_parquet_is_the_same_as_read(single, row_group_size, blocks, tmp_path, scratch):
    draws = np.random.default_rng(0)
    frame = pl.DataFrame(draws.normal(size=(13, 3)).astype(np.float32), schema=list("abc"))
    if not single:
        frame = frame.with_columns(i=pl.Series(draws.integers(-9, 9, 13)), u=pl.lit(7, dtype=pl.UInt8))
        frame = frame.with_columns(pl.col("u").cast(pl.Decimal(9, 2)).alias("money"))
    frame.write_parquet(tmp_path / "t.parquet", row_group_size=row_group_size)
    found = open_table(tmp_path / "t.parquet", scratch=scratch)
    assert found.dtype == (np.float32 if single else np.float64)
    np.testing.assert_array_equal(found, frame.cast(pl.Float32 if single else pl.Float64).to_numpy())


def test_a_fit_of_an_opened_table_is_that_of_the_table(tmp_path):
    X = np.random.default_rng(0).normal(size=(90, 4)) + np.repeat([[0], [9], [18]], 30, axis=0)
    pl.DataFrame(X).write_parquet(tmp_path / "t.parquet")
    wanted = FastSMRMF(3, random_state=0).fit(read_table(tmp_path / "t.parquet").frame.to_numpy())
    found = FastSMRMF(3, random_state=0).fit(open_table(tmp_path / "t.parquet"))
    np.testing.assert_array_equal(found.labels_, wanted.labels_)
    np.testing.assert_array_equal(found.embedding_, wanted.embedding_)


# What is refused


def test_words_and_gaps_are_refused_in_one_sentence(blocks, tmp_path, scratch):
    frame = pl.DataFrame({"a": range(9), "b": [0.5] * 8 + [None], "c": ["x"] * 9, "d": [True] * 9})
    frame.with_columns(e=pl.lit(float("nan"))).write_parquet(tmp_path / "t.parquet")
    cases = {
        "c": "'c' of .* has no numbers, but String: leave it out by drop, or prepare the table in memory",
        "d": "'d' of .* has no numbers, but Boolean: leave it out",
        "b": "'b' of .* has no value in row 9, counted from 1: fill it, leave it out by drop, or prepare",
        "e": "'e' of .* has no value in row 1, counted from 1: fill it",
    }
    for name, match in cases.items():
        with pytest.raises(TableError, match=match) as error:
            open_table(tmp_path / "t.parquet", columns=["a", name], scratch=scratch)
        assert "\n" not in str(error.value)
    assert os.listdir(scratch) == []
    assert not mapped_scratch(scratch)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(TableError, match=r"can only be read as a whole: write it as \.parquet or \.npy"):
        open_table(tmp_path / "t.csv")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        open_table(tmp_path / "none.npy")
    np.save(tmp_path / "t.npy", np.zeros(3))
    with pytest.raises(TableError, match="an array of 1 dimensions"):
        open_table(tmp_path / "t.npy")
    np.save(tmp_path / "t.npy", np.zeros((0, 3), int))
    pl.DataFrame({"a": []}, schema={"a": pl.Float64}).write_parquet(tmp_path / "t.parquet")
    for name in ("t.npy", "t.parquet"):
        with pytest.raises(TableError, match="has no rows: give some"):
            open_table(tmp_path / name)


def test_a_disk_without_room_is_refused_before_anything_is_written(monkeypatch, tmp_path, scratch):
    np.save(tmp_path / "t.npy", np.zeros((1000, 3), int))
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(23_999))
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **options: pytest.fail("written"))
    with pytest.raises(OSError, match=r"need a scratch file of 0\.0 GiB, but .*scratch has only .*TMPDIR"):
        open_table(tmp_path / "t.npy", scratch=scratch)
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(24_000))
    assert open_table(tmp_path / "t.npy", scratch=scratch).shape == (1000, 3)
    with pytest.raises(NotADirectoryError, match=r"There is no folder .*nowhere for scratch files"):
        open_table(tmp_path / "t.npy", scratch=tmp_path / "nowhere")


def test_a_disk_that_fills_up_leaves_nothing(monkeypatch, tmp_path, scratch):
    np.save(tmp_path / "t.npy", np.zeros((1000, 3), int))
    monkeypatch.setattr(_record, "BLOCK_ROWS", 400)
    ascontiguousarray, written = np.ascontiguousarray, []

    def full(block, dtype):
        written.append(len(block))
        if len(written) == 2:
            raise OSError("No space left on device")
        return ascontiguousarray(block, dtype)

    monkeypatch.setattr(np, "ascontiguousarray", full)
    with pytest.raises(OSError, match="No space left"):
        open_table(tmp_path / "t.npy", scratch=scratch)
    assert written == [400, 400]
    assert os.listdir(scratch) == []


# Scratch files


@pytest.mark.skipif(sys.platform != "linux", reason="what a process maps is read from /proc")
def test_a_scratch_file_goes_with_the_array(tmp_path, scratch):
    np.save(tmp_path / "t.npy", np.arange(9000).reshape(3000, 3))
    found = open_table(tmp_path / "t.npy", scratch=scratch)
    assert os.listdir(scratch) == []
    assert mapped_scratch(scratch)
    part = found[5:]
    del found
    gc.collect()
    assert part[-1, -1] == 8999
    del part
    gc.collect()
    assert not mapped_scratch(scratch)


KILLED = """
import os, signal, sys
from smrmf.tables import open_table
X = open_table(sys.argv[1], scratch=sys.argv[2])
os.kill(os.getpid(), signal.SIGKILL)
"""

PEAK = """
import sys
from pathlib import Path
from smrmf.tables import open_table

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])

few, many = sys.argv[1:]
open_table(few)
before = peak()
X = open_table(many)
print(peak() - before)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_killed_process_leaves_no_scratch_file(tmp_path, scratch):
    np.save(tmp_path / "t.npy", np.arange(9000).reshape(3000, 3))
    ended = run_command([sys.executable, "-c", KILLED, str(tmp_path / "t.npy"), str(scratch)])
    assert ended.returncode == -9
    assert os.listdir(scratch) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("kind", ["parquet", "npy"])
def test_the_memory_does_not_grow_with_the_file(kind, tmp_path):
    frame = pl.DataFrame(np.random.default_rng(0).random((100_000, 20)))
    few, many = tmp_path / f"few.{kind}", tmp_path / f"many.{kind}"
    if kind == "parquet":
        frame.write_parquet(few, row_group_size=50_000)
        pl.concat([frame] * 12).write_parquet(many, row_group_size=50_000)
    else:
        np.save(few, (100 * frame.to_numpy()).astype(np.int64, order="C"))
        np.save(many, np.tile(np.load(few), (12, 1)))
    size = 1_200_000 * 20 * 8
    grown = int(run_command([sys.executable, "-c", PEAK, str(few), str(many)]).stdout) * 1024
    assert grown < size / 3
