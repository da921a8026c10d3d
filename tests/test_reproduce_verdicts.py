"""Claims and targets: every verdict that a rule can give, at its edges."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import wilcoxon
from synthetic_runs import PAPER, judged, record

from smrmf_reproduce.report.claims import check_claims
from smrmf_reproduce.report.paper import TWELVE_SETS
from smrmf_reproduce.report.table import Cell
from smrmf_reproduce.report.targets import DENSE_SETS, agrees
from smrmf_reproduce.report.verdicts import (
    FAILS,
    HOLDS,
    IN_PART,
    MET,
    NOT_MET,
    UNTESTED,
    all_or_some,
    best_counts,
    compare,
    describe_comparison,
    majority_verdict,
    paired_test,
    speed_verdict,
)
from smrmf_reproduce.run.plan import PlanError


def verdict(records, name):
    (claim,) = judged(records, [claim for claim in PAPER.claims if claim["name"] == name])
    return claim


def judge_targets(records):
    return judged(records, PAPER.targets)


def comparison(acc=None, nmi=None, seconds=None, sets=TWELVE_SETS):
    """Runs of all methods at 0.5 on every set, with the given methods moved."""
    runs = []
    for data, method in product(sets, PAPER.methods):
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
        runs.append(record(data, "neighborhoods", None, experiments=["violation"], neighborhoods=before))
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
    ("name", "experiment", "param", "values", "wanted"),
    [
        ("sqrt-n", "sensitivity-k", "n_neighbors", (5, 10, 15, "sqrt"), 3),
        ("ten-percent", "sensitivity-exemplars", "exemplars", (0.1, 0.2, 0.3, 0.4, 0.5), 0),
    ],
)
def test_best_setting(name, experiment, param, values, wanted):
    others = [i for i in range(len(values)) if i != wanted]

    def judged(winners):
        runs = [
            record(data, "SMRMF", 0.5 + 0.1 * (i == best), experiments=[experiment], params={param: value})
            for data, best in zip(TWELVE_SETS, winners, strict=False)
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
        runs = [record(d, m, s, experiments=["moons"]) for (d, m), s in zip(pairs, scores, strict=False)]
        return verdict(runs, "moons").verdict

    assert judged(0.5, 0.6, 0.5, 0.6) == HOLDS
    assert judged(0.5, 0.6, 0.5, 0.504) == IN_PART
    assert judged(0.5, 0.5, 0.6, 0.5) == FAILS
    assert judged(0.5, 0.6, 0.5) == UNTESTED


@pytest.mark.parametrize(
    ("claim", "says"),
    [
        ({"judge": "fortune-teller"}, "cannot be judged"),
        ({"judge": "beats"}, "cannot be judged"),
        ({"judge": "beats", "rival": "SMURF"}, "'SMURF'"),
        ({"judge": "converges", "within": 10}, "cannot be judged"),
    ],
)
def test_a_claim_that_nobody_can_judge_is_refused(claim, says):
    check_claims(PAPER)
    wrong = replace(PAPER, claims=[{"name": "c", "statement": "So.", **claim}])
    with pytest.raises(PlanError, match=says) as refusal:
        check_claims(wrong)
    assert "\n" not in str(refusal.value)


def test_small_rules():
    assert all_or_some([True], parts=2) == UNTESTED
    assert majority_verdict(False, True) == IN_PART
    assert best_counts({"a": [0.1, 0.2], "b": [0.2, 0.2]}) == [1, 2]
    assert best_counts({}) == []


def test_wilcoxon_handles_equal_and_few_sets():
    assert paired_test([0.0] * 12) is None
    assert paired_test([0.1] * 4) is None
    assert paired_test([0.1] * 6 + [0.0] * 6) == 2 / 2**6  # ties and zeros
    assert "too few differences" in describe_comparison("x", compare({"a": 0.0}))


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
            value = PAPER.value("violation", data, f"before {q}")
            found[q] = dict(change).get((data, q), lambda v: v)(value)
        runs.append(record(data, "neighborhoods", None, experiments=["violation"], neighborhoods=found))
    return runs


def test_before_columns_target():
    def judged(*change, sets=DENSE_SETS):
        return judge_targets(before(change, sets))[0]

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
    found = {t.name: t.verdict for t in judge_targets(comparison({method: score - 0.5 + 1e-12}))}
    assert found[f"mean-{method}"] == mean
    assert found[f"above-rmnmf-{method}"] == above
    lower = {t.name: t.verdict for t in judge_targets(comparison({method: -0.1}))}
    assert lower[f"above-rmnmf-{method}"] == NOT_MET
    partial = {t.name: t.verdict for t in judge_targets(comparison(sets=TWELVE_SETS[1:]))}
    assert partial[f"mean-{method}"] == partial[f"above-rmnmf-{method}"] == UNTESTED
