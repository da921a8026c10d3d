"""The report of a reproduction: figures of each cell, honesty about gaps, verdicts, files."""

from __future__ import annotations

import csv
import io
import re
from itertools import product
from statistics import fmean, stdev

import numpy as np
import pytest
from scipy.stats import wilcoxon
from synthetic_runs import every_experiment, record

from smrmf.reproduce import _drawing, page
from smrmf.reproduce._drawing import inline, shorten
from smrmf.reproduce._moons_figures import matched
from smrmf.reproduce.cells import Cell, Row, Table, best_column, number, printed_number, to_csv, to_markdown
from smrmf.reproduce.claims import judge_claims
from smrmf.reproduce.content import closeness
from smrmf.reproduce.failures import failed_runs, missing_cells
from smrmf.reproduce.page import tint, write_report
from smrmf.reproduce.plan import Plan
from smrmf.reproduce.printed import METHODS, REAL_SETS, TWELVE_SETS, load_printed, papers_folder
from smrmf.reproduce.scores import Results, best_over_grid
from smrmf.reproduce.tables import BUILDERS, build_tables
from smrmf.reproduce.targets import DENSE_SETS, agrees, judge_targets
from smrmf.reproduce.verdicts import (
    FAILS,
    HOLDS,
    IN_PART,
    MET,
    NOT_MET,
    UNTESTED,
    all_or_some,
    best_counts,
    comparison_text,
    majority_verdict,
    paired_test,
    speed_verdict,
)

ABOUT = {
    "command": "smrmf reproduce",
    "versions": {"smrmf": "0.1.0"},
    "machine": {"cpu": "a <fast> one", "memory_gb": 8},
    "total_seconds": 4000.0,
    "started": "2025-01-01T00:00:00",
    "n_runs": 10,
    "n_failed": 0,
    "notes": ["A note."],
}


@pytest.fixture(autouse=True, scope="module")
def _coarse_pictures():
    """Draw PNG files with few dots: their content is not looked at here."""
    fine, _drawing.DPI = _drawing.DPI, 40
    yield
    _drawing.DPI = fine


def table(name, records):
    return BUILDERS[name](Results(records), load_printed())


def tables(records):
    return build_tables(Results(records), load_printed())


def verdict(records, name):
    return next(claim for claim in judge_claims(tables(records)) if claim.name == name)


def cell(built, row, column):
    return built.row(row)[column]


# --- the paper's figures ---------------------------------------------------------------------------------


def test_printed_values_are_those_of_the_paper():
    printed = load_printed()
    assert printed.value("acc", "wave", "SMRMF") == 0.85
    assert printed.cell("acc", "musk1", "NMF").std == 1e-15
    assert printed.value("nmi", "ova-colon", "f-SMRMF") == 0.60
    assert printed.value("acc", "20-news", "DPP") is None
    assert printed.value("two-moons", "10d-moons", "SMRMF NMI") == 0.6521
    assert printed.value("label-mismatch", "coil-5", "difference") == -0.26
    assert printed.value("violation", "orl", "before sim_good") is None
    assert printed.value("datasets", "musk1", "n_dimensions") == 168
    assert printed.average("acc", "f-SMRMF") == 0.65
    assert (papers_folder() / "smrmf_tables.csv").is_file()


@pytest.mark.parametrize(("name", "rounding"), [("acc", 0.011), ("nmi", 0.011), ("run-time", 0.011)])
def test_printed_averages_follow_from_the_cells_but_one(name, rounding):
    printed = load_printed()
    off = []
    for method in METHODS:
        values = [printed.value(name, data, method) for data in REAL_SETS]
        if abs(fmean(v for v in values if v is not None) - printed.average(name, method)) > rounding:
            off.append(method)
    assert off == (["SMRMF-NS"] if name == "run-time" else [])  # printed 148.45, the column gives 145.22


# --- from runs to a figure -------------------------------------------------------------------------------


