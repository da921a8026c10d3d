"""How far an evaluation is: the forecast, the bar on a terminal, the lines of a log."""

from __future__ import annotations

import heapq
import io
import re
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from moons_plan import GOOD, PLAN
from patience import wait_until
from rich.console import Console

from smrmf.datasets import list_datasets
from smrmf_reproduce.run import progress
from smrmf_reproduce.run.forecast import Forecast, read_seconds, time_left
from smrmf_reproduce.run.plan import Plan
from smrmf_reproduce.run.progress import RunProgress
from smrmf_reproduce.run.repeats import expected_repeats
from smrmf_reproduce.run.runner import batches
from smrmf_reproduce.run.store import Store

RUNS = Plan(tomllib.loads(PLAN)).select(GOOD)
SIZES = {info.name: info.n or info.raw_n for info in list_datasets()}


def finished(run, spent=1.0):
    return {"key": run.key, "method": run.method, "data": run.data, "spent": spent, "status": "done"}


def show(folder, console, pending=RUNS[3:], n_done=3):
    store = Store(folder)
    return RunProgress(pending, n_done, Forecast([], {}, {}), store=store, jobs=2, console=console)


def full_run(pace, seed, slower, jobs=2):
    """Make up when the runs of the paper's plan begin and end: their usual seconds, at a pace, with chance.

    A whole cell is off by a fifth, a run of it by another fifth, and some methods have become slower by a
    factor. The repeats come last. OVA_Colon is left out, as without its file.
    """
    rng = np.random.default_rng(seed)
    usual = Forecast([], SIZES).usual
    free, cells, spans = [0.0] * jobs, {}, []
    plan = Plan.read()
    runs = [run for run in plan.runs if run.data != "ova-colon"]
    # Numbered on: as repeats their keys would be those of other starts.
    repeats = [replace(run, seed=1000 + i) for i, run in enumerate(expected_repeats(plan, runs, {}))]
    for batch in batches([*runs, *repeats]):
        began = heapq.heappop(free)
        for run in batch:
            cell = cells.setdefault((run.method, run.data), np.exp(rng.normal(0, 0.2)))
            spent = float(pace * usual(run.method, run.data) * cell * np.exp(rng.normal(0, 0.2)))
            spent *= slower.get(run.method, 1.0)
            spans.append((began, began + spent, run))
            began += spent
        heapq.heappush(free, began)
    return spans


# The methods that take most of the time have changed since the usual seconds were taken, or none has.
@pytest.mark.parametrize("slower", [{}, {"SMRMF": 2.0, "SMRMF-NS": 0.6}, {"f-SMRMF": 0.5, "APMF": 1.6}])
@pytest.mark.parametrize("pace", [0.4, 1.0, 3.0])
def test_the_time_left_is_right_within_a_factor_of_two_from_the_first_minute_on(pace, slower):
    spans = full_run(pace, seed=0, slower=slower)
    total = max(end for _, end, _ in spans)
    forecast, seen = Forecast([], SIZES), 0.0
    keys = {id(run): run.key for *_, run in spans}
    # To the last minute, or as long as a single run may take: then what is under way decides.
    for now in np.linspace(60.0, total - 60.0 * max(1.0, pace), 40):
        for began, end, run in spans:
            if seen < end <= now:
                forecast.learn(finished(run, end - began))
        seen = now
        left = {keys[id(run)]: run for _, end, run in spans if end > now}
        under_way = {keys[id(run)]: now - began for began, end, run in spans if began < now < end}
        said = time_left(left, forecast, 2, under_way)
        assert (total - now) / 2 < said < (total - now) * 2, f"{said:.0f} s at {now:.0f} of {total:.0f} s"


def test_the_usual_seconds_cover_the_comparison():
    usual = read_seconds()
    absent = {"ova-colon"}  # whose file nobody had
    runs = [run for run in Plan.read().runs if {"comparison", "moons"} & set(run.experiments)]
    assert {(run.method, run.data) for run in runs if run.data not in absent} <= set(usual)
    assert min(usual.values()) > 0


