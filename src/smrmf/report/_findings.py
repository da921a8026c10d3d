"""The result in sentences: what was found, and how firm it is, for people who have not fitted it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smrmf.report._evidence import Halves, found_in_halves
from smrmf.report._profiles import Contrast, Profiles
from smrmf.report._subject import Subject
from smrmf.report._words import count, percent, score

# From these on clusterings agree well, fairly, and hardly (adjusted Rand index).
FIRM = [(0.9, "very firm"), (0.8, "firm"), (0.6, "fairly firm"), (-1.0, "not firm")]
# A row is sure from here on, and below this lies at a boundary.
SURE, BOUNDARY = 0.9, 0.6
# Clusters are about equally large if the smallest has this share of the largest.
EVEN = 0.9
# So large a contrast, in shares of rows or of pairs of them, is worth to be said first of a cluster.
HEADLINE = 0.33
# A cluster that keeps fewer of its rows in another half of them is hardly found again.
HARDLY = 0.5


@dataclass(frozen=True)
class Findings:
    """Sentences: the two of the result, how firm it is, and what to be careful about."""

    found: list[str]
    firm: list[str]
    doubts: list[str]


def findings(subject: Subject, profiles: Profiles | None, suggestion: Any) -> Findings:
    """Return what a page says first."""
    halves = found_in_halves(subject, suggestion)
    return Findings(
        found=[_how_many(subject), _what(subject, profiles)],
        firm=_firmness(subject, halves),
        doubts=_doubts(subject, suggestion, halves),
    )


def _how_many(subject: Subject) -> str:
    rows, n_clusters = count(subject.n_samples), len(subject.clusters)
    if n_clusters == 1:
        asked = getattr(subject.model, "n_clusters", None) == 1
        why = "one was asked for, and no other number was tried" if asked else "the fit has found no other"
        return f"All {rows} are in one cluster: {why}."
    return (
        f"The {rows} fall into {n_clusters} clusters: groups whose rows are more like each other than like "
        "the rest."
    )


def _what(subject: Subject, profiles: Profiles | None) -> str:
    """Say how large the largest and the smallest cluster are, and what sets them apart."""
    sizes = subject.sizes[subject.clusters]
    if len(sizes) == 1:
        return "There is no other cluster to compare it with."
    largest = subject.clusters[int(np.argmax(sizes))]
    smallest = subject.clusters[int(len(sizes) - 1 - np.argmin(sizes[::-1]))]
    if sizes.min() >= EVEN * sizes.max():
        example = _clause(largest, profiles)
        example = f"; an example is cluster {largest}{example}" if example else ""
        least = f"{sizes.min():,} to " if sizes.min() < sizes.max() else ""
        return f"They are about equally large, with {least}{count(int(sizes.max()))} each{example}."
    parts = []
    for cluster in (largest, smallest):
        size = int(subject.sizes[cluster])
        share = f"{count(size)} ({percent(size / subject.n_samples)})"
        parts.append(f"cluster {cluster}, with {share}" + _clause(cluster, profiles))
    return f"The largest is {parts[0]}; the smallest is {parts[1]}."


def _clause(cluster: int, profiles: Profiles | None) -> str:
    """Return what sets a cluster apart as the end of a sentence, if something does."""
    if profiles is None:
        return ""
    if profiles.table.is_sparse:
        words = [contrast.feature for contrast in profiles.contrasts(cluster, 3)]
        return f", where {_quoted(words)} are common" if len(words) > 1 else ""
    numbers, kinds = (
        list(filter(worth_a_headline, found))
        for found in (profiles.contrasts(cluster), profiles.kinds(cluster))
    )
    # Both strengths are differences of shares: of pairs of rows, and of rows.
    if kinds and (not numbers or kinds[0].strength > numbers[0].strength):
        word = kinds[0]
        return f", where {word.feature} in {word.here} of the rows, against {word.elsewhere} elsewhere"
    return f", {told(numbers[0])}" if numbers else ""


def worth_a_headline(contrast: Contrast) -> bool:
    """Tell whether a contrast is large, and still one as it is written."""
    return contrast.strength >= HEADLINE and (contrast.here != contrast.elsewhere or contrast.has_own_range)


def _quoted(words: list[str]) -> str:
    marked = [f"\N{LEFT DOUBLE QUOTATION MARK}{word}\N{RIGHT DOUBLE QUOTATION MARK}" for word in words]
    return ", ".join(marked[:-1]) + f" and {marked[-1]}"


def told(contrast: Contrast) -> str:
    """Return a contrast as a clause."""
    if contrast.has_own_range:
        return f"where {contrast.feature} is mostly {contrast.span}, as it seldom is elsewhere"
    word = "on average" if contrast.on_average else "typically"
    return f"where {contrast.feature} is {word} {contrast.here}, against {contrast.elsewhere} elsewhere"


def firmness_of(subject: Subject, halves: Halves | None) -> float | None:
    """Return how firm the clusters are by the weaker of what speaks for them; None where nothing is known."""
    stability = getattr(subject.model, "stability_", None)
    agreements = (stability, None if halves is None else halves.agreement)
    return min((float(found) for found in agreements if found is not None), default=None)


def firm_word(firmness: float) -> str:
    """Return how firm clusters are, in a word or two."""
    return next(word for least, word in FIRM if firmness >= least)


def _firmness(subject: Subject, halves: Halves | None) -> list[str]:
    """Say how firm the clusters are, and how sure the rows."""
    found: list[str] = []
    if len(subject.clusters) == 1:
        return found
    if (firmness := firmness_of(subject, halves)) is not None:
        found.append(f"The clusters are {firm_word(firmness)}: {_what_agrees(subject, halves)}.")
        if halves is not None and halves.weakest < HARDLY:
            found.append(f"Of the weakest cluster there, {percent(halves.weakest)} is found again.")
    if subject.confidence is not None:
        sure = int(np.count_nonzero(subject.confidence >= SURE))
        between = int(np.count_nonzero(subject.confidence < BOUNDARY))
        # What is firm as a whole may be so of rows that are all in doubt.
        firm = firmness is not None and firmness >= FIRM[1][0]
        however = firm and 2 * sure < subject.n_samples
        said = f"{'But of' if however else 'Of'} the {count(subject.n_samples)}, "
        said += (
            f"{percent(sure / subject.n_samples)} belong clearly to their cluster (confidence {SURE} or more)"
        )
        if between:
            verb = "lies" if between == 1 else "lie"
            said += f", while {between:,} {verb} at a boundary (below {BOUNDARY})"
        else:
            said += f", and none lies at a boundary (below {BOUNDARY})"
        found.append(said + ".")
    return found


def _what_agrees(subject: Subject, halves: Halves | None) -> str:
    """Say how well other clusterings of the same rows agree, and those of halves of the rows."""
    parts = []
    if (stability := getattr(subject.model, "stability_", None)) is not None:
        parts.append(f"clusterings of all rows made in other ways agree with them to {score(stability)}")
    if halves is not None:
        parts.append(
            f"{len(subject.clusters)} clusters of a random half of the rows are found again in the other "
            f"half to {score(max(halves.agreement, 0.0))}"
        )
    return ", and ".join(parts) + ", where 1 is full agreement and 0 is chance"


def _doubts(subject: Subject, suggestion: Any, halves: Halves | None) -> list[str]:
    """Say where the clusters may not be there, or not be as many."""
    found, n_clusters = [], len(subject.clusters)
    firmness = firmness_of(subject, halves)
    unclear = suggestion is not None and suggestion.n_clusters is None
    shaky = firmness is not None and firmness < FIRM[2][0] and n_clusters > 1
    if unclear:
        found.append("No number of clusters is clearly right for these rows.")
    elif suggestion is not None and int(suggestion.n_clusters) != n_clusters:
        found.append(
            f"Of the numbers of clusters compared, {int(suggestion.n_clusters)} has the best support, and "
            f"not {n_clusters}."
        )
    if unclear or shaky:
        found.append(
            "The rows may change gradually from one kind to the next: the clusters may then be cuts through "
            "a continuum, useful to sort the rows by, but not kinds of their own."
        )
    if getattr(subject.model, "converged_", True) is False:
        found.append("The fit stopped before it had settled: more iterations may change the clusters.")
    return found
