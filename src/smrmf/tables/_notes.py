"""Sentences on what was decided of columns; many columns of one kind share one."""

from __future__ import annotations

from collections.abc import Sequence

from smrmf.tables._decisions import Decision
from smrmf.tables._record import MOST_NAMED, listed, written

MOST_COUNTED = 10  # columns with missing values in one sentence
# What several columns do that are left out for a reason, and what a user can do about it.
LEFT_OUT = {
    "constant": ("are the same in every row", ""),
    "dates": ("have dates or times", "; make numbers of them first, such as days since one date"),
    "empty": ("have no values", ""),
    "half empty": ("have no value in more than half of the rows", ""),
    "id": ("are ids", "; ask for it by name to use it"),
    "many words": ("have many different words", "; join rare ones to use it"),
    "mixed": ("have numbers, but also words or signs", "; correct or empty these"),
    "names": ("are names or ids", ""),
    "other": ("have values that are neither numbers nor words", ""),
    "text": (
        "have texts",
        "; to cluster these, make a table of them with sklearn's TfidfVectorizer, and use metric='cosine'",
    ),
}


def refusal(decisions: Sequence[Decision]) -> str:
    """Return why columns cannot be used that were asked for."""
    does = "; ".join(f"{decision.name!r} {decision.does}" for decision in decisions[:MOST_NAMED])
    more = f"; and {len(decisions) - MOST_NAMED} more" if len(decisions) > MOST_NAMED else ""
    it = "it" if len(decisions) == 1 else "them"
    return f"Not all columns that are asked for can be used ({does}{more}): leave {it} out of columns."


def notes_on_columns(decisions: Sequence[Decision], n_rows: int) -> list[str]:
    """Return what a user must know of the columns: which are used, which not and why, and what was filled."""
    used = [decision for decision in decisions if decision.role != "left out"]
    return [
        *_on_use(decisions),
        *_on_what_is_left_out([decision for decision in decisions if decision.role == "left out"]),
        *_on_missing([decision for decision in used if decision.n_missing], n_rows),
    ]


def _on_use(decisions: Sequence[Decision]) -> list[str]:
    numbers = [decision.name for decision in decisions if decision.role == "numbers"]
    words = [decision for decision in decisions if decision.role == "words"]
    left_out = len(decisions) - len(numbers) - len(words)
    notes = [f"Columns used as numbers: {len(numbers)}, as words: {len(words)}, left out: {left_out}."]
    if words:
        count = sum(len(column.words) for column in words)
        notes.append(
            f"Words ({listed([column.name for column in words])}) become {count} columns, one for each; "
            "another word weighs at most as much as one standard deviation of a column of numbers."
        )
    return notes


def _on_what_is_left_out(decisions: Sequence[Decision]) -> list[str]:
    notes = []
    for reason, (do, way_out) in LEFT_OUT.items():
        same = [decision for decision in decisions if decision.reason == reason]
        if len(same) <= MOST_NAMED:
            notes += [f"{decision.name!r} {decision.does}: left out{way_out}." for decision in same]
        else:
            notes.append(f"{listed([decision.name for decision in same])} {do}: left out{way_out}.")
    return notes


def _on_missing(decisions: Sequence[Decision], n_rows: int) -> list[str]:
    numbers, words = (
        [decision for decision in decisions if decision.role == role] for role in ("numbers", "words")
    )
    return [
        *notes_on_gaps(
            {decision.name: decision.n_missing for decision in numbers},
            n_rows,
            [f"filled with its median, {written(decision.median)}" for decision in numbers],
            "filled with the median of each",
        ),
        *notes_on_gaps_in_words({decision.name: decision.n_missing for decision in words}, n_rows),
    ]


def notes_on_gaps(missing: dict[str, int], n_rows: int, done: Sequence[str], done_to_all: str) -> list[str]:
    """Return what a user must know of values that columns lack, which are many in one sentence."""
    if len(missing) <= MOST_NAMED:
        return [
            f"{name!r} has no value in {count} of {n_rows} rows: {one}."
            for (name, count), one in zip(missing.items(), done, strict=True)
        ]
    counted = [f"{name!r} ({count})" for name, count in missing.items()]
    more = f" and {len(counted) - MOST_COUNTED} more columns" if len(counted) > MOST_COUNTED else ""
    shown = ", ".join(counted[:MOST_COUNTED])
    return [f"Of {n_rows} rows some have no value in {shown}{more}: {done_to_all}."]


def notes_on_gaps_in_words(missing: dict[str, int], n_rows: int) -> list[str]:
    """Return what a user must know of words that columns lack."""
    one, all_of_them = "counts as none of its words", "counts as none of their words"
    return notes_on_gaps(missing, n_rows, [one] * len(missing), all_of_them)


def note_on_strange_words(name: str, first: str, count: int) -> str:
    """Return what a user must know of words that the fit has not seen."""
    rows = "1 row" if count == 1 else f"{count} rows"
    what = f"{name!r} has words that the fit has not seen, as {first!r:.60}, in {rows}"
    return f"{what}: they count as none of its words."


def note_on_empty_rows(count: int) -> list[str]:
    """Return what a user must know of rows without any value."""
    if not count:
        return []
    rows = "1 row has" if count == 1 else f"{count} rows have"
    return [f"{rows} no value in any column that is used, and medians in all: drop such rows if you can."]
