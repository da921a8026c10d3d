"""Rank scores so that rounding does not decide."""

from __future__ import annotations

import numpy as np


def tie_resolution(dtype: np.dtype) -> float:
    """Return the relative difference below which two numbers count as equal."""
    return float(np.finfo(dtype).eps) ** 0.6


def best_first(scores: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of the largest scores; ties go to the lower index (paper note 7)."""
    unit = tie_resolution(scores.dtype) * max(float(scores.max()), np.finfo(scores.dtype).tiny)
    return np.argsort(-np.rint(scores / unit), kind="stable")[:count]
