"""What a comparison of several numbers of clusters says of the number that was fitted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from smrmf.inspection._table import written
from smrmf.report._subject import Subject


class Halves(NamedTuple):
    """How well as many clusters of one half of the rows are found again in the other half."""

    agreement: float  # 1 if they are the same, 0 by chance
    weakest: float  # the share of its rows that the cluster found again worst keeps


def found_in_halves(subject: Subject, suggestion: Any) -> Halves | None:
    """Return what halves of the rows say of the number fitted; None where it was not compared."""
    if suggestion is None:
        return None
    table = _columns(suggestion)
    own = np.flatnonzero(table["n_clusters"] == len(subject.clusters))
    if not len(own) or "stability" not in table:
        return None
    weakest = table.get("weakest", np.ones(len(table["stability"])))
    found = Halves(float(table["stability"][own[0]]), float(weakest[own[0]]))
    return None if np.isnan(found.agreement) else found


def evidence_of(subject: Subject, suggestion: Any) -> dict[str, Any] | None:
    """Return the table of a suggestion, with the number that was fitted marked."""
    if suggestion is None:
        return None
    table = _columns(suggestion)
    rows = []
    for number, cells in zip(table["n_clusters"], zip(*table.values(), strict=True), strict=True):
        texts = [f"{cell:.2f}" if isinstance(cell, float | np.floating) else written(cell) for cell in cells]
        rows.append({"cells": texts, "own": int(number) == len(subject.clusters)})
    shown = ["clusters" if name == "n_clusters" else name for name in table]
    return {"reason": suggestion.reason, "columns": shown, "rows": rows}


def _columns(suggestion: Any) -> dict[str, np.ndarray]:
    """Return the columns of its table by their names, of a plain one and of frames alike."""
    table = suggestion.table
    return {str(name): np.asarray(table[name]) for name in getattr(table, "columns", table)}
