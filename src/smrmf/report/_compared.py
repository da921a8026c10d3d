"""Clusters beside known classes, which the fit has not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smrmf.metrics import clustering_accuracy
from smrmf.report._subject import Subject
from smrmf.report._words import count, percent

# More classes make no table that one can read.
MOST_CLASSES = 25


@dataclass(frozen=True)
class Compared:
    """A sentence, and how many rows of every class (row) every cluster (column) has."""

    said: list[str]
    classes: list[str]
    counts: list[list[int]]


def compared_of(subject: Subject) -> Compared | None:
    """Return how the clusters fit known classes; None where there are none."""
    if subject.classes is None:
        return None
    from sklearn.metrics import adjusted_rand_score  # slow to import

    known = subject.classes != ""
    if not known.any():
        return None
    names, codes = np.unique(subject.classes[known], return_inverse=True)
    labels = subject.labels[known]
    accuracy, rand = clustering_accuracy(codes, labels), float(adjusted_rand_score(codes, labels))
    said = [
        "The known classes played no part in the fit, and stand here only to compare: if every cluster is "
        f"matched with one class, {percent(accuracy)} of the rows agree (adjusted Rand index {rand:.2f}, "
        "where 1 is the same and 0 is chance)."
    ]
    if not known.all():
        said.append(f"Of {count(int((~known).sum()))} the class is not known; they do not count.")
    if len(names) > MOST_CLASSES:
        return Compared([*said, f"There are {len(names)} classes, too many for a table."], [], [])
    counts = np.zeros((len(names), len(subject.sizes)), dtype=int)
    np.add.at(counts, (codes, labels), 1)
    return Compared(said, [str(name) for name in names], counts[:, subject.clusters].tolist())