def test_score_is_the_best_mean_over_seeds_with_the_std_of_that_point():
    runs = [record("wave", "NMF", a, params={"w": 1}, seed=s) for s, a in enumerate((0.2, 0.9, 0.1))]
    runs += [record("wave", "NMF", a, params={"w": 2}, seed=s) for s, a in enumerate((0.5, 0.6, 0.55))]
    score = best_over_grid(runs, "accuracy")
    assert score.params == {"w": 2}
    assert score.value == pytest.approx(0.55)
    assert score.std == pytest.approx(stdev([0.5, 0.6, 0.55]))
    assert best_over_grid(runs[::-1], "accuracy").value == score.value


def test_each_measure_takes_its_own_best_point():
    runs = [record("wave", "SMRMF", 0.8, nmi_max=0.1, params={"w": 1})]
    runs += [record("wave", "SMRMF", 0.7, nmi_max=0.3, params={"w": 2})]
    assert cell(table("acc", runs), "Wave", "SMRMF").ours == 0.8
    assert cell(table("nmi", runs), "Wave", "SMRMF").ours == 0.3


def test_point_that_lost_seeds_cannot_win_by_luck():
    runs = [record("wave", "NMF", 0.5, params={"w": 1}, seed=s) for s in range(3)]
    runs += [record("wave", "NMF", 0.9, params={"w": 2}, seed=0)]
    runs += [record("wave", "NMF", params={"w": 2}, seed=s, status="failed") for s in (1, 2)]
    score = best_over_grid(runs, "accuracy")
    assert score.value == 0.5
    assert score.note == "2 of 6 runs failed"


def test_failed_and_missing_cells_are_marked():
    runs = [record("wave", "SMRMF", status="failed"), record("wave", "NMF", 0.5)]
    built = table("acc", runs)
    assert cell(built, "Wave", "SMRMF") == Cell(None, 0.85, note="1 of 1 run failed")
    assert cell(built, "Wave", "DS3").note == "missing"
    assert cell(built, "Sonar", "DS3").note == ""
    assert {row.name: row.note for row in built.rows}["Sonar"] == "not run"


def test_a_part_of_a_grid_has_no_best_point():
    planned = Plan.read().runs(methods=["RMNMF"], data=["wave"])
    feeds = ["comparison"]
    runs = [record("wave", "RMNMF", 0.7, params={"w": w}, feeds=feeds) for w in range(4)]
    whole, part = Results(runs, planned), Results(runs[:3], planned)
    assert whole.best("comparison", "wave", "RMNMF").value == 0.7
    assert whole.best("comparison", "wave", "RMNMF").note == ""
    assert part.best("comparison", "wave", "RMNMF").value is None
    assert part.best("comparison", "wave", "RMNMF").note == "1 of 4 runs to do"
    assert part.average("comparison", "wave", "RMNMF", "seconds").value is None
    assert Results([], planned).best("comparison", "wave", "RMNMF").note == "missing"


def test_a_set_that_could_not_be_loaded_is_told_from_one_that_was_not_run():
    built = build_tables(Results([], absent=["orl"]), load_printed())["acc"]
    notes = {row.name: row.note for row in built.rows}
    assert (notes["ORL"], notes["Wave"]) == ("file not present", "not run")


# --- tables ----------------------------------------------------------------------------------------------


def test_averages_over_sets_in_both_and_over_common_sets():
    runs = [record(data, "SMRMF", 0.6) for data in ("wave", "sonar", "20-news")]
    runs += [record(data, "DPP", 0.4) for data in ("wave", "20-news")]
    built = table("acc", runs)
    assert cell(built, "average as printed", "DPP") == Cell(paper=0.60)
    both = cell(built, "average, sets in both", "SMRMF")
    assert both.note == "3 sets"
    assert both.paper == pytest.approx((0.85 + 0.58 + 0.24) / 3)
    assert cell(built, "average, sets in both", "DPP").note == "1 set"  # the paper has no DPP on 20-news
    common = cell(built, "average, 1 common set", "SMRMF")
    assert (common.ours, common.paper) == (0.6, 0.85)
    assert cell(built, "average, 1 common set", "NMF") == Cell()
    bold = {row.name: best_column(built, row) for row in built.rows}
    assert bold["average, 1 common set"] == METHODS.index("SMRMF")
    assert bold["average, sets in both"] is None  # three sets against one


