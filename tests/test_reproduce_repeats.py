"""Repeats of the best grid point: which runs they are, from which starts, and that they follow the others."""

from __future__ import annotations

import io
import json
import tomllib
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from smrmf import datasets, nndsvd
from smrmf_reproduce.command import Request, describe, reproduce
from smrmf_reproduce.run.best import best_point
from smrmf_reproduce.run.measure import failed
from smrmf_reproduce.run.methods import build, changed_start
from smrmf_reproduce.run.plan import Plan, PlanError
from smrmf_reproduce.run.repeats import PERTURBATION, expected_repeats, known_repeats

pytestmark = pytest.mark.slow

TEXT = """
[names]
quick = ["2d-moons"]
[readings]
main = { penalty = 0.1, fill = 0.0 }
other = { penalty = 1.0, fill = 0.0 }
[methods.RMNMF]
estimator = "RMNMF"
readings = ["penalty", "fill"]
role = "ours"
grid = { manifold_weight = [0.01, 0.1, 1.0] }
repeats = 3
[methods.KMeans]
estimator = "KMeans"
settings = "default"
seeds = 2
[[experiments]]
name = "comparison"
data = ["2d-moons"]
methods = ["RMNMF", "KMeans"]
[[experiments]]
name = "readings"
data = ["2d-moons"]
methods = ["RMNMF"]
readings = ["main", "other"]
[quick]
grid_points = 2
seeds = 1
repeats = 2
"""


@pytest.fixture
def plan():
    return Plan(tomllib.loads(TEXT))


def done(run, accuracy, nmi):
    return failed(run, "") | {"status": "done", "error": None, "accuracy": accuracy, "nmi_max": nmi}


def compared(plan, method="RMNMF"):
    return [run for run in plan.runs if run.method == method and "comparison" in run.experiments]


def scored(plan, accuracies, nmis):
    scores = zip(compared(plan), accuracies, nmis, strict=True)
    return {run.key: done(run, *score) for run, *score in scores}


def weights(runs):
    return [(run.params["manifold_weight"], run.seed) for run in runs]


def test_the_best_point_of_each_measure_is_repeated(plan):
    found = known_repeats(plan, plan.runs, scored(plan, (0.5, 0.9, 0.6), (0.1, 0.2, 0.3)))
    assert weights(found) == [(w, seed) for w in (0.1, 1.0) for seed in (1, 2, 3)]
    for run in found:
        assert run.settings["perturbation"] == PERTURBATION
        assert run.settings["penalty"] == 0.1  # of the published reading
        assert run.experiments == {"repeats": ("main",)}
    assert not {run.key for run in found} & {run.key for run in plan.runs}


def test_a_point_that_is_best_in_both_is_repeated_once(plan):
    found = known_repeats(plan, plan.runs, scored(plan, (0.5, 0.9, 0.6), (0.1, 0.3, 0.2)))
    assert weights(found) == [(0.1, 1), (0.1, 2), (0.1, 3)]


def test_a_cell_that_is_not_complete_has_no_best_point_yet(plan):
    known = scored(plan, (0.5, 0.9, 0.6), (0.1, 0.3, 0.2))
    last = compared(plan)[-1].key
    del known[last]
    assert known_repeats(plan, plan.runs, known) == []
    assert len(expected_repeats(plan, plan.runs, known)) == 3
    # One that failed is known all the same, and does not compete.
    known[last] = failed(compared(plan)[-1], "no memory")
    assert weights(known_repeats(plan, plan.runs, known)) == [(0.1, 1), (0.1, 2), (0.1, 3)]
    assert expected_repeats(plan, plan.runs, known) == []


def test_methods_with_chance_of_their_own_are_not_repeated(plan):
    known = {run.key: done(run, 0.5, 0.5) for run in plan.runs}
    assert {run.method for run in known_repeats(plan, plan.runs, known)} == {"RMNMF"}
    assert {run.method for run in expected_repeats(plan, plan.runs, {})} == {"RMNMF"}


