"""Tables: from files to numbers, with a sentence on everything that is decided, and results to files."""

from __future__ import annotations

import gzip
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import palmerpenguins
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline

import smrmf
from smrmf.tables import DataTable, TableError, TablePreparation, read_table, write_results
from smrmf.tables._scaling import ASKED_ROWS, BLOCK_ROWS, _neighbor_distance, in_one_unit

PENGUINS = Path(palmerpenguins.__file__).parent / "data" / "penguins.csv"


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def penguins(file):
    return read_table(file(PENGUINS.read_bytes(), "penguins.csv"), label_column="species")


def one_sentence(error):
    said = str(error.value)
    return "\n" not in said and said[-1] in ".?"


def notes_of(**columns):
    return TablePreparation().fit(pl.DataFrame(columns)).notes_


# Reading


def test_the_penguins_are_read_as_they_are(penguins):
    assert penguins.n_rows == 344
    assert "species" not in penguins.names
    assert set(penguins.labels) == {"Adelie", "Chinstrap", "Gentoo"}
    assert penguins.frame["sex"].null_count() == 11
    assert penguins.frame["body_mass_g"].dtype.is_numeric()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1.5,2\n3.5,\n", []),
        ("a;b\n1,5;2\n3,5;\n", ["Columns are separated by ';'.", "Decimals are written with a comma."]),
        ("a\tb\n1.5\t2\n3.5\tNA\n", ["Columns are separated by '\\t'."]),
        ("a|b\n1.5|2\n3.5|?\n", ["Columns are separated by '|'."]),
        ("\ufeffa,b\r\n1.5,2\r\n\r\n3.5,nan\r\n\r\n", []),
        (" a , b\n 1.5, 2\n 3.5, NaN \n", []),
        ("a,b\n1.5,2\n3.5,-\n   \n", []),
        ("a,b\n1.5,2\n   \n3.5,   \n\n", []),
        ("a;b\n1,5;2\n3,5;-\n", ["Columns are separated by ';'.", "Decimals are written with a comma."]),
        ("a;b\n1,5;2\n3,5;  \n", ["Columns are separated by ';'.", "Decimals are written with a comma."]),
        ("a;b\n1,5;2\n3,5;None\n", ["Columns are separated by ';'.", "Decimals are written with a comma."]),
    ],
)
def test_the_way_of_writing_is_found_out(text, said, file):
    table = read_table(file(text))
    assert table.names == ["a", "b"]
    assert table.frame.fill_nan(None).rows() == [(1.5, 2), (3.5, None)]
    assert table.notes == said


def test_points_part_thousands_where_decimals_have_a_comma(file):
    table = read_table(file("a;b;c\n1.034,06;-1.034.567,8;1.034\n919,73;5;919\n-;.;12.034.567\n"))
    assert table.frame.rows() == [(1034.06, -1034567.8, 1034), (919.73, 5, 919), (None, None, 12034567)]
    alone = read_table(file("a;b\n1.034,06;1\n2.919,73;2\n"))
    assert alone.frame["a"].to_list() == [1034.06, 2919.73]
    # Points before decimals are none of thousands.
    assert read_table(file("a;b\n1.034;1.5\n919;2.5\n")).frame["a"].to_list() == [1.034, 919]


def test_the_first_value_that_is_no_number_is_named(file):
    cells = [f"{81 + k},4{k % 10};{k}" for k in range(30)] + ["-;7", " ;8", "8x;9"]
    table = read_table(file("a;b\n" + "\n".join(cells) + "\n"))
    notes = TablePreparation().fit(table).notes_
    assert any("'a' has numbers, but also words, as '8x' in row 33" in note for note in notes)


def test_signs_that_are_words_stay(file):
    table = read_table(file("a,sign,half\n1,+,u\n-,-,-\n4,-,v\n"))
    assert table.frame.rows() == [(1, "+", "u"), (None, "-", "-"), (4, "-", "v")]


@pytest.mark.skipif(sys.platform != "linux", reason="names of files that are no text are known on Linux")
def test_names_of_files_may_be_any_bytes(tmp_path):
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", None]})
    path = tmp_path / os.fsdecode(b"caf\xe9.csv")
    path.write_bytes(b"a,b\n1,x\n2,\n")
    assert read_table(path).frame.equals(frame)
    path.with_suffix(".csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert read_table(path.with_suffix(".csv.gz")).frame.equals(frame)
    with path.with_suffix(".parquet").open("wb") as opened:
        frame.write_parquet(opened)
    assert read_table(path.with_suffix(".parquet")).frame.equals(frame)


def test_cells_may_have_ends_of_lines(file):
    table = read_table(file('a|b,c\n"x\ny"|1\nz|2\n'))
    assert table.frame.rows() == [("x\ny", 1), ("z", 2)]


def test_packed_files_and_tabs_are_known_by_their_suffix(file):
    packed = gzip.compress(b"a\tb,c\n1\t2\n")
    assert read_table(file(packed, "table.tsv.gz")).names == ["a", "b,c"]


def test_standard_input_is_csv(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"id,a\n007,2\n")))
    table = read_table("-", id_column="id")
    assert (table.ids, table.frame.rows()) == (["007"], [(2,)])