def test_gordon_stands_apart_and_ova_colon_is_not_present():
    runs = [record("wave", "SMRMF", 0.8), record("gordon", "SMRMF", 0.1)]
    built = build_tables(Results(runs, absent=["ova-colon"]), load_printed())["acc"]
    assert [row.name for row in built.rows][-1] == "gordon"
    assert "gordon" not in built.column("SMRMF")
    assert cell(built, "average, sets in both", "SMRMF").ours == 0.8
    notes = {row.name: row.note for row in built.rows}
    assert notes["OVA_Colon"] == "file not present"
    assert cell(built, "OVA_Colon", "SMRMF") == Cell(None, 0.95)
    assert notes["gordon"] == "not in the paper"


def test_run_time_is_the_mean_over_grid_and_seeds():
    runs = [record("wave", "NMF", params={"w": w}, seed=s, seconds=w + s) for w, s in product((1, 2), (0, 1))]
    built = table("run_time", runs)
    assert cell(built, "Wave", "NMF").ours == 2.0
    assert cell(built, "average as printed", "SMRMF-NS").paper == 148.45
    assert not built.tint


def test_violation_and_mismatch_come_from_the_best_run():
    before = {"bad_nn": 0.3, "bad_nbh": 0.2, "sim_good": 0.1, "sim_bad": None}
    runs = [record("wave", "neighborhoods", None, feeds=["violation"], neighborhoods=before)]
    for weight, accuracy in ((1, 0.5), (2, 0.8)):
        found = {"selected": 0.1 * weight, "other": 0.5, "bad_nbh": 0.01 * weight}
        runs.append(record("wave", "SMRMF", accuracy, params={"w": weight}, neighborhoods=found))
    found = {"selected": 0.0, "other": 0.1, "bad_nbh": 0.0}
    runs.append(record("2d-moons", "SMRMF", 0.9, feeds=["moons"], neighborhoods=found))
    violation = table("violation", runs)
    assert cell(violation, "Wave", "before: bad neighbours") == Cell(0.3, 0.27)
    assert cell(violation, "Wave", "before: similarity, bad") == Cell(None, 0.01)
    assert cell(violation, "Wave", "after: bad neighbours").ours == pytest.approx(0.2)
    assert cell(violation, "Wave", "after: bad neighbourhoods").ours == pytest.approx(0.02)
    assert cell(violation, "2DMoons", "after: bad neighbours").ours == 0.0
    gap = cell(table("label_mismatch", runs), "Wave", "gap")
    assert (gap.ours, gap.paper) == (pytest.approx(0.3), 0.09)


def test_readings_show_lowest_and_highest_with_the_published_one_among_them():
    both = ["comparison", "readings"]
    runs = [record("wave", "RMNMF", a, params={"w": w}, feeds=both) for w, a in ((1, 0.60), (2, 0.65))]
    runs += [record("wave", "RMNMF", 0.9, params={"w": 3})]  # not on the short grid of the readings
    runs += [record("wave", "RMNMF", 0.5, reading="other", feeds=["readings"])]
    runs += [record("wave", "NMF", 0.5, feeds=["comparison", "readings"])]
    built = table("readings_acc", runs)
    assert built.columns == ("RMNMF",)
    found = cell(built, "Wave", "RMNMF")
    assert (found.ours, found.low, found.high, found.paper) == (0.65, 0.5, 0.65, 0.71)
    assert "inside the range in 0 of 1 cell" in built.note
    assert cell(built, "average", "RMNMF").low == 0.5


def test_the_choice_of_a_reading_shows_each_with_its_mean_over_all_sets_and_methods():
    feeds = ["choice-of-reading"]
    runs = [record(data, "SMRMF", 0.6, feeds=feeds) for data in ("wave", "sonar")]
    runs += [record(data, "f-SMRMF", 0.7, feeds=feeds) for data in ("wave", "sonar")]
    runs += [record("wave", method, 0.8, feeds=feeds, reading="other") for method in ("SMRMF", "f-SMRMF")]
    built = table("choice_of_reading", runs)
    assert built.columns == ("Wave", "Sonar", "mean")
    assert [row.name for row in built.rows][-2:] == ["both, main", "both, other"]
    assert cell(built, "SMRMF, main", "mean").ours == pytest.approx(0.6)
    assert cell(built, "both, main", "mean").ours == pytest.approx(0.65)
    assert cell(built, "both, other", "Wave").ours == pytest.approx(0.8)
    assert cell(built, "SMRMF, other", "mean").ours is cell(built, "both, other", "Sonar").ours is None
    assert "SMRMF 0.715; f-SMRMF 0.715" in built.note  # of the paper's 0.85 and 0.58, 0.84 and 0.59


