"""How far an evaluation is: the forecast, the bar on a terminal, the lines of a log."""

from __future__ import annotations

import io
import re
import tomllib

import pytest
from moons_plan import GOOD, PLAN
from patience import wait_until
from rich.console import Console

from smrmf.datasets import list_datasets
from smrmf_reproduce.run import progress
from smrmf_reproduce.run.plan import Plan
from smrmf_reproduce.run.progress import Forecast, RunProgress
from smrmf_reproduce.run.store import Store

RUNS = Plan(tomllib.loads(PLAN)).select(GOOD)


def finished(run, spent=1.0):
    return {"key": run.key, "method": run.method, "data": run.data, "spent": spent}


def show(folder, console, pending=RUNS[3:], n_done=3):
    store = Store(folder)
    return RunProgress(pending, n_done, Forecast([], {}), store=store, jobs=2, console=console)


def test_the_forecast_learns_from_the_same_set_first_and_scales_from_others():
    run = Plan.read().select(methods=["RMNMF"], data=["sonar"])[0]
    sizes = {info.name: info.n or info.raw_n for info in list_datasets()}
    forecast = Forecast([{"method": "RMNMF", "data": "2d-moons", "spent": 5.0}], sizes)
    assert forecast(run) == pytest.approx(5.0 * (208 / 500) ** 1.5)
    forecast.learn({"method": "RMNMF", "data": "wave", "spent": 9.0})
    assert forecast(run) == pytest.approx(14.0 / (500**1.5 + 600**1.5) * 208**1.5)
    forecast.learn({"method": "RMNMF", "data": "sonar", "spent": 2.0})
    forecast.learn({"method": "RMNMF", "data": "sonar", "spent": None})
    forecast.learn({"method": "RMNMF", "data": "sonar", "spent": 3.0})
    assert forecast(run) == pytest.approx(2.5)


def test_a_finished_run_counts_once_and_sets_the_time_left(tmp_path):
    shown = show(tmp_path, Console(file=io.StringIO()))
    with shown:
        assert re.match(r"3 of 21 runs, \d+ s so far", shown.line())
        for _ in range(2):
            shown.finished(finished(RUNS[3], spent=20.0))
        # 14 at 20 s, two at a time.
        assert re.fullmatch(r"4 of 21 runs, \d+ s so far, about 2 min left", shown.line())


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