def test_a_first_row_of_numbers_is_no_header(file):
    table = read_table(file("5.1,3,x\n4.9,2,y\n"))
    assert table.names == ["column_1", "column_2", "column_3"]
    assert table.n_rows == 2
    assert "The first row has numbers" in table.notes[0]
    assert read_table(file("1990,country\n1,x\n")).names == ["1990", "country"]


def test_a_column_without_a_name_gets_one_by_which_it_can_be_asked_for(file):
    text = '"",mass,\n"5",1.5,x\n"9",2.5,y\n"2",3.5,y\n'
    table = read_table(file(text), id_column="unnamed_1")
    assert (table.ids, table.names) == (["5", "9", "2"], ["mass", "unnamed_3"])
    assert table.notes == ["Columns without a name are called 'unnamed_1' and 'unnamed_3'."]
    # Most often they number the rows.
    assert TablePreparation().fit(read_table(file(text))).feature_names_out_ == ["mass"]


def test_types_are_right_also_where_the_first_rows_mislead(file):
    table = read_table(file("a\n" + "1\n" * 10_001 + "1.5\n"))
    assert table.frame["a"][-1] == 1.5


def test_a_header_may_be_long(file):
    names = [f"gene number {place:06d}" for place in range(6000)]
    table = read_table(file(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n"))
    assert table.names == names


def test_ids_and_labels_stay_as_they_came(file):
    path = file("key,a,class\n007,1,NA\n\n1e3,2,\n NA,3,01\n")
    table = read_table(path, id_column="key", label_column="class")
    assert table.ids == ["007", "1e3", " NA"]
    assert table.labels == ["", "", "01"]
    assert table.names == ["a"]


def test_columns_are_chosen_by_name(file):
    path = file("a,b,c\n1,2,3\n")
    assert read_table(path, columns=["c", "a"]).frame.rows() == [(3, 1)]
    assert read_table(path, columns=["b", "b"]).frame.rows() == [(2,)]
    assert read_table(path, drop=["a"]).frame.rows() == [(2, 3)]


@pytest.mark.parametrize(
    ("content", "name", "match"),
    [
        ("", "t.csv", "is empty"),
        (" \n", "t.csv", "is empty"),
        ("\na,b\n", "t.csv", "begins with an empty line"),
        ("a,b\n", "t.csv", "has the names of 2 columns, but no rows"),
        ("a,b,a\n1,2,3\n", "t.csv", "has more than one column 'a'"),
        ("a,b\n1,2\n3\n", "t.csv", "has 2 columns, but 1 in line 3"),
        ("a,b\n1,2\n3,4,5\n", "t.csv", "has 2 columns, but 3 in line 3"),
        ('a,b\n1,2\n"x,3\n', "t.csv", "in line 3"),
        (b"a,b\n1,caf\xe9\n", "t.csv", "is not written in UTF-8 .*0xe9"),
        (b"a,b\n" + b"1,x\n" * 30_000 + b"1,caf\xe9\n", "t.csv", "is not written in UTF-8 .*0xe9"),
        ("a,b\n1,2\n".encode("utf-16"), "t.csv", "is written in UTF-16"),
        (b"a,b\n1,2\n", "t.csv.gz", "is no gzip file"),
        (gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:-9], "t.csv.gz", "is no gzip file, or damaged"),
        (b"a,b\n1,2\n", "t.parquet", "is no Parquet file"),
        (b"a,b\n1,2\n", "t.npy", "is no file of arrays"),
        (b"a,b\n1,2\n", "t.npz", "is no file of arrays"),
        (b"a,b\n1,2\n", "t.xlsx", r"ends in '\.xlsx': give a table in \.csv"),
        (b"a,b\n1,2\n", "t", "ends in 'no suffix'"),
    ],
)
def test_files_that_are_no_tables_are_refused_in_one_sentence(content, name, match, file):
    path = file(content, name)
    with pytest.raises(TableError, match=match) as error:
        read_table(path)
    assert one_sentence(error)
    assert str(path) in str(error.value)


def test_absent_files_and_columns_are_named(file, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*none\.csv"):
        read_table(tmp_path / "none.csv")
    path = file("mass,wing\n1,2\n")
    with pytest.raises(TableError, match=r"no column 'mas': did you mean 'mass'\?"):
        read_table(path, columns=["mas"])
    with pytest.raises(TableError, match="no column 'zzz': it has 'mass' and 'wing'"):
        read_table(path, id_column="zzz")
    with pytest.raises(TableError, match="no column is left"):
        read_table(path, drop=["mass"], label_column="wing")


def test_parquet_keeps_types(tmp_path):
    frame = pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.Float32), "b": ["x", None], "key": ["01", "02"]})
    frame.write_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", id_column="key")
    assert table.frame.equals(frame.drop("key"))
    assert table.ids == ["01", "02"]


