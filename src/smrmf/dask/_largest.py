"""The largest of numbers that lie in parts, by counting: again and again, each time in finer steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from dask.delayed import Delayed

from smrmf.dask._blocks import Blocks, Each, added, value
from smrmf.graph.exemplars import tie_resolution

# Steps of a count. Ranks of scores are whole numbers below the reciprocal of the resolution of doubles,
# 2.5e9, which three counts tell apart; lengths are measured in as fine steps as four do.
STEPS = 2048
COUNTS_OF_RANKS, COUNTS_OF_LENGTHS = 3, 4


class Range(NamedTuple):
    """Where the last of those wanted is: from ``least`` on, in steps of ``width``, and ``left`` of them."""

    least: int
    width: int
    left: int


def largest(scores: Blocks, count: int) -> Blocks:
    """Mark the largest scores, so many in all; ties go to earlier points (paper note 7)."""
    ranks = scores.map(ranked, scores.map(np.max).total(max))
    last = last_wanted(ranks, count, COUNTS_OF_RANKS)
    ties = ranks.map(tied, last).total(np.concatenate)
    return ranks.map(marked, last, ties, Each(range(len(ranks))))


def median(values: Blocks, n: int) -> Delayed:
    """Return the median of so many numbers that are not negative: the upper one of two in the middle."""
    most = values.map(np.max).total(max)
    steps = values.map(in_steps, most)
    return value(back_from_steps, last_wanted(steps, (n + 1) // 2, COUNTS_OF_LENGTHS), most)


def last_wanted(numbers: Blocks, count: int, n_counts: int) -> Delayed:
    """Return the range of one number that has the last of so many, from the largest on."""
    within = value(Range, 0, STEPS ** (n_counts - 1), count)
    for _ in range(n_counts):
        within = value(narrowed, numbers.map(counted, within).total(added), within)
    return within


def ranked(scores: np.ndarray, most: float) -> np.ndarray:
    """Return scores as whole numbers, such that nearly equal ones are equal."""
    unit = tie_resolution(scores.dtype) * max(float(most), float(np.finfo(scores.dtype).tiny))
    return np.rint(scores / unit).astype(np.int64)


def in_steps(values: np.ndarray, most: float) -> np.ndarray:
    """Return numbers in the finest steps that counts tell apart."""
    unit = max(float(most), float(np.finfo(values.dtype).tiny)) / (STEPS**COUNTS_OF_LENGTHS - 1)
    return (values.astype(np.float64) / unit).astype(np.int64)


def back_from_steps(within: Range, most: float) -> float:
    return (within.least + 0.5) * float(most) / (STEPS**COUNTS_OF_LENGTHS - 1)


def counted(numbers: np.ndarray, within: Range) -> np.ndarray:
    """Count the numbers in every step of a range."""
    steps = (numbers - within.least) // within.width
    return np.bincount(steps[(steps >= 0) & (steps < STEPS)], minlength=STEPS)


def narrowed(counts: np.ndarray, within: Range) -> Range:
    """Return the step that has the last of those wanted, as a range of finer steps."""
    from_above = np.cumsum(counts[::-1])[::-1]
    step = int(np.flatnonzero(from_above >= within.left)[-1])
    left = within.left - int(from_above[step] - counts[step])
    return Range(within.least + step * within.width, max(within.width // STEPS, 1), left)


def tied(ranks: np.ndarray, last: Range) -> np.ndarray:
    return np.array([np.count_nonzero(ranks == last.least)])


def marked(ranks: np.ndarray, last: Range, ties: np.ndarray, part: int) -> np.ndarray:
    """Mark those above the last rank, and of those that have it as many as earlier parts have left."""
    chosen = ranks > last.least
    left = max(0, last.left - int(ties[:part].sum()))
    chosen[np.flatnonzero(ranks == last.least)[:left]] = True
    return chosen
