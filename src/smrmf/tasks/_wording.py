"""Sentences of the library in the words of a command line."""

from __future__ import annotations

import csv
import io
import re
import shlex
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from smrmf.graph.columns import SILENCE, ColumnsWarning
from smrmf.tables._record import listed

if TYPE_CHECKING:  # the sentences of refusals need no scikit-learn
    from smrmf.tables import TablePreparation

# What is told to somebody with Python, and what to do instead without.
IN_OPTIONS = (
    (re.escape(f", {SILENCE}"), ""),
    (r"use force to replace it|overwrite=True to replace it", "use --force to replace it"),
    (r"\bscale='(\w+)'", r"--scale \1"),
    (r"scale them, with StandardScaler say", "use --scale standard"),
    (r"scale the features to \[0, 1\]", "use --scale minmax"),
    (r"leave columns and scale at their defaults", "leave out --columns and --scale"),
    (r"leave (it|them) out of columns", r"leave \1 out of --columns"),
    (r"ask for it by name to use it", "name it in --columns to use it"),
    (r"use metric='cosine'", "fit it by --set metric=cosine"),
    (r"that smrmf\.save wrote", "that smrmf fit wrote"),
    (r"n_clusters=(\d+) needs at least \d+ points, but X has n_samples=(\d+)",
     r"\1 clusters are more than the \2 rows"),
    (r"X has n_samples=(\d+)", r"the table has \1 rows"),
)  # fmt: skip


def for_a_terminal(sentence: str) -> str:
    """Return a sentence with options instead of what only a program can write."""
    for written, instead in IN_OPTIONS:
        sentence = re.sub(written, instead, sentence)
    return sentence


def notes_of(said: Sequence[warnings.WarningMessage], preparation: TablePreparation) -> list[str]:
    """Return what the library has warned of as notes to somebody who gave a table."""
    notes = {
        on_columns(str(each.message), preparation)
        if issubclass(each.category, ColumnsWarning)
        else str(each.message): None
        for each in said
    }
    return [for_a_terminal(note) for note in notes if note]


# A model is given an array, which has no names, and calls its columns by their places.
PLACE = re.compile(r"'x(\d+)'")
FEW_VALUES = re.compile(r"Columns? ((?:'x\d+'(?:, )?)+)( and others)? ha(?:s|ve) few values")
TO_LEAVE_OUT = re.compile(r"leave (it|them) out, or give (it|them) less weight")


def on_columns(sentence: str, preparation: TablePreparation) -> str:
    """Return a sentence on columns of the array with the columns of the table; nothing, if it was heeded."""
    if preparation.scale_ == "standard" and "distances hardly see" in sentence:
        return ""  # of words that are rare: all else has been scaled
    sources = list(preparation.numbers_)
    for name, known in preparation.words_.items():
        sources += [name] * len(known)
    found = FEW_VALUES.match(sentence)
    if not found:
        return PLACE.sub(lambda place: repr(sources[int(place[1])]), sentence)
    names = list(dict.fromkeys(sources[int(place)] for place in PLACE.findall(found[1])))
    others = found[2] or ""
    many = len(names) > 1 or bool(others)
    what, has, it = ("Columns", "have", "them") if many else ("Column", "has", "it")
    way_out = f"leave {it} out by --drop {as_option(names)}"
    rest = TO_LEAVE_OUT.sub(lambda _: way_out, sentence[found.end() :])
    return f"{what} {listed(names)}{others} {has} few values{rest}"


def as_option(names: Sequence[str]) -> str:
    """Return names of columns as a shell takes them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return shlex.quote(line.getvalue())
