"""New rows block by block: the same as all at once, whatever the blocks, and in little memory."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import signal
import sys

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from patience import run_command

import smrmf
from smrmf.cli import run
from smrmf.cli._shared import Stopped
from smrmf.tables import TableError, TablePreparation, _delimited_blocks, _record, read_table
from smrmf.tables._blocks import read_blocks
from smrmf.tables._columns import columns_of
from smrmf.tables._delimited import Source, read_delimited
from smrmf.tables._delimited_blocks import whole_rows
from smrmf.tables._new_rows import NewRows
from smrmf.tasks._ask import read_model
from smrmf.tasks._growing import growing_table
from smrmf.tasks._plain import as_json, as_records
from smrmf.tasks._predict import predict_table
from smrmf.tasks._tables import TableChoice

SIZES = [1, 2, 5, 16, 1000]
N_ROWS = 61


def birds(n=N_ROWS, seed=0):
    """Return a table of everything that a cell may have."""
    draws = np.random.default_rng(seed)
    odd = ["", ' "x"', "a,b", "two\nlines", "é\n\nß", "end\r\n", ";|\t"]
    return pl.DataFrame(
        {
            "key": [f"{place:03d}{odd[place % len(odd)]}" for place in range(n)],
            "größe": (draws.normal(size=n) * 1000).round(3),
            "count": draws.integers(0, 10**6, n) - 5 * 10**5,
            "text": [odd[draw] * 3 for draw in draws.integers(0, len(odd), n)],
            "kind": draws.choice(["u", "v\nw", "x,y", '"z"'], n),
            "yes": draws.choice(["True", "false"], n),
            "gap": [None if draw < 0.3 else draw for draw in draws.random(n)],
        }
    )


@pytest.fixture(scope="module")
def prepared():
    return TablePreparation(["größe", "count", "kind", "yes", "gap"]).fit(
        read_table_of(birds(seed=1).write_csv())
    )


def read_table_of(text):
    return read_delimited(Source("text", text.encode()), None, [])[0]


def in_blocks(path, preparation, n_rows, id_column=None):
    """Return the numbers, ids and notes of a table that is read block by block, and the sizes of these."""
    rows = NewRows(preparation.numbers_, preparation.words_)
    parts, ids, notes, sizes = [], [], [], []
    for table in read_blocks(path, preparation, id_column, n_rows):
        assert table.first_row == sum(sizes)
        parts.append(preparation.transform(table))
        rows.add(columns_of(table))
        ids += table.ids or []
        notes += table.notes
        sizes.append(table.n_rows)
    return np.vstack(parts), ids, notes + rows.notes(), sizes


def assert_same_as_whole(path, preparation, n_rows, id_column=None):
    whole = read_table(path, id_column=id_column)
    X, ids, notes, sizes = in_blocks(path, preparation, n_rows, id_column)
    np.testing.assert_array_equal(X, preparation.transform(whole))
    assert X.dtype == preparation.dtype_
    assert ids == (whole.ids or [])
    assert notes == whole.notes + preparation.notes_on(whole)
    return sizes


# The same as all at once


@pytest.mark.parametrize("n_rows", SIZES)
@pytest.mark.parametrize(
    "form", ["plain", "crlf", "bom", "no end", "blank lines", "gz", "tsv", "bar", "spaces"]
)
def test_text_in_blocks_is_the_text_as_a_whole(form, n_rows, prepared, tmp_path):
    frame, path = birds(), tmp_path / {"gz": "t.csv.gz", "tsv": "t.tsv"}.get(form, "t.csv")
    separator = {"tsv": "\t", "bar": "|"}.get(form, ",")
    text = frame.write_csv(separator=separator, line_terminator="\r\n" if form == "crlf" else "\n")
    if form == "blank lines":
        text = text.replace("\n042", "\n   \n\n042") + "\n\n"
    if form == "spaces":
        text = text.replace(",u,", ", u ,").replace(",true,", ", true,")
    content = text.rstrip("\n").encode() if form == "no end" else text.encode()
    content = b"\xef\xbb\xbf" + content if form == "bom" else content
    path.write_bytes(gzip.compress(content) if form == "gz" else content)
    sizes = assert_same_as_whole(path, prepared, n_rows, "key")
    assert sum(sizes) == N_ROWS
    assert (len(sizes) > 1) == (n_rows < N_ROWS)
    assert_same_as_whole(path, prepared, n_rows)


@pytest.mark.parametrize("n_rows", SIZES)
def test_parquet_in_blocks_is_the_file_as_a_whole(n_rows, prepared, tmp_path):
    frame = birds().with_columns(pl.col("yes") == "True", pl.col("kind").cast(pl.Categorical))
    frame.write_parquet(tmp_path / "t.parquet", row_group_size=7)
    sizes = assert_same_as_whole(tmp_path / "t.parquet", prepared, n_rows, "key")
    assert max(sizes) <= n_rows


@pytest.mark.parametrize("n_rows", SIZES)
@pytest.mark.parametrize("form", ["C", "F", "strided", "float32", "integers", "npz", "sparse"])
def test_arrays_in_blocks_are_the_array_as_a_whole(form, n_rows, tmp_path):
    X = np.random.default_rng(0).normal(size=(23, 4)) * 100
    X = {"F": np.asfortranarray(X), "float32": X.astype(np.float32), "integers": X.astype(int)}.get(form, X)
    path = tmp_path / ("t.npz" if form in ("npz", "sparse") else "t.npy")
    if form == "sparse":
        sp.save_npz(path, sp.csr_array(X * (X > 0)))
    else:
        (np.savez if form == "npz" else np.save)(path, X)
    preparation = TablePreparation().fit(read_table(path))
    if form != "sparse":
        assert_same_as_whole(path, preparation, n_rows)
        assert_same_as_whole(path, TablePreparation().fit(X[:, [0, 2, 1]]), n_rows, "x3")
        return
    parts = [preparation.transform(table) for table in read_blocks(path, preparation, None, n_rows)]
    assert {part.shape[0] for part in parts[:-1]} <= {n_rows}
    assert (sp.vstack(parts) != sp.load_npz(path)).nnz == 0


@pytest.mark.parametrize("n_rows", SIZES)
def test_a_decimal_comma_is_one_in_every_block(n_rows, tmp_path):
    """Points part thousands also in a block of which no cell says so."""
    rows = [f"{k}.034,5;{k},25;{k if k % 4 else '-'};{'1,5' if k % 6 else 'no'}" for k in range(1, 40)]
    text = "a;b;c;w\n" + "\n".join([*rows, "1.034;7;919;no", "919;7,5;1.034.567;1,5"]) + "\n"
    (tmp_path / "t.csv").write_text(text)
    whole = read_table(tmp_path / "t.csv")
    preparation = TablePreparation(["a", "b", "c", "w"]).fit(whole)
    assert preparation.numbers_ == ["a", "b", "c"]
    assert preparation.words_ == {"w": ["1.5", "no"]}
    assert_same_as_whole(tmp_path / "t.csv", preparation, n_rows)


def test_points_part_thousands_also_where_no_row_before_has_said_so(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n1.034;7,5\n919;8,5\n2.034;9,5\n")
    preparation = TablePreparation(["a", "b"], scale="none").fit(read_table(tmp_path / "t.csv"))
    for n_rows in SIZES:
        assert_same_as_whole(tmp_path / "t.csv", preparation, n_rows)
    assert in_blocks(tmp_path / "t.csv", preparation, 1)[0].tolist() == [[1034, 7.5], [919, 8.5], [2034, 9.5]]


def test_a_cell_is_the_same_wherever_it_stands(tmp_path):
    """Codes stay words, and what the fit has taken for true is true, also in a block of its own."""
    codes = pl.DataFrame(
        {"code": ["01", "x", "2.0"] * 4, "yes": ["True", "false", "TRUE"] * 4, "n": range(12)}
    )
    preparation = TablePreparation(["code", "yes", "n"]).fit(read_table_of(codes.write_csv()))
    assert preparation.words_ == {"code": ["01", "2.0", "x"], "yes": ["false", "true"]}
    (tmp_path / "t.csv").write_text("n,yes,code\n1,true,01\n2,maybe,2.0\n-,FALSE,\n3,perhaps,x\n")
    X, _, notes, _ = in_blocks(tmp_path / "t.csv", preparation, 1)
    words = X[:, 1:] > 0
    assert words.tolist() == [[1, 0, 0, 0, 1], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 1, 0, 0]]
    assert notes == [
        "'n' has no value in 1 of 4 rows: filled with the median of the fit.",
        "'code' has no value in 1 of 4 rows: counts as none of its words.",
        "'yes' has words that the fit has not seen, as 'maybe', in 2 rows: they count as none of its words.",
    ]


def test_pieces_of_text_end_where_rows_do():
    draws = np.random.default_rng(0)
    letters = list('ab,"\n\r\n')
    rows = [["".join(draws.choice(letters, draws.integers(0, 6))) for _ in range(3)] for _ in range(40)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    content = text.getvalue().encode()
    for size in (*range(1, 30), len(content)):
        pieces = [content[begin : begin + size] for begin in range(0, len(content), size)]
        found = list(whole_rows(pieces, "t"))
        assert b"".join(found) == content
        read = (csv.reader(io.StringIO(part.decode(), newline="")) for part in found)
        assert [row for part in read for row in part] == rows
        # No more is kept than a row and a piece.
        assert max(map(len, found)) < size + 60


def test_a_file_without_a_header_may_have_a_mark_of_its_order(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf1.5,2\n3,4\n")
    preparation = TablePreparation(["column_1", "column_2"], scale="none").fit(read_table(tmp_path / "t.csv"))
    assert_same_as_whole(tmp_path / "t.csv", preparation, 1)
    assert in_blocks(tmp_path / "t.csv", preparation, 1)[0].tolist() == [[1.5, 2], [3, 4]]


def test_a_header_may_have_ends_of_lines_too(tmp_path):
    (tmp_path / "t.csv").write_text('"a\n\nb","c ""d"""\n1,2\n3,4\n')
    preparation = TablePreparation(["a\n\nb", 'c "d"']).fit(
        pl.DataFrame({"a\n\nb": [0.0, 1], 'c "d"': [0, 1]})
    )
    assert_same_as_whole(tmp_path / "t.csv", preparation, 1)


