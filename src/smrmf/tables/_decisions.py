"""What becomes of a column: used as numbers, used as words, or left out, and why."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from smrmf.tables._columns import Columns
from smrmf.tables._record import TableError, import_polars, written

MOST_WORDS = 20  # that are few: more would make more columns of one than most tables have
LONG_TEXT = 30  # letters on average, from which words that are mostly different are texts
MOSTLY_NUMBERS = 0.8
SIGNED_NUMBER = r"^[$€£¥]?\s*[+-]?\d{1,3}([,' ]?\d{3})*([.,]\d+)?\s*[%$€£¥]?$"  # 1,234.50, $5 or 12 %
FEW_VALUES = 10  # of a column of numbers: years, grades, counts, yes or no
ID_NAMES = {"", "id", "idx", "index", "rownames", "row_id", "rowid", "uuid"}
# Without a name in the file, as row numbers often are; libraries, and read_table, call them so.
NO_NAME = "unnamed"

Role = Literal["numbers", "words", "left out"]
Reason = Literal[
    "", "constant", "dates", "empty", "half empty", "id", "names", "many words", "mixed", "other", "text"
]


@dataclass(frozen=True)
class Decision:
    """What becomes of a column; of one that is left out the ``reason``, and as words what it ``does``.

    ``step`` is the least difference between the values of a column of few, and 0 of all others.
    """

    name: str
    role: Role
    reason: Reason = ""
    does: str = ""
    n_missing: int = 0
    words: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    mean: float = 0.0
    median: float = 0.0
    deviation: float = 0.0
    step: float = 0.0


def decide(columns: Columns, name: str, asked_for: bool) -> Decision:
    """Decide what becomes of a column; one that is ``asked_for`` is no id, whatever it looks like."""
    kind = columns.kind(name)
    if kind == "dates":
        return Decision(name, "left out", "dates", "has dates or times")
    if kind == "other":
        return Decision(name, "left out", "other", "has values that are neither numbers nor words")
    return (_decide_numbers if kind == "numbers" else _decide_words)(columns, name, asked_for)


def finite_numbers(columns: Columns, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a column and where it has no value; refuse infinite numbers."""
    values = columns.numbers(name)
    missing = np.isnan(values)
    infinite = np.isinf(values)
    if infinite.any():
        row = columns.row(int(infinite.argmax()))
        raise TableError(
            f"{name!r} is infinite in row {row}, counted from 1: correct such values, or leave them empty."
        )
    return values, missing


def _decide_numbers(columns: Columns, name: str, asked_for: bool) -> Decision:
    values, missing = finite_numbers(columns, name)
    n_missing = int(missing.sum())
    if too_few := _too_few(name, n_missing, len(values)):
        return too_few
    present = values[~missing] if n_missing else values
    low, high = float(present.min()), float(present.max())
    if low == high:
        return _constant(name, written(low), n_missing, low)
    if not asked_for:
        if _is_id(name):
            return Decision(name, "left out", "id", "is an id by its name")
        if not n_missing and len(present) > 2 and low == np.floor(low) and _counts_up(present, columns.step):
            return Decision(name, "left out", "id", "numbers the rows")
    with np.errstate(over="ignore"):
        deviation = float(present.std(dtype=np.float64))
    if not np.isfinite(deviation):
        largest = max(abs(low), abs(high))
        raise TableError(f"{name!r} has numbers of up to {largest:.1e}: divide it by a power of ten.")
    mean, median = float(present.mean(dtype=np.float64)), float(np.median(present))
    return Decision(
        name,
        "numbers",
        n_missing=n_missing,
        low=low,
        high=high,
        mean=mean,
        median=median,
        deviation=deviation,
        step=_step(present),
    )


def _decide_words(columns: Columns, name: str, asked_for: bool) -> Decision:
    words = columns.words(name)
    n_missing = int(words.null_count())
    if too_few := _too_few(name, n_missing, len(words)):
        return too_few
    present = words.drop_nulls()
    n_words = present.n_unique()
    if n_words == 1:
        return _constant(name, repr(present[0]), n_missing, math.nan)
    # More words could not be used by those who ask for them either.
    id_or_names: Reason = "id" if n_words <= MOST_WORDS else "names"
    if _is_id(name) and not asked_for:
        return Decision(name, "left out", id_or_names, "is an id by its name")
    mixed = _mixed(name, words)
    is_few = n_words <= MOST_WORDS and (asked_for or (2 * n_words <= len(present)))
    # Codes may be numbers and words; a measure of which some are words would silently become words.
    if is_few and (asked_for or mixed is None or n_words <= FEW_VALUES):
        return Decision(name, "words", n_missing=n_missing, words=tuple(present.unique().sort().to_list()))
    if mixed is not None:
        return mixed
    if 2 * n_words > len(present) and present.str.len_chars().mean() >= LONG_TEXT:
        return Decision(name, "left out", "text", "has texts")
    if n_words == len(present):
        does = "is another word in every row, as names and ids are"
        return Decision(name, "left out", id_or_names, does)
    return Decision(name, "left out", "many words", f"has {n_words} different words, more than are few")


def _step(values: np.ndarray) -> float:
    """Return the least difference between few values; 0 if there are more."""
    # Most columns have many values, which the first rows show.
    if len(np.unique(values[: 100 * FEW_VALUES])) > FEW_VALUES:
        return 0.0
    different = np.unique(values)
    return float(np.diff(different).min()) if len(different) <= FEW_VALUES else 0.0


def _counts_up(values: np.ndarray, step: int) -> bool:
    with np.errstate(over="ignore"):  # of numbers that are refused later
        return bool((np.diff(values) == step).all())


def _is_id(name: str) -> bool:
    lower = name.lower()
    return lower in ID_NAMES or lower.endswith("_id") or lower.startswith(NO_NAME)


def _too_few(name: str, n_missing: int, n_rows: int) -> Decision | None:
    if n_missing == n_rows:
        return Decision(name, "left out", "empty", "has no values")
    if 2 * n_missing > n_rows:
        does = f"has no value in {n_missing} of {n_rows} rows, more than half"
        return Decision(name, "left out", "half empty", does)
    return None


def _constant(name: str, value: str, n_missing: int, number: float) -> Decision:
    """Return the decision on a column of one value, which as a ``number`` is missing if it is a word."""
    does = f"is {value} in {'every row that has a value' if n_missing else 'every row'}"
    return Decision(
        name, "left out", "constant", does, n_missing, low=number, high=number, mean=number, median=number
    )


def _mixed(name: str, words: Any) -> Decision | None:
    """Return the decision on a column of numbers in which some words are none, or that have signs."""
    enough = MOSTLY_NUMBERS * (len(words) - words.null_count())
    numbers = words.cast(import_polars().Float64, strict=False).is_not_null()
    signed = words.str.contains(SIGNED_NUMBER).fill_null(False)
    wrong = ~numbers & words.is_not_null()
    if not wrong.any() or (numbers | signed).sum() < enough:
        return None
    row = int(wrong.arg_max())
    what = "numbers, but also words," if numbers.sum() >= enough else "numbers that are written with signs,"
    does = f"has {what} as {words[row]!r:.60} in row {row + 1}, counted from 1"
    return Decision(name, "left out", "mixed", does)
