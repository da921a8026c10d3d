"""How sure the labels are: all of them, the least sure ones, and rows that are far from everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smrmf.graph.membership import unfavored
from smrmf.report._findings import BOUNDARY, SURE
from smrmf.report._subject import Subject
from smrmf.report._words import percent, score

N_SHOWN, N_BINS = 10, 10
# An outlier has neighbours more than twice as far away as they have theirs.
OUTLIER = 0.5


@dataclass(frozen=True)
class Certainty:
    """Tables of the section: bars of the histogram, clusters, rows at the boundary, outliers."""

    bars: list[dict[str, Any]]
    clusters: list[dict[str, Any]]
    boundary: list[dict[str, Any]]
    n_boundary: int
    outliers: list[dict[str, Any]]
    n_outliers: int


def certainty_of(subject: Subject) -> Certainty | None:
    """Return how sure the labels are; None of a model that does not say, or of one cluster."""
    confidence = subject.confidence
    if confidence is None or len(subject.clusters) < 2:
        return None
    outliers = np.asarray(getattr(subject.model, "outlier_scores_", np.zeros(0)))
    far = np.flatnonzero(outliers > OUTLIER)
    farthest = far[np.argsort(-outliers[far], kind="stable")[:N_SHOWN]]
    return Certainty(
        bars=_bars(confidence),
        clusters=[_of_cluster(subject, confidence, cluster) for cluster in subject.clusters],
        boundary=_boundary(subject, confidence),
        n_boundary=int(np.count_nonzero(confidence < BOUNDARY)),
        outliers=[
            {"row": int(row), "cluster": int(subject.labels[row]), "score": score(float(outliers[row]))}
            for row in farthest
        ],
        n_outliers=len(far),
    )


def _bars(confidence: np.ndarray) -> list[dict[str, Any]]:
    counts, _ = np.histogram(confidence, bins=N_BINS, range=(0, 1))
    return [
        {"low": k / N_BINS, "high": (k + 1) / N_BINS, "count": int(n), "part": n / counts.max()}
        for k, n in enumerate(counts)
    ]


def _of_cluster(subject: Subject, confidence: np.ndarray, cluster: int) -> dict[str, Any]:
    mine = confidence[subject.labels == cluster]
    return {
        "cluster": cluster,
        "size": len(mine),
        "mean": score(float(mine.mean())),
        "sure": percent(float((mine >= SURE).mean())),
        "boundary": int((mine < BOUNDARY).sum()),
    }


def _boundary(subject: Subject, confidence: np.ndarray) -> list[dict[str, Any]]:
    """Return the rows that are least sure, with the cluster that would be next."""
    shares = getattr(subject.model, "membership_", None)
    found = []
    for row in np.argsort(confidence, kind="stable")[:N_SHOWN]:
        if confidence[row] >= SURE:
            break
        entry = {
            "row": int(row),
            "cluster": int(subject.labels[row]),
            "confidence": score(float(confidence[row])),
        }
        entry |= {"next": None, "share": "", "against": False}
        if shares is not None:
            label = int(subject.labels[row])
            others = unfavored(shares[row], label, float(confidence[row]))
            others[label] = -1
            following = int(others.argmax())
            share = max(float(others[following]), 0.0)
            entry |= {"next": following, "share": score(share), "against": share > confidence[row]}
        found.append(entry)
    return found