# What is refused


@pytest.fixture
def two():
    """A preparation of two columns of numbers."""
    return TablePreparation(["a", "b"]).fit(pl.DataFrame({"a": [0.0, 1], "b": [0, 1]}))


ROWS = "a,b\n" + "1,2\n" * 20


@pytest.mark.parametrize("n_rows", [1, 4, 1000])
@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "is empty"),
        ("a,b\n", "has the names of 2 columns, but no rows: give some"),
        ("a,b\n\n\n", "has the names of 2 columns, but no rows: give some"),
        ("a,c\n1,2\n", "The table has no column 'b', which is needed; it has 'a' and 'c'"),
        (ROWS + "x,2\n", "'a' must have numbers, but has 'x' in row 21, counted from 1"),
        (ROWS + "\n\n1,x\n", "'b' must have numbers, but has 'x' in row 21, counted from 1"),
        (ROWS + "1,inf\n", "'b' is infinite in row 21, counted from 1"),
        (ROWS + "1,2,3\n" + ROWS, "has 2 columns, but 3 in line 22: correct the line"),
        (ROWS + "1\n" + ROWS, "has 2 columns, but 1 in line 22: correct the line"),
        (ROWS + '"1,2\n' + ROWS, "has 2 columns, but 1 in line 4[0-9]: correct the line"),
        (ROWS.encode() + b"1,caf\xe9\n", "is not written in UTF-8 .*0xe9"),
    ],
)
def test_what_is_wrong_is_found_in_any_block(text, match, n_rows, two, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TableError, match=match) as error:
        in_blocks(path, two, n_rows)
    assert "\n" not in str(error.value)