def test_no_labels_averages_only_sets_every_method_finished():
    runs = [record(data, "KMeans", 0.6, feeds=["no-labels"]) for data in ("wave", "sonar")]
    runs += [record("wave", "SMRMF (default)", 0.7, feeds=["no-labels"])]
    runs += [record("sonar", "SMRMF (default)", feeds=["no-labels"], status="failed")]
    built = table("no_labels", runs)
    assert [row.name for row in built.rows] == ["SMRMF (default)", "KMeans"]
    assert cell(built, "KMeans", "mean ACC").ours == 0.6
    assert "1 set that every method" in built.note
    assert cell(table("no_labels_sets", runs), "Sonar", "SMRMF (default)").note == "1 of 1 run failed"


def test_sensitivity_and_convergence_tables():
    runs = [
        record("wave", "SMRMF", 0.5 + 0.01 * i, feeds=["sensitivity-k"], params={"n_neighbors": k})
        for i, k in enumerate((5, 10, "sqrt"))
    ]
    runs += [record("wave", "SMRMF", 0.8, n_iter=77, converged=False)]
    built = table("sensitivity_k", runs)
    assert cell(built, "Wave", "k = ⌊√n⌋").ours == 0.52
    assert cell(built, "Wave", "k = 15").note == "missing"
    convergence = table("convergence", runs)
    assert cell(convergence, "Wave", "iterations").ours == 77
    assert cell(convergence, "Wave", "converged").text == "no"


def test_csv_keeps_every_cell():
    cells = (
        Cell(0.123456, 0.12, std=0.01, paper_std=1e-15, low=0.1, high=0.2),
        Cell(paper=0.5, note="missing"),
    )
    built = Table("acc", "t", "n", ("a", "b"), (Row("x, y", cells), Row("avg", cells, "average")))
    rows = list(csv.DictReader(io.StringIO(to_csv(built))))
    assert len(rows) == 4
    first, second = rows[:2]
    assert (first["row"], first["column"], first["kind"]) == ("x, y", "a", "data")
    assert [float(first[k]) for k in ("ours", "paper", "std", "difference")] == [0.1235, 0.12, 0.01, 0.0035]
    assert (float(first["paper_std"]), first["lowest"], first["highest"]) == (1e-15, "0.1", "0.2")
    assert (second["ours"], second["paper"], second["note"]) == ("", "0.5", "missing")


def test_numbers_as_shown():
    assert number(-0.0004, 2, sign=True) == "+0.00"
    assert number(None, 2) == "\N{EN DASH}"
    assert printed_number(0.7, 2) == "0.70"
    assert printed_number(0.002, 2) == "0.002"
    built = Table("t", "t", "n", ("a", "b"), (Row("x", (Cell(0.5, 0.6), Cell(0.7, note="why"))),), best=True)
    assert "| x | 0.500 / 0.60 | **0.700** (why) |" in to_markdown(built)


def test_tint_follows_the_difference_as_shown():
    built = Table("t", "t", "n", ("a",), ())
    row = Row("x", ())
    shown = [tint(built, row, Cell(0.5 + gap, 0.5)) for gap in (0.0, 0.03, 0.034, 0.04, 0.1, -0.1, -0.3)]
    assert shown == ["", "", "", "above1", "above2", "below2", "below3"]
    assert tint(built, row, Cell(note="missing")) == "lost"


def test_closeness_counts_the_edges():
    row = Row("x", tuple(Cell(0.5 + gap, 0.5) for gap in (0.03, -0.03, 0.04, -0.04)))
    text = closeness(Table("acc", "t", "n", ("SMRMF", "f-SMRMF", "c", "d"), (row,)), "ACC")
    assert "4 cells that both have, 2 within 0.03 of the paper, 1 higher than that, 1 lower; 2 at or" in text


