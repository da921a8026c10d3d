"""Rules that turn figures into a verdict: small, explicit, and the same whatever the outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

HOLDS = "holds"
IN_PART = "holds in part"
FAILS = "does not hold"
UNTESTED = "not tested"
VERDICTS = (HOLDS, IN_PART, FAILS, UNTESTED)

MET = "met"
NOT_MET = "not met"

# Half the last digit the paper prints: averages closer than this are equal on its scale.
MARGIN = 0.005
# Fewer sets than this say nothing about "on average" or "for the majority".
MIN_SETS = 6
# A method is "much faster" from this ratio on, "faster" from the second.
MUCH_FASTER = 2.0
FASTER = 1.2
# ... and keeps its quality when no average falls by more than this.
QUALITY_LOSS = 0.01


class Judgement(NamedTuple):
    """How something is judged, and what came out."""

    rule: str
    verdict: str
    figures: str


@dataclass(frozen=True)
class Claim:
    """What the paper says, or this reproduction set out to reach, with its judgement.

    ``by_reading`` says what becomes of the verdict under other readings of what the paper leaves open.
    """

    name: str
    statement: str
    rule: str
    verdict: str
    figures: str
    by_reading: str = ""


def all_or_some(outcomes: Sequence[bool], parts: int) -> str:
    """Return "holds" if every part holds, "holds in part" if some do, "does not hold" if none.

    A claim with a part that could not be looked at is not tested: it must not pass on the rest.
    """
    if len(outcomes) < parts:
        return UNTESTED
    if all(outcomes):
        return HOLDS
    return IN_PART if any(outcomes) else FAILS


def majority(wins: int, total: int) -> bool:
    """Tell whether more than half of the sets agree."""
    # Strictly: half of the sets is no majority.
    return 2 * wins > total


def majority_verdict(agrees: bool, leads: bool) -> str:
    """Return "holds" for a majority of the sets, "holds in part" for a weaker lead, else "does not hold"."""
    if agrees:
        return HOLDS
    return IN_PART if leads else FAILS


def speed_verdict(ratio: float, losses: Sequence[float]) -> str:
    """Judge "much faster at equal quality" from the ratio of seconds and the falls of the averages."""
    kept = max(losses) <= QUALITY_LOSS
    if ratio >= MUCH_FASTER and kept:
        return HOLDS
    if ratio >= MUCH_FASTER or (ratio >= FASTER and kept):
        return IN_PART
    return FAILS


def best_counts(rows: Mapping[str, Sequence[float]]) -> list[int]:
    """Return how often each column is the best of its row; a tie counts for every column in it."""
    counts = [0] * (len(next(iter(rows.values()))) if rows else 0)
    for values in rows.values():
        top = max(values)
        for i, value in enumerate(values):
            # Means of equal accuracies may differ in the last bit.
            counts[i] += value >= top - 1e-9
    return counts


class Comparison(NamedTuple):
    """Two columns over the same data sets: mean difference, sets that gain or lose the margin, p-value."""

    mean: float
    n_higher: int
    n_lower: int
    n_sets: int
    p_value: float | None


def compare(differences: Mapping[str, float]) -> Comparison:
    """Compare two columns by their differences on every data set."""
    values = list(differences.values())
    # Differences below the margin count for neither side: the paper's two digits could not show them.
    n_higher, n_lower = sum(d >= MARGIN for d in values), sum(d <= -MARGIN for d in values)
    return Comparison(fmean(values), n_higher, n_lower, len(values), paired_test(values))


def describe_comparison(label: str, found: Comparison) -> str:
    """Return one sentence on a comparison."""
    p = found.p_value
    tested = "too few differences to test" if p is None else f"Wilcoxon p = {p:.2g}"
    sides = f"higher on {found.n_higher}, lower on {found.n_lower} of {found.n_sets} sets"
    return f"{label}: {found.mean:+.3f} on average, {sides}, {tested}"


def paired_test(differences: Sequence[float]) -> float | None:
    """Return the two-sided p-value of Wilcoxon's signed-rank test, None with fewer than five differences.

    Sets without a difference say nothing about its direction and are left out, so equal columns give None
    rather than an error. Up to 16 differences all ``2^n`` signs are tried, which is exact with ties as well;
    beyond that ``2^16`` drawn ones.
    """
    from scipy.stats import permutation_test, rankdata

    nonzero = np.array([d for d in differences if abs(d) > 1e-9])
    # The smallest two-sided p of n signs is 2 / 2^n: 0.125 for four, 0.0625 for five.
    if len(nonzero) < 5:
        return None
    # Rounded, so that differences equal up to rounding share their mean rank.
    ranks = np.sign(nonzero) * rankdata(np.abs(nonzero).round(9))
    # SciPy's wilcoxon does the same where there are ties, but takes a second instead of a hundredth. Signs
    # are flipped because under the hypothesis each difference has either sign with the same probability.
    signs = {"permutation_type": "samples", "n_resamples": 2**16, "vectorized": True, "rng": 0}
    return float(permutation_test((ranks,), np.sum, **signs).pvalue)


def sentences(texts: Sequence[str]) -> str:
    """Return the texts as sentences of one paragraph."""
    return ". ".join(text[0].upper() + text[1:] for text in texts) + "."