def test_other_files_are_refused_as_they_are_as_a_whole(two, tmp_path):
    for name, content in (
        ("t.parquet", b"a"),
        ("t.npy", b"a"),
        ("t.xlsx", b"a"),
        ("t.csv.gz", b"a,b\n1,2\n"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(TableError) as error:
            in_blocks(tmp_path / name, two, 3)
        with pytest.raises(TableError) as wanted:
            read_table(tmp_path / name)
        assert str(error.value) == str(wanted.value)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        in_blocks(tmp_path / "none.csv", two, 3)
    (tmp_path / "t.csv").write_text(ROWS)
    with pytest.raises(TableError, match="no column 'x'"):
        in_blocks(tmp_path / "t.csv", two, 3, "x")
    with pytest.raises(TableError, match="no column 'b', which is needed"):
        in_blocks(tmp_path / "t.csv", two, 3, "b")
    np.save(tmp_path / "t.npy", np.array([[0.0, 1], [2, np.inf]]))
    with pytest.raises(TableError, match="'x1' is infinite in row 2,"):
        in_blocks(tmp_path / "t.npy", TablePreparation().fit(np.random.default_rng(0).random((9, 2))), 1)


def test_a_quote_that_is_never_closed_does_not_fill_the_memory(two, monkeypatch, tmp_path):
    monkeypatch.setattr(_delimited_blocks, "LONGEST_ROW", 1000)
    (tmp_path / "t.csv").write_text(ROWS + '"1,2\n' + "1,2\n" * 20_000)
    with pytest.raises(TableError, match=r"has a row of more than 0 MiB: close the quote"):
        in_blocks(tmp_path / "t.csv", two, 10)


# The command


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A folder with a table and a fit of it."""
    folder = tmp_path_factory.mktemp("fit")
    birds().write_csv(folder / "birds.csv")
    request = ["fit", str(folder / "birds.csv"), "--columns", "größe,count,kind,yes,gap", "-k", "3"]
    assert run([*request, "--id", "key", "-o", str(folder / "found")]) == 0
    return folder


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(_record, "BLOCK_ROWS", 9)


def predicted_as_a_whole(found):
    """Return what prediction says of all rows at once."""
    written, table = read_model(found / "found"), read_table(found / "birds.csv", id_column="key")
    X = written.preparation.transform(table)
    labels = written.model.predict(X)
    numbers = (written.model.predict_proba(X).max(axis=1), written.model.outlier_scores(X))
    rounded = [[float(f"{value:.6g}") for value in values] for values in numbers]
    return {"key": table.ids, "cluster": labels, "confidence": rounded[0], "outlier_score": rounded[1]}


def test_predictions_in_blocks_are_those_of_the_whole_table(found, small_blocks, tmp_path, capsys):
    wanted = predicted_as_a_whole(found)
    assert len(set(wanted["cluster"])) == 3
    command = ["predict", str(found / "found"), str(found / "birds.csv"), "--id", "key"]
    assert run([*command, "--json"]) == 0
    assert capsys.readouterr().out == as_json(as_records(wanted)) + "\n"
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([wanted, *zip(*wanted.values(), strict=True)])
    assert run(command) == 0
    assert capsys.readouterr().out == text.getvalue()
    assert run([*command, "-o", str(tmp_path / "p.csv")]) == 0
    assert (tmp_path / "p.csv").read_bytes() == text.getvalue().encode()
    capsys.readouterr()
    # Without ids rows are called by their numbers.
    assert run([*command[:3], "--json"]) == 0
    assert [row["row"] for row in json.loads(capsys.readouterr().out)] == list(range(1, N_ROWS + 1))


def test_every_block_is_told(found):
    told, handed = [], []
    written = read_model(found / "found")
    choice = TableChoice(str(found / "birds.csv"))
    predict_table(written, choice, handed.append, told.append, 20)
    done = np.cumsum([len(columns["cluster"]) for columns in handed])
    assert told == [f"{count} rows" for count in done]
    assert len(told) > 2


def test_standard_input_is_read_in_blocks(found, small_blocks, monkeypatch, capsys):
    command = ["predict", str(found / "found")]
    assert run([*command, str(found / "birds.csv")]) == 0
    wanted = capsys.readouterr().out
    content = io.BytesIO((found / "birds.csv").read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    assert run([*command, "-"]) == 0
    assert capsys.readouterr().out == wanted


@pytest.mark.parametrize("to", [["-o", "p.csv"], ["--json"], []], ids=str)
def test_an_error_in_a_late_row_names_it_and_leaves_nothing(
    to, found, small_blocks, monkeypatch, tmp_path, capsys
):
    monkeypatch.chdir(tmp_path)
    frame = birds().with_columns(pl.col("count").cast(pl.String))
    frame[50, "count"] = "many"
    frame.write_csv("new.csv")
    assert run(["predict", str(found / "found"), "new.csv", *to]) == 2
    out, err = capsys.readouterr()
    assert "'count' must have numbers, but has 'many' in row 51, counted from 1" in err
    assert (out, os.listdir()) == ("", ["new.csv"])


def test_an_interruption_leaves_the_earlier_file(found, small_blocks, monkeypatch, tmp_path):
    (tmp_path / "p.csv").write_text("earlier")
    calls = []

    def interrupted(model, X):
        calls.append(len(X))
        if len(calls) == 3:
            raise Stopped(signal.SIGINT)
        return np.ones(len(X))

    monkeypatch.setattr(smrmf.FastSMRMF, "outlier_scores", interrupted)
    command = [
        "predict",
        str(found / "found"),
        str(found / "birds.csv"),
        "--force",
        "-o",
        str(tmp_path / "p.csv"),
    ]
    assert run(command) == 128 + signal.SIGINT
    assert len(calls) == 3
    assert (tmp_path / "p.csv").read_text() == "earlier"
    assert os.listdir(tmp_path) == ["p.csv"]


def test_a_file_that_cannot_be_finished_is_gone(monkeypatch, tmp_path):
    path = tmp_path / "p.csv"

    def full(file):
        assert len(os.listdir(tmp_path)) == 2
        raise OSError("full")

    with growing_table() as table:
        table.add({"a": [1, 2], "b": ["x", "\udce9\n"]})
        table.add({"a": [3], "b": [None]})
        table.save(path, overwrite=False)
        assert path.read_text() == 'a,b\n1,x\n2,"?\n"\n3,\n'
        with pytest.raises(FileExistsError, match="exists already"):
            table.save(path, overwrite=False)
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="full"):
            table.save(path, overwrite=True)
    assert path.read_text() == 'a,b\n1,x\n2,"?\n"\n3,\n'
    assert os.listdir(tmp_path) == ["p.csv"]


# Memory

PEAK = """
import sys
import numpy as np
from pathlib import Path
from types import SimpleNamespace
from smrmf.tables import TablePreparation
from smrmf.tasks._predict import predict_table
from smrmf.tasks._tables import TableChoice

class Model:
    def predict(self, X): raise AssertionError
    def predict_proba(self, X): return np.ones((len(X), 2))
    def outlier_scores(self, X): return np.ones(len(X))

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])