def test_failures_and_missing_are_listed():
    runs = [
        record("wave", "APMF", params={"w": w}, status="failed", error="Trace\nMemoryError: big")
        for w in (1, 2)
    ]
    runs += [record("wave", "APMF", 0.5, params={"w": 3})]
    results = Results(runs, absent=["ova-colon"])
    (failure,) = failed_runs(results)
    assert (failure.n_failed, failure.n_runs, failure.error) == (2, 3, "MemoryError: big")
    missing = {m.data: m for m in missing_cells(results)}
    assert "NMF" in missing["Wave"].methods
    assert missing["OVA_Colon"].reason == "file not present"
    assert missing["Sonar"].reason == "not run"


# --- verdicts --------------------------------------------------------------------------------------------


def comparison(acc=None, nmi=None, seconds=None, sets=TWELVE_SETS):
    """Runs of all methods at 0.5 on every set, with the given methods moved."""
    runs = []
    for data, method in product(sets, METHODS):
        a, b = 0.5 + (acc or {}).get(method, 0.0), 0.3 + (nmi or {}).get(method, 0.0)
        runs.append(record(data, method, a, nmi_max=b, seconds=(seconds or {}).get(method, 1.0)))
    return runs


BOTH = {"SMRMF": 0.005, "f-SMRMF": 0.006}


@pytest.mark.parametrize(
    ("acc", "nmi", "sets", "expected"),
    [
        (BOTH, BOTH, TWELVE_SETS, HOLDS),
        (BOTH, {"SMRMF": 0.004}, TWELVE_SETS, IN_PART),
        ({"f-SMRMF": 0.1}, {}, TWELVE_SETS, IN_PART),
        ({"SMRMF": 0.004}, {}, TWELVE_SETS, FAILS),
        (BOTH | {"IPM": 0.01}, BOTH | {"IPM": 0.01}, TWELVE_SETS, FAILS),
        (BOTH, BOTH, TWELVE_SETS[:5], UNTESTED),
    ],
)
def test_best_on_average(acc, nmi, sets, expected):
    assert verdict(comparison(acc, nmi, sets=sets), "best-on-average").verdict == expected


@pytest.mark.parametrize(
    ("name", "rival"), [("kernel", "SMRMF-Euc"), ("selection", "SMRMF-NS"), ("rmnmf", "RMNMF")]
)
def test_paired_claims(name, rival):
    def judged(acc, nmi, sets=TWELVE_SETS):
        return verdict(comparison({rival: acc}, {rival: nmi}, sets=sets), name).verdict

    assert judged(-0.006, -0.006) == HOLDS
    assert judged(-0.006, 0.0) == IN_PART
    assert judged(-0.004, -0.004) == FAILS
    assert judged(0.1, 0.1) == FAILS
    assert judged(-0.1, -0.1, TWELVE_SETS[:5]) == UNTESTED


def test_higher_average_carried_by_one_set_holds_only_in_part():
    runs = comparison({"RMNMF": 0.01}, {"RMNMF": 0.01})
    for run in runs:
        if (run["data"], run["method"]) == ("wave", "SMRMF"):
            run |= {"accuracy": 0.95, "nmi_max": 0.9}
    assert verdict(runs, "rmnmf").verdict == IN_PART


@pytest.mark.parametrize(
    ("ratio", "loss", "expected"),
    [(2.0, 0.01, HOLDS), (2.0, 0.02, IN_PART), (1.2, 0.0, IN_PART), (1.2, 0.02, FAILS), (1.1, -0.5, FAILS)],
)
def test_fast(ratio, loss, expected):
    assert speed_verdict(ratio, [loss - 0.01, loss]) == expected
    runs = comparison({"f-SMRMF": -loss + 1e-9}, seconds={"SMRMF": ratio})
    assert verdict(runs, "fast").verdict == expected
    assert verdict(runs[:14], "fast").verdict == UNTESTED


