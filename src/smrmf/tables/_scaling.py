"""In which unit columns are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from smrmf.tables._decisions import Decision

# Fewer columns are hardly ever of one kind.
MANY_COLUMNS = 20
# In one unit no range is much above the usual one; some may be far below, as those of pixels at the border.
MOST_ABOVE, MOST_BELOW, SHARE_BELOW = 3, 10, 0.1


class Scaling(NamedTuple):
    """What is taken from numbers, what they are divided by, and what stands for a word; and a sentence."""

    offsets: np.ndarray
    divisors: np.ndarray
    word_weight: float
    note: str


def scaling(scale: str, numbers: Sequence[Decision], with_words: bool) -> Scaling:
    """Return the scaling of the columns of numbers, and the weight of words beside them."""
    low, high, mean, deviation = (
        np.array([getattr(column, part) for column in numbers], dtype=np.float64)
        for part in ("low", "high", "mean", "deviation")
    )
    note = ""
    if scale == "auto":
        scale = "none" if not with_words and in_one_unit(high - low) else "standard"
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
    return Scaling(offsets, divisors, _word_weight(deviation / divisors), note)


def in_one_unit(ranges: np.ndarray) -> bool:
    """Tell whether columns look as if they were in one unit: many, and none varies much more than most do."""
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
