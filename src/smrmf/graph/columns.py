"""Columns that rule the distances without being meant to: in a unit of their own, or of few values.

A table of grams and millimetres is clustered by the grams alone. A column of few values, whole numbers say,
parts the neighbourhoods where its steps are wider than these: then clusters follow its values. Both are
found on a sample of the rows, and said; nothing is changed.
"""

from __future__ import annotations

import numpy as np

from smrmf.graph.candidates import Neighbors

# Rows that are looked at, and how many there must be: of a handful nothing is said.
SAMPLE, FEWEST = 2000, 20
# Spreads that differ by more, a thousand times in squares, are hardly of one unit; a few such columns of many
# are pixels that are rarely set.
UNLIKE, RARELY_SET = 30.0, 0.02
# Few values: so many of them are nearly all of the column, and two points differ by chance at least so often.
VALUES, NEARLY_ALL, DIFFER, NEARLY_ALL_COLUMNS = 20, 0.8, 0.2, 0.9
# A value counts if so many points have it; a step of a column is that between such values.
COMMON = 0.01
# Such a column rules if neighbours differ so much less often than by chance, and its step is so much of the
# squared distance to the farthest neighbour.
SELDOM, STEP_SHARE = 0.25, 0.3
SILENCE = "or ignore smrmf.inspection.ColumnsWarning if it is meant so"


class ColumnsWarning(UserWarning):
    """Some columns rule the distances, and others hardly count."""


def numbered_names(n_columns: int) -> np.ndarray:
    """Return names for columns that have none."""
    return np.array([f"x{i}" for i in range(n_columns)])


def column_notes(
    X: np.ndarray, neighbors: Neighbors, n_neighbors: int, names: np.ndarray, magnitude: float = 1.0
) -> list[str]:
    """Return a sentence for every way in which few columns of dense points rule their distances.

    ``magnitude`` is what the points were divided by.
    """
    if len(X) < FEWEST:
        return []
    rows = np.unique(np.linspace(0, len(X) - 1, SAMPLE).astype(int))
    near = neighbors.first(n_neighbors)
    return [*unscaled(X[rows], names, magnitude), *few_valued(X, rows, near, names)]


def unscaled(sample: np.ndarray, names: np.ndarray, magnitude: float) -> list[str]:
    """Say that columns have units so different that some hardly count."""
    spread, width = sample.std(axis=0), np.ptp(sample, axis=0)
    widest = int(spread.argmax())
    # A pixel that is rarely set has a small spread, but the range of the others.
    unseen = (width > 0) & (UNLIKE * width < width[widest]) & (UNLIKE * spread < spread[widest])
    if unseen.any():
        # A column with one point far off has a large spread, but most of its values are like the others.
        most = np.ptp(np.quantile(sample, [0.05, 0.95], axis=0), axis=0)
        unseen &= UNLIKE * most < most[widest]
    count = int(unseen.sum())
    if count <= RARELY_SET * len(spread):
        return []
    least = int(np.where(unseen, spread, np.inf).argmin())
    return [
        f"Column {str(names[widest])!r} has a spread of {spread[widest] * magnitude:.3g}, "
        f"{str(names[least])!r} of {spread[least] * magnitude:.3g}, so distances hardly see {count} of "
        f"{len(spread)} columns: scale them, with StandardScaler say, {SILENCE}."
    ]


def few_valued(X: np.ndarray, rows: np.ndarray, neighbors: Neighbors, names: np.ndarray) -> list[str]:
    """Say which columns of few values part the neighbourhoods."""
    typical = float(np.median(neighbors.squared[rows, -1]))
    # No step is wider than the range: of many columns in one unit none can rule, and none is looked at.
    suspects = np.flatnonzero(np.ptp(X[rows], axis=0) ** 2 >= STEP_SHARE * typical)
    near = neighbors.indices
    ruling = [names[j] for j in suspects if typical > 0 and parts_neighbors(X[:, j], rows, near, typical)]
    # Where nearly all columns have few values, these are all there is.
    if not ruling or np.mean([has_few_values(column) for column in X[rows].T]) > NEARLY_ALL_COLUMNS:
        return []
    which = ", ".join(repr(str(name)) for name in ruling[:3]) + (" and others" if len(ruling) > 3 else "")
    subject, them = (f"Column {which} has", "it") if len(ruling) == 1 else (f"Columns {which} have", "them")
    return [
        f"{subject} few values, which neighbours nearly always share, so clusters may follow these alone: "
        f"leave {them} out, or give {them} less weight, {SILENCE}."
    ]


def has_few_values(sample: np.ndarray) -> bool:
    """Tell whether some values are nearly all of a column."""
    counts = np.unique(sample, return_counts=True)[1]
    return bool(np.sort(counts)[-VALUES:].sum() >= NEARLY_ALL * len(sample))


def parts_neighbors(column: np.ndarray, rows: np.ndarray, indices: np.ndarray, typical: float) -> bool:
    """Tell whether a column has few values, and neighbours nearly always the same one."""
    values, counts = np.unique(column[rows], return_counts=True)
    shares = counts / len(rows)
    by_chance = 1 - float(np.sum(shares**2))
    common = values[shares >= COMMON]
    if by_chance < DIFFER or len(common) < 2 or not has_few_values(column[rows]):
        return False
    step = float(np.median(np.diff(common)))
    differ = float(np.mean(column[rows][:, None] != column[indices[rows]]))
    return step**2 >= STEP_SHARE * typical and differ <= SELDOM * by_chance