def neighborhoods(selected, bad_nbh, other=0.5, sets=TWELVE_SETS):
    runs = []
    for i, data in enumerate(sets):
        before = {"bad_nn": 0.3, "bad_nbh": 0.3, "sim_good": 0.1, "sim_bad": 0.1}
        runs.append(record(data, "neighborhoods", None, feeds=["violation"], neighborhoods=before))
        after = {"selected": selected[i], "bad_nbh": bad_nbh[i], "other": other}
        runs.append(record(data, "SMRMF", 0.5, neighborhoods=after))
    return runs


def test_bad_neighbours():
    fewer, half = [0.1] * 7 + [0.4] * 5, [0.1] * 6 + [0.3] * 6
    assert verdict(neighborhoods(fewer, fewer), "bad-neighbours").verdict == HOLDS
    assert verdict(neighborhoods(fewer, half), "bad-neighbours").verdict == IN_PART
    assert verdict(neighborhoods(half, half), "bad-neighbours").verdict == FAILS
    assert verdict(neighborhoods(fewer, fewer, sets=TWELVE_SETS[:5]), "bad-neighbours").verdict == UNTESTED


def test_purer_neighbourhoods():
    nbh = [0.1] * 12
    assert verdict(neighborhoods([0.4] * 7 + [0.9] * 5, nbh), "purer").verdict == HOLDS
    assert verdict(neighborhoods([0.1] * 6 + [0.6] * 6, nbh), "purer").verdict == IN_PART
    assert verdict(neighborhoods([0.4] * 6 + [0.9] * 6, nbh), "purer").verdict == FAILS
    assert verdict(neighborhoods([0.1] * 12, nbh, sets=TWELVE_SETS[:5]), "purer").verdict == UNTESTED


@pytest.mark.parametrize(
    ("name", "feed", "param", "values", "wanted"),
    [
        ("sqrt-n", "sensitivity-k", "n_neighbors", (5, 10, 15, "sqrt"), 3),
        ("ten-percent", "sensitivity-exemplars", "exemplars", (0.1, 0.2, 0.3, 0.4, 0.5), 0),
    ],
)
def test_best_setting(name, feed, param, values, wanted):
    others = [i for i in range(len(values)) if i != wanted]

    def judged(winners):
        runs = [
            record(data, "SMRMF", 0.6 if i == winner else 0.5, feeds=[feed], params={param: value})
            for data, winner in zip(TWELVE_SETS, winners, strict=False)
            for i, value in enumerate(values)
        ]
        return verdict(runs, name).verdict

    assert judged([wanted] * 7 + [others[0]] * 5) == HOLDS
    assert judged([wanted] * 6 + [others[0]] * 5 + [others[1]]) == IN_PART
    assert judged([wanted] * 6 + [others[0]] * 6) == FAILS
    assert judged([wanted] * 5) == UNTESTED


def test_convergence():
    def judged(iterations, **changes):
        runs = [
            record(d, "SMRMF", n_iter=n, **changes) for d, n in zip(TWELVE_SETS, iterations, strict=False)
        ]
        return verdict(runs, "converges").verdict

    assert judged([399] * 7 + [999] * 5) == HOLDS
    assert judged([399] * 6 + [400] * 6) == IN_PART
    assert judged([399] * 7 + [1000] * 5) == IN_PART
    assert judged([400] * 11 + [1000]) == FAILS
    assert judged([100] * 12, converged=False) == FAILS
    assert judged([100] * 5) == UNTESTED


def test_moons():
    def judged(*scores):
        pairs = list(product(("2d-moons", "10d-moons"), ("RMNMF", "SMRMF")))
        runs = [record(d, m, s, feeds=["moons"]) for (d, m), s in zip(pairs, scores, strict=False)]
        return verdict(runs, "moons").verdict

    assert judged(0.5, 0.6, 0.5, 0.6) == HOLDS
    assert judged(0.5, 0.6, 0.5, 0.504) == IN_PART
    assert judged(0.5, 0.5, 0.6, 0.5) == FAILS
    assert judged(0.5, 0.6, 0.5) == UNTESTED


def test_small_rules():
    assert all_or_some([True], parts=2) == UNTESTED
    assert majority_verdict(False, True) == IN_PART
    assert best_counts({"a": [0.1, 0.2], "b": [0.2, 0.2]}) == [1, 2]
    assert best_counts({}) == []


