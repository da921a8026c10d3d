"""What a terminal says of clusters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf.report._profiles import LEAST
from smrmf.report._table import MISSING, ReadableTable, number
from smrmf.report._words import percent, score
from smrmf.tasks._fit import FittedTable
from smrmf.tasks._results import exemplar_names

# Of a cluster between others medians may be the same: then where half of it is says more.
BETWEEN = 0.5


def cluster_sentences(fitted: FittedTable, n_exemplars: int, n_features: int) -> Iterator[list[str]]:
    """Yield for every cluster what to say of it: its size, what sets it apart, and its exemplars."""
    model = fitted.model
    for cluster, exemplars in enumerate(exemplar_names(fitted)):
        mine = model.labels_ == cluster
        size = int(mine.sum())
        lines = [f"Cluster {cluster}: {size} {'row' if size == 1 else 'rows'}"]
        if hasattr(model, "confidence_") and size < len(mine):
            lines[0] += f", confidence {score(model.confidence_[mine].mean())}"
        if size < len(mine):
            apart = ", ".join(islice(contrasts(fitted, cluster), n_features))
            lines.append(f"apart by {apart}" if apart else "no column alone sets it apart")
        if exemplars:
            called = ", ".join(map(str, exemplars[:n_exemplars]))
            lines.append(f"exemplars: {fitted.prepared.rows.title} {called}")
        yield lines


def contrasts(fitted: FittedTable, cluster: int) -> Iterator[str]:
    """Yield the features that set a cluster apart, with what is typical here and elsewhere.

    Those of which both read the same say nothing to a reader, and are left out.
    """
    prepared, profiles, mine = fitted.prepared, fitted.profiles, fitted.shown_labels == cluster
    words = set(prepared.feature_names[len(prepared.preparation.numbers_) :])
    for place in np.flatnonzero(profiles["cluster"] == cluster):
        one = {name: column[place] for name, column in profiles.items()}
        if max(abs(one["effect"]), one.get("apart", 0)) < LEAST:
            continue
        column = _column(fitted, one["feature"])
        # 1 where a row has the word: what is typical says less than how many have it. So it is of texts.
        if one["feature"] in words or prepared.preparation.is_sparse_:
            here, there = (percent((column[rows] != 0).mean()) for rows in (mine, ~mine))
        else:
            here, there = typical(one, column, mine)
        if here != there:
            yield f"{one['feature']} {here} (elsewhere {there})"


def typical(one: dict[str, Any], column: np.ndarray, mine: np.ndarray) -> tuple[str, str]:
    """Return what a column of numbers is in a cluster and elsewhere, as people read it."""
    table = ReadableTable(column[:, None], np.array([one["feature"]]), {})
    here, there, low, high = (table.written(one[part], 0) for part in ("typical", "elsewhere", "low", "high"))
    if abs(one["effect"]) < BETWEEN and one["apart"] > BETWEEN:
        return (low if low == high else f"{low} to {high}"), "seldom"
    if here == there != MISSING:  # of a column of few values, where medians say nothing
        decimals = max(int(table.decimals[0]), 0) + 1
        here, there = (number(float(np.nanmean(column[rows])), decimals) for rows in (mine, ~mine))
        return f"{here} on average", there
    return here, there


def _column(fitted: FittedTable, feature: str) -> np.ndarray:
    """Return the values of a feature as they stand in the table, gaps as NaN."""
    units = fitted.units
    if hasattr(units, "columns"):
        return np.asarray(units[feature].to_numpy(), dtype=float)
    column = units[:, [fitted.prepared.feature_names.index(feature)]]
    return np.asarray(column.toarray() if sp.issparse(column) else column, dtype=float).ravel()
