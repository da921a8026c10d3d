"""Kernels as one would write them first: what ``kernels.py`` compares the hand-tuned ones with.

They are compiled with the settings of the library. Functions that return a kernel build it from its parts,
so that two forms differ in one part only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from smrmf._numba import FASTMATH

compiled = njit(nogil=True, fastmath=FASTMATH)


@compiled
def smallest_in_one_chain(values):
    """Return the smallest entry by one chain of comparisons, each of which waits for the one before."""
    smallest = values[0]
    for q in range(1, values.shape[0]):
        smallest = min(smallest, values[q])
    return smallest


def columns_solver(smallest_entry: Callable[..., Any], simplex_threshold: Callable[..., Any]) -> Any:
    """Return ``solve_columns`` with another way to find the smallest entry of a column."""

    @compiled
    def solve_columns(indptr, dissimilarity, delta, outside, z, level):
        longest = 0
        for j in range(indptr.shape[0] - 1):
            longest = max(longest, indptr[j + 1] - indptr[j])
        shifted = np.empty(longest, dissimilarity.dtype)
        active = np.empty(longest, dissimilarity.dtype)
        certified = 0
        for j in range(indptr.shape[0] - 1):
            start = indptr[j]
            size = indptr[j + 1] - start
            smallest = smallest_entry(dissimilarity[start : start + size])
            for q in range(size):
                # The largest entry is zero, or a sum of 1 would be lost beside large entries.
                shifted[q] = (smallest - dissimilarity[start + q]) / delta[j]
            theta = simplex_threshold(shifted[:size], 1.0, active)
            for q in range(size):
                z[start + q] = max(shifted[q] - theta, 0.0)
            # nu of z = max(nu - d, 0) / delta, brought back from the shift and the scale.
            level[j] = smallest - delta[j] * theta
            certified += level[j] <= outside[j]
        return certified

    return solve_columns


@compiled
def keep_by_branch(source, stride, bound, target):
    """Copy every ``stride``-th entry above the bound; return how many."""
    kept = 0
    for i in range(0, source.shape[0], stride):
        if source[i] > bound:
            target[kept] = source[i]
            kept += 1
    return kept


@compiled
def keep_by_storing(source, stride, bound, target):
    """Return what :func:`keep_by_branch` does, without a branch: store every entry, count those that stay."""
    kept = 0
    for i in range(0, source.shape[0], stride):
        target[kept] = source[i]
        kept += source[i] > bound
    return kept


def michelot(strides: tuple[int, ...], keep: Callable[..., Any]) -> Any:
    """Return Michelot's simplex threshold, which looks at every stride-th entry first for a bound."""

    @compiled
    def simplex_threshold(y, radius, active):
        # A lower bound, as the largest entry is zero. So is the theta of any subset of the entries: sums over
        # fewer non-negative terms need a lower theta to reach the radius.
        theta = -radius
        for stride in strides:
            n_active = keep(y, stride, theta, active)
            while n_active > 0:
                total = 0.0
                for a in range(n_active):
                    total += active[a]
                theta = (total - radius) / n_active
                # In place: entries move to the front only, never over one that is still to be read.
                kept = keep(active[:n_active], 1, theta, active)
                # None is left if the radius is zero or lost in rounding.
                if kept == n_active or kept == 0:
                    break
                n_active = kept
        return theta

    return simplex_threshold


def over_rows(simplex_threshold: Callable[..., Any]) -> Any:
    """Return a kernel that finds the threshold of every row."""

    @compiled
    def thresholds(Y, radius, active, out):
        for r in range(Y.shape[0]):
            out[r] = simplex_threshold(Y[r], radius, active)

    return thresholds
