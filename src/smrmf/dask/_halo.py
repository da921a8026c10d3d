"""Whom the points of a part know: points of other parts, and how a part learns what has become of them.

Points are numbered in the order of the parts. A part calls its own points by their places in it; behind these
come the points of other parts that it knows, its *halo*, in the order of their numbers. Two points know each
other if either has the other in its list of neighbours. Who knows whom never changes: graphs change, between
points that know each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from smrmf.dask._blocks import Blocks, Each, Groups, mapped, taken

# Letters to fewer parts are not worth a task.
FEWEST_READERS = 16

# What a part knows of another one: rows of the other that it asks for.
Acquaintance = dict[int, np.ndarray]


@dataclass(frozen=True)
class Halo:
    """Pairs of parts that know each other, in both orders: ``knowing`` and ``known`` are the two of each.

    ``starts`` is where the points of every part begin among all, and the end. ``rows`` has, for every pair,
    the places of the known points in their part, and ``counts`` how many; ``numbers``, for every part, those
    of its halo among all. ``mail`` is how values come to those who know them.
    """

    starts: np.ndarray
    knowing: np.ndarray
    known: np.ndarray
    counts: np.ndarray
    rows: Blocks
    numbers: Blocks
    mail: Mail
    # What has been gathered, for as long as anybody has the values: twice in an iteration G is asked for.
    _gathered: WeakKeyDictionary[Blocks, Blocks] = field(default_factory=WeakKeyDictionary, repr=False)

    @classmethod
    def of(cls, lists: Blocks, starts: np.ndarray) -> Halo:
        """Find out who knows whom by the lists of neighbours, which call points by their numbers."""
        n_parts = len(lists)
        listed = lists.map(listed_elsewhere, Each(range(n_parts)), starts=starts).persist()
        ties = listed.map(parts_of).compute()
        tied = np.zeros((n_parts, n_parts), dtype=bool)
        for part, others in enumerate(ties):
            tied[part, others] = True
        knowing, known = np.nonzero(tied | tied.T)
        one, other = listed.at(knowing), listed.at(known)
        rows = one.map(rows_known, other, Each(knowing), Each(known)).persist()
        counts = np.array(rows.map(len).compute(), dtype=int)
        pairs = pairs_of_parts(knowing, n_parts)
        numbers = listed.map(numbered, Groups(rows, pairs), Each([starts[known[mine]] for mine in pairs]))
        mail = Mail.of(knowing, known, rows, pairs)
        return cls(starts, knowing, known, counts, rows, numbers.persist(), mail)

    @property
    def pairs(self) -> list[np.ndarray]:
        """Return for every part the pairs in which it knows others."""
        return pairs_of_parts(self.knowing, len(self.starts) - 1)

    @property
    def turned(self) -> np.ndarray:
        """Return for every pair that of the same parts in the other order."""
        # By the known part first, pairs stand as their opposites do by the knowing one.
        return np.lexsort((self.knowing, self.known))

    @property
    def columns(self) -> np.ndarray:
        """Return for every pair the place of its first point in the knowing part, behind the own points."""
        before = np.concatenate([[0], np.cumsum(self.counts)])[:-1]
        sizes = np.diff(self.starts)
        firsts = [sizes[part] + before[mine] - before[mine[:1]] for part, mine in enumerate(self.pairs)]
        return np.concatenate(firsts) if firsts else before

    def gathered(self, values: Blocks) -> Blocks:
        """Return values of the points of every part, and behind them those of its halo."""
        if values not in self._gathered:
            self._gathered[values] = self.mail.delivered(values)
        return self._gathered[values]

    def places(self, lists: Blocks) -> Blocks:
        """Return lists in which points are called as their part calls them."""
        first, end = self.starts[:-1].tolist(), self.starts[1:].tolist()
        return lists.map(places_of, self.numbers, Each(first), Each(end))


@dataclass(frozen=True)
class Mail:
    """How values come to the parts that know them: in letters, one from a part to several that follow it.

    A letter from every part to every other would be the square of the parts; parts that follow each other are
    near each other, and know mostly the same points. ``rows`` are those that each letter has of its sender,
    ``places`` where a part finds in it whom it knows; ``received`` are the letters of every part, and
    ``pairs`` its pairs, which follow each other in the same order.
    """

    sender: np.ndarray
    rows: Blocks
    places: Blocks
    received: list[np.ndarray]
    pairs: list[np.ndarray]

    @classmethod
    def of(cls, knowing: np.ndarray, known: np.ndarray, rows: Blocks, pairs: list[np.ndarray]) -> Mail:
        """Find out what is in the letters, by what every pair knows."""
        size = readers(len(pairs))
        ways, letter = np.unique(np.stack([knowing // size, known]), axis=1, return_inverse=True)
        letter = letter.ravel()
        together = [np.flatnonzero(letter == place) for place in range(ways.shape[1])]
        rows_sent = mapped(len(together), union, Groups(rows, together)).persist()
        places = rows_sent.at(letter).map(np.searchsorted, rows).persist()
        return cls(ways[1], rows_sent, places, [letter[mine] for mine in pairs], pairs)

    def delivered(self, values: Blocks) -> Blocks:
        """Return values of the points of every part, and behind them of those it knows."""
        letters = values.at(self.sender).map(taken, self.rows)
        return values.map(with_halo, Groups(letters, self.received), Groups(self.places, self.pairs))


def readers(n_parts: int) -> int:
    """Return how many parts share a letter."""
    return max(FEWEST_READERS, math.isqrt(n_parts))


def union(rows: Sequence[np.ndarray]) -> np.ndarray:
    return np.unique(np.concatenate(rows))


def pairs_of_parts(knowing: np.ndarray, n_parts: int) -> list[np.ndarray]:
    """Return the pairs of every part, which stand in the order of the parts."""
    return np.split(np.arange(len(knowing)), np.searchsorted(knowing, np.arange(1, n_parts)))


def listed_elsewhere(lists: np.ndarray, part: int, starts: np.ndarray) -> tuple[Acquaintance, Acquaintance]:
    """Return which rows of other parts a part lists, and which of its own list any of each other part."""
    owner = np.searchsorted(starts, lists, side="right") - 1
    own_row = np.broadcast_to(np.arange(len(lists))[:, None], lists.shape)
    listed, listing = {}, {}
    for other in np.unique(owner[owner != part]).tolist():
        there = owner == other
        listed[other] = np.unique(lists[there] - starts[other])
        listing[other] = np.unique(own_row[there])
    return listed, listing


def parts_of(listed: tuple[Acquaintance, Acquaintance]) -> list[int]:
    return list(listed[0])


def rows_known(
    one: tuple[Acquaintance, Acquaintance], other: tuple[Acquaintance, Acquaintance], part: int, known: int
) -> np.ndarray:
    """Return which rows of another part a part knows: that it lists, or that list any of its own."""
    none = np.empty(0, np.int64)
    return np.union1d(one[0].get(known, none), other[1].get(part, none))


def numbered(_: Any, rows: Sequence[np.ndarray], starts: np.ndarray) -> np.ndarray:
    """Return the numbers of the points of a halo."""
    parts = [start + mine for start, mine in zip(starts, rows, strict=True)]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def with_halo(own: np.ndarray, letters: Sequence[np.ndarray], places: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([own, *(each[mine] for each, mine in zip(letters, places, strict=True))])


def places_of(lists: np.ndarray, numbers: np.ndarray, first: int, end: int) -> np.ndarray:
    """Return where listed points are in a part and its halo."""
    inside = (lists >= first) & (lists < end)
    places = end - first + np.searchsorted(numbers, lists)
    places[inside] = lists[inside] - first
    return places