def test_arrays_are_mapped_not_read(tmp_path):
    X = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "t.npy", X)
    table = read_table(tmp_path / "t.npy")
    assert isinstance(table.frame, np.memmap)
    assert table.names == ["x0", "x1", "x2"]
    np.testing.assert_array_equal(table.frame, X)
    chosen = read_table(tmp_path / "t.npy", columns=["x2", "x0"], id_column="x1")
    np.testing.assert_array_equal(chosen.frame, X[:, [2, 0]])
    assert chosen.ids == ["1.0", "4.0", "7.0", "10.0"]


def test_classes_that_are_missing_are_no_classes_in_any_file(file, tmp_path):
    csv = file("a,k\n1,NA\n2, \n3,b\n4,nan\n5,-\n")
    assert read_table(csv, label_column="k").labels == ["", "", "b", "", "-"]
    for column in ([1.0, float("nan"), None, 2.0], ["x", "NA", None, "y"]):
        pl.DataFrame({"a": range(4), "k": column}, strict=False).write_parquet(tmp_path / "t.parquet")
        labels = read_table(tmp_path / "t.parquet", label_column="k").labels
        assert [bool(label) for label in labels] == [True, False, False, True]
    np.savez(tmp_path / "t.npz", X=np.eye(3), y=[1.0, np.nan, 2.0])
    assert read_table(tmp_path / "t.npz").labels == ["1.0", "", "2.0"]


def test_files_of_several_arrays(tmp_path):
    X, path = np.eye(3), tmp_path / "t.npz"
    np.savez(path, X)
    np.testing.assert_array_equal(read_table(path).frame, X)
    np.savez(path, X=X, y=["a", "b", "a"], feature_names=["u", "v", "w"])
    table = read_table(path)
    assert (table.names, table.labels) == (["u", "v", "w"], ["a", "b", "a"])
    sp.save_npz(path, sp.csr_array(X))
    assert sp.issparse(read_table(path).frame)


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"a": np.eye(2), "b": np.eye(2)}, "holds a, b: give one array, or arrays X"),
        ({"X": np.zeros(3)}, "an array of 1 dimensions"),
        ({"X": np.array([["a"]])}, "entries of type <U1"),
        ({"X": np.array([[None]])}, "has Python objects, which are never read"),
        ({"X": np.eye(2), "feature_names": ["a", "a"]}, "has more than one column 'a': rename all but one"),
        ({"X": np.eye(3), "y": np.zeros(2)}, r"y of .* has the shape \(2,\), but X needs \(3,\)"),
    ],
)
def test_arrays_that_are_no_tables_are_refused(arrays, match, tmp_path):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(TableError, match=match) as error:
        read_table(tmp_path / "t.npz")
    assert one_sentence(error)


# What becomes of columns


def test_the_penguins_become_numbers(penguins):
    preparation = TablePreparation().fit(penguins)
    X = preparation.transform(penguins)
    assert X.shape == (344, len(preparation.feature_names_out_))
    assert np.isfinite(X).all()
    assert list(preparation.words_) == ["island", "sex"]
    assert preparation.words_["sex"] == ["female", "male"]
    said = " ".join(preparation.notes_)
    for part in ("'body_mass_g' (2)", "'sex' has no value in 11 of 344 rows", "standard deviation 1"):
        assert part in said
    # Two of the rows that lack their sex lack all measures, and these are at the medians.
    empty = penguins.frame["body_mass_g"].is_null().to_numpy()
    place = preparation.numbers_.index("body_mass_g")
    assert np.ptp(X[empty, place]) == 0
    np.testing.assert_allclose(preparation.inverse_transform(X)[empty, place], 4050)
    np.testing.assert_allclose(
        preparation.inverse_transform(X)[~empty, place], penguins.frame["body_mass_g"].drop_nulls()
    )
    sexes = preparation.inverse_transform(X)[:, -2:]
    assert sexes.sum(axis=0).tolist() == [165, 168]


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([1] * 6, "'c' is 1 in every row: left out."),
        (["x"] * 6, "'c' is 'x' in every row: left out."),
        ([2, 2, None, 2, 2, 2], "'c' is 2 in every row that has a value: left out."),
        ([True] * 6, "'c' is 'true' in every row: left out."),
        ([7, 8, 9, 10, 11, 12], "'c' numbers the rows: left out; ask for it by name to use it."),
        (list("abcdef"), "'c' is another word in every row, as names and ids are: left out; ask for it"),
        (["a long story " * 3 + str(i) for i in range(6)], "'c' has texts: left out; .*TfidfVectorizer"),
        ([1, None, None, None, 2, None], "'c' has no value in 4 of 6 rows, more than half: left out."),
        ([None] * 6, "'c' has no values: left out."),
        (pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 1, 6), eager=True), "'c' has dates or times: left"),
        ([[1]] * 6, "'c' has values that are neither numbers nor words: left out."),
        (
            ["1", "2", "3", "4", "5", "x"],
            "'c' has numbers, but also words, as 'x' in row 6, .*: left out",
        ),
        (
            ["$1,234.50", "$2", "$30", "$41.5", "$5", "$6"],
            "'c' has numbers that are written with signs, as '$1,234.50' in row 1",
        ),
        (["1 %", "2 %", "3,5 %", "4 %", "5 %", "n"], "'c' has numbers that are written with signs, as '1 %'"),
        (["a", "a", "b", "c", "d", "e"], "'c' has 5 different words, more than are few: left out; join rare"),
        ([1, None, 2, 4, 2, 4], "'c' has no value in 1 of 6 rows: filled with its median, 2."),
        (["u", None, "u", "v", "v", "v"], "'c' has no value in 1 of 6 rows: counts as none of its words."),
    ],
)
def test_every_decision_is_said(values, note):
    notes = notes_of(a=[1.0, 5.0, 2.0, 4.0, 9.0, 3.0], c=values)
    pattern = note if ".*" in note else re.escape(note)
    assert [said for said in notes if re.match(pattern, said)], notes


