"""The plan: which runs an evaluation has, and their keys."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest
from numpy.testing import assert_array_equal

from smrmf import datasets
from smrmf_reproduce.command import Request, check_measurements, requested_runs
from smrmf_reproduce.report.paper import REAL_SETS
from smrmf_reproduce.run.methods import build, changed_start, find_estimator
from smrmf_reproduce.run.plan import MAIN, Plan, PlanError, Run

PLAN = Plan.read()
RUNS = PLAN.runs
METHOD = "[names]\n[readings]\n[methods.A]\n"
EXPERIMENT = f"{METHOD}estimator = 'A'\n[[experiments]]\nmethods = ['A']\n"
# What some runs are, and the keys under which their results have been published.
KEYS = {
    "35f0d3fbbfba58f772f3": ("sonar", "KMeans", "KMeans", {"settings": "default", "n_init": 10}),
    "688a1f75815d7b84cb2f": (
        *("wave", "DPP", "SelectiveRMNMF"),
        {"manifold_weight": 0.001, "fill": 0.1, "penalty": 0.01, "selector": "KDPP", "settings": "paper"},
    ),
    "f041d1dbdf831e67d0ac": (
        *("gordon", "APMF", "APMF"),
        {"settings": "paper", "manifold_weight": 0.01, "projection_weight": 0.01, "n_components": 0.2},
    ),
    "9def3fabe72180a5d2ef": ("2d-moons", "neighborhoods", "neighborhoods", {"settings": "paper"}),
}


def runs_of(**wanted):
    return [run for run in RUNS if all(getattr(run, name) == value for name, value in wanted.items())]


def grid_size(method, data):
    return len({tuple(run.params.items()) for run in comparison(method, data)})


def comparison(method, data):
    return [run for run in runs_of(method=method, data=data) if "comparison" in run.experiments]


def test_every_method_of_the_paper_meets_every_data_set():
    pairs = {(run.method, run.data) for run in RUNS if "comparison" in run.experiments}
    assert pairs >= {(method, data) for method in PLAN.names(["paper"]) for data in REAL_SETS}


def test_keys_are_unique_and_free_of_what_a_run_serves():
    assert len({run.key for run in RUNS}) == len(RUNS)
    again = PLAN.select(methods=["SMRMF"], data=["sonar"])
    assert {run.key for run in again} == {run.key for run in runs_of(method="SMRMF", data="sonar")}


def test_keys_are_those_of_the_results_published_so_far():
    """A change of the recipe of keys would orphan every result that anybody has kept."""
    for key, work in KEYS.items():
        assert Run(*work, params={}, seed=0).key == key
    assert KEYS.keys() & {run.key for run in RUNS}


@pytest.mark.parametrize(
    ("method", "points", "seeds"),
    [
        ("NMF", 1, 30),
        ("GNMF", 4, 30),
        ("RMNMF", 4, 1),
        ("ESC-FFS", 7, 30),
        ("SMRMF", 16, 1),
        ("f-SMRMF", 64, 1),
    ],
)
def test_grids_and_repetitions_are_the_papers(method, points, seeds):
    assert grid_size(method, "sonar") == points
    assert len(comparison(method, "sonar")) == points * seeds


def test_a_run_in_words_says_what_sets_it_apart():
    words = {str(run) for run in RUNS}
    assert {"DS3 on sonar", "NMF on sonar", "NMF on sonar (seed 2)"} <= words
    assert "GNMF on sonar (manifold_weight=0.1, seed 1)" in words


def test_exceptions_hold_where_they_should_and_nowhere_else():
    assert grid_size("APMF", "isolet") == 3
    assert grid_size("APMF", "sonar") == 48
    frozen = {run.data for run in RUNS if "freeze_tol" in run.settings}
    assert frozen == {"mfeat-fac", "mfeat-pix", "20-news"}
    assert {run.settings["exemplars"] for run in runs_of(data="10d-moons", method="SMRMF")} == {0.8}
    assert {run.settings["bandwidth"] for run in runs_of(data="2d-moons", method="SMRMF")} == {"distance"}


def test_work_that_serves_two_experiments_is_done_once():
    shared = [run for run in runs_of(method="SMRMF", data="sonar") if len(run.experiments) > 1]
    served = {experiment for run in shared for experiment in run.experiments}
    assert {"comparison", "no-labels"} <= served
    untuned = [run for run in runs_of(method="RMNMF", data="sonar") if "no-labels" in run.experiments]
    assert [run.params for run in untuned] == [{"manifold_weight": 0.1}]
    assert "comparison" in untuned[0].experiments


def test_readings_vary_what_the_paper_leaves_open_and_count_the_main_one():
    runs = [run for run in runs_of(method="RMNMF", data="sonar") if "readings" in run.experiments]
    choices = {run.experiments["readings"]: (run.settings["penalty"], run.settings["fill"]) for run in runs}
    assert sum(MAIN in names for names in choices) == 1
    assert len(set(choices.values())) == len(choices) >= 4


def test_a_method_without_the_choice_in_which_readings_differ_has_one_run_for_all():
    readings = "main = { penalty = 1, fill = 0 }\nother = { penalty = 1, fill = 2 }\n"
    method = "estimator = 'A'\nreadings = ['penalty']\n"
    experiment = "[[experiments]]\nname = 'E'\ndata = ['D']\nmethods = ['A']\nreadings = ['main', 'other']\n"
    plan = Plan(tomllib.loads(f"[names]\n[readings]\n{readings}[methods.A]\n{method}{experiment}"))
    assert [run.experiments for run in plan.runs] == [{"E": ("main", "other")}]


def test_a_run_records_what_any_of_its_experiments_asks_for():
    text = "[names]\n[readings]\n[methods.A]\nestimator = 'A'\nrecord = []\n"
    for name, record in (("E", []), ("F", ["picture"]), ("G", ["history"])):
        text += f"[[experiments]]\nname = '{name}'\ndata = ['D']\nmethods = ['A']\nrecord = {record}\n"
    (run,) = Plan(tomllib.loads(text)).runs
    assert run.record == {"picture", "history"}


def test_a_method_takes_from_a_reading_only_the_choices_that_it_has():
    assert all("neighborhoods" not in run.settings for run in runs_of(method="RMNMF", data="sonar"))
    read = [run for run in runs_of(method="SMRMF", data="sonar") if "readings" in run.experiments]
    searched = {run.experiments["readings"]: run.settings.get("neighborhoods") for run in read}
    # What a reading does not name is as in the estimator's paper_settings.
    assert searched.pop(("neighbours in the input space",)) == "input"
    assert len(searched) > 3
    assert set(searched.values()) == {None}


def test_quick_has_the_ends_of_each_grid_on_small_sets():
    runs = Plan.read(quick=True).runs
    assert {run.data for run in runs} == {"sonar", "ionosphere", "2d-moons", "10d-moons"}
    weights = {run.params["manifold_weight"] for run in runs if run.method == "RMNMF"}
    assert {0.001, 1.0} <= weights
    assert max(run.seed for run in runs) == 2
    assert {run.key for run in runs} <= {run.key for run in RUNS}


@pytest.mark.parametrize(
    ("request_", "name"), [({"methods": ["SMURF"]}, "SMURF"), ({"data": ["iris"]}, "iris")]
)
def test_names_that_do_not_exist_are_refused_with_those_that_do(request_, name):
    with pytest.raises(PlanError, match=f"{name}.*choose among") as refusal:
        requested_runs(PLAN, Request(**request_))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not toml", "TOMLDecodeError"),
        ("[names]", "readings"),
        (f"{METHOD}estimator = 'A'\n[[experiments]]\nmethods = ['B']", "no method 'B'"),
        (f"{EXPERIMENT}readings = ['R']", "no reading 'R'"),
        (EXPERIMENT, "'data'"),
        (f"{EXPERIMENT}name = 'E'\ndata = ['D']\ngrid = 'shrot'", "'str'"),
        (f"experiments = []\n{METHOD}estimate = 'A'", "estimate"),
        (f"experiments = []\n{METHOD}estimator = 'A'\nrole = 'king'", "no role 'king'"),
        (f"experiments = []\n{METHOD}estimator = 'A'\nrecord = ['fame']", "no detail 'fame'"),
        ("extends = 'nobody'", "no plan 'nobody'"),
    ],
)
def test_a_plan_that_is_none_is_refused_in_one_sentence(text, says, tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(PlanError, match="is not a plan") as refusal:
        Plan.read(path)
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_an_exception_may_name_lists(tmp_path):
    text = "[names]\nall = ['A']\nsets = ['D']\n[readings]\n[methods.A]\nestimator = 'A'\n"
    text += "[[exceptions]]\nwhy = 'so'\nmethods = ['all']\ndata = ['sets']\nseeds = 3\n"
    text += "[[experiments]]\nname = 'E'\nmethods = ['all']\ndata = ['sets']\n"
    path = tmp_path / "plan.toml"
    path.write_text(text)
    plan = Plan.read(path)
    assert len(plan.runs) == 3
    assert plan.exceptions(plan.runs) == ["A on D: so."]


def test_the_page_repeats_the_exceptions_that_it_needs():
    (sentence,) = PLAN.exceptions(PLAN.select(data=["10d-moons"], methods=["SMRMF"]))[1:]
    assert sentence == "SMRMF on 10d-moons: 80 % exemplars, as in the paper."
    assert PLAN.exceptions(PLAN.select(data=["sonar"])) == []


def test_the_command_on_the_page_names_no_folder(tmp_path):
    request = Request(methods=["SMRMF"], data=["sonar", "wave"], output=tmp_path, data_home=str(tmp_path))
    assert request.command == "smrmf reproduce --only SMRMF --data sonar,wave"


def test_every_method_can_be_built_from_its_settings():
    X, _ = datasets.make_moons_paper()
    for method in dict.fromkeys(run.method for run in RUNS if not run.is_measurement):
        run = runs_of(method=method, data="sonar")[-1]
        model = build(run, X, 2)
        params = model.get_params()
        for name, value in run.params.items():
            assert params[name] == value
        assert params.get("n_clusters", 2) == 2
        assert params.get("n_jobs", 1) == 1
        if "selector" in run.settings:
            assert type(model.selector).__name__ == run.settings["selector"]


def test_exceptions_add_up():
    settings = [run.settings for run in runs_of(method="SMRMF", data="10d-moons")]
    assert all(s["bandwidth"] == "distance" and s["exemplars"] == 0.8 for s in settings)
    frozen = [run.settings for run in runs_of(method="SMRMF-Euc", data="mfeat-pix")]
    assert all(s["freeze_tol"] == 1e-5 and s["dissimilarity"] == "euclidean" for s in frozen)


def test_a_reading_with_a_fill_starts_there():
    X, _ = datasets.make_moons_paper(dim=2)
    run = next(run for run in runs_of(method="RMNMF", data="sonar") if run.settings["fill"] == 0.1)
    assert_array_equal(build(run, X, 2).init, changed_start(X, 2, 0.1, 0.0, 0))


def test_the_filled_start_differs_from_the_plain_one_only_where_that_is_zero():
    X, _ = datasets.make_moons_paper(dim=10)
    plain, filled = changed_start(X, 3, 0.0, 0.0, 0), changed_start(X, 3, 0.1, 0.0, 0)
    assert (filled[plain < 1e-10] == 0.1).all()
    assert (filled[plain >= 1e-10] == plain[plain >= 1e-10]).all()
    assert (plain < 1e-10).any()


def test_the_published_reading_is_told_in_the_words_of_the_plan():
    assert PLAN.main_reading().startswith("the first penalty is 0.1 (paper note 9), zeros of the start")
    without = {name: part for name, part in PLAN.content.items() if name != "choices"}
    assert Plan(without).main_reading() == "penalty = 0.1, fill = 0.1, exemplar_start = single"


def test_what_is_recorded_stands_in_the_plan():
    recorded = {run.method: run.record for run in runs_of(data="sonar")}
    assert recorded["SMRMF-NS"] == {"history", "neighborhoods"}
    assert recorded["RMNMF"] == {"history"}
    moons = [run for run in runs_of(data="2d-moons", method="RMNMF") if "moons" in run.experiments]
    assert {run.record for run in moons} == {frozenset({"history", "picture"})}
    (measured,) = (run for run in runs_of(data="sonar") if run.is_measurement)
    assert measured.record == set()


def test_what_a_measurement_is_told_stands_in_the_plan(tmp_path):
    measured = [run for run in RUNS if run.is_measurement]
    told = {run.data: run.arguments["bandwidth"] for run in measured}
    simulated, real = ["2d-moons", "10d-moons"], PLAN.names(["real", "own"])
    assert told == dict.fromkeys(simulated, "distance") | dict.fromkeys(real, "squared-distance")
    path = tmp_path / "plan.toml"
    table = "[measurements.neighborhoods]\nmeasure = 'neighborhoods'\n"
    path.write_text(f"extends = 'smrmf'\n{table}bandwidth = {{ distance = ['real'] }}\n")
    changed = Plan.read(path).select(["neighborhoods"])
    assert {run.data for run in changed if run.arguments} == {*PLAN.names(["real"])}
    check_measurements(measured)
    with pytest.raises(PlanError, match=r"'neighborhoods' that 2d-moons cannot have: .*'bandwidth'"):
        check_measurements(changed)
    with pytest.raises(PlanError, match="'neighborhoods' that 2d-moons cannot have: 'size'"):
        check_measurements([replace(measured[0], estimator="size")])


def test_a_role_names_its_methods_and_the_order_of_the_plan_is_that_of_the_columns():
    assert PLAN.names(["ours"]) == ["SMRMF", "f-SMRMF"]
    assert PLAN.names(["paper"]) == PLAN.method_names()[:14]
    assert requested_runs(PLAN, Request(methods=["ours"])) == PLAN.select(["SMRMF", "f-SMRMF"])


def test_a_plan_may_add_to_the_papers(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(
        "extends = 'smrmf'\n[methods.Mine]\nestimator = 'sklearn.cluster:Birch'\n"
        "[[experiments]]\nname = 'comparison'\ndata = ['sonar']\nmethods = ['Mine']\n"
    )
    plan = Plan.read(path)
    (mine,) = plan.select(methods=["Mine"])
    assert (mine.data, dict(mine.experiments)) == ("sonar", {"comparison": (MAIN,)})
    assert {run.key for run in plan.runs} == {run.key for run in RUNS} | {mine.key}
    assert plan.names(["paper"]) == PLAN.names(["paper"])


def test_an_estimator_of_any_package_is_found_by_its_address():
    assert find_estimator("sklearn.mixture:GaussianMixture").__name__ == "GaussianMixture"
    for name in ("sklearn.cluster:Nobody", "no_such_package:Birch"):
        with pytest.raises(PlanError, match=f"'{name}' cannot be imported"):
            find_estimator(name)
