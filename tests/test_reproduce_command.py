"""``smrmf reproduce`` as a whole: what it refuses, what it reads, and the pages it writes."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from moons_plan import COMMAND, GOOD, PLAN, carry_out
from patience import run_command
from rich.console import Console

from smrmf.datasets import list_datasets
from smrmf_reproduce.command import Request, check_data_sets, check_estimators, not_loadable, reproduce
from smrmf_reproduce.run.measure import failed
from smrmf_reproduce.run.methods import find_estimator
from smrmf_reproduce.run.plan import Plan, PlanError
from smrmf_reproduce.run.session import Session
from smrmf_reproduce.run.store import Store

pytestmark = pytest.mark.slow

OWN_METHOD = Path(__file__).parents[1] / "docs" / "own_method.toml"
# Tells at the end how often this process opened each file to read it, and how often plans were expanded; the
# workers are other processes.
COUNTED = """
import json, os, sys
from collections import Counter
from smrmf.cli import main
from smrmf_reproduce.run.plan import Plan
opened, expanded, expand = Counter(), [], Plan._expand
def listen(event, details):
    if event == "open" and isinstance(details[0], (str, os.PathLike)) and not (details[2] & os.O_WRONLY):
        opened[os.path.basename(details[0])] += 1
def count(plan):
    expanded.append(plan)
    return expand(plan)
Plan._expand = count
sys.addaudithook(listen)
try:
    main()
finally:
    print(json.dumps([opened, len(expanded)]))
