"""Tables of clusterings that were scored: means with their spread, paired differences, and regret."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import wilcoxon
from timing_and_tables import table_line

MEASURES = ("accuracy", "nmi", "ari")
TITLE, WIDTH = 20, 16


class Score(NamedTuple):
    """How good the labels of one method are on one table, for one seed."""

    group: str
    case: str
    seed: int
    method: str
    accuracy: float
    nmi: float
    ari: float
    seconds: float


def table_of(scores: list[Score], methods: list[str], measure: str) -> np.ndarray:
    """Return cases x methods x seeds, NaN where a score is missing."""
    cases = sorted({score[:2] for score in scores})
    seeds = max(score.seed for score in scores) + 1
    table = np.full((len(cases), len(methods), seeds), np.nan)
    for score in scores:
        if score.method in methods:
            value = getattr(score, measure)
            table[cases.index(score[:2]), methods.index(score.method), score.seed] = value
    return table


def print_tables(scores: list[Score], methods: list[str]) -> None:
    """Print all tables; the first method is compared with every other."""
    groups = list(dict.fromkeys(score.group for score in scores))
    for measure in MEASURES:
        print(f"\n{measure}: mean over the sets of a group, ± its standard deviation over the seeds")
        print(table_line("", methods, TITLE, WIDTH))
        for group in groups:
            table = table_of([score for score in scores if score.group == group], methods, measure)
            means = table.mean(axis=0)
            cells = [f"{row.mean():.3f} ± {row.std():.3f}" for row in means]
            print(table_line(f"{group} ({len(table)})", cells, TITLE, WIDTH))
    print_differences(scores, methods, groups)
    print_regret(scores, methods)
    print("\nseconds of a fit, in the median over the sets of a group (UMAP+GMM without UMAP)")
    print(table_line("", methods, TITLE, WIDTH))
    for group in groups:
        table = table_of([score for score in scores if score.group == group], methods, "seconds").mean(axis=2)
        print(table_line(group, [f"{value:.2f}" for value in np.median(table, axis=0)], TITLE, WIDTH))


def print_differences(scores: list[Score], methods: list[str], groups: list[str]) -> None:
    """Print how much better the first method is, set by set, and how often chance would do as much."""
    print(f"\naccuracy of {methods[0]} less that of a peer, and the p value of Wilcoxon's signed-rank test")
    print(table_line("", methods[1:], TITLE, WIDTH))
    for group in [*groups, "all"]:
        chosen = [score for score in scores if group in (score.group, "all")]
        table = table_of(chosen, methods, "accuracy").mean(axis=2)
        cells = []
        for peer in range(1, len(methods)):
            gain = table[:, 0] - table[:, peer]
            p = wilcoxon(gain).pvalue if np.any(gain) else 1.0
            cells.append(f"{gain.mean():+.3f} {p:.0e}" if p < 0.01 else f"{gain.mean():+.3f} {p:.2f}")
        print(table_line(group, cells, TITLE, WIDTH))


def print_regret(scores: list[Score], methods: list[str]) -> None:
    """Print how far every method is behind the best one of each set, on average and at worst."""
    print("\nregret: accuracy behind the best method of a set")
    print(table_line("", methods, TITLE, WIDTH))
    cases = sorted({score[:2] for score in scores})
    table = table_of(scores, methods, "accuracy").mean(axis=2)
    regret = table.max(axis=1, keepdims=True) - table
    print(table_line("mean", [f"{value:.3f}" for value in regret.mean(axis=0)], TITLE, WIDTH))
    print(table_line("worst", [f"{value:.3f}" for value in regret.max(axis=0)], TITLE, WIDTH))
    for place, method in enumerate(methods):
        group, name = cases[int(np.argmax(regret[:, place]))]
        print(f"  worst of {method}: {name} ({group})")
