"""Whose neighbours the graph has listened to, in a few sentences and a small table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smrmf.inspection import neighborhoods
from smrmf.report._subject import Subject
from smrmf.report._words import percent

NEAR = "The model finds clusters by which rows are near each other"


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
        return Kept([f"{NEAR}, and here the neighbours of all {n:,} rows counted.", _edges(across)], [])
    ratio = float(mass[kept].mean()) / (float(mass[~kept].mean()) or np.nan)
    stand = (
        f"each of them stands for {ratio:.1f} times as much as one of the others"
        if np.isfinite(ratio)
        else "the others stand for none"
    )
    said = [
        f"{NEAR}. Not all rows are good to ask for their neighbours: those of {n_kept:,} of the {n:,} rows "
        f"({percent(n_kept / n)}) counted, the ones that stand for the most others; {stand}.",
        f"Of what these rows stand for, {percent(float(agreement[kept].mean()))} lies in their own cluster, "
        f"and of what the others stand for, {percent(float(agreement[~kept].mean()))}.",
        _edges(across),
    ]
    return Kept(said, [_of_cluster(table, subject.labels == k, k) for k in subject.clusters])


def _edges(across: float) -> str:
    if across == 0:
        # So it is where labels are the parts of the graph, and says nothing of how good they are.
        return (
            "Rows are tied to rows of their own cluster alone, as these ties are what clusters are made of."
        )
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
