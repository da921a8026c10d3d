"""The rows of exemplars: where their values lie among all others, or the words that they have."""

from __future__ import annotations

from typing import Any

import numpy as np

from smrmf.report._exemplars import ShownExemplar
from smrmf.report._map import short
from smrmf.report._profiles import Profiles
from smrmf.report._subject import Subject

# Features of a row, and of all rows together, so that wide tables do not make the page large.
MOST_FEATURES, LEAST_FEATURES, MOST_ENTRIES = 200, 12, 20_000
# Words of a text, those of the most weight.
MOST_WORDS = 40
# A place along a strip, from its left to its right end.
STEPS = 1000


def row_data(subject: Subject, profiles: Profiles, exemplars: list[ShownExemplar]) -> dict[str, Any]:
    """Return what the panel of an exemplar shows of its row."""
    words = [
        [[name, short(str(column[found.row]))] for name, column in subject.table.words.items()]
        for found in exemplars
    ]
    if subject.table.is_sparse:
        return {"words": words, "entries": [_entries(subject, found.row) for found in exemplars]}
    if not exemplars or not len(subject.table.names):
        return {"words": words}
    return {"words": words} | _strips(subject, profiles, exemplars)


def _entries(subject: Subject, row: int) -> list[list[Any]]:
    """Return the words of a row with their values, and these as shares of the largest."""
    part = subject.table.values[[row]].tocoo()
    order = np.argsort(-np.abs(part.data), kind="stable")[:MOST_WORDS]
    largest = float(np.abs(part.data).max(initial=0)) or 1.0
    return [
        [
            str(subject.table.names[part.coords[1][k]]),
            subject.table.written(part.data[k], int(part.coords[1][k])),
            round(abs(float(part.data[k])) / largest * STEPS),
        ]
        for k in order
    ]


def shown_features(profiles: Profiles, n_exemplars: int) -> np.ndarray:
    """Return the columns that rows are shown by: the telling ones of every cluster before the others."""
    most = int(np.clip(MOST_ENTRIES // max(n_exemplars, 1), LEAST_FEATURES, MOST_FEATURES))
    # The first of every cluster, then the second ones, and so on.
    ranked = dict.fromkeys(profiles.order.T.ravel().tolist())
    return np.sort(np.array(list(ranked)[:most], dtype=int))


def _strips(subject: Subject, profiles: Profiles, exemplars: list[ShownExemplar]) -> dict[str, Any]:
    table, columns = subject.table, shown_features(profiles, len(exemplars))
    values = table.values[:, columns]
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    # Of halves, whose difference is a number also where that of the whole is beyond the largest.
    unit = np.where(high > low, high / 2 - low / 2, 1.0)

    def place(numbers: np.ndarray) -> list[Any]:
        """Return where numbers lie along their strips; missing ones nowhere."""
        steps = np.rint((numbers / 2 - low / 2) / unit * STEPS)
        return [None if np.isnan(step) else int(step) for step in steps]

    def write(numbers: np.ndarray) -> list[str]:
        return [table.written(value, column) for value, column in zip(numbers, columns, strict=True)]

    ranks = {int(column): rank for rank, column in enumerate(columns)}
    return {
        "features": [str(name) for name in table.names[columns]],
        "left_out": len(table.names) - len(columns),
        "low": write(low),
        "high": write(high),
        "bands": {
            str(k): list(map(list, zip(*map(place, profiles.quartiles[k][:, columns]), strict=True)))
            for k in sorted({found.cluster for found in exemplars})
        },
        "order": {
            str(k): [ranks[j] for j in profiles.order[k].tolist() if j in ranks]
            for k in sorted({found.cluster for found in exemplars})
        },
        "rows": [{"at": place(values[found.row]), "text": write(values[found.row])} for found in exemplars],
    }
