"""What a terminal says of clusters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from smrmf.inspection import cluster_profiles
from smrmf.report._words import score
from smrmf.tasks._fit import FittedTable
from smrmf.tasks._results import columns_of_frame, exemplar_names

# Of a cluster between others medians may be the same: then where half of it is says more.
BETWEEN = 0.5


def cluster_sentences(fitted: FittedTable, n_exemplars: int, n_features: int) -> Iterator[list[str]]:
    """Yield for every cluster what to say of it: its size, what sets it apart, and its exemplars."""
    model, apart = fitted.model, contrasts(fitted, n_features)
    for cluster, exemplars in enumerate(exemplar_names(fitted)):
        mine = model.labels_ == cluster
        size = int(mine.sum())
        lines = [f"Cluster {cluster}: {size} {'row' if size == 1 else 'rows'}"]
        if hasattr(model, "confidence_") and size < len(mine):
            lines[0] += f", confidence {score(model.confidence_[mine].mean())}"
        if size < len(mine):
            lines.append(f"apart by {', '.join(apart[cluster])}")
        if exemplars:
            called = ", ".join(map(str, exemplars[:n_exemplars]))
            lines.append(f"exemplars: {fitted.prepared.rows.title} {called}")
        yield lines


def contrasts(fitted: FittedTable, n_features: int) -> list[list[str]]:
    """Return for every cluster the features that set it apart, with what is typical here and elsewhere."""
    model, units, names = fitted.model, fitted.prepared.in_units(), fitted.prepared.feature_names
    profiles = columns_of_frame(cluster_profiles(model, units, n_features=n_features, feature_names=names))
    words = set(names[len(fitted.prepared.preparation.numbers_) :])
    said: list[list[str]] = [[] for _ in range(int(model.labels_.max()) + 1)]
    for place, (cluster, feature) in enumerate(zip(profiles["cluster"], profiles["feature"], strict=True)):
        one = {name: column[place] for name, column in profiles.items()}
        if feature in words:  # 1 where a row has the word: what is typical says less than how many have it
            mine, has = model.labels_ == cluster, units[feature].to_numpy()
            here, there = (f"{has[rows].mean():.0%}" if rows.any() else "-" for rows in (mine, ~mine))
            said[cluster].append(f"{feature} {here} (elsewhere {there})")
        elif abs(one["effect"]) < BETWEEN and one.get("apart", 0) > BETWEEN:
            said[cluster].append(f"{feature} {short(one['low'])} to {short(one['high'])} (elsewhere seldom)")
        else:
            said[cluster].append(f"{feature} {short(one['typical'])} (elsewhere {short(one['elsewhere'])})")
    return said


def short(value: float) -> str:
    """Return a number with three digits, as people write it: 5500 rather than 5.5e+03."""
    if not np.isfinite(value):
        return "-"
    usual = value == 0 or 1e-4 <= abs(value) < 1e9
    return np.format_float_positional(value, 3, fractional=False, trim="-") if usual else f"{value:.2e}"
