"""What sets every cluster apart: its typical values beside those elsewhere, in numbers and in words."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from smrmf.graph.groups import membership
from smrmf.inspection._profiles import cliffs_delta, feature_order, outside_quartiles, quantiles
from smrmf.report._subject import Subject
from smrmf.report._table import MISSING, number
from smrmf.report._words import percent

# Of each cluster so many columns, and so many words of a text; all that say next to nothing are left out.
MOST_COLUMNS, MOST_WORDS, LEAST = 6, 10, 0.2
# Cliff's delta in words, from these sizes on.
DEGREES = [(0.9, "nearly always"), (0.6, "mostly"), (0.33, "often")]
# A range of its own: fewer than a quarter of the others lie where half of the cluster does.
OWN_RANGE, OWN = 0.5, "a range of its own"
# A word is telling if it is so much more common; columns of more words than these are names, not kinds.
COMMON, MOST_KINDS = 0.25, 50


@dataclass(frozen=True)
class Contrast:
    """A column in which a cluster differs: typical values here and elsewhere, written, and how much.

    ``effect`` has a side, and ``strength`` is the larger of its size and of how far the others lie elsewhere.
    """

    feature: str
    here: str
    span: str
    elsewhere: str
    degree: str
    effect: float
    strength: float
    on_average: bool = False

    @property
    def has_own_range(self) -> bool:
        """Whether others are seldom in the range that is given."""
        return self.degree == OWN and bool(self.span)


class Profiles:
    """Typical values of every cluster and column, and how far they set the cluster apart."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.table = subject, subject.table
        values, labels = self.table.values, subject.labels
        if self.table.is_sparse:
            values = sp.csc_array(values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # columns that are missing in all of a cluster
            self.effects = cliffs_delta(values, labels)
            sparse = self.table.is_sparse
            self.apart = np.zeros_like(self.effects) if sparse else outside_quartiles(values, labels)
        # Of texts the words that a cluster has tell more than those that it lacks.
        says = self.effects if sparse else np.maximum(np.abs(self.effects), self.apart)
        self.says = says
        self.order = feature_order(says, values, labels)

    @cached_property
    def quartiles(self) -> np.ndarray:
        """Lower quartile, median and upper quartile by cluster and column."""
        found = np.full((len(self.subject.sizes), 3, len(self.table.names)), np.nan)
        for cluster in self.subject.clusters:
            mine = self.table.values[self.subject.labels == cluster]
            found[cluster] = quantiles(mine, [0.25, 0.5, 0.75])
        return found

    def elsewhere(self, cluster: int, column: int) -> float:
        """Return the median of all other rows; of the few columns that are shown, as all would take long."""
        others = self.table.values[self.subject.labels != cluster, column]
        return float(quantiles(others[:, None], [0.5])[0, 0]) if len(others) else np.nan

    @cached_property
    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """Of sparse tables: the share of rows with an entry, by cluster and column, here and elsewhere."""
        entries = sp.csr_array(self.table.values, copy=True)
        entries.data = (entries.data != 0).astype(float)
        sizes = self.subject.sizes[:, None]
        counts = membership(self.subject.labels, len(sizes), np.float64) @ entries
        inside = counts.toarray()
        outside = inside.sum(axis=0) - inside
        others = np.maximum(self.subject.n_samples - sizes, 1)
        return inside / np.maximum(sizes, 1), outside / others

    def contrasts(self, cluster: int, most: int | None = None) -> list[Contrast]:
        """Return the columns that set a cluster apart, those that do so most first."""
        if self.table.is_sparse:
            most = most or MOST_WORDS
            chosen = [j for j in self.order[cluster][:most] if self.effects[cluster, j] > 0]
            return [self._word(cluster, int(j)) for j in chosen]
        chosen = [j for j in self.order[cluster][: most or MOST_COLUMNS] if self.says[cluster, j] >= LEAST]
        return [self.contrast(cluster, int(j)) for j in chosen]

    def _word(self, cluster: int, column: int) -> Contrast:
        here, elsewhere = (percent(part[cluster, column]) for part in self.shares)
        effect = float(self.effects[cluster, column])
        return Contrast(str(self.table.names[column]), here, "", elsewhere, "", effect, effect)

    def contrast(self, cluster: int, column: int) -> Contrast:
        """Return how a cluster differs in a column."""
        low, here, high = self.quartiles[cluster, :, column]
        effect, apart = float(self.effects[cluster, column]), float(self.apart[cluster, column])
        elsewhere, write = self.elsewhere(cluster, column), self.table.written
        texts = [write(value, column) for value in (here, low, high, elsewhere)]
        span = "" if texts[1] == texts[2] else f"{texts[1]} to {texts[2]}"
        degree = in_words(effect, apart)
        # Of a column of few values medians say nothing, unless the cluster lies between others.
        on_average = texts[0] == texts[3] != MISSING and not (degree == OWN and span)
        if on_average:
            texts[0], texts[3] = self._means(cluster, column)
        return Contrast(
            feature=str(self.table.names[column]),
            here=texts[0],
            span=span,
            elsewhere=texts[3],
            degree=degree,
            effect=effect,
            strength=max(abs(effect), apart),
            on_average=on_average,
        )

    def _means(self, cluster: int, column: int) -> list[str]:
        mine, values = self.subject.labels == cluster, self.table.values[:, column]
        decimals = max(int(self.table.decimals[column]), 0) + 1
        return [number(float(np.nanmean(values[rows])), decimals) for rows in (mine, ~mine)]

    def kinds(self, cluster: int) -> list[Contrast]:
        """Return the columns of words of which one is much more common in a cluster than elsewhere."""
        found = []
        mine = self.subject.labels == cluster
        for name, words in self.table.words.items():
            known, codes = np.unique(words, return_inverse=True)
            if len(known) > MOST_KINDS or mine.all():
                continue
            here, rest = (
                np.bincount(codes[rows], minlength=len(known)) / rows.sum() for rows in (mine, ~mine)
            )
            best = int(np.argmax(here - rest))
            if here[best] - rest[best] >= COMMON and known[best] != MISSING:
                gain = float(here[best] - rest[best])
                label = f"{name} is {known[best]}"
                found.append(Contrast(label, percent(here[best]), "", percent(rest[best]), "", gain, gain))
        return sorted(found, key=lambda contrast: -contrast.effect)


def in_words(effect: float, apart: float) -> str:
    """Return how often rows of a cluster have the larger value, or whether others lie elsewhere, in words."""
    if abs(effect) < apart and apart >= OWN_RANGE and abs(effect) < DEGREES[1][0]:
        return OWN
    side = "higher" if effect > 0 else "lower"
    word = next((word for least, word in DEGREES if abs(effect) >= least), "")
    return f"{word} {side}" if word else f"somewhat {side}" if abs(effect) >= LEAST else "partly apart"