few, many = sys.argv[1:]
frame = {f"x{place}": np.random.default_rng(place).random(9) for place in range(20)}
written = SimpleNamespace(model=Model(), preparation=TablePreparation(list(frame)).fit(frame))
predict_table(written, TableChoice(few), lambda columns: None, n_rows=5000)
before = peak()
predict_table(written, TableChoice(many), lambda columns: None, n_rows=5000)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("kind", ["csv", "parquet", "npy"])
def test_the_memory_does_not_grow_with_the_file(kind, tmp_path):
    """Twenty times the rows take hardly more memory; as a whole they would take several times their size."""
    X = np.random.default_rng(0).random((10_000, 20))
    frame = pl.DataFrame(X, schema=[f"x{place}" for place in range(20)])
    few, many = tmp_path / f"few.{kind}", tmp_path / f"many.{kind}"
    if kind == "csv":
        head, _, rows = frame.write_csv().partition("\n")
        few.write_text(f"{head}\n{rows}")
        many.write_text(f"{head}\n{rows * 30}")
    elif kind == "parquet":
        frame.write_parquet(few, row_group_size=5000)
        pl.concat([frame] * 80).write_parquet(many, row_group_size=5000, compression="uncompressed")
    else:
        np.save(few, X)
        np.save(many, np.tile(X, (80, 1)))
    size = many.stat().st_size
    assert size > 100e6
    grown = int(run_command([sys.executable, "-c", PEAK, str(few), str(many)]).stdout) * 1024
    assert grown < size / 3
