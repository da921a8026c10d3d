"""In which unit columns are compared, and how much columns of few values weigh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from smrmf.tables._decisions import Decision

# Fewer columns are hardly ever of one kind.
MANY_COLUMNS = 20
# In one unit no range is much above the usual one; some may be far below, as those of pixels at the border.
MOST_ABOVE, MOST_BELOW, SHARE_BELOW = 3, 10, 0.1
# Another word, or the next of few values, is at most so far as a neighbour by measures, here the tenth.
STEP_SHARE, NEIGHBORS = 0.7, 10
ASKED_ROWS, BLOCK_ROWS = 128, 8192


class Scaling(NamedTuple):
    """What is taken from numbers, what they are divided by, and what stands for a word; and a sentence."""

    scale: str
    offsets: np.ndarray
    divisors: np.ndarray
    word_weight: float
    note: str


def scaling(
    scale: str, numbers: Sequence[Decision], n_words: int, column: Callable[[int], np.ndarray]
) -> Scaling:
    """Return the scaling of the columns of numbers, and the weight of ``n_words`` columns beside them.

    ``column`` gives the values of a column of numbers by its place, missing ones filled.
    """
    low, high, mean, deviation = (
        np.array([getattr(column, part) for column in numbers], dtype=np.float64)
        for part in ("low", "high", "mean", "deviation")
    )
    note, is_auto = "", scale == "auto"
    if is_auto:
        scale = "none" if not n_words and in_one_unit(high - low) else "standard"
        if scale == "none":
            note = (
                f"The {len(numbers)} columns have about the same range, as pixels or counts: they are used "
                "in their own unit (scale='standard' makes all weigh the same)."
            )
        elif len(numbers):
            note = (
                "Numbers are scaled to mean 0 and standard deviation 1, so that units do not matter "
                "(scale='none' keeps them)."
            )
    unscaled = np.zeros(len(numbers)), np.ones(len(numbers))
    offsets, divisors = {"standard": (mean, deviation), "minmax": (low, high - low), "none": unscaled}[scale]
    # Rounding may leave nothing of the deviation of large numbers that hardly differ.
    divisors = np.where(divisors > 0, divisors, 1.0)
    chosen = Scaling(scale, offsets, divisors, _word_weight(deviation / divisors), note)
    return _with_light_steps(chosen, numbers, n_words, column) if is_auto and scale != "none" else chosen


def _with_light_steps(
    chosen: Scaling, numbers: Sequence[Decision], n_words: int, column: Callable[[int], np.ndarray]
) -> Scaling:
    """Return a scaling with which words and few values do not part rows that are alike by measures.

    With the weight of a measure a word parts all neighbourhoods where measures are few: two rows that are
    alike but for it are farther from each other than any neighbour is, and clusters follow the word alone.
    Where measures are the minority, the others are what the table is about, and keep their weight.
    """
    steps = np.array([decision.step for decision in numbers])
    measures = [place for place, step in enumerate(steps) if step == 0]
    n_others = len(steps) - len(measures) + n_words
    if not n_others or len(measures) < max(2, n_others):
        return chosen
    farthest = STEP_SHARE * _neighbor_distance(
        [(column(place) - chosen.offsets[place]) / chosen.divisors[place] for place in measures]
    )
    lighter = np.maximum(1.0, steps / chosen.divisors / farthest) if farthest > 0 else np.ones(len(steps))
    weight = min(chosen.word_weight, farthest / np.sqrt(2)) if farthest > 0 else chosen.word_weight
    if weight == chosen.word_weight and (lighter == 1).all():
        return chosen
    note = (
        f"{chosen.note} Words and columns of few values weigh less, so that they do not part rows that are "
        "alike otherwise (scale='standard' gives them the weight of the others)."
    )
    return chosen._replace(divisors=chosen.divisors * lighter, word_weight=weight, note=note)


def _neighbor_distance(columns: Sequence[np.ndarray]) -> float:
    """Return the usual distance of a row to its tenth nearest, by the given columns."""
    n = len(columns[0])
    asked = np.unique(np.linspace(0, n - 1, ASKED_ROWS).astype(int))
    queries = np.column_stack([column[asked] for column in columns])
    # A row is its own nearest.
    count = min(NEIGHBORS + 1, n)
    nearest = np.full((len(asked), count), np.inf)
    for start in range(0, n, BLOCK_ROWS):
        block = np.column_stack([column[start : start + BLOCK_ROWS] for column in columns])
        nearest = np.sort(np.hstack([nearest, cdist(queries, block)]), axis=1)[:, :count]
    return float(np.median(nearest[:, -1]))


def with_still_columns(decisions: Sequence[Decision]) -> Sequence[Decision]:
    """Return decisions that keep columns of one value where all columns look as if they were in one unit.

    Elsewhere such a column says nothing. A pixel that is dark in every row is a part of the picture: without
    it no row can be drawn, and new rows may light it.
    """
    used = [decision for decision in decisions if decision.role != "left out"]
    ranges = np.array([decision.high - decision.low for decision in used])
    if any(decision.role == "words" for decision in used) or not in_one_unit(ranges):
        return decisions
    low, high = min(decision.low for decision in used), max(decision.high for decision in used)
    return [
        replace(decision, role="numbers", reason="", does="")
        if decision.reason == "constant" and not decision.n_missing and low <= decision.low <= high
        else decision
        for decision in decisions
    ]


def in_one_unit(ranges: np.ndarray) -> bool:
    """Tell whether columns look as if they were in one unit: many, and none varies much more than most do."""
    ranges = ranges[ranges > 0]  # what is the same in every row may be in any
    if len(ranges) <= MANY_COLUMNS:
        return False
    usual = np.median(ranges)
    return bool(ranges.max() <= MOST_ABOVE * usual and usual <= MOST_BELOW * np.quantile(ranges, SHARE_BELOW))


def _word_weight(deviations: np.ndarray) -> float:
    """Return what stands for a word in its column, so that a mismatch is as far as one standard deviation.

    Rows with different words differ in two columns, by the weight w each, and so by w sqrt(2) in all. A row
    without a word, or with one that the fit has not seen, has zeros, and is less far from all: by w.
    """
    usual = float(np.median(deviations)) if len(deviations) else 1.0
    return usual / np.sqrt(2)
