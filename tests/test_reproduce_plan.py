"""The plan: which runs an evaluation has, and their keys."""

from __future__ import annotations

import tomllib

import pytest
from numpy.testing import assert_array_equal

from smrmf import datasets
from smrmf_reproduce.report.paper import METHODS, REAL_SETS
from smrmf_reproduce.run.command import Choice, chosen_runs
from smrmf_reproduce.run.methods import build, filled_start
from smrmf_reproduce.run.plan import MAIN, Plan, PlanError

RUNS = Plan.read().runs()
METHOD = "[names]\n[readings]\n[methods.A]\n"
EXPERIMENT = f"{METHOD}estimator = 'A'\n[[experiments]]\nmethods = ['A']\n"
KEY_OF_KMEANS_ON_SONAR = "35f0d3fbbfba58f772f3"


def runs_of(**wanted):
    return [run for run in RUNS if all(getattr(run, name) == value for name, value in wanted.items())]


def grid_size(method, data):
    return len({tuple(run.params.items()) for run in comparison(method, data)})


def comparison(method, data):
    return [run for run in runs_of(method=method, data=data) if "comparison" in run.feeds]


def test_every_method_of_the_paper_meets_every_data_set():
    pairs = {(run.method, run.data) for run in RUNS if "comparison" in run.feeds}
    assert pairs >= {(method, data) for method in METHODS for data in REAL_SETS}


def test_keys_are_unique_stable_and_free_of_what_a_run_feeds():
    assert len({run.key for run in RUNS}) == len(RUNS)
    again = Plan.read().runs(methods=["SMRMF"], data=["sonar"])
    assert {run.key for run in again} == {run.key for run in runs_of(method="SMRMF", data="sonar")}
    # A change of the recipe of keys would orphan every result kept so far.
    first = runs_of(method="KMeans", data="sonar")[0]
    assert first.key == KEY_OF_KMEANS_ON_SONAR


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
    shared = [run for run in runs_of(method="SMRMF", data="sonar") if len(run.feeds) > 1]
    feeds = {feed for run in shared for feed in run.feeds}
    assert {"comparison", "no-labels"} <= feeds
    untuned = [run for run in runs_of(method="RMNMF", data="sonar") if "no-labels" in run.feeds]
    assert [run.params for run in untuned] == [{"manifold_weight": 0.1}]
    assert "comparison" in untuned[0].feeds


def test_readings_vary_what_the_paper_leaves_open_and_count_the_main_one():
    runs = [run for run in runs_of(method="RMNMF", data="sonar") if "readings" in run.feeds]
    choices = {run.feeds["readings"]: (run.settings["penalty"], run.settings["fill"]) for run in runs}
    assert (MAIN,) in choices
    assert len(set(choices.values())) == len(choices) >= 4


def test_a_method_without_the_choice_in_which_readings_differ_has_one_run_for_all():
    readings = "main = { penalty = 1, fill = 0 }\nother = { penalty = 1, fill = 2 }\n"
    method = "estimator = 'A'\nreadings = ['penalty']\n"
    experiment = "[[experiments]]\nname = 'E'\ndata = ['D']\nmethods = ['A']\nreadings = ['main', 'other']\n"
    plan = Plan(tomllib.loads(f"[names]\n[readings]\n{readings}[methods.A]\n{method}{experiment}"))
    assert [run.feeds for run in plan.runs()] == [{"E": ("main", "other")}]


def test_a_method_takes_from_a_reading_only_the_choices_that_it_has():
    assert all("neighborhoods" not in run.settings for run in runs_of(method="RMNMF", data="sonar"))
    main = [run for run in runs_of(method="SMRMF", data="sonar") if "comparison" in run.feeds]
    others = [
        run for run in runs_of(method="SMRMF", data="sonar") if MAIN not in run.feeds.get("readings", MAIN)
    ]
    assert {run.settings["neighborhoods"] for run in main} == {"input"}
    assert others
    assert all("neighborhoods" not in run.settings for run in others)  # the estimator's paper_settings


def test_quick_has_the_ends_of_each_grid_on_small_sets():
    runs = Plan.read(quick=True).runs()
    assert {run.data for run in runs} == {"sonar", "ionosphere", "2d-moons", "10d-moons"}
    weights = {run.params["manifold_weight"] for run in runs if run.method == "RMNMF"}
    assert {0.001, 1.0} <= weights
    assert max(run.seed for run in runs) == 2
    assert {run.key for run in runs} <= {run.key for run in RUNS}


@pytest.mark.parametrize(
    ("choice", "name"), [({"methods": ["SMURF"]}, "SMURF"), ({"data": ["iris"]}, "iris")]
)
def test_names_that_do_not_exist_are_refused_with_those_that_do(choice, name):
    with pytest.raises(PlanError, match=f"{name}.*choose among") as refusal:
        chosen_runs(Choice(**choice))
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
    runs = Plan.read(path).runs()
    assert len(runs) == 3
    assert Plan.read(path).exceptions(runs) == ["A on D: so."]


def test_the_page_repeats_the_exceptions_that_it_needs():
    plan = Plan.read()
    (sentence,) = plan.exceptions(plan.runs(data=["10d-moons"], methods=["SMRMF"]))[1:]
    assert sentence == "SMRMF on 10d-moons: 80 % exemplars, as in the paper."
    assert plan.exceptions(plan.runs(data=["sonar"])) == []


def test_the_command_on_the_page_names_no_folder(tmp_path):
    choice = Choice(methods=["SMRMF"], data=["sonar", "wave"], output=tmp_path, data_home=str(tmp_path))
    assert choice.command == "smrmf reproduce --only SMRMF --data sonar,wave"


def test_every_method_can_be_built_from_its_settings():
    X, _ = datasets.make_moons_paper()
    for method in dict.fromkeys(run.method for run in RUNS if run.estimator != "neighborhoods"):
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
    assert_array_equal(build(run, X, 2).init, filled_start(X, 2, 0.1))


def test_the_filled_start_differs_from_the_plain_one_only_where_that_is_zero():
    X, _ = datasets.make_moons_paper(dim=10)
    plain, filled = filled_start(X, 3, 0.0), filled_start(X, 3, 0.1)
    assert (filled[plain < 1e-10] == 0.1).all()
    assert (filled[plain >= 1e-10] == plain[plain >= 1e-10]).all()
    assert (plain < 1e-10).any()