"""


@pytest.mark.parametrize("arguments", [["--list"], []])
def test_the_command_line_refuses_unknown_names_in_one_line(arguments, tmp_path):
    command = [*COMMAND, *arguments, "--only", "SMURF", "--output", tmp_path / "out"]
    done = run_command(command)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "'SMURF'" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["data", "reproduce"])
def test_a_folder_that_is_none_is_refused_in_one_line(command, tmp_path):
    words = [*COMMAND[:-1], command, "--data-home", tmp_path / "[data]"]
    done = run_command(words, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "[data]" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_set_runs_when_its_file_is_present_and_is_left_out_when_not(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((1545, 10_935), dtype=np.float32)
    np.savez(tmp_path / "ova-colon.npz", X=X, y=np.arange(len(X)) % 2)
    runs = Plan.read().select(data=["ova-colon", "gordon", "2d-moons"])  # gordon has no download
    absent = not_loadable(runs, str(tmp_path))
    kept = Session.open(runs, Store(tmp_path)).without(absent).runs
    assert {run.data for run in kept} == {"ova-colon", "2d-moons"}
    assert list(absent) == ["gordon"]
    assert "gordon" in absent["gordon"]
    assert "\n" not in absent["gordon"]


def test_a_plan_with_a_set_that_does_not_exist_is_refused(plan, tmp_path):
    other = tmp_path / "plan.toml"
    other.write_text(plan.read_text().replace('data = ["2d-moons"]', 'data = ["iris"]'))
    with pytest.raises(PlanError, match=r"'iris'.*sonar"):
        check_data_sets(Plan.read(other).runs, list_datasets())


@pytest.mark.parametrize("page_only", [True, False])
def test_a_set_is_loaded_only_while_there_is_something_to_do_on_it(plan, tmp_path, monkeypatch, page_only):
    home, output, other = tmp_path / "home", tmp_path / "out", tmp_path / "plan.toml"
    home.mkdir()
    monkeypatch.setenv("SMRMF_CACHE", str(home))
    other.write_text(plan.read_text().replace('data = ["2d-moons"]', 'data = ["gordon"]'))  # has no download
    runs, store = Plan.read(other).select(["KMeans"]), Store(output)
    for run in runs:
        store.save(failed(run, "") | {"status": "done", "error": None, "spent": 1.0, "accuracy": 0.5})

    def said():
        request = Request(methods=["KMeans"], output=output, data_home=str(home), plan=other)
        text = io.StringIO()
        assert reproduce(request, Console(file=text), page_only=page_only)
        return text.getvalue(), (output / "index.html").read_text()

    words, page = said()
    assert "3 runs, 3 of them done before." in words
    assert "3 of 3 runs have a record, 0 failed." in words
    assert "left out" not in (words + page).lower()
    (store.results / f"{runs[0].key}.json").unlink()
    words, page = said()
    assert "Left out: gordon is not in" in words
    assert "0 runs, 0 of them done before." in words
    assert "gordon could not be loaded and was left out." in page
    left = Session.open(runs, store).without(["gordon"])
    assert (left.runs, left.known) == ([], {})  # or its records would count as done


def test_the_list_shows_what_is_done(plan, tmp_path):
    carry_out(Plan.read(plan).select(["KMeans"])[:2], tmp_path)
    command = [*COMMAND, "--list", "--plan", plan, "--output", tmp_path]
    said = run_command(command).stdout
    (line,) = (line.split() for line in said.splitlines() if "KMeans" in line)
    assert line[:4] == ["2d-moons", "KMeans", "3", "2"]
    assert np.isfinite(float(line[4]))


def test_the_page_alone_can_be_written_from_what_is_done(plan, tmp_path):
    carry_out(Plan.read(plan).select(["KMeans"])[:2], tmp_path)
    command = [*COMMAND, "--page-only", "--plan", plan, "--only", ",".join(GOOD), "--output", tmp_path]
    done = run_command(command)
    assert done.returncode == 0
    assert "2 of 21 runs have a record, 0 failed" in done.stdout
    assert len(list((tmp_path / "runs").iterdir())) == 2
    assert (tmp_path / "index.html").is_file()


def test_plan_and_printed_tables_and_every_record_are_read_once(plan, tmp_path):
    runs = Plan.read(plan).select(["KMeans", "GNMF"])
    carry_out(runs[:2], tmp_path)
    command = [COMMAND[0], "-c", COUNTED, "reproduce", "--plan", plan, "--output", tmp_path, "--jobs", "1"]
    done = run_command([*command, "--only", "KMeans,GNMF"], cwd=tmp_path)
    assert done.returncode == 1, done.stderr  # GNMF fails, as it should
    opened, expanded = json.loads(done.stdout.splitlines()[-1])
    files = ["plan.toml", "smrmf_tables.csv", *(f"{run.key}.json" for run in runs)]
    assert {name: opened.get(name) for name in files} == dict.fromkeys(files, 1)
    assert expanded == 1


def test_somebody_elses_method_is_a_column_beside_the_papers(tmp_path):
    """The example plan of the user guide, on the moons."""
    words = ["--plan", OWN_METHOD, "--only", "Ward,RMNMF", "--data", "2d-moons", "--output", tmp_path]
    done = run_command([*COMMAND, *words], cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "index.html").read_text()
    assert "<th>SMRMF-NS</th><th>Ward</th>" in page
    records = [json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*.json")]
    ward = [record for record in records if record["method"] == "Ward"]
    assert {record["settings"]["linkage"] for record in ward} == {"ward", "average"}
    best = max(record["accuracy"] for record in ward)
    with (tmp_path / "tables" / "acc.csv").open() as file:
        cells = {(row["row"], row["column"]): row for row in csv.DictReader(file)}
    assert float(cells["2DMoons", "Ward"]["ours"]) == pytest.approx(best, abs=1e-4)
    assert cells["2DMoons", "Ward"]["paper"] == ""
    assert cells["Wave", "RMNMF"]["paper"] == "0.71"


def test_the_guide_shows_the_plan_with_a_method_of_ones_own():
    guide = (OWN_METHOD.parent / "user_guide.md").read_text(encoding="utf8")
    (shown,) = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    assert tomllib.loads(shown) == tomllib.loads(OWN_METHOD.read_text(encoding="utf8"))


def test_a_method_that_cannot_be_found_is_refused_before_anything_runs(tmp_path):
    text = OWN_METHOD.read_text().replace("sklearn.cluster:AgglomerativeClustering", "Kmeans")
    plan = tmp_path / "plan.toml"
    plan.write_text(text)
    command = [*COMMAND, "--plan", plan, "--only", "Ward", "--data", "2d-moons", "--output", tmp_path / "out"]
    done = run_command(command, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "'Kmeans' is no estimator of smrmf or sklearn.cluster" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nobody.has.this:Method", "'nobody.has.this:Method' cannot be imported"),
        ("sklearn.cluster:Method", "'sklearn.cluster:Method' cannot be imported"),
        ("", "'' is no estimator of smrmf or sklearn.cluster"),
        (":", "':' is no estimator of smrmf or sklearn.cluster"),
        ("k_means", "'k_means' is no estimator of smrmf or sklearn.cluster"),
        ("import_module", "'import_module' is no estimator of smrmf or sklearn.cluster"),
        ("datasets", "'datasets' is no estimator of smrmf or sklearn.cluster"),
        ("os:system", "'os:system' is no estimator"),
        ("os:PathLike", "'os:PathLike' is no estimator"),
        ("importlib:import_module", "'importlib:import_module' is no estimator"),
        ("builtins:dict", "'builtins:dict' is no estimator"),
        ("sklearn.base:BaseEstimator", "'sklearn.base:BaseEstimator' is no estimator"),
        ("sklearn.cluster:k_means", "'sklearn.cluster:k_means' is no estimator"),
        (".cluster:KMeans", "'.cluster:KMeans' cannot be imported"),
        ("sklearn.cluster:", "'sklearn.cluster:' cannot be imported"),
        ("module_that_raises:Method", "cannot be imported .no Method today."),
    ],
)
def test_names_that_are_no_estimator_are_refused(name, said, tmp_path, monkeypatch):
    (tmp_path / "module_that_raises.py").write_text("raise RuntimeError('no Method\\ntoday')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PlanError, match=said) as caught:
        find_estimator(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("named", ["7", "[1, 2]", "{ a = 1 }", "true"])
def test_an_estimator_that_is_no_text_is_refused_before_anything_runs(named, tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace('estimator = "KMeans"', f"estimator = {named}"))
    request = Request(methods=["KMeans"], output=tmp_path / "out", plan=path)
    with pytest.raises(PlanError, match="The estimator "):
        reproduce(request, Console(file=io.StringIO()))
    assert not (tmp_path / "out").exists()


def test_a_selector_that_cannot_be_found_is_refused():
    (run,) = Plan.read().select(["IPM"], ["sonar"])[:1]
    with pytest.raises(PlanError, match="'Ipm' is no estimator of smrmf"):
        check_estimators([replace(run, settings=run.settings | {"selector": "Ipm"})])


def test_every_method_of_the_papers_plan_is_found():
    runs = Plan.read().runs
    assert any(run.is_measurement for run in runs)  # measurements are no estimators
    check_estimators(runs)


def test_quick_runs_from_beginning_to_end(tmp_path):
    """Some methods on the moons, and some of ours on a real data set if it is at hand."""
    choice = ["--data", "2d-moons", "--only", "neighborhoods,RMNMF"]
    real = "sonar" in {info.name for info in list_datasets() if info.present}
    if real:
        choice = ["--data", "2d-moons,sonar", "--only", "neighborhoods,RMNMF,f-SMRMF"]
    done = run_command([*COMMAND, "--quick", *choice, "--output", tmp_path], seconds=900)
    assert done.returncode == 0, done.stdout + done.stderr
    records = [json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*.json")]
    assert {record["status"] for record in records} == {"done"}
    page = (tmp_path / "index.html").read_text()
    assert (tmp_path / "README.md").is_file()
    assert list((tmp_path / "tables").glob("*.csv"))
    # Scores and figures are of real data.
    assert ("<th>RMNMF</th>" in page) == real
    assert bool(list((tmp_path / "figures").glob("*.svg"))) == real
