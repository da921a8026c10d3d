"""The paper's claims and the targets of this reproduction, judged by rules written down beside each verdict.

What is claimed stands in the plan, as statements with the name of a judge and what it is about. A judge is a
function of the tables.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from smrmf_reproduce.report import analysis_claims as analysis
from smrmf_reproduce.report import score_claims as scores
from smrmf_reproduce.report import targets
from smrmf_reproduce.report.paper import Paper
from smrmf_reproduce.report.table import Tables
from smrmf_reproduce.report.verdicts import Claim, Judgement
from smrmf_reproduce.run.plan import PlanError

JUDGES: dict[str, Callable[..., Judgement]] = {
    "best-on-average": scores.best_on_average,
    "beats": scores.beats,
    "faster": scores.faster,
    "better-on-moons": scores.better_on_moons,
    "fewer-bad-neighbors": analysis.fewer_bad_neighbors,
    "purer-neighborhoods": analysis.purer_neighborhoods,
    "best-setting": analysis.best_setting,
    "converges": analysis.converges,
    "before-columns": targets.before_columns,
    "mean-accuracy": targets.mean_accuracy,
    "above": targets.above,
}


def judge_claims(claims: Sequence[Mapping[str, Any]], tables: Tables, paper: Paper) -> tuple[Claim, ...]:
    """Return every claim with its verdict on the runs behind ``tables``."""
    return tuple(
        Claim(claim["name"], claim["statement"], *JUDGES[claim["judge"]](tables, paper, **_arguments(claim)))
        for claim in claims
    )


def check_claims(paper: Paper) -> None:
    """Refuse claims that nobody here could judge, before anything runs."""
    for claim in (*paper.claims, *paper.targets):
        try:
            arguments = _arguments(claim)
            # Binding checks names and number of arguments without calling: a mistake in a plan shows before
            # hours of runs and not after them.
            inspect.signature(JUDGES[claim["judge"]]).bind(None, paper, **arguments)
            claim["name"], claim["statement"], paper.ours[0]
        except (KeyError, TypeError, IndexError) as error:
            raise PlanError(
                f"The plan has a claim that cannot be judged: {dict(claim)} ({error})."
            ) from error
        unknown = {arguments[role] for role in ("method", "rival") if role in arguments} - set(paper.columns)
        if unknown:
            raise PlanError(f"The plan has a claim on {unknown.pop()!r}, which is none of its methods.")


def _arguments(claim: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a claim tells its judge."""
    return {name: value for name, value in claim.items() if name not in ("name", "statement", "judge")}
