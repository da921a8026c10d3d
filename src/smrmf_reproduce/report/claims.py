"""The paper's claims, judged on our runs by rules written down beside each verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from smrmf_reproduce.report import analysis_claims as analysis
from smrmf_reproduce.report import score_claims as scores
from smrmf_reproduce.report.table import Table
from smrmf_reproduce.report.verdicts import Claim

JUDGES: tuple[Callable[[Mapping[str, Table]], Claim], ...] = (
    scores.best_on_average,
    scores.kernel_beats_euclidean,
    scores.selection_beats_none,
    scores.selection_beats_rmnmf,
    scores.fast_at_equal_quality,
    analysis.fewer_bad_neighbors,
    analysis.purer_neighborhoods,
    analysis.sqrt_n_neighbors,
    analysis.ten_percent_exemplars,
    analysis.converges,
    scores.moons,
)


def judge_claims(tables: Mapping[str, Table]) -> list[Claim]:
    """Return every claim of the paper with its verdict on the runs behind ``tables``."""
    return [judge(tables) for judge in JUDGES]