@pytest.mark.parametrize(
    ("values", "works"),
    [
        pytest.param(list(range(30)), True, id="numbers the rows"),
        pytest.param([f"n{k}" for k in range(30)], False, id="names"),
        pytest.param([f"n{k % 18}" for k in range(30)], True, id="few words"),
        pytest.param([f"n{k % 25}" for k in range(30)], False, id="many words"),
        pytest.param([f"{k}" for k in range(29)] + ["x"], False, id="mixed"),
        pytest.param([1] * 30, False, id="constant"),
    ],
)
@pytest.mark.parametrize("name", ["c", "bird_id"])
def test_only_what_works_is_advised_and_what_does_not_work_is_refused(values, works, name):
    frame = pl.DataFrame({"a": [k * k % 17 for k in range(30)], name: values})
    note = next((note for note in TablePreparation().fit(frame).notes_ if note.startswith(repr(name))), "")
    assert "ask for it" not in note or works
    if works:
        assert set(TablePreparation(["a", name, "a"]).fit(frame).feature_names_out_) > {"a"}
        return
    with pytest.raises(TableError, match=rf"\('{name}' .*\): leave it out of columns\.") as error:
        TablePreparation(["a", name]).fit(frame)
    assert one_sentence(error)


def test_sentences_keep_all_digits_before_the_point():
    notes = notes_of(a=[12345678, None, 12345679, 12345678], b=[1234567] * 4, c=[0.125, None, 7, 0.125])
    assert "'a' has no value in 1 of 4 rows: filled with its median, 12345678." in notes
    assert "'b' is 1234567 in every row: left out." in notes
    assert "'c' has no value in 1 of 4 rows: filled with its median, 0.125." in notes


def test_gaps_of_many_new_columns_share_a_sentence():
    rows = {f"c{k}": [k, 3 * k + 5, k + 2, 4] for k in range(5)} | {"w": ["u", "v", "u", "v"]}
    preparation = TablePreparation().fit(pl.DataFrame(rows))
    gaps = pl.DataFrame(rows).with_columns(pl.lit(None).alias(f"c{k}") for k in range(5))
    assert preparation.notes_on(gaps.with_columns(w=pl.Series(["u", "v", None, "z"]))) == [
        "Of 4 rows some have no value in 'c0' (4), 'c1' (4), 'c2' (4), 'c3' (4), 'c4' (4): filled with the "
        "median of the fit.",
        "'w' has no value in 1 of 4 rows: counts as none of its words.",
        "'w' has words that the fit has not seen, as 'z', in 1 row: they count as none of its words.",
    ]


def test_one_wrong_cell_makes_no_words_of_a_measure():
    ages = [str(20 + place % 15) for place in range(60)]
    ages[7] = "unknown"
    preparation = TablePreparation().fit(pl.DataFrame({"a": range(0, 180, 3), "age": ages}))
    assert preparation.words_ == {}
    assert any("'unknown' in row 8" in note for note in preparation.notes_)
    # Few codes, or what is asked for, are words.
    few = [str(place % 5) for place in range(59)] + ["x"]
    assert list(TablePreparation().fit(pl.DataFrame({"a": range(0, 180, 3), "code": few})).words_) == ["code"]
    asked = TablePreparation(columns=["age"]).fit(pl.DataFrame({"age": ages}))
    assert list(asked.words_) == ["age"]


