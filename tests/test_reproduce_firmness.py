"""Repeats: the figure of a method of the loop is a mean over starts that hardly differ, not its best draw."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from statistics import fmean, stdev

import pytest
from synthetic_runs import PAPER, cell, judged, record, repeats, results, table

from smrmf_reproduce.report.figures import draw_figures
from smrmf_reproduce.report.outline import compose
from smrmf_reproduce.report.paper import TWELVE_SETS
from smrmf_reproduce.report.provenance import Provenance
from smrmf_reproduce.report.reading_values import repeats_csv
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.table import DASH, Cell, mean_cell, to_csv, to_markdown
from smrmf_reproduce.report.tables import build_tables
from smrmf_reproduce.report.verdicts import NOT_MET
from smrmf_reproduce.run.plan import Run

DRAWS = (0.60, 0.65, 0.73)


def two_points(data="wave", method="SMRMF"):
    """The best grid point by accuracy and another one, which is the best by NMI."""
    return [
        record(data, method, 0.80, nmi_max=0.3, params={"w": 1}),
        record(data, method, 0.70, nmi_max=0.4, params={"w": 2}),
    ]


def best(runs, measure="accuracy", data="wave", method="SMRMF"):
    return results(runs).best("comparison", data, method, measure)


def test_a_figure_is_the_mean_of_its_repeats_without_the_run_that_won():
    runs = two_points()
    score = best(runs + repeats(runs[0], DRAWS))
    assert score.value == pytest.approx(fmean(DRAWS))
    assert score.std == pytest.approx(stdev(DRAWS))
    assert score.draw == 0.80
    assert score.note == ""
    # What only a single run has, such as its curve, is still that of the run that won.
    assert score.run["accuracy"] == 0.80


def test_repeats_of_another_grid_point_are_not_mixed_in():
    runs = two_points()
    both = runs + repeats(runs[0], DRAWS) + repeats(runs[1], (0.1, 0.2, 0.3))
    assert best(both).value == pytest.approx(fmean(DRAWS))
    other = best(runs + repeats(runs[1], (0.1, 0.2, 0.3)))
    assert (other.value, other.std, other.draw, other.note) == (0.80, None, None, "one draw")


def test_each_measure_has_the_repeats_of_its_own_best_point():
    runs = two_points()
    runs += repeats(runs[0], DRAWS, nmi_max=0.0) + repeats(runs[1], (0.5, 0.5, 0.5), nmi_max=0.35)
    assert best(runs).value == pytest.approx(fmean(DRAWS))
    score = best(runs, "nmi_max")
    assert (score.value, score.draw) == (pytest.approx(0.35), 0.4)


def test_what_lacks_repeats_says_so_and_a_random_method_needs_none():
    runs = two_points() + two_points("sonar") + two_points("orl")
    runs += repeats(runs[0], DRAWS) + repeats(runs[2], DRAWS[:2])
    runs += [record("wave", "NMF", 0.5, seed=seed) for seed in (0, 1)]
    built = table("acc", runs)
    notes = {row: cell(built, row, "SMRMF").note for row in ("Wave", "Sonar", "ORL")}
    assert notes == {"Wave": "", "Sonar": "2 repeats", "ORL": "one draw"}
    assert cell(built, "Wave", "NMF").note == ""
    assert (
        cell(table("acc", runs[:6]), "Wave", "SMRMF").note == ""
    )  # nothing repeated, and the note says that


def test_a_failed_repeat_is_no_part_of_the_mean():
    runs = two_points()
    again = repeats(runs[0], DRAWS)
    lost = record("wave", "SMRMF", params={"w": 1}, seed=4, experiments=["repeats"], status="failed")
    score = best([*runs, *again, lost])
    assert score.value == pytest.approx(fmean(DRAWS))
    assert score.note == "3 repeats"


def test_other_experiments_and_readings_keep_their_single_runs():
    runs = [record("wave", "SMRMF", 0.8, experiments=["comparison", "readings", "no-labels"])]
    found = results(runs + repeats(runs[0], DRAWS))
    assert found.best("readings", "wave", "SMRMF").value == 0.8
    assert found.average("no-labels", "wave", "SMRMF", "accuracy").value == 0.8
    assert found.average("comparison", "wave", "SMRMF", "seconds").n_runs == 1


def test_averages_and_the_best_of_a_row_are_of_the_means():
    runs = [record(data, "SMRMF", 0.9) for data in ("wave", "sonar")]
    runs += repeats(runs[0], (0.4, 0.6))
    runs += [record(data, "NMF", 0.6) for data in ("wave", "sonar")]
    built = table("acc", runs)
    mean = cell(built, "average, 2 common sets", "SMRMF")
    assert (mean.ours, mean.draw) == (pytest.approx(0.7), pytest.approx(0.9))
    assert cell(built, "average, 2 common sets", "NMF").draw is None
    wave = next(line for line in to_markdown(built).splitlines() if line.startswith("| Wave"))
    assert "| **0.600** / 0.55 |" in wave  # NMF's is above SMRMF's mean, though below its best draw
    assert "0.500 ± 0.141, best 0.900 / 0.85" in wave
    assert mean_cell([Cell(0.5, 0.5, draw=0.7), Cell(0.9, 0.5)]).draw == pytest.approx(0.8)


def test_the_best_draw_stays_in_the_csv():
    runs = two_points()
    rows = csv.DictReader(io.StringIO(to_csv(table("acc", runs + repeats(runs[0], DRAWS)))))
    found = next(row for row in rows if (row["row"], row["column"]) == ("Wave", "SMRMF"))
    assert (found["ours"], found["std"], found["best_over_grid"]) == ("0.66", "0.0656", "0.8")
    assert found["difference"] == "-0.19"


def test_targets_are_judged_on_the_means_and_name_the_best_draws():
    runs = [record(data, "SMRMF", 0.9) for data in TWELVE_SETS]
    runs += [again for run in list(runs) for again in repeats(run, (0.3, 0.5))]
    (target,) = judged(runs, [target for target in PAPER.targets if target["name"] == "mean-SMRMF"])
    assert target.verdict == NOT_MET
    assert target.figures.startswith("0.4000 (best single runs over the grid 0.9000, paper 0.6183")
    assert "repeats" in target.rule


def test_repeats_give_a_method_of_the_loop_its_bar_in_the_opening_picture():
    runs = [record(data, "SMRMF", 0.6) for data in ("wave", "sonar")]
    paper = replace(PAPER, cells={key: replace(each, std=None) for key, each in PAPER.cells.items()})
    for more, has_bar in (([], False), ([again for run in runs for again in repeats(run, DRAWS)], True)):
        found = Results(runs + more, paper)
        assert (
            "standard deviation" in draw_figures(found, build_tables(found))["mean_accuracy"].svg
        ) == has_bar


def test_the_summary_begins_with_the_spread_and_with_what_the_best_draw_adds():
    runs = [record(data, "SMRMF", 0.9) for data in ("wave", "sonar", "orl")]
    more = repeats(runs[0], (0.8, 0.8)) + repeats(runs[1], (0.6, 0.8)) + repeats(runs[2], (0.86, 0.88))
    first = compose(results(runs + more), Provenance()).summary[0]
    assert first.startswith("Figures of SMRMF are means of two runs at")
    assert "starts that differ by 1e-10" in first
    assert (
        f"median {stdev((0.86, 0.88)):.3f}, largest {stdev((0.6, 0.8)):.3f} (SMRMF on Sonar), over 3" in first
    )
    assert "is 0.100 higher than that mean in the median cell" in first
    assert "No figure has been repeated" in compose(results(runs), Provenance()).summary[0]


def test_the_summary_says_how_many_repeats_there_are_where_cells_differ():
    runs = [record(data, "SMRMF", 0.9) for data in ("wave", "sonar", "orl", "isolet")]
    more = repeats(runs[0], (0.8, 0.8)) + repeats(runs[1], (0.6, 0.8)) + repeats(runs[2], DRAWS)
    first = compose(results(runs + more), Provenance()).summary[0]
    assert "means of two to three runs (fewer than three in 2 cells, one run in 1 cell, where" in first


def test_the_mean_beside_the_papers_best_run_has_our_best_runs_beside_it():
    runs = [record("wave", "SMRMF", 0.9)]
    summary = compose(results(runs + repeats(runs[0], (0.6, 0.8))), Provenance()).summary
    (line,) = [s for s in summary if s.startswith("ACC")]
    assert "SMRMF 0.700 (best single runs 0.900, paper 0.850, 1 set)" in line


def as_planned(record):
    """The run of the plan behind a made-up record."""
    names = ("data", "method", "method", "settings", "params", "seed", "experiments")
    return Run(*(record[name] for name in names))


def test_a_cell_with_repeats_to_do_has_no_figure_yet():
    runs = two_points()
    again = repeats(runs[0], DRAWS)
    planned = [as_planned(run) for run in (*runs, *again)]
    for n_done, note in ((0, "3 repeats to do"), (2, "1 repeat to do")):
        found = results([*runs, *again[:n_done]], planned=planned)
        score = found.best("comparison", "wave", "SMRMF")
        assert (score.value, score.std, score.draw, score.note) == (None, None, 0.80, note)
        assert f"{DASH}, best 0.800 / 0.85 (" in to_markdown(build_tables(found)["acc"])
    whole = results([*runs, *again], planned=planned).best("comparison", "wave", "SMRMF")
    assert (whole.value, whole.note) == (pytest.approx(fmean(DRAWS)), "")


def test_figures_of_the_run_that_won_say_nothing_of_repeats():
    runs = [record(data, "SMRMF", 0.8, neighborhoods={"selected": 0.1}) for data in ("wave", "sonar")]
    runs += repeats(runs[0], DRAWS) + repeats(runs[1], DRAWS[:2])
    assert cell(table("acc", runs), "Sonar", "SMRMF").note == "2 repeats"
    assert cell(table("convergence", runs), "Sonar", "iterations").note == ""
    assert cell(table("violation", runs), "Sonar", "after: bad neighbours").note == ""
    assert cell(table("label_mismatch", runs), "Sonar", "selected").note == ""


def test_figures_on_the_moons_are_means_too():
    runs = [record("2d-moons", "SMRMF", 0.9, experiments=["moons"])]
    found = cell(table("two_moons", runs + repeats(runs[0], DRAWS)), "2DMoons, SMRMF", "ACC")
    assert (found.ours, found.draw) == (pytest.approx(fmean(DRAWS)), 0.9)


def test_every_repeat_stands_in_a_file():
    runs = two_points()
    lines = list(csv.DictReader(io.StringIO(repeats_csv(results(runs + repeats(runs[0], DRAWS))))))
    found = {(line["measure"], line["setting"], line["repeat"]): float(line["value"]) for line in lines}
    assert found == {(m, "w=1", str(i)): d for m in ("ACC", "NMI") for i, d in enumerate(DRAWS, start=1)}
    assert {(line["data set"], line["method"]) for line in lines} == {("Wave", "SMRMF")}
    assert repeats_csv(results(runs)) == ""
