"""The command line: what it writes, prints and refuses, as a person or a script would see it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import palmerpenguins
import polars as pl
import pytest
import scipy.sparse as sp
from patience import run_command, started, wait_until
from sklearn.pipeline import make_pipeline

import smrmf
from smrmf.cli import app, run
from smrmf.cli._options import share_or_count
from smrmf.cli._shared import console, errors
from smrmf.inspection import suggest_n_clusters
from smrmf.metrics import clustering_accuracy
from smrmf.tables import TablePreparation
from smrmf.tasks._fit import FitRequest, fit_table
from smrmf.tasks._scores import compare
from smrmf.tasks._sentences import contrasts, typical
from smrmf.tasks._tables import TableChoice, prepare_table
from smrmf.tasks._wording import on_columns

PENGUINS = Path(palmerpenguins.__file__).parent / "data" / "penguins.csv"
COMMAND = [sys.executable, "-m", "smrmf"]
WITHOUT_COLOR = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def read(path):
    return list(csv.DictReader(io.StringIO(path.read_text())))


@pytest.fixture(scope="module")
def birds(tmp_path_factory):
    """Penguins with an id for each, in a file."""
    path = tmp_path_factory.mktemp("birds") / "birds.csv"
    frame = pl.read_csv(PENGUINS, null_values="NA").drop("year")
    names = [f"{place:03d}<b>" for place in range(frame.height)]
    frame.with_columns(pl.Series("name", names)).write_csv(path)
    return path


@pytest.fixture(scope="module")
def found(birds):
    """The folder of a fit of them."""
    folder = birds.parent / "found"
    words = ["--clusters", "3", "--id", "name", "--label-column", "species", "--output", folder]
    assert run(["fit", str(birds), *map(str, words)]) == 0
    return folder


# Fit


def test_a_fit_writes_tables_that_keep_the_ids_and_a_model(birds, found):
    assert {path.name for path in found.iterdir()} == {
        *("labels.csv", "exemplars.csv", "profiles.csv", "model.smrmf", "summary.json")
    }
    table, labels = read(birds), read(found / "labels.csv")
    assert [row["name"] for row in labels] == [row["name"] for row in table]
    assert [row["class"] for row in labels] == [row["species"] for row in table]
    clusters = np.array([int(row["cluster"]) for row in labels])
    assert clustering_accuracy([row["species"] for row in table], clusters) > 0.9
    assert all(0 <= float(row[name]) <= 1 for row in labels for name in ("confidence", "outlier_score"))
    assert not np.shares_memory(clusters, smrmf.load(found / "model.smrmf")[-1].labels_)
    np.testing.assert_array_equal(clusters, smrmf.load(found / "model.smrmf")[-1].labels_)


def test_exemplars_have_their_rows_as_they_stand_in_the_file(birds, found):
    rows = {row["name"]: row for row in read(birds)}
    clusters = {row["name"]: row["cluster"] for row in read(found / "labels.csv")}
    exemplars = read(found / "exemplars.csv")
    assert {row["cluster"] for row in exemplars} == {"0", "1", "2"}
    for row in exemplars:
        assert row["cluster"] == clusters[row["name"]]
        assert float(row["bill_length_mm"]) == float(rows[row["name"]]["bill_length_mm"])
        assert row["island"] == rows[row["name"]]["island"]
    for cluster in "012":
        ranks = [row["rank"] for row in exemplars if row["cluster"] == cluster]
        assert ranks == [str(place + 1) for place in range(len(ranks))]


def test_profiles_are_in_the_units_of_the_table(birds, found):
    values, clusters = {}, read(found / "labels.csv")
    for row, labelled in zip(read(birds), clusters, strict=True):
        if row["body_mass_g"]:
            values.setdefault(labelled["cluster"], []).append(float(row["body_mass_g"]))
    mass = {row["cluster"]: row for row in read(found / "profiles.csv") if row["feature"] == "body_mass_g"}
    for cluster, masses in values.items():
        assert float(mass[cluster]["typical"]) == np.median(masses)


def test_values_are_said_as_they_stand_in_the_table(tmp_path, capsys):
    """Gaps are no medians, zeros no dust, years no round numbers, and what reads the same says nothing."""
    draws, first = np.random.default_rng(0), np.arange(90) < 30
    copper = np.where(first, 52, 111) + np.arange(90) % 3 - 1.0
    copper[10:30] = copper[60:80] = np.nan  # the median of all, 111, would be that of the first cluster, too
    frame = pl.DataFrame(
        {
            "a": np.where(first, 0, 9) + draws.normal(size=90),
            "b": np.where(first, 0, 9) + draws.normal(size=90),
            "copper": copper,
            "year": np.where(first, 2007, 1990) + np.arange(90) % 3,
            "zip": np.where(first, 12345, 54321) + np.arange(90) % 3,
            "hits": np.where(first, 0, 7) + (np.arange(90) % 4 == 0),
            "same": np.arange(90) % 2,
            "kind": np.where(first, "u", "v"),
        }
    )
    frame = frame.with_columns(pl.col("copper").fill_nan(None))
    frame.write_csv(tmp_path / "t.csv")
    words = ["-k", "2", "--scale", "standard", "--report", "-o", str(tmp_path / "out")]
    assert run(["fit", str(tmp_path / "t.csv"), *words]) == 0
    labels = np.array([int(row["cluster"]) for row in read(tmp_path / "out" / "labels.csv")])
    assert len(set(labels[first])) == len(set(labels[~first])) == 1
    mine = labels == labels[0]
    profiles = read(tmp_path / "out" / "profiles.csv")
    for row in profiles:
        if row["cluster"] == str(labels[0]) and row["feature"] in frame.columns:
            values = frame[row["feature"]].fill_null(float("nan")).to_numpy()
            assert float(row["typical"]) == pytest.approx(np.nanmedian(values[mine]), rel=1e-5)
            assert float(row["elsewhere"]) == pytest.approx(np.nanmedian(values[~mine]), rel=1e-5)
    kinds = {row["feature"]: row["typical"] for row in profiles if row["cluster"] == str(labels[0])}
    assert (kinds["hits"], kinds["kind=u"], kinds["kind=v"]) == ("0.0", "1.0", "0.0")

    fitted = fit_table(FitRequest(TableChoice(str(tmp_path / "t.csv"), scale="standard"), 2))
    said = [contrast for k in (0, 1) for contrast in contrasts(fitted, k)]
    for part in ("copper 52 (elsewhere 111)", "year 2008 (elsewhere 1991)", "zip 12,346 (elsewhere 54,322)"):
        assert part in said
    assert {"hits 0 (elsewhere 7)", "kind=u 100% (elsewhere 0%)"} <= set(said)
    assert not any(part.startswith("same") for part in said)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "2008" in page
    assert "12.0" not in page
    assert "\N{EN DASH}" in page  # the copper of exemplars that have none, or of none of these


def test_what_reads_the_same_is_told_by_means_or_not_at_all():
    column = np.repeat([1.0, 2, 1, 3], [60, 30, 60, 2])
    mine = np.arange(len(column)) < 90
    one = {"feature": "V2", "typical": 1.0, "elsewhere": 1.0, "low": 1.0, "high": 2.0, "effect": 0.3}
    assert typical(one | {"apart": 0.0}, column, mine) == ("1.3 on average", "1.1")
    between = {"effect": 0.1, "apart": 0.9}
    assert typical(one | between, column, mine) == ("1 to 2", "seldom")
    assert typical(one | between | {"high": 1.0}, column, mine) == ("1", "seldom")
    lone = {"typical": np.nan, "low": np.nan, "high": np.nan, "apart": 0.0}
    assert typical(one | lone, column, mine) == ("\N{EN DASH}", "1")


def test_the_summary_says_what_was_found_and_how(found):
    summary = json.loads((found / "summary.json").read_text())
    assert summary["n_clusters"] == 3
    assert sum(summary["sizes"]) == summary["n_rows"] == 344
    assert summary["parameters"]["random_state"] == 0
    assert summary["scores"]["accuracy"] > 0.9
    assert len(summary["exemplars"]) == 3
    assert all(name.endswith("<b>") for names in summary["exemplars"] for name in names)


def test_a_report_has_the_ids_the_words_and_the_command(birds, found, tmp_path, monkeypatch, capsys):
    words = ["fit", str(birds), "-k", "3", "--id", "name", "--label-column", "species", "--report"]
    monkeypatch.setattr(sys, "argv", ["smrmf", *words])
    monkeypatch.chdir(tmp_path)
    assert run(words) == 0
    said = capsys.readouterr()
    assert "report.html" in said.out
    assert re.search(r"island=Dream \d+% \(elsewhere \d+%\)", said.out)
    page = (tmp_path / "birds_clusters" / "report.html").read_text()
    best = read(tmp_path / "birds_clusters" / "exemplars.csv")[0]["name"]
    assert best.replace("<", "&lt;").replace(">", "&gt;") in page
    assert best not in page
    assert "--label-column species --report" in page
    assert "TablePreparation" in page
    assert "Chinstrap" in page
    assert "island=Dream" not in page
    # The evidence for the number that was given is on the page, and changes nothing.
    assert "3 (here)" in page
    assert "clusters of a random half of the rows are found again in the other half to" in page
    assert (tmp_path / "birds_clusters" / "labels.csv").read_bytes() == (found / "labels.csv").read_bytes()


@pytest.mark.parametrize(
    ("n_rows", "given", "compared"), [(200, 22, [*range(2, 21), 22]), (200, 30, None), (12, 2, None)]
)
def test_a_report_compares_the_number_given_with_the_usual_ones(n_rows, given, compared, tmp_path):
    path = tmp_path / "t.npy"
    np.save(path, np.random.default_rng(0).normal(size=(n_rows, 2)))
    fitted = fit_table(FitRequest(TableChoice(str(path)), given, report=True))
    assert fitted.model.labels_.max() + 1 == given
    assert (fitted.suggestion and list(fitted.suggestion.table["n_clusters"])) == compared
    assert fit_table(FitRequest(TableChoice(str(path)), given)).suggestion is None


def test_an_earlier_result_is_replaced_only_by_force(birds, found, capsys):
    before = (found / "labels.csv").read_bytes()
    command = ["fit", str(birds), "-k", "2", "-o", str(found)]
    assert run(command) == 2
    said = capsys.readouterr().err
    assert "exists already" in said
    assert len(said.splitlines()) == 1
    assert (found / "labels.csv").read_bytes() == before


def test_force_replaces_a_result_but_never_the_table(birds, tmp_path, capsys):
    table = tmp_path / "t.csv"
    np.savetxt(
        table, np.random.default_rng(0).normal(size=(60, 3)), delimiter=",", header="a,b,c", comments=""
    )
    command = ["fit", str(table), "-k", "2", "--force", "--set", "max_iter=300"]
    assert run([*command, "-o", str(tmp_path)]) == 2
    assert "which is no result: give another name" in capsys.readouterr().err
    assert table.exists()
    for seed in ("1", "2"):
        assert run([*command, "-o", str(tmp_path / "out"), "--seed", seed]) == 0
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["parameters"]["random_state"] == 2
    inside = ["fit", str(tmp_path / "out" / "labels.csv"), "-k", "2", "--force", "-o", str(tmp_path / "out")]
    assert run(inside) == 2
    assert "has the table labels.csv in it" in capsys.readouterr().err


def test_force_keeps_folders_that_no_fit_wrote(birds, tmp_path, capsys):
    own = {"mine.csv": "a\n1\n", "labels.csv": "id,label\n1,cat\n"}
    for count in (2, 1):  # the second time all names are those of results
        folder = tmp_path / str(count)
        folder.mkdir()
        for name in list(own)[2 - count :]:
            (folder / name).write_text(own[name])
        assert run(["fit", str(birds), "-k", "2", "--force", "-o", str(folder)]) == 2
        assert "give another" in capsys.readouterr().err
        assert {path.name: path.read_text() for path in folder.iterdir()} == {
            name: own[name] for name in list(own)[2 - count :]
        }


@pytest.mark.parametrize("name", ["cluster", "row", "rank"])
def test_ids_are_kept_whatever_their_column_is_called(name, birds, tmp_path, capsys):
    table, ids = tmp_path / "t.csv", [row["name"] for row in read(birds)]
    pl.read_csv(birds).rename({"name": name}).write_csv(table)
    words = ["-k", "3", "--id", name, "--label-column", "species", "-o", str(tmp_path / "out")]
    assert run(["fit", str(table), *words]) == 0
    labels = read(tmp_path / "out" / "labels.csv")
    assert [next(iter(row.values())) for row in labels] == ids
    assert set(labels[0]) - {name, f"{name} (table)"} >= {"outlier_score"}
    assert {row["cluster"] for row in labels} == {"0", "1", "2"}
    assert (
        run(["predict", str(tmp_path / "out"), str(table), "--id", name, "-o", str(tmp_path / "p.csv")]) == 0
    )
    again = read(tmp_path / "p.csv")
    assert [next(iter(row.values())) for row in again] == ids
    assert [row["cluster"] for row in again] == [row["cluster"] for row in labels]
    capsys.readouterr()
    assert run(["explain", str(tmp_path / "out"), "--id", ids[5], "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["cluster"] == int(labels[5]["cluster"])
    assert answer["exemplar"] in ids
    assert set(next(iter(answer["representatives"].values()))) <= set(ids)


def test_ids_of_another_result_are_not_taken(birds, found, tmp_path, capsys):
    (tmp_path / "model.smrmf").write_bytes((found / "model.smrmf").read_bytes())
    other = [{"name": f"other{place}", "cluster": "0"} for place in range(len(read(birds)))]
    pl.DataFrame(other).write_csv(tmp_path / "labels.csv")
    assert run(["explain", str(tmp_path), "--id", "other3"]) == 2
    assert "labels.csv, which must lie beside the model" in capsys.readouterr().err


def test_without_a_number_the_clear_one_is_taken_and_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    draws = np.random.default_rng(0)
    np.save("blobs.npy", np.vstack([draws.normal(place, 0.3, (60, 2)) for place in ([0, 0], [5, 0], [0, 5])]))
    assert run(["fit", "blobs.npy"]) == 0
    said = capsys.readouterr().out
    assert "3 clusters: halves of the points agree" in said
    assert "Wrote blobs_clusters" in said
    np.save("cloud.npy", draws.normal(size=(200, 2)))
    assert run(["fit", "cloud.npy"]) == 2
    assert "Choose a number yourself, such as --clusters" in capsys.readouterr().err
    assert not Path("cloud_clusters").exists()


def test_json_is_all_that_is_printed(birds, tmp_path, capsys):
    assert run(["fit", str(birds), "-k", "2", "--columns", "bill_length_mm,body_mass_g", "--json", "-o",
                str(tmp_path / "out")]) == 0  # fmt: skip
    summary = json.loads(capsys.readouterr().out)
    assert summary["features"] == ["bill_length_mm", "body_mass_g"]
    assert summary["output"] == str(tmp_path / "out")


@pytest.mark.parametrize("method", ["nmf-clustering", "ESC", "ds3"])
def test_any_method_by_its_name(method, tmp_path, capsys):
    np.save(tmp_path / "t.npy", np.random.default_rng(0).random((40, 4)))
    assert run(["fit", str(tmp_path / "t.npy"), "--method", method, "-k", "2", "--scale", "none", "-o",
                str(tmp_path / "out")]) == 0  # fmt: skip
    labels = read(tmp_path / "out" / "labels.csv")
    assert [row["row"] for row in labels] == [str(place) for place in range(1, 41)]
    assert {row["cluster"] for row in labels} == {"0", "1"}


def test_sparse_tables_are_clustered_by_their_words(tmp_path, capsys):
    counts = sp.random_array((80, 300), density=0.05, rng=np.random.default_rng(0), format="csr")
    sp.save_npz(tmp_path / "texts.npz", counts)
    options = ["-k", "3", "--set", "metric=cosine", "-o", str(tmp_path / "out")]
    assert run(["fit", str(tmp_path / "texts.npz"), *options]) == 0
    assert "sparse" in capsys.readouterr().err
    assert run(["predict", str(tmp_path / "out"), str(tmp_path / "texts.npz")]) == 0
    predicted = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    fitted = read(tmp_path / "out" / "labels.csv")
    assert [row["cluster"] for row in predicted] == [row["cluster"] for row in fitted]
    assert run(["explain", str(tmp_path / "out"), "--row", "1"]) == 0


def test_words_of_a_text_are_told_by_how_many_rows_have_them(tmp_path):
    first = np.arange(60) < 20
    draws = np.random.default_rng(0).random((60, 2)) / 9
    X = np.column_stack([np.where(first, 1, 9), np.where(first, 0, 5)]) + draws * [1, 0]
    sp.save_npz(tmp_path / "t.npz", sp.csr_array(np.hstack([X, draws])))
    fitted = fit_table(FitRequest(TableChoice(str(tmp_path / "t.npz")), 2))
    cluster = fitted.model.labels_[0]
    # What every row has, here and elsewhere, says nothing.
    assert list(contrasts(fitted, cluster)) == ["x1 0% (elsewhere 100%)"]
    assert list(contrasts(fitted, 1 - cluster)) == ["x1 100% (elsewhere 0%)"]


def test_a_table_of_words_alone_is_clustered_and_described(tmp_path, capsys):
    draws = np.random.default_rng(0)
    kinds = np.array([["red", "round"], ["blue", "flat"], ["green", "long"]])[draws.integers(3, size=90)]
    table = tmp_path / "t.csv"
    pl.DataFrame({"colour": kinds[:, 0], "shape": kinds[:, 1]}).write_csv(table)
    assert run(["fit", str(table), "-k", "3", "--report", "-o", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert re.search("where (colour|shape) is (red|blue|green|round|flat|long) in 100% of the rows", page)
    clusters = [row["cluster"] for row in read(tmp_path / "out" / "labels.csv")]
    assert clustering_accuracy(kinds[:, 0], np.array(clusters)) == 1
    capsys.readouterr()
    assert run(["explain", str(tmp_path / "out"), "--row", "1"]) == 0
    assert "colour=" in capsys.readouterr().out


# Ask


def test_prediction_gives_rows_of_the_fit_their_clusters(birds, found, capsys):
    assert run(["predict", str(found), str(birds), "--id", "name"]) == 0
    predicted = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    labels = read(found / "labels.csv")
    same = ("name", "cluster")
    assert [[row[name] for name in same] for row in predicted] == [[row[n] for n in same] for row in labels]


def test_predictions_go_to_a_file_or_a_script(birds, found, tmp_path, capsys):
    to = tmp_path / "new.csv"
    few = tmp_path / "few.csv"
    few.write_text("\n".join(birds.read_text().splitlines()[:4]))
    command = ["predict", str(found / "model.smrmf"), str(few)]
    assert run([*command, "-o", str(to)]) == 0
    assert len(read(to)) == 3
    assert run([*command, "-o", str(to)]) == 2
    assert run([*command, "-o", str(to), "--force"]) == 0
    capsys.readouterr()
    assert run([*command, "--json"]) == 0
    assert [row["row"] for row in json.loads(capsys.readouterr().out)] == [1, 2, 3]


def test_a_file_gets_a_table_whatever_is_said_of_colors(birds, found, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    for each in (console, errors):
        each.cache_clear()
    assert run(["predict", str(found), str(birds)]) == 0
    out = capsys.readouterr().out
    for each in (console, errors):
        each.cache_clear()
    assert out.startswith("row,cluster,confidence,outlier_score\n1,")
    assert len(out.splitlines()) == 345


def test_no_name_or_cell_steers_the_terminal(terminal, tmp_path):
    draws, evil = np.random.default_rng(0), "\x1b]0;own\x07\x9b31m\u202e"
    table = tmp_path / "t.csv"
    columns = {
        f"a:x:b{evil}": draws.normal(size=40),
        "c": draws.normal(size=40),
        f"o:x:ne{evil}": [f"o{evil}"] * 40,
    }
    pl.DataFrame({"name": [f"{k}{evil}" for k in range(40)]} | columns).write_csv(table)
    out = str(tmp_path / "out")
    for words in (
        ["fit", str(table), "-k", "2", "--id", "name", "-o", out],
        ["explain", out, "--id", f"3{evil}"],
        ["select", str(table), "-n", "3", "--id", "name"],
        ["fit", f"a:x:b{evil}.csv"],
    ):
        text = terminal(words, 400)[1]
        assert "a:x:b\N{REPLACEMENT CHARACTER}" in text
        assert "\N{CROSS MARK}" not in text
        assert not [part for part in ("\x1b]", "\x07", "\x9b", "\u202e") if part in text]


def test_gaps_and_strange_words_of_new_rows_are_said(birds, found, tmp_path, capsys):
    new = (
        pl.read_csv(birds, null_values="NA")
        .head(3)
        .with_columns(island=pl.Series(["Dream", "Mars", "Mars"]), body_mass_g=pl.Series([None, 4000, 3000]))
    )
    new.write_csv(tmp_path / "new.csv")
    assert run(["predict", str(found), str(tmp_path / "new.csv")]) == 0
    said = capsys.readouterr()
    assert "'body_mass_g' has no value in 1 of 3 rows: filled" in said.err
    assert "'island' has words that the fit has not seen, as 'Mars', in 2 rows" in said.err
    assert "bill_length_mm" not in said.err
    assert len(said.out.splitlines()) == 4


def test_notes_name_options_and_no_python(birds, tmp_path, capsys):
    pl.read_csv(birds, null_values="NA").with_row_index("number").write_csv(tmp_path / "t.csv")
    assert run(["select", str(tmp_path / "t.csv"), "-n", "3"]) == 0
    notes = capsys.readouterr().err
    assert "--scale" in notes
    assert "'number' numbers the rows: left out; name it in --columns to use it" in notes
    assert "'name' is another word in every row, as names and ids are: left out.\n" in notes
    assert not re.search(r"\w='", notes)


def test_warnings_name_columns_of_the_table_and_options(tmp_path, capsys):
    draws, table = np.random.default_rng(0), tmp_path / "t.csv"
    measures = {name: draws.normal(size=900) for name in ("a", "b")}
    sorts = {"x0": draws.choice([1, 2, 3], 900), "my, sort": draws.choice(["u", "v"], 900)}
    rare = {"rare": ["yes"] * 2 + ["no"] * 898}
    pl.DataFrame({"number": range(900)} | measures | sorts | rare).write_csv(table)
    said = []
    for words in (
        ["fit", str(table), "-k", "3", "--scale", "standard", "-o", str(tmp_path / "out")],
        ["select", str(table), "-n", "3", "--scale", "standard"],
        ["suggest", str(table), "--to", "4", "--scale", "standard"],
    ):
        assert run(words) == 0
        notes = capsys.readouterr().err
        assert "has a spread" not in notes
        said.append([note for note in notes.splitlines() if "few values, which" in note])
    assert said[0] == [
        "- Columns 'x0' and 'my, sort' have few values, which neighbours nearly always share, so clusters "
        "may follow these alone: leave them out by --drop 'x0,\"my, sort\"'."
    ]
    assert said == [said[0]] * 3
    # Nothing is said of spreads where all has been scaled, and a word is only rare.
    spread = "Column 'x0' has a spread of 1, 'x5' of 0.01, so distances hardly see 1 of 6 columns: scale them"
    for scale, kept in (("auto", False), ("standard", False), ("minmax", True), ("none", True)):
        preparation = prepare_table(TableChoice(str(table), scale=scale)).preparation
        assert (on_columns(spread, preparation) == spread.replace("x0", "a").replace("x5", "rare")) == kept
    np.save(tmp_path / "t.npy", draws.normal(size=(90, 4)) * [1, 1, 1, 5000])
    for options, wanted in (([], False), (["--scale", "none", "--drop", "x0"], True)):
        command = ["select", str(tmp_path / "t.npy"), "-n", "3", *options]
        assert run(command) == 0
        notes = capsys.readouterr().err
        assert ("Column 'x3' has a spread of " in notes) == wanted
        assert ("so distances hardly see 2 of 3 columns: use --scale standard." in notes) == wanted


def test_ids_of_several_rows_are_said(tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text(
        "name,a,b\n" + "".join(f"n{place // 2},{place % 7},{place**2 % 11}\n" for place in range(40))
    )
    assert run(["fit", str(table), "-k", "2", "--id", "name", "-o", str(tmp_path / "out")]) == 0
    assert "20 ids stand on several rows, 'n0' on 2: they name no single rows." in capsys.readouterr().err


def test_columns_are_named_once_and_in_quotes(tmp_path, capsys):
    table, draws = tmp_path / "t.csv", np.random.default_rng(0)
    pl.DataFrame({name: draws.normal(size=20) for name in ("a", "b,c", "d")}).write_csv(table)
    for given in (["a,a", "b,c"][:1], ['a, "b,c"'], ["a", '"b,c"', "a"]):
        words = [word for each in given for word in ("--columns", each)]
        assert run(["select", str(table), "-n", "2", *words]) == 0
        wanted = "rank,row,score,a" + (',"b,c"' if len(given[0]) > 3 or len(given) > 1 else "")
        assert capsys.readouterr().out.splitlines()[0] == wanted


@pytest.mark.parametrize(("given", "wanted"), [("20", 20), ("0.1", 0.1), ("1e-1", 0.1), ("auto", None)])
def test_exemplars_are_a_number_or_a_share(given, wanted):
    found = share_or_count(None, None, given)
    assert (found, type(found)) == (wanted, type(wanted))


def test_chosen_rows_of_arrays_have_all_their_digits(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(30, 2)) + np.array([12345678, 0])
    np.save(tmp_path / "wide.npy", X)
    np.save(tmp_path / "single.npy", X.astype(np.float32))
    for name, values in (
        ("wide", X.tolist()),
        ("single", [[float(str(v)) for v in r] for r in np.float32(X)]),
    ):
        for options in ([], ["--json"]):
            assert run(["select", str(tmp_path / f"{name}.npy"), "-n", "2", *options]) == 0
            out = capsys.readouterr().out
            for row in json.loads(out) if options else csv.DictReader(io.StringIO(out)):
                assert [float(row["x0"]), float(row["x1"])] == values[int(row["row"]) - 1]
    options = ["-k", "2", "-o", str(tmp_path / "out")]
    assert run(["fit", str(tmp_path / "wide.npy"), *options]) == 0
    for row in read(tmp_path / "out" / "exemplars.csv"):
        assert [float(row["x0"]), float(row["x1"])] == X[int(row["row"]) - 1].tolist()
    assert all(
        len(row["typical"]) > 8 for row in read(tmp_path / "out" / "profiles.csv") if row["feature"] == "x0"
    )


def test_chance_has_a_seed(birds, tmp_path, capsys):
    """Another seed, another answer, also of the search for a number; by --set, too."""

    def printed(*words):
        assert run([*words, "--json"]) == 0
        return capsys.readouterr().out

    choose = ["select", str(birds), "-n", "9", "--method", "k-dpp"]
    assert printed(*choose) == printed(*choose, "--seed", "0") == printed(*choose, "--set", "random_state=0")
    assert printed(*choose) != printed(*choose, "--seed", "1")
    ask = ["suggest", str(birds), "--to", "4", "--columns", "bill_length_mm,bill_depth_mm"]
    assert printed(*ask) == printed(*ask, "--seed", "0")
    assert printed(*ask) != printed(*ask, "--seed", "1")


def test_the_number_is_looked_for_as_the_model_compares(monkeypatch, tmp_path):
    draws = np.random.default_rng(0)
    counts = np.repeat(np.eye(3, 30) * 20, 30, axis=0) + draws.random((90, 30)) + 0.1
    np.save(tmp_path / "t.npy", counts * draws.lognormal(0, 3, size=(90, 1)))
    settings = ("metric=cosine", "random_state=5")
    fitted = fit_table(FitRequest(TableChoice(str(tmp_path / "t.npy"), scale="none"), settings=settings))
    asked = suggest_n_clusters(np.load(tmp_path / "t.npy"), metric="cosine", random_state=5)
    assert str(fitted.suggestion.table) == str(asked.table)
    assert fitted.model.n_clusters == 3


def test_rows_without_a_known_class_do_not_count():
    labels = np.array([0, 0, 1, 1, 1, 0])
    assert compare(["u", "u", "v", "v", "", ""], labels) == {
        "accuracy": 1.0,
        "adjusted_rand_index": 1.0,
        "normalized_mutual_information": 1.0,
        "n_rows": 4,
    }
    assert compare([""] * 6, labels) is None
    assert compare(None, labels) is None


@pytest.mark.skipif(sys.platform != "linux", reason="names of files that are no text are known on Linux")
def test_a_file_may_have_any_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(30, 2))
    for place, suffix in enumerate((b".npy", b".csv")):
        name = os.fsdecode(b"caf\xe9" + suffix)
        if suffix == b".npy":
            np.save(name, X)
        else:
            np.savetxt(name, X, delimiter=",", header="a,b", comments="")
        assert run(["fit", name, "-k", "2", "--report", "-o", f"out{place}"]) == 0
        assert (
            json.loads(Path(f"out{place}", "summary.json").read_text())["table"] == f"caf?{suffix.decode()}"
        )
        assert run(["select", name, "-n", "2", "-o", f"few{place}.csv"]) == 0
        assert len(read(Path(f"few{place}.csv"))) == 2


AS_NOBODY = """
import os
from pathlib import Path
from smrmf._files import check_parent
if os.getuid() == 0:  # who may write everywhere gives that up
    os.setuid(65534)
