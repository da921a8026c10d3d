"""Made-up runs of every experiment, for tests of the report: plausible values, the real record's shape."""

from __future__ import annotations

import hashlib
import json
from itertools import product

import numpy as np

from smrmf_reproduce.report.claims import judge_claims
from smrmf_reproduce.report.paper import REAL_SETS, Paper
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.tables import BUILDERS, build_tables
from smrmf_reproduce.run.plan import Plan

PLAN = Plan.read()
PAPER = Paper.of(PLAN)

WEIGHTS = (0.001, 0.01, 0.1, 1.0)
READINGS = ("penalty 1, no fill", "penalty 0.1, fill 0.1")
# The sets on which other readings are run too, and the methods that have open choices.
READ_SETS = ("sonar", "ionosphere", "movement", "coil-5", "musk1", "wave")
READ_METHODS = tuple(PLAN.names(["loop"]))
LOOP = tuple(name for name in READ_METHODS if name != "DPP")  # without chance
# The methods whose printed cells choose the reading, and the name under which the published one stands there.
JUDGES = ("RMNMF", "AMRMF", "DPP", "IPM")
MAIN_AS_NAMED = "penalty 0.01, fill 0.1"
SIZES = {
    "wave": (600, 21, 3),
    "ionosphere": (350, 33, 2),
    "movement": (330, 90, 15),
    "musk1": (476, 166, 2),
    "20-news": (5020, 1800, 20),
    "gordon": (181, 12533, 2),
    "2d-moons": (500, 2, 2),
    "10d-moons": (500, 10, 2),
}


def record(data, method, accuracy=0.5, **changes):
    """One run; ``changes`` replace any field, ``status="failed"`` empties the scores.

    ``experiments`` names some, and ``reading`` the reading in all of them; or it has the readings of each.
    """
    n, d, c = SIZES.get(data, (400, 60, 5))
    run = {
        "data": data,
        "method": method,
        "params": {},
        "settings": {},
        "seed": 0,
        "experiments": ["comparison"],
        "reading": "main",
        "status": "done",
        "error": None,
        "seconds": 1.0,
        "spent": 1.0,
        "peak_memory": 200.0,
        "n_samples": n,
        "n_features": d,
        "n_classes": c,
        "accuracy": accuracy,
        "nmi_max": accuracy,
        "nmi_arithmetic": accuracy,
        "objective": 12.5,
        "n_iter": 120,
        "converged": True,
        "history": None,
        "neighborhoods": None,
        "picture": None,
        "versions": {"smrmf": "0.1.0"},
        "machine": {"cores": 2},
        "started": "2025-01-01T00:00:00",
    } | changes
    if run["status"] == "failed":
        run |= {"accuracy": None, "nmi_max": None, "objective": None, "neighborhoods": None, "history": None}
        run["error"] = run["error"] or "ValueError: it went wrong"
    reading = run.pop("reading")
    if not isinstance(run["experiments"], dict):
        run["experiments"] = dict.fromkeys(run["experiments"], (reading,))
    identity = [run[name] for name in ("data", "method", "params", "settings", "seed", "experiments")]
    run["key"] = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    return run


def repeats(run, accuracies, **changes):
    """Repeats of a run, as the plan has them: the same grid point from starts that hardly differ."""
    settings = run["settings"] | {"perturbation": 1e-10}
    common = {"params": run["params"], "settings": settings, "experiments": ["repeats"]} | changes
    return [
        record(run["data"], run["method"], accuracy, seed=seed, **common)
        for seed, accuracy in enumerate(accuracies, start=1)
    ]


def every_experiment(seed=0):
    """All experiments on all sets but OVA_Colon, with gordon: what a complete reproduction yields."""
    rng = np.random.default_rng(seed)
    sets = [data for data in REAL_SETS if data != "ova-colon"]
    runs = []
    for data, method in product([*sets, "gordon"], PAPER.methods):
        runs += _comparison(rng, data, method)
    runs += _repeats(rng, runs)
    for data, method, reading in product(READ_SETS, READ_METHODS, READINGS):
        score = _near(rng, data, method, 0.08)
        serves = {"readings": (reading,)} | ({"choice-of-reading": (reading,)} if method in JUDGES else {})
        kept = {"params": {"manifold_weight": 0.1}, **_loop(rng, method)}
        runs += [record(data, method, score, nmi_max=score / 2, experiments=serves, **kept)]
    for data in sets:
        runs += _sensitivity(rng, data) + _without_labels(rng, data)
    for data, reading in product(READ_SETS, READINGS):
        runs += _sensitivity(rng, data, reading)
    for data in [*sets, "gordon", "2d-moons", "10d-moons"]:
        shares = {"bad_nn": _printed("violation", data, "before bad_nn") + rng.normal(0, 0.003)}
        shares["bad_nbh"] = _printed("violation", data, "before bad_nbh")
        shares |= {q: PAPER.value("violation", data, f"before {q}") for q in ("sim_good", "sim_bad")}
        runs.append(
            record(data, "neighborhoods", None, nmi_max=None, experiments=["violation"], neighborhoods=shares)
        )
    return runs + _moons(rng)


def _printed(table, data, quantity):
    value = PAPER.value(table, data, quantity)
    return 0.4 if value is None else value


def _near(rng, data, method, spread=0.05):
    return float(np.clip(_printed("acc", data, method) + rng.normal(0, spread), 0.05, 0.99))