def test_columns_of_words_never_share_a_name():
    frame = pl.DataFrame(
        {"a": ["b", "b", "c", "c"], "a=b": [1.0, 2.0, 4.0, 3.0], "a=c": ["u", "v", "v", "u"]}
    )
    preparation = TablePreparation().set_output(transform="polars")
    X = preparation.fit_transform(frame)
    assert len(set(X.columns)) == 5
    assert preparation.feature_names_out_[:2] == ["a=b", "a=b (word)"]


@pytest.mark.parametrize("name", ["id", "ID", "index", "Unnamed: 0", "", "customer_id"])
def test_ids_are_known_by_their_names_unless_asked_for(name):
    frame = pl.DataFrame({"a": [1.0, 5.0, 2.0], name: [30, 10, 20]})
    assert TablePreparation().fit(frame).numbers_ == ["a"]
    assert TablePreparation([name, "a"]).fit(frame).numbers_ == [name, "a"]


def test_many_columns_of_one_kind_share_a_sentence():
    columns = {f"c{place}": [3, 3, 3] for place in range(9)}
    notes = notes_of(a=[1.0, 5.0, 2.0], **columns)
    assert "'c0', 'c1', 'c2' and 6 more are the same in every row: left out." in notes


def test_rows_without_values_are_said_to_be_filled():
    frame = pl.DataFrame({"a": [1.0, None, 3.0, 9.0], "b": [5.0, None, 2.0, 2.5], "c": ["u", None, "v", "u"]})
    preparation = TablePreparation(["a", "b", "c"]).fit(frame)
    assert any(note.startswith("1 row has no value in any column") for note in preparation.notes_)
    units = preparation.inverse_transform(preparation.transform(frame))
    np.testing.assert_allclose(units[:, 0], [1, 3, 3, 9])
    whole = TablePreparation().fit(frame.with_columns(b=pl.Series([5.0, 2.0, 2.0, 2.5])))
    assert not any("no value in any" in note for note in whole.notes_)


def test_infinite_and_immense_numbers_are_refused():
    with pytest.raises(TableError, match="'a' is infinite in row 2, counted from 1"):
        TablePreparation().fit(pl.DataFrame({"a": [1.0, float("inf"), 2.0]}))
    with pytest.raises(TableError, match=r"'a' has numbers of up to 1\.0e\+308: divide it by a power"):
        TablePreparation().fit(pl.DataFrame({"a": [1e308, -1e308, 2.0]}))


def test_a_table_of_which_nothing_is_left_is_refused_and_the_earlier_fit_stays():
    preparation = TablePreparation().fit(pl.DataFrame({"b": [True, False, True, None, False]}))
    before = dict(vars(preparation))
    with pytest.raises(TableError, match=r"No column is left to use\. 'a' is 1 in every row"):
        preparation.fit(pl.DataFrame({"a": [1, 1]}))
    assert vars(preparation) == before
    assert preparation.words_ == {"b": ["false", "true"]}


# Numbers and words in one unit


@pytest.mark.parametrize("scale", ["standard", "minmax", "none"])
def test_scales_are_what_they_are_called(scale):
    a = np.random.default_rng(0).normal(100, 7, 50)
    X = TablePreparation(scale=scale).fit_transform(pl.DataFrame({"a": a}))[:, 0]
    if scale == "standard":
        np.testing.assert_allclose([X.mean(), X.std()], [0, 1], atol=1e-12)
    elif scale == "minmax":
        np.testing.assert_allclose([X.min(), X.max()], [0, 1], atol=1e-12)
    else:
        np.testing.assert_array_equal(X, a)


@pytest.mark.parametrize("scale", ["auto", "standard", "none"])
def test_another_word_is_as_far_as_one_standard_deviation(scale):
    values = np.random.default_rng(0).normal(5, 30, 60)
    frame = pl.DataFrame({"a": values, "w": ["u", "v", "w"] * 20})
    preparation = TablePreparation(scale=scale).fit(frame)
    X = preparation.transform(frame)
    np.testing.assert_allclose(np.linalg.norm(X[0, 1:] - X[1, 1:]), X[:, 0].std())
    new = preparation.transform(pl.DataFrame({"a": [5.0, 5.0], "w": ["never seen", None]}))
    assert not new[:, 1:].any()


def test_columns_of_one_unit_keep_it():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 17, (40, 30)).astype(float)
    preparation = TablePreparation().fit(pixels)
    np.testing.assert_array_equal(preparation.transform(pixels), pixels)
    assert "The 30 columns have about the same range" in preparation.notes_[-1]
    pixels[:, 3] *= 20
    assert abs(TablePreparation().fit_transform(pixels).mean(axis=0)).max() < 1e-12
    assert not in_one_unit(np.ones(20))
    assert in_one_unit(np.ones(21))
    assert not in_one_unit(np.array([1.0] * 11 + [1000.0] * 19))
    assert in_one_unit(np.array([1.0] * 21 + [0.0] * 60))