check_parent(Path("/usr/out"))
"""


def test_a_place_where_one_may_not_write_is_refused_before_the_work():
    done = run_command([sys.executable, "-c", AS_NOBODY])
    assert "PermissionError: /usr may not be written to" in done.stderr


def test_a_table_without_a_column_of_the_fit_is_refused(found, tmp_path, capsys):
    (tmp_path / "other.csv").write_text("island,sex\nDream,male\n")
    assert run(["predict", str(found), str(tmp_path / "other.csv")]) == 2
    assert "no column 'bill_length_mm'" in capsys.readouterr().err


def test_an_explanation_is_by_the_ids_and_units_of_the_table(birds, found, capsys):
    rows = {row["name"]: row for row in read(birds)}
    assert run(["explain", str(found), "--id", "016<b>", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    labels = {row["name"]: row["cluster"] for row in read(found / "labels.csv")}
    assert str(answer["cluster"]) == labels["016<b>"]
    assert set(answer["representatives"]["name"]) <= set(rows)
    assert "016<b>" not in answer["representatives"]["name"]
    shown = dict(zip(answer["features"]["feature"], answer["features"]["value"], strict=True))
    exemplar = dict(zip(answer["features"]["feature"], answer["features"]["exemplar"], strict=True))
    for name in set(shown) & set(rows["016<b>"]):
        assert shown[name] == pytest.approx(float(rows["016<b>"][name]))
        assert exemplar[name] == pytest.approx(float(rows[answer["exemplar"]][name]))
    assert run(["explain", str(found), "--row", "17"]) == 0
    said = capsys.readouterr().out
    assert f"cluster {answer['cluster']}" in said
    assert f"of which name {answer['exemplar']} is the nearest exemplar (share above 0)" in said
    assert f"of which name {answer['next_exemplar']} is (below)" in said


def test_a_row_of_another_table_is_explained(birds, found, capsys):
    assert run(["explain", str(found), "--table", str(birds), "--row", "17", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    value = dict(zip(answer["features"]["feature"], answer["features"]["value"], strict=True))
    row = read(birds)[16]
    assert all(value[name] == pytest.approx(float(row[name])) for name in set(value) & set(row))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "Which row?"),
        (["--row", "1", "--id", "x"], "Which row?"),
        (["--row", "0"], "There is no row 0: give one from 1 to 344."),
        (["--id", "nobody"], "No row has the id 'nobody'"),
        (["--id", "x", "--table", "t.csv"], "--row"),
    ],
)
def test_a_row_that_is_none_is_refused(words, part, found, capsys):
    assert run(["explain", str(found), *words]) == 2
    assert part in capsys.readouterr().err


def test_what_no_fit_wrote_is_refused(found, tmp_path, capsys):
    model = smrmf.FastSMRMF(2, random_state=0).fit(np.random.default_rng(0).random((30, 2)))
    smrmf.save(model, tmp_path / "bare.smrmf")
    chooser = make_pipeline(TablePreparation(), smrmf.IPM(3)).fit(np.random.default_rng(0).random((30, 2)))
    smrmf.save(chooser, tmp_path / "ipm.smrmf")
    for path, part in (
        (tmp_path / "bare.smrmf", "knows no table"),
        (tmp_path / "ipm.smrmf", "ends with IPM, which has found no clusters"),
        (tmp_path, "There is no file"),
    ):
        for words in (["explain", str(path), "--row", "1"], ["predict", str(path), "t.csv"]):
            assert run(words) == 2
            assert part in capsys.readouterr().err


# Select and suggest


@pytest.mark.parametrize("method", ["FastSMRMF", "ds3", "k-dpp"])
def test_selection_gives_rows_of_the_table(method, birds, capsys):
    assert run(["select", str(birds), "-n", "4", "--method", method, "--id", "name"]) == 0
    chosen = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    rows = {row["name"]: row for row in read(birds)}
    assert [row["rank"] for row in chosen] == ["1", "2", "3", "4"]
    assert len({row["name"] for row in chosen}) == 4
    assert all(rows[row["name"]]["species"] == row["species"] for row in chosen)


def test_selection_by_clusters_finds_all_kinds(birds, capsys):
    assert (
        run(["select", str(birds), "-n", "6", "--drop", "island,species,sex", "--id", "name", "--json"]) == 0
    )
    species = {row["name"]: row["species"] for row in read(birds)}
    assert {species[row["name"]] for row in json.loads(capsys.readouterr().out)} == set(species.values())


def test_suggestions_have_the_evidence_of_every_number(birds, capsys):
    command = [
        "suggest",
        str(birds),
        "--drop",
        "species,island,sex",
        "--id",
        "name",
        "--from",
        "3",
        "--to",
        "5",
    ]
    assert run([*command, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [row["n_clusters"] for row in answer["evidence"]] == [3, 4, 5]
    assert sorted(answer["ranked"]) == [3, 4, 5]
    assert run(command) == 0
    assert answer["reason"] in capsys.readouterr().out


# Refusals


def test_the_demo_draws_its_digits(tmp_path, capsys):
    assert run(["demo", "-o", str(tmp_path / "demo")]) == 0
    printed = capsys.readouterr().out
    assert len(re.findall(r"^Cluster \d: ", printed, re.MULTILINE)) == 10
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "What the rows of a cluster have in common, as an image" in page
    assert page.count("data:image/png") > 50


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["fit", "nowhere.csv"], "There is no file nowhere.csv"),
        (["fit", "BIRDS", "--clusers", "3"], "Did you mean"),
        (["fit", "BIRDS", "-k", "0"], "0"),
        (["fit", "BIRDS", "-k", "999"], "999"),
        (["fit", "BIRDS", "-k", "3", "--method", "SMRFM"], "did you mean SMRMF?"),
        (["fit", "BIRDS", "-k", "3", "--method", "IPM"], "finds no clusters"),
        (["fit", "BIRDS", "-k", "3", "--set", "n_neighbours=3"], "did you mean 'n_neighbors'?"),
        (["fit", "BIRDS", "-k", "3", "--set", "n_neighbors"], "name=value"),
        (["fit", "BIRDS", "-k", "3", "--set", "n_neighbors=-3"], "n_neighbors=-3"),
        (["fit", "BIRDS", "-k", "3", "--set", "n_neighbors={[]: 1}"], "n_neighbors='{[]: 1}'"),
        (["fit", "BIRDS", "-k", "3", "--exemplars", "many"], "--exemplars many is no number"),
        (["fit", "BIRDS", "-k", "3", "--drop", "colour"], "no column 'colour'"),
        (["fit", "BIRDS", "-k", "3", "--columns", '"a,b",sex'], "no column 'a,b'"),
        (["fit", "BIRDS", "-k", "3", "--columns", ""], "--columns names no column"),
        (["select", "BIRDS", "--drop", " ,"], "--drop names no column"),
        (["select", "BIRDS", "--id", ""], "--id names no column"),
        (["fit", "BIRDS", "-k", "3", "--label-column", ""], "--label-column names no column"),
        (["fit", "BIRDS", "-k", "3", "--exemplars", "20", "--set", "exemplars=3"], "--exemplars and --set"),
        (
            ["fit", "BIRDS", "-k", "3", "--seed", "0", "--set", "random_state=3"],
            "--seed and --set random_state",
        ),
        (["select", "BIRDS", "--seed", "0", "--set", "random_state=3"], "--seed and --set"),
        (["select", "BIRDS", "--set", "exemplars=3"], "-n and --set exemplars say the same"),
        (["fit", "BIRDS", "-k", "3", "--output", "no/such/folder"], "There is no folder"),
        (["fit", "BIRDS", "-k", "3", "--set", "n_clusters=4"], "give one of both"),
        (
            ["fit", "BIRDS", "-k", "3", "--method", "NMFClustering", "--exemplars", "3"],
            "leave --exemplars out",
        ),
        (["fit", "BIRDS", "-k", "3", "--method", "ds3", "--report"], "leave --report out"),
        (["fit", "BIRDS", "-k", "3", "--method", "gnmf", "--columns", "body_mass_g"], "use --scale minmax"),
        (["fit", "BIRDS", "-k", "3", "--id", "name", "--label-column", "name"], "leave one out"),
        (
            ["fit", "BIRDS", "-k", "3", "--columns", "name,sex"],
            "'name' is another word in every row, as names",
        ),
        (["fit", "FEW"], "Of 9 rows no number of clusters can be clear: give one by --clusters."),
        (["fit", "."], ". is a folder"),
        (["select", "FEW", "-n", "10"], "-n 10 is more than the 9 rows there are"),
        (["select", "FEW", "-n", "3", "-o", "FEW"], "use --force to replace it"),
        (["select", "FEW", "-n", "3", "-o", "x.csv", "--json"], "give one of both"),
        (["predict", "nowhere", "FEW"], "that smrmf fit wrote"),
        (["select", "BIRDS", "--method", "NMFClustering"], "cannot be asked for a number"),
        (["suggest", "BIRDS", "--from", "9", "--to", "3"], "the other way round"),
        (["suggest", "BIRDS", "--from", "60"], "--from 60 is too many for 344 rows: give at most 43,"),
        (["suggest", "BIRDS", "--to", "44"], "--to 44 is too many for 344 rows: give at most 43,"),
        (["suggest", "BIRDS", "--from", "30"], "give --to, too"),
        (["suggest", "FEW"], "9 rows"),
        (["predict", "BIRDS", "BIRDS"], "cannot be loaded"),
        (["guess"], "No such command 'guess'"),
    ],
)
def test_wrong_calls_are_refused_in_one_line_and_leave_nothing(
    words, part, birds, tmp_path, monkeypatch, capsys
):
    few = birds.with_name("few.csv")
    few.write_text("a,b\n" + "".join(f"{place},{place % 4}\n" for place in range(0, 27, 3)))
    monkeypatch.chdir(tmp_path)
    tables = {"BIRDS": str(birds), "FEW": str(few)}
    assert run([tables.get(word, word) for word in words]) == 2
    said = capsys.readouterr()
    assert part in said.err
    assert len(said.err.splitlines()) == 1
    assert said.err.startswith("smrmf")
    assert said.out == ""
    assert not list(tmp_path.iterdir())


def test_a_mistake_of_ours_keeps_its_story(birds, tmp_path, monkeypatch):
    def broken(*arguments, **options):
        raise KeyError("ours")

    monkeypatch.setattr("smrmf.tasks._fit.prepare_table", broken)
    with pytest.raises(KeyError, match="ours"):
        run(["fit", str(birds), "-k", "2", "-o", str(tmp_path / "out")])


# As a program


@pytest.mark.parametrize("command", [None, *app.commands])
def test_help_has_an_example_and_waits_for_nothing_heavy(command, capsys):
    words = [*([command] if command else []), "--help"]
    assert run(words) == 0
    said = capsys.readouterr().out
    assert re.search(r"(Example|Begin with).*\n +.*smrmf ", said)
    assert max(map(len, said.splitlines())) <= 80


def test_help_imports_neither_numbers_nor_screens():
    heavy = {"numpy", "rich", "sklearn", "polars", "jinja2", "numba", "scipy"}
    code = (
        "import sys; from smrmf.cli import run; code = run(['fit', '--help']); "
        f"sys.exit(code or sorted({heavy} & set(sys.modules)) or 0)"
    )
    done = run_command([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr


def test_without_click_one_sentence_says_what_to_install():
    code = "import sys; sys.modules['click'] = None; import smrmf.cli"
    done = run_command([sys.executable, "-c", code])
    assert done.returncode == 1
    assert done.stderr == "The command line needs click: pip install 'smrmf[app]'\n"


def test_version_and_nothing(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"smrmf {smrmf.__version__}\n"
    assert run([]) == 0
    assert "Begin with" in capsys.readouterr().out


def test_a_table_may_come_through_a_pipe(birds, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(birds.read_bytes())))
    assert run(["select", "-", "-n", "2", "--id", "name"]) == 0
    assert capsys.readouterr().out.startswith("rank,name,score,species")


def test_a_pipe_that_closes_early_is_no_mistake():
    # As `smrmf data --json | head -1`, but closed before anything is written.
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with started([*COMMAND, "data", "--json"], **pipes) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


@pytest.fixture
def terminal(monkeypatch):
    """Give a function that runs a command on a terminal of some width, and returns what is on it."""
    pty = pytest.importorskip("pty")

    def run_on_terminal(words, width):
        screen, other = pty.openpty()
        printed = io.BytesIO()

        def listen():
            with suppress(OSError):  # how Linux tells that the other side has ended
                while part := os.read(screen, 4096):
                    printed.write(part)

        listener = threading.Thread(target=listen)
        listener.start()
        for name, value in {"COLUMNS": str(width), "LINES": "24", "TERM": "xterm"}.items():
            monkeypatch.setenv(name, value)
        with open(other, "w") as stream, monkeypatch.context() as replaced:
            replaced.setattr(sys, "stdout", stream)
            replaced.setattr(sys, "stderr", stream)
            for each in (console, errors):
                each.cache_clear()
            code = run(words)
        for each in (console, errors):
            each.cache_clear()
        listener.join()
        os.close(screen)
        return code, printed.getvalue().decode()

    return run_on_terminal


def test_on_a_narrow_terminal_no_line_is_too_long_and_work_is_shown(terminal, birds, tmp_path):
    command = ["fit", str(birds), "-k", "3", "--id", "name", "-o", str(tmp_path / "out")]
    code, text = terminal(command, 40)
    assert code == 0
    assert "Clustering 344 rows" in text
    results = WITHOUT_COLOR.sub("", text[text.index("Columns used") :])
    assert max(len(line.rstrip()) for line in results.splitlines()) <= 40
    assert "exemplars: name" in results


def test_colors_are_for_terminals_whose_user_wants_them(terminal, monkeypatch, birds):
    colored = re.compile(r"\x1b\[(\d+;)*3[0-9]m")
    command = ["fit", str(birds), "-k", "999999"]
    assert colored.search(terminal(command, 80)[1])
    monkeypatch.setenv("NO_COLOR", "1")
    assert not colored.search(terminal(command, 80)[1])


def test_of_many_rows_a_terminal_shows_the_first(terminal, birds, found):
    code, text = terminal(["predict", str(found), str(birds), "--id", "name"], 80)
    assert code == 0
    assert "... and 304 more rows" in text


def test_a_fit_that_is_stopped_leaves_nothing(tmp_path):
    np.save(tmp_path / "t.npy", np.random.default_rng(0).random((6000, 30)))
    code = (
        "import smrmf.tasks._fit as task\n"
        "from pathlib import Path\n"
        "usual = task.prepare_table\n"
        "def told(choice):\n"
        "    Path('begun').touch()\n"
        "    return usual(choice)\n"
        "task.prepare_table = told\n"
        "from smrmf.cli import main\n"
        "main()\n"
    )
    words = [sys.executable, "-c", code, "fit", "t.npy", "-k", "40"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with started(words, cwd=tmp_path, **pipes) as process:
        begun = tmp_path / "begun"
        wait_until(begun.exists)
        process.send_signal(signal.SIGTERM)
        printed = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGTERM
    assert printed[1] == "Stopped: nothing was written.\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["begun", "t.npy"]
