"""How far the neighbourhoods that a model has learned agree with the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def learned_neighborhoods(model: Any, y: np.ndarray) -> dict[str, float | None]:
    """Describe the neighbourhoods that a fitted model has learned, selected and other (paper notes 8 and 63).

    The neighbours of a point are the k = floor(sqrt(n)) largest positive entries of its row of Z, itself left
    out; a point whose row has none has no neighbourhood.

    Returns
    -------
    dict
        ``selected`` and ``other``, the mean share of neighbours with another class for exemplars and for all
        other points; ``bad_nbh``, the share of exemplars for which it is more than half.
    """
    Z = model.representation_
    n, k = len(y), int(np.sqrt(len(y)))
    mismatch = np.full(n, np.nan)
    Z = Z.tocsr() if sp.issparse(Z) else Z
    for i in range(n):
        # A copy in both cases: Z belongs to the model.
        row = Z[[i]].toarray().ravel() if sp.issparse(Z) else np.array(Z[i])
        row[i] = 0
        # Ties go to the lower index; the graph of a fit may use dissimilarities first (paper note 8).
        nearest = np.argsort(-row, kind="stable")[:k]
        # Fewer than k where Z has fewer: a zero entry is no neighbour (paper note 8).
        nearest = nearest[row[nearest] > 0]
        if len(nearest):
            mismatch[i] = (y[nearest] != y[i]).mean()
    chosen = np.zeros(n, dtype=bool)
    chosen[model.exemplar_indices_] = True
    return {
        "selected": _mean(mismatch[chosen]),
        "other": _mean(mismatch[~chosen]),
        # NaN > 0.5 is False: without np.where an empty neighbourhood would count as a good one.
        "bad_nbh": _mean(np.where(np.isnan(mismatch), np.nan, mismatch > 0.5)[chosen]),
    }


def _mean(values: np.ndarray) -> float | None:
    """Return the mean of the values that are not NaN, None if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