@pytest.mark.parametrize("scale", ["auto", "standard", "minmax", "none"])
def test_a_dark_pixel_stays_in_the_picture(scale):
    pixels = np.random.default_rng(0).integers(0, 17, (40, 36)).astype(float)
    pixels[:, [0, 5, 30]] = 0
    preparation = TablePreparation(scale=scale).fit(pixels)
    X = preparation.transform(pixels)
    assert len(preparation.numbers_) == 36
    assert not X[:, [0, 5, 30]].any()
    np.testing.assert_allclose(preparation.inverse_transform(X), pixels, atol=1e-12)
    assert not any("left out." in note for note in preparation.notes_)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"still": [99.0] * 40}, id="far from the others"),
        pytest.param({"still": [0.0] * 39 + [None]}, id="with a gap"),
        pytest.param({"still": ["a"] * 40}, id="a word"),
        pytest.param({"still": [0.0] * 40, "kind": ["a", "b"] * 20}, id="beside words"),
        pytest.param({"still": [0.0] * 40, "wide": [0.0, 999.0] * 20}, id="beside another unit"),
    ],
)
def test_elsewhere_one_value_says_nothing(other):
    pixels = np.random.default_rng(0).integers(0, 17, (40, 35)).astype(float)
    frame = pl.DataFrame({f"x{place}": column for place, column in enumerate(pixels.T)} | other)
    preparation = TablePreparation().fit(frame)
    assert "still" not in preparation.feature_names_out_
    assert any(note.startswith("'still' is ") for note in preparation.notes_)


def test_single_precision_stays():
    X = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
    assert TablePreparation().fit_transform(X).dtype == np.float32
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    assert TablePreparation().fit_transform(frame).dtype == np.float32
    assert TablePreparation().fit_transform(frame.with_columns(c=pl.col("a").cast(pl.Float64))).dtype == float


def test_one_table_in_several_forms_is_one_table():
    X = np.random.default_rng(0).normal(size=(9, 3))
    X[2, 1] = np.nan
    frame = pl.DataFrame(X, schema=["x0", "x1", "x2"])
    wanted = TablePreparation().fit_transform(X)
    for form in (
        frame,
        frame.to_dict(as_series=False),
        DataTable(X, ["x0", "x1", "x2"]),
        np.asfortranarray(X),
    ):
        np.testing.assert_array_equal(TablePreparation().fit_transform(form), wanted)


def test_frames_of_pandas_are_tables_without_pyarrow(penguins, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    read = pd.read_csv(PENGUINS).drop(columns="species")
    preparation, wanted = TablePreparation().fit(read), TablePreparation().fit(penguins)
    np.testing.assert_array_equal(preparation.transform(read), wanted.transform(penguins))
    assert preparation.notes_ == wanted.notes_
    np.testing.assert_array_equal(preparation.transform(read[5:9]), wanted.transform(penguins.frame[5:9]))

    day = pd.Timestamp("2020-01-01")
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None, 5, 7], dtype="Int64"),
            "yes": pd.array([True, False, None, True], dtype="boolean"),
            "kind": pd.Categorical(["u", "v", None, "u"]),
            "coded": pd.Categorical([3, 1, 3, 1]),
            "half": np.array([0.5, 1.5, np.nan, 2], dtype=np.float16),
            "words": pd.Series(["a", None, "b", "a"], dtype=object),
            "day": [day, day, None, day],
            "days": pd.to_timedelta([1, 2, 3, 4], unit="D"),
            "zone": pd.Series([day] * 4).dt.tz_localize("Europe/Berlin"),
            "odd": [{1}, [2], None, "x"],
            5: [4.0, 3.0, 9.0, 1.0],
        }
    )
    preparation = TablePreparation().fit(pd.concat([frame, frame]))  # rows that share their labels
    assert preparation.numbers_ == ["whole", "coded", "half", "5"]
    assert preparation.words_ == {"yes": ["false", "true"], "kind": ["u", "v"], "words": ["a", "b"]}
    assert any("'day', 'days' and 'zone'" in note or "'day' has dates" in note for note in preparation.notes_)
    assert "'odd' has values that are neither numbers nor words: left out." in preparation.notes_
    with pytest.raises(TableError, match="The table has more than one column 'a': rename all but one"):
        TablePreparation().fit(pd.DataFrame(np.eye(3), columns=["a", "b", "a"]))


# New rows


def test_new_rows_are_taken_by_the_names_of_columns(penguins):
    preparation = TablePreparation().fit(penguins)
    whole = preparation.transform(penguins)
    shuffled = penguins.frame.select(reversed(penguins.names)).with_columns(extra=pl.lit("?"))
    np.testing.assert_array_equal(preparation.transform(shuffled[100:110]), whole[100:110])
    with pytest.raises(TableError, match="The table has no column 'sex', which is needed"):
        preparation.transform(penguins.frame.drop("sex"))
    with pytest.raises(TableError, match="'year' must have numbers, but has 'soon' in row 2, counted from 1"):
        preparation.transform(penguins.frame[:2].with_columns(year=pl.Series(["2007", "soon"])))
    nothing = penguins.frame[:1].with_columns(pl.lit(None, dtype=pl.String).alias("year"))
    place = preparation.numbers_.index("year")
    year = (
        preparation.offsets_[place] + preparation.divisors_[place] * preparation.transform(nothing)[0, place]
    )
    assert year == pytest.approx(2008)