def _comparison(rng, data, method):
    runs = []
    seeds = range(3 if PLAN.method(method, data).seeds > 1 else 1)
    score = _near(rng, data, method)
    points = [{"manifold_weight": a, "selection_weight": b} for a, b in product(WEIGHTS[1:], WEIGHTS[2:])]
    if method in ("NMF", "DS3"):
        points = [{}]
    for params, run_seed in product(points, seeds):
        here = float(np.clip(score - abs(rng.normal(0, 0.05)), 0.03, 0.99))
        fixed = params in ({}, {"manifold_weight": 0.1, "selection_weight": 0.1})
        serves = _served(data, method) if fixed else {"comparison": ("main",)}
        extra = _loop(rng, method) if "MF" in method and method not in ("NMF", "GNMF") else {}
        runs.append(
            record(
                data,
                method,
                here,
                params=params,
                seed=run_seed,
                experiments=serves,
                nmi_max=max(here - 0.15, 0.01),
                seconds=float(_printed("run-time", data, method) * rng.uniform(0.05, 0.2)),
                **extra,
            )
        )
    return runs


def _served(data, method):
    """The experiments that the one point of the short grid serves, with the readings in each."""
    serves = {"comparison": ("main",), "no-labels": ("main",)}
    if data in READ_SETS and method in READ_METHODS:
        serves["readings"] = ("main",)
    if data in READ_SETS and method in JUDGES:
        serves["choice-of-reading"] = ("main", MAIN_AS_NAMED)
    return serves


def _repeats(rng, runs):
    """Repeats of the best run by accuracy, which is the best by NMI too, of every cell of the loop."""
    best = {}
    for run in runs:
        cell = run["data"], run["method"]
        if run["method"] in LOOP and run["accuracy"] > best.get(cell, {"accuracy": 0})["accuracy"]:
            best[cell] = run
    made = []
    for run in best.values():
        draws = np.clip(run["accuracy"] - 0.01 + rng.normal(0, rng.gamma(1, 0.01), 5), 0.05, 0.99)
        again = repeats(run, draws.tolist())
        made += [each | {"nmi_max": max(each["accuracy"] - 0.15, 0.01)} for each in again]
    return made


def _loop(rng, method):
    n_iter = int(rng.integers(60, 700))
    steps = np.arange(1, n_iter + 1)
    history = 40 + 160 * np.exp(-steps / 25) + 25 * (1 - np.exp(-steps / 80))
    shares = {"selected": float(rng.uniform(0.05, 0.5)), "bad_nbh": float(rng.uniform(0, 0.4))}
    shares["other"] = shares["selected"] + float(rng.normal(0.07, 0.07))
    kept = shares if "neighborhoods" in PLAN.method(method, "").record else None
    return {"history": history.tolist(), "n_iter": n_iter, "neighborhoods": kept}


def _sensitivity(rng, data, reading="main"):
    base = _near(rng, data, "SMRMF")
    runs = []
    for experiment, name, values in (
        ("sensitivity-k", "n_neighbors", (5, 10, 15, "sqrt")),
        ("sensitivity-exemplars", "exemplars", (0.1, 0.2, 0.3, 0.4, 0.5)),
    ):
        for value in values:
            params = {"manifold_weight": 0.1, "selection_weight": 0.1, name: value}
            score = base + rng.normal(0, 0.03)
            runs.append(
                record(data, "SMRMF", score, params=params, experiments=[experiment], reading=reading)
            )
    return runs


def _without_labels(rng, data):
    defaults = [f"{name} (default)" for name in (*PAPER.ours, PAPER.baseline)]
    names = [*defaults, *PLAN.names(["usual"])]
    return [record(data, name, _near(rng, data, "RMNMF"), experiments=["no-labels"]) for name in names]


def _moons(rng):
    runs = []
    angle = np.pi * rng.random(500)
    classes = np.repeat([0, 1], 250)
    flip = np.where(classes == 0, 1.0, -1.0)
    points = np.c_[flip * np.cos(angle) + classes, flip * np.sin(angle) + 0.5 * classes]
    points += rng.normal(0, 0.08, points.shape)
    near = np.argsort(((points[:, None] - points) ** 2).sum(2), axis=1)[:, 1:23]
    for data, method in product(("2d-moons", "10d-moons"), ("RMNMF", "SMRMF")):
        right = _printed("two-moons", data, f"{method} ACC")
        labels = np.where(rng.random(500) < right, classes, 1 - classes)
        exemplars = sorted(rng.choice(500, 50, replace=False).tolist()) if method == "SMRMF" else []
        rows = exemplars or range(500)
        edges = [[i, int(j), round(float(rng.random() ** 2), 4)] for i in rows for j in near[i]]
        picture = {
            "points": points.round(4).tolist(),
            "classes": classes.tolist(),
            "labels": labels.tolist(),
            "edges": edges,
            "exemplars": exemplars,
        }
        shares = {"selected": 0.02, "other": 0.05, "bad_nbh": 0.0} if method == "SMRMF" else None
        kept = {"params": {"manifold_weight": 0.1}, "neighborhoods": shares}
        both = ["moons", "moons-readings"]
        runs.append(record(data, method, right, picture=picture, experiments=both, **kept))
        for reading in READINGS:
            score = float(np.clip(right + rng.normal(0, 0.05), 0.5, 0.99))
            runs.append(record(data, method, score, experiments=both[1:], reading=reading, **kept))
    return runs


def results(records, **more):
    return Results(records, PAPER, **more)


def table(name, records):
    return BUILDERS[name](results(records))


def tables(records):
    return build_tables(results(records))


def judged(records, claims):
    return judge_claims(claims, tables(records), PAPER)


def cell(built, row, column):
    return built.row(row)[column]
