"""Which neighbourhoods the graph has listened to, in two sentences and a small table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smrmf.inspection import neighborhoods
from smrmf.report._subject import Subject
from smrmf.report._words import percent


@dataclass(frozen=True)
class Kept:
    """Sentences, and a row for every cluster; no rows where all neighbourhoods are kept."""

    said: list[str]
    clusters: list[dict[str, Any]]


def kept_of(subject: Subject) -> Kept | None:
    """Return which neighbourhoods were kept; None of a model that learns none."""
    if not hasattr(subject.model, "kept_indices_"):
        return None
    table = neighborhoods(subject.model)
    kept, agreement, mass = table["kept"], table["agreement"], table["mass"]
    n_kept, n = int(kept.sum()), len(kept)
    across = float(np.average(table["across"], weights=table["edges"])) if table["edges"].sum() else 0.0
    if n_kept in (0, n):
        said = [f"This model listens to the neighbourhoods of all {n:,} rows, and drops none."]
        return Kept([*said, _edges(across)], [])
    ratio = float(mass[kept].mean()) / (float(mass[~kept].mean()) or np.nan)
    stand = (
        f"stands for {ratio:.1f} times as much as a dropped one"
        if np.isfinite(ratio)
        else "stands for others"
    )
    said = [
        f"The model listened to the neighbourhoods of {n_kept:,} of the {n:,} rows ({percent(n_kept / n)}), "
        f"those that stand for the most others, and dropped the rest; a kept one {stand}.",
        f"Of what the kept ones stand for, {percent(float(agreement[kept].mean()))} lies in their own "
        f"cluster, against {percent(float(agreement[~kept].mean()))} of the dropped ones.",
        _edges(across),
    ]
    return Kept(said, [_of_cluster(table, subject.labels == k, k) for k in subject.clusters])


def _edges(across: float) -> str:
    if across == 0:
        return "No tie of the graph leads from one cluster to another."
    return f"On average {percent(across)} of the ties of a row lead to another cluster."


def _of_cluster(table: Any, mine: np.ndarray, cluster: int) -> dict[str, Any]:
    kept = mine & table["kept"]
    return {
        "cluster": cluster,
        "size": int(mine.sum()),
        "kept": int(kept.sum()),
        "agreement": percent(float(table["agreement"][kept].mean())) if kept.any() else "\N{EN DASH}",
        "across": percent(float(table["across"][mine].mean())),
    }