def test_sparse_tables_are_used_as_they_are():
    X = sp.random_array((9, 40), density=0.2, rng=np.random.default_rng(0), format="csr")
    preparation = TablePreparation().fit(X)
    assert (preparation.transform(X) != X).nnz == 0
    for given in (X.toarray(), X[:, :5]):
        with pytest.raises(TableError, match="give"):
            preparation.transform(given)
    with pytest.raises(TableError, match="A sparse table is used as it is"):
        TablePreparation(scale="standard").fit(X)


def test_a_preparation_needs_a_fit_and_right_parameters():
    with pytest.raises(NotFittedError):
        TablePreparation().transform(np.eye(3))
    with pytest.raises(ValueError, match="scale='log' is not valid for TablePreparation"):
        TablePreparation(scale="log").fit(np.eye(3))


@pytest.mark.filterwarnings(
    "ignore::smrmf.inspection.ColumnsWarning"
)  # of island and sex, which it is right about
def test_a_preparation_is_saved_with_the_model(penguins, tmp_path):
    model = make_pipeline(TablePreparation(), smrmf.RMNMF(3, init="kmeans", random_state=0)).fit(penguins)
    same = smrmf.load(smrmf.save(model, tmp_path / "penguins.smrmf"))
    np.testing.assert_array_equal(same[0].transform(penguins), model[0].transform(penguins))
    np.testing.assert_array_equal(same.predict(penguins.frame[:50]), model[-1].labels_[:50])
    assert same[0].notes_ == model[0].notes_


def test_without_polars_a_sentence_says_what_to_install(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"Tables need polars: pip install 'smrmf\[app\]'"):
        read_table(file("a,b\n1,2\n"))


def test_the_room_costs_next_to_nothing_to_import():
    code = "import sys, smrmf.tables; print(*sys.modules)"
    env = os.environ | {"PYTHONPATH": str(Path(smrmf.__file__).parent.parent)}
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True, env=env).split()
    assert not {"polars", "sklearn", "scipy", "numpy"} & set(loaded)


# Results


