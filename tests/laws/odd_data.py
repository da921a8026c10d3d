"""Points that no method was made for, and the fits of every case to them."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from cases import Case
from scipy.linalg import block_diag
from support import quietly

SOME = np.random.default_rng(0).normal(size=(30, 4))
ODD = {
    "constant": np.ones((20, 3)),
    "constant, many features": np.ones((20, 40)),
    "zeros": np.zeros((20, 3)),
    "zeros, many features": np.zeros((50, 40)),
    "zero rows": np.vstack([np.zeros((5, 4)), SOME]),
    "zero columns": np.hstack([np.zeros((30, 5)), SOME]),
    "one feature": np.linspace(-1, 1, 25)[:, None],
    "two features": SOME[:, :2],
    "duplicates": np.repeat(SOME[:8], 5, axis=0),
    "two groups of duplicates": np.repeat([[0.0, 1.0], [4.0, 5.0]], 15, axis=0),
    "orthogonal": np.eye(12),
    "one entry": np.eye(20, 5) * np.eye(20, 1),
    "separate blocks": block_diag(np.ones((10, 3)), np.ones((9, 4)) * 2),
    "ten points": SOME[:10],
    "integers": np.arange(60).reshape(20, 3) % 7,
    "booleans": SOME > 0,
    "negative": -abs(SOME),
    "far from the origin": SOME + 1e6,
    "very far from the origin": SOME + 1e8,
    "one huge outlier": np.vstack([SOME, [[1e9, 0, 0, 0]]]),
    "wide": np.random.default_rng(1).normal(size=(12, 400)),
    "wide, low rank": SOME[:12, :2] @ np.random.default_rng(2).normal(size=(2, 400)),
    "tiny": SOME * 1e-300,
    "huge": SOME * 1e300,
}


class OddFit(NamedTuple):
    """What was fitted, to which data, and what the fit said."""

    model: Any
    X: np.ndarray
    said: list[str]


@cache
def odd_fit(case: Case, odd: str, dtype: type) -> OddFit:
    """Fit the estimator of a case to odd data, in single precision for a few iterations only."""
    X = case.data(ODD[odd] * 1)
    single = dtype is np.float32
    if single:  # which has smaller limits
        X = (X * {"tiny": 1e280, "huge": 1e-280}.get(odd, 1)).astype(dtype)
    model = case.make(**{"max_iter": 60} if single and case.has("max_iter") else {})
    return OddFit(model, X, [str(w.message) for w in quietly(model.fit, X)])