def test_the_best_point_on_the_moons_is_repeated_too():
    plan = Plan(tomllib.loads(TEXT.replace('name = "comparison"', 'name = "moons"')))
    known = {run.key: done(run, 0.5, 0.5) for run in plan.runs}
    assert weights(known_repeats(plan, plan.runs, known)) == [(0.01, 1), (0.01, 2), (0.01, 3)]


@pytest.mark.parametrize("more", ["repeats = 2", "[methods.KMeans.fixed]\nfill = 0.1"])
def test_a_start_that_is_not_the_svd_is_not_changed(more, tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(TEXT.replace("seeds = 2\n[[", f"seeds = 2\n{more}\n[[", 1))
    with pytest.raises(PlanError, match="start of 'KMeans', which has no init='nndsvd'"):
        reproduce(Request(output=tmp_path / "out", plan=path), Console(file=io.StringIO()))
    assert not (tmp_path / "out").exists()


def test_quick_has_fewer_repeats():
    quick = Plan(tomllib.loads(TEXT), quick=True)
    assert len(expected_repeats(quick, quick.runs, {})) == 2


def test_seeds_of_a_point_are_averaged_before_the_best_is_chosen():
    records = [
        {"params": {"w": w}, "seed": seed, "status": "done", "accuracy": accuracy}
        for w, accuracies in ((1, (0.9, 0.1)), (2, (0.6, 0.5)), (3, (1.0,)))
        for seed, accuracy in enumerate(accuracies)
    ]
    assert {run["params"]["w"] for run in best_point(records, "accuracy")} == {2}  # 3 has lost a seed
    assert best_point([], "accuracy") == []


def test_starts_differ_by_the_perturbation_and_by_the_seed(plan):
    X, _ = datasets.make_moons_paper(dim=10)
    plain = nndsvd(X, 2)
    moved = [changed_start(X, 2, 0.0, PERTURBATION, seed) for seed in (1, 2)]
    assert not np.array_equal(*moved)
    for G in moved:
        np.testing.assert_array_equal(G == 0, plain == 0)
        relative = np.abs(G[plain > 0] / plain[plain > 0] - 1)
        assert 1e-12 < np.median(relative) < relative.max() < 1e-9
    np.testing.assert_array_equal(changed_start(X, 2, 0.0, 0.0, 5), plain)
    run = known_repeats(plan, plan.runs, scored(plan, (0.5, 0.9, 0.6), (0.1, 0.3, 0.2)))[1]
    np.testing.assert_array_equal(build(run, X, 2).init, moved[1])
    # Unperturbed it is the run that it repeats.
    still = replace(run, settings=dict(run.settings) | {"perturbation": 0.0})
    same = build(compared(plan)[1], X, 2)
    np.testing.assert_array_equal(build(still, X, 2).fit(X).embedding_, same.fit(X).embedding_)


def test_repeats_follow_the_runs_and_go_on_after_a_stop(plan, tmp_path):
    path, output = tmp_path / "plan.toml", tmp_path / "out"
    path.write_text(TEXT)

    def said(page_only=False):
        text = io.StringIO()
        request = Request(output=output, plan=path)
        assert reproduce(request, Console(file=text, width=200), page_only=page_only)
        return text.getvalue()

    words = said()
    assert "8 runs, 0 of them done before." in words  # those of the plan
    n_all = len(list((output / "runs").iterdir()))
    assert n_all in (8 + 3, 8 + 6)  # one best point, or one for each measure
    assert f"{n_all} of {n_all} runs have a record" in words
    repeated = {
        path: record
        for path in (output / "runs").iterdir()
        if "perturbation" in (record := json.loads(path.read_text()))["settings"]
    }
    assert len(repeated) == n_all - 8
    # A damaged repeat is named, as any other record is, and done again.
    damaged = next(iter(repeated))
    damaged.write_text("{")
    assert f"Left out: {damaged} is no record" in said(page_only=True)
    damaged.unlink()
    listed = {tuple(row[:2]): row[2:4] for row in describe(Request(output=output, plan=path), Console())}
    assert listed["2d-moons", "RMNMF"] == (n_all - 2, n_all - 3)
    assert f"{n_all} runs, {n_all - 1} of them done before." in said()
    assert len(list((output / "runs").iterdir())) == n_all
    assert f"{n_all} of {n_all} runs have a record" in said(page_only=True)