def test_wilcoxon_handles_equal_and_few_sets():
    assert paired_test([0.0] * 12) is None
    assert paired_test([0.1] * 4) is None
    assert paired_test([0.1] * 6 + [0.0] * 6) == 2 / 2**6  # ties and zeros
    assert "too few differences" in comparison_text("x", {"a": 0.0})


@pytest.mark.parametrize(("n", "tolerance"), [(5, 1e-9), (12, 1e-9), (20, 0.02)])
def test_wilcoxon_is_that_of_scipy(n, tolerance):
    differences = np.random.default_rng(n).normal(0.2, 1.0, n)
    assert paired_test(differences) == pytest.approx(wilcoxon(differences).pvalue, abs=tolerance)


def test_wilcoxon_is_exact_with_ties():
    differences = [0.1, 0.1, -0.1, 0.2, 0.2, -0.3, 0.4, 0.4]
    assert paired_test(differences) == pytest.approx(wilcoxon(differences).pvalue)


def before(change=(), sets=DENSE_SETS):
    """'Before' records that repeat the paper, with changes {(data, quantity): shift}."""
    runs = []
    for data in sets:
        found = {}
        for q in ("bad_nn", "bad_nbh", "sim_good", "sim_bad"):
            value = load_printed().value("violation", data, f"before {q}")
            found[q] = dict(change).get((data, q), lambda v: v)(value)
        runs.append(record(data, "neighborhoods", None, feeds=["violation"], neighborhoods=found))
    return runs


def test_before_columns_target():
    def judged(*change, sets=DENSE_SETS):
        return judge_targets(tables(before(change, sets)))[0]

    assert judged().verdict == MET
    assert judged((("wave", "bad_nn"), lambda v: v + 0.01)).verdict == MET
    off = judged((("wave", "bad_nn"), lambda v: v + 0.02))
    assert off.verdict == NOT_MET
    assert "Wave bad neighbours 0.290 (paper 0.27)" in off.figures
    assert judged((("orl", "sim_bad"), lambda v: v + 0.02)).verdict == MET
    assert judged((("orl", "sim_bad"), lambda v: v + 0.03)).verdict == NOT_MET
    assert judged((("orl", "sim_good"), lambda v: 0.1)).verdict == NOT_MET  # the paper prints N/A
    assert judged(sets=DENSE_SETS[1:]).verdict == UNTESTED
    assert len(DENSE_SETS) == 11


def test_agreement_is_on_the_printed_digits():
    assert agrees(Cell(0.2849, 0.27), 0.01)
    assert not agrees(Cell(0.2851, 0.27), 0.01)
    assert agrees(Cell(), 0.01)


@pytest.mark.parametrize(
    ("method", "score", "mean", "above"),
    [("SMRMF", 0.618, MET, MET), ("f-SMRMF", 0.627, NOT_MET, MET), ("SMRMF", 0.45, NOT_MET, NOT_MET)],
)
def test_mean_accuracy_targets(method, score, mean, above):
    found = {t.name: t.verdict for t in judge_targets(tables(comparison({method: score - 0.5 + 1e-12})))}
    assert found[f"mean-{method}"] == mean
    assert found[f"above-rmnmf-{method}"] == above
    lower = {t.name: t.verdict for t in judge_targets(tables(comparison({method: -0.1})))}
    assert lower[f"above-rmnmf-{method}"] == NOT_MET
    partial = {t.name: t.verdict for t in judge_targets(tables(comparison(sets=TWELVE_SETS[1:])))}
    assert partial[f"mean-{method}"] == partial[f"above-rmnmf-{method}"] == UNTESTED


# --- figures and files -----------------------------------------------------------------------------------


def test_labels_are_matched_to_classes_as_the_accuracy_does():
    classes, labels = np.array([0, 0, 1, 1, 1]), np.array([7, 7, 3, 3, 9])
    assert matched(classes, labels).tolist() == [0, 0, 1, 1, 2]