def test_results_are_written_as_they_are(tmp_path):
    ids = ["007", "a,b", 'say "x"', "two\nlines", "é"]
    paths = write_results(tmp_path / "out", {"rows": {"id": ids, "n": np.arange(5) / 10}, "none": {"a": []}})
    assert [path.name for path in paths] == ["rows.csv", "none.csv"]
    back = read_table(paths[0], id_column="id")
    assert back.ids == ids
    assert back.frame["n"].to_list() == [0, 0.1, 0.2, 0.3, 0.4]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    # For others to read, as any new folder.
    os.mkdir(tmp_path / "usual")
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_earlier_results_are_replaced_only_if_asked(tmp_path):
    write_results(tmp_path / "out", {"new": {"a": [1]}})
    with pytest.raises(FileExistsError, match="out exists already: give another name, or use force"):
        write_results(tmp_path / "out", {"new": {"a": [2]}})
    (tmp_path / ".out.left").mkdir()  # as a killed run leaves it
    write_results(tmp_path / "out", {"new": {"a": [2]}, "labels": {"a": [3]}}, force=True)
    write_results(tmp_path / "out", {"new": {"a": [4]}}, force=True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["new.csv"]
    assert (tmp_path / "out" / "new.csv").read_text() == "a\n4\n"
    assert {path.name for path in tmp_path.iterdir()} == {"out", ".out.left"}


@pytest.mark.parametrize("stays", ["notes.txt", "mine.csv", "folder"])
def test_a_folder_of_other_things_is_never_replaced(stays, tmp_path):
    (tmp_path / "home" / "folder").mkdir(parents=True)
    (tmp_path / "home" / stays).touch()
    with pytest.raises(FileExistsError, match="which is no result"):
        write_results(tmp_path / "home", {"new": {"a": [2]}}, force=True)
    assert (tmp_path / "home" / stays).exists()


def test_a_failure_at_any_rename_leaves_the_old_results(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write_results(out, {"old": {"a": [1]}})
    rename = os.rename
    for fatal in (1, 2):
        calls = []

        def failing(source, target, calls=calls, fatal=fatal):
            calls.append(source)
            # One of both is there at every moment.
            assert list(tmp_path.rglob("old.csv")) or list(tmp_path.rglob("new.csv"))
            if len(calls) == fatal:
                raise OSError("no")
            rename(source, target)

        monkeypatch.setattr(os, "rename", failing)
        with pytest.raises(OSError, match="no"):
            write_results(out, {"new": {"a": [2]}}, force=True)
        assert [path.name for path in tmp_path.rglob("*")] == ["out", "old.csv"]


def test_tables_that_cannot_be_written_are_refused(tmp_path):
    for name in ("", "../up", "a/b", ".hidden"):
        with pytest.raises(TableError, match="cannot be the name of a table"):
            write_results(tmp_path / "out", {name: {"a": [1]}})
    with pytest.raises(TableError, match=r"Columns of 't' have different lengths \('a': 1, 'b': 2\)"):
        write_results(tmp_path / "out", {"t": {"a": [1], "b": [1, 2]}})
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere"):
        write_results(tmp_path / "nowhere" / "out", {})
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="is a file"):
        write_results(tmp_path / "file", {}, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# How much columns of few values weigh


@pytest.fixture(scope="module")
def measures_and_chance():
    """Three clusters by two measures, and columns of few values that know nothing of them."""
    draws = np.random.default_rng(0)
    X, _ = make_blobs(300, 2, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    chance = {"word": draws.choice(["u", "v"], 300), "year": draws.integers(2007, 2010, 300)}
    return pl.DataFrame({"a": X[:, 0], "b": 100 * X[:, 1]} | chance)


def test_words_and_few_values_do_not_part_rows_that_are_alike(measures_and_chance):
    frame = measures_and_chance

    def share_of_others(scale):
        """Return how many of the neighbours have another word, or another year."""
        X = TablePreparation(scale=scale).fit_transform(frame)
        near = NearestNeighbors(n_neighbors=10).fit(X).kneighbors(return_distance=False)
        columns = (frame[name].to_numpy() for name in ("word", "year"))
        return [float((column != column[near].T).mean()) for column in columns]

    assert max(share_of_others("standard")) < 0.1
    assert min(share_of_others("auto")) > 0.2


def test_measures_keep_their_weight(measures_and_chance):
    frame = measures_and_chance
    light, plain = (TablePreparation(scale=scale).fit(frame) for scale in ("auto", "standard"))
    assert light.numbers_ == ["a", "b", "year"]
    np.testing.assert_array_equal(light.divisors_[:2], plain.divisors_[:2])
    assert light.divisors_[2] > 2 * plain.divisors_[2]
    assert light.word_weight_ < plain.word_weight_ / 2
    # Another word, or the next year, is 0.7 times as far as the tenth nearest row by measures.
    nearest = _neighbor_distance(list(light.transform(frame)[:, :2].T))
    assert light.word_weight_ * np.sqrt(2) == pytest.approx(0.7 * nearest)
    assert 1 / light.divisors_[2] == pytest.approx(0.7 * nearest)
    assert any("weigh less" in note for note in light.notes_)
    assert not any("weigh less" in note for note in plain.notes_)
    np.testing.assert_allclose(light.inverse_transform(light.transform(frame))[:, 2], frame["year"])


def test_zeros_come_back_as_zeros():
    counts = np.random.default_rng(0).poisson(1, (60, 5)) * [1, 3, 7, 1000, 1]
    preparation = TablePreparation(scale="standard").fit(counts)
    units = preparation.inverse_transform(preparation.transform(counts))
    assert not units[counts == 0].any()
    np.testing.assert_allclose(units, counts, rtol=1e-12)


def test_few_values_keep_their_weight_where_a_table_is_about_them(measures_and_chance):
    frame = measures_and_chance
    grades = {f"grade{place}": frame["year"].shuffle(seed=place) - 2006 for place in range(3)}
    questions = frame.with_columns(**grades)
    light, plain = (TablePreparation(scale=scale).fit(questions) for scale in ("auto", "standard"))
    np.testing.assert_array_equal(light.divisors_, plain.divisors_)
    assert light.word_weight_ == plain.word_weight_


def test_the_distance_of_neighbors_is_found_over_all_rows():
    X = np.random.default_rng(1).normal(size=(2 * BLOCK_ROWS + 5, 3))
    asked = np.unique(np.linspace(0, len(X) - 1, ASKED_ROWS).astype(int))
    found = NearestNeighbors(n_neighbors=11, algorithm="brute").fit(X).kneighbors(X[asked])[0]
    assert _neighbor_distance(list(X.T)) == pytest.approx(np.median(found[:, -1]))


def test_a_result_may_have_more_than_tables(tmp_path):
    files = {"summary.json": lambda path: path.write_text("{}")}
    paths = write_results(tmp_path / "out", {"t": {"a": [1]}}, files=files)
    assert [path.name for path in paths] == ["t.csv", "summary.json"]
    assert all(path.exists() for path in paths)

    def fail(path):
        path.write_text("half")
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_results(tmp_path / "out", {"t": {"a": [2]}}, force=True, files={"model.smrmf": fail})
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["summary.json", "t.csv"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