def test_a_forecast_moves_from_the_usual_seconds_to_those_of_this_machine():
    usual = {("RMNMF", "wave"): 1.0, ("RMNMF", "sonar"): 0.5, ("SMRMF", "sonar"): 8.0}
    (rmnmf, smrmf) = (Plan.read().select([method], ["sonar"])[0] for method in ("RMNMF", "SMRMF"))
    forecast = Forecast([], SIZES, usual)
    assert forecast(rmnmf) == 0.5
    for _ in range(1000):
        forecast.learn({"method": "RMNMF", "data": "wave", "spent": 3.0, "status": "done"})
    assert forecast(rmnmf) == pytest.approx(1.5, rel=0.01)
    assert forecast(smrmf) == pytest.approx(24.0, rel=0.01)  # three times the usual, as all so far
    for _ in range(1000):
        forecast.learn({"method": "SMRMF", "data": "sonar", "spent": 2.0, "status": "done"})
    assert forecast(smrmf) == pytest.approx(2.0, rel=0.02)


def test_usual_seconds_of_a_set_that_has_none_are_scaled_from_the_nearest_in_size():
    usual = {("SMRMF", "sonar"): 1.0, ("SMRMF", "wave"): 4.0}
    (moons,) = Plan.read().select(["SMRMF"], ["2d-moons"])[:1]
    assert Forecast([], SIZES, usual)(moons) == pytest.approx(4.0 * (500 / 600) ** 1.5)


def test_one_long_run_left_takes_its_time_on_any_number_of_processes():
    run = RUNS[0]
    forecast = Forecast([finished(run, spent=100.0)], {}, {})
    assert time_left({run.key: run}, forecast, 8, {}) == pytest.approx(100.0)
    assert time_left({run.key: run}, forecast, 8, {run.key: 70.0}) == pytest.approx(30.0)
    assert time_left({run.key: run}, forecast, 8, {run.key: 300.0}) == 0.0
    assert time_left({}, forecast, 8, {}) == 0.0


def test_without_usual_seconds_a_forecast_learns_from_the_same_set_first_and_scales_from_others():
    run = Plan.read().select(methods=["RMNMF"], data=["sonar"])[0]
    forecast = Forecast([{"method": "RMNMF", "data": "2d-moons", "spent": 5.0, "status": "done"}], SIZES, {})
    assert forecast(run) == pytest.approx(5.0 * (208 / 500) ** 1.5)
    forecast.learn({"method": "RMNMF", "data": "wave", "spent": 9.0, "status": "done"})
    assert forecast(run) == pytest.approx(14.0 / (500**1.5 + 600**1.5) * 208**1.5)
    forecast.learn({"method": "RMNMF", "data": "sonar", "spent": 2.0, "status": "done"})
    forecast.learn({"method": "RMNMF", "data": "sonar", "spent": 90.0, "status": "failed"})
    forecast.learn({"method": "RMNMF", "data": "sonar", "spent": 3.0, "status": "done"})
    assert forecast(run) == pytest.approx(2.5)


def test_a_finished_run_counts_once_and_sets_the_time_left(tmp_path):
    shown = show(tmp_path, Console(file=io.StringIO()))
    with shown:
        assert re.match(r"3 of 21 runs, \d+ s so far", shown.line())
        for _ in range(2):
            shown.finished(finished(RUNS[3], spent=20.0))
        # A batch of eight at 20 s.
        assert re.fullmatch(r"4 of 21 runs, \d+ s so far, about 3 min left", shown.line())


def test_a_terminal_shows_a_bar_and_what_is_under_way(tmp_path):
    text = io.StringIO()
    console = Console(file=text, width=100, force_terminal=True, color_system=None)
    Store(tmp_path).begin(RUNS[4])
    with show(tmp_path, console) as shown:
        shown.finished(finished(RUNS[3]))
        wait_until(lambda: "4 of 21 runs" in text.getvalue())
    screen = text.getvalue()
    assert "4 of 21 runs" in screen
    assert "19%" in screen
    assert str(RUNS[4]) in screen
    assert "RMNMF on 2d-moons" in screen


def test_a_log_gets_a_line_now_and_then_and_no_bar(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "LOG_PAUSE", 0.01)
    text = io.StringIO()
    with show(tmp_path, Console(file=text)):
        wait_until(lambda: text.getvalue().count("\n") >= 2)
    lines = text.getvalue().splitlines()
    assert len(lines) >= 2
    assert all(re.match(r"3 of 21 runs, \d+ s so far, about ", line) for line in lines)


def test_a_name_with_brackets_is_shown_as_it_is(tmp_path):
    text = io.StringIO()
    console = Console(file=text, width=100, force_terminal=True, color_system=None)
    (Store(tmp_path).marks / "key").write_text("1 [bold]Mine[/] on 2d-moons")
    with show(tmp_path, console):
        pass
    assert "[bold]Mine[/] on 2d-moons" in text.getvalue()