def test_svg_is_shortened_and_renamed_without_touching_text():
    svg = (
        '<?xml?><!DOCTYPE svg "http://x"><svg width="3pt" height="2pt" xmlns="http://w"><g id="a"><!-- hi -->'
    )
    svg += '<use href="#a" x="1.23456"/><path clip-path="url(#a)"/><text>0.12345</text></g></svg>'
    short = shorten(svg)
    assert short.startswith("<svg ")
    assert 'x="1.23"' in short
    assert ">0.12345<" in short
    inside = inline(short, "f", "what")
    assert 'id="f-a"' in inside
    assert 'href="#f-a"' in inside
    assert "url(#f-a)" in inside
    assert "http" not in inside


@pytest.fixture(scope="module")
def full_report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    runs = every_experiment()
    runs.append(record("musk1", "APMF", params={"w": 9}, status="failed", error="MemoryError: <no> room"))
    write_report(runs, folder, ABOUT)
    return folder


def test_full_report_has_every_file(full_report):
    names = {path.relative_to(full_report).as_posix() for path in full_report.rglob("*") if path.is_file()}
    assert {f"tables/{name}.csv" for name in BUILDERS} <= names
    assert {f"figures/{name}.{kind}" for name in page.FIGURES for kind in ("svg", "png")} <= names
    assert {"index.html", "README.md"} <= names
    assert not [name for name in names if name.endswith(".tmp")]
    assert sum(path.stat().st_size for path in full_report.glob("figures/*.svg")) < 2e6


def test_page_loads_nothing_from_outside(full_report):
    text = (full_report / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert all(link.startswith(("#", "tables/")) for link in links)
    assert "http" not in text
    assert "@import" not in text
    assert text.count("<svg ") == len(page.FIGURES)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    anchors = {link[1:] for link in re.findall(r'<a href="(#[^"]+)"', text)}
    assert anchors <= set(ids)


def test_page_says_what_failed_and_escapes_it(full_report):
    text = (full_report / "index.html").read_text(encoding="utf-8")
    assert "failed: MemoryError: &lt;no&gt; room" in text
    assert "1 of 7 runs failed" in text
    assert "a &lt;fast&gt; one" in text
    assert "A note." in text
    assert "chosen with the labels (the paper&#39;s protocol)" in text


def test_readme_links_pictures_that_exist(full_report):
    text = (full_report / "README.md").read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (full_report / link).is_file()
    assert "/ 0.85" in text


def test_files_do_not_depend_on_the_order_of_the_runs(tmp_path):
    kept = ("NMF", "RMNMF", "SMRMF", "neighborhoods")
    runs = [r for r in every_experiment() if r["data"] in ("wave", "2d-moons") and r["method"] in kept]
    shuffled = [runs[i] for i in np.random.default_rng(0).permutation(len(runs))]
    for name, given in (("a", runs), ("b", shuffled)):
        write_report(given, tmp_path / name, ABOUT)
    files = [p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file()]
    assert files
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file


def test_report_without_any_run(tmp_path):
    text = write_report([], tmp_path, {}).read_text(encoding="utf-8")
    assert "no cell to compare with the paper yet" in text
    assert "11 not tested" in text
    assert not (tmp_path / "figures").exists()


def test_report_says_what_is_still_to_come(tmp_path):
    planned = Plan.read().runs(methods=["NMF"], data=["wave"])
    text = write_report([], tmp_path, {}, planned=planned).read_text(encoding="utf-8")
    assert "30 planned runs have no result yet" in text


def test_report_replaces_the_old_one_and_removes_what_it_no_longer_has(tmp_path):
    write_report([record("wave", "SMRMF")], tmp_path, ABOUT)
    (tmp_path / "tables" / "mine.csv").write_text("kept")
    assert (tmp_path / "tables" / "acc.csv").exists()
    write_report([], tmp_path, ABOUT)
    assert [path.name for path in (tmp_path / "tables").iterdir()] == ["mine.csv"]


def test_killed_report_leaves_the_old_page(tmp_path, monkeypatch):
    write_report([], tmp_path, ABOUT)
    old = (tmp_path / "index.html").read_bytes()

    def interrupted(report):
        raise KeyboardInterrupt

    monkeypatch.setattr(page, "to_html", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_report([record("wave", "SMRMF")], tmp_path, ABOUT)
    assert (tmp_path / "index.html").read_bytes() == old
    assert not (tmp_path / "tables").exists()
