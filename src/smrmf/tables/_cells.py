"""What stands in the cells of text files: numbers, however they are written, words, or nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from smrmf.tables._decisions import MOSTLY_NUMBERS
from smrmf.tables._record import import_polars

# What people, and programs, write where there is nothing to write.
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None", "?"]
# With a decimal comma points part thousands: 1.034,06.
THOUSANDS = r"^([+-]?\d{1,3}(?:\.\d{3})+)(,\d+)?$"
# What stands for nothing among numbers; as a word it may say something, as of + and -.
NO_NUMBER = ["-", "--", "\N{EN DASH}", "\N{EM DASH}", ".", ".."]
BOOLEAN = frozenset({"false", "true"})
DECIMAL = re.compile(r"\s*[+-]?\d*[.,]\d+([eE][+-]?\d+)?\s*")


def as_class(word: str) -> str:
    """Return the name of a class as it stands in a file; nothing where it is not known."""
    return "" if word.strip() in MISSING else word


def has_decimal_comma(cells: Collection[str]) -> bool:
    """Tell whether some numbers have a comma before their decimals, and none a point."""
    parted = [match for cell in cells if (match := re.match(THOUSANDS, cell.strip()))]
    decimals = [cell for cell in cells if DECIMAL.fullmatch(cell) and not re.match(THOUSANDS, cell.strip())]
    has_comma = any("," in cell for cell in decimals) or any(match[2] for match in parted)
    return has_comma and not any("." in cell for cell in decimals)


def is_blank(column: Any) -> Any:
    """Return where a column has nothing, or nothing but spaces."""
    if column.dtype != import_polars().String:
        return column.is_null()
    return column.is_null() | (column.str.strip_chars() == "").fill_null(True)


def with_numbers(frame: Any, decimal_comma: bool) -> Any:
    """Take spaces around words away, and make numbers of what polars took for words because of some cells."""
    found = [_as_numbers(bare, decimal_comma).alias(name) for name, bare in _bare_words(frame)]
    # All at once: one by one takes the square of the number of columns.
    return frame.with_columns(found) if found else frame


def with_known_kinds(frame: Any, words: Mapping[str, Sequence[str]], decimal_comma: bool) -> Any:
    """Do the same where it is known which columns have which ``words``, and all others numbers.

    A part of a table is then treated as all of it would be. What is no number stays, to be refused.
    """
    found = [
        (
            _as_known(bare, words[name], decimal_comma)
            if name in words
            else _as_far_as_numbers(bare, decimal_comma)
        ).alias(name)
        for name, bare in _bare_words(frame)
    ]
    return frame.with_columns(found) if found else frame


def _bare_words(frame: Any) -> Iterator[tuple[str, Any]]:
    """Yield every column of words without spaces around them, and without what stands for nothing."""
    for name, dtype in frame.schema.items():
        if dtype == import_polars().String:
            bare = frame[name].str.strip_chars()
            yield name, bare.set(bare.is_in(MISSING), None)


def _as_numbers(words: Any, decimal_comma: bool) -> Any:
    """Return a column of words as numbers, if all of them are, or stand for nothing.

    Where most are, these are written as polars writes numbers: so the others can be told from them.
    """
    polars = import_polars()
    usual = _usual(words, decimal_comma)
    numbers = usual.cast(polars.Float64, strict=False)
    says = _says(words)
    n_says, n_numbers = int(says.sum()), int(numbers.is_not_null().sum())
    if not n_numbers or n_numbers < MOSTLY_NUMBERS * n_says:
        return words
    if n_numbers < n_says:
        return words.set(~says, None).zip_with(numbers.is_null(), usual)
    integers = usual.cast(polars.Int64, strict=False)
    return integers if integers.null_count() == numbers.null_count() else numbers


def _as_far_as_numbers(words: Any, decimal_comma: bool) -> Any:
    """Return a column that must have numbers as these; as words, if some cells say something else."""
    usual, says = _usual(words, decimal_comma), _says(words)
    numbers = usual.cast(import_polars().Float64, strict=False)
    if (numbers.is_null() & says).any():
        return words.set(~says, None).zip_with(numbers.is_null(), usual)
    return numbers


def _as_known(words: Any, known: Sequence[str], decimal_comma: bool) -> Any:
    """Return words as the fit has written them, where it may have done so in another way."""
    if BOOLEAN.issuperset(known):  # polars knows True and TRUE for true, where a column has nothing else
        lower = words.str.to_lowercase()
        words = words.zip_with(~lower.is_in(list(BOOLEAN)).fill_null(False), lower)
    usual = _usual(words, decimal_comma)
    return words.zip_with(~(usual.is_in(known) & ~words.is_in(known)).fill_null(False), usual)


def _usual(words: Any, decimal_comma: bool) -> Any:
    """Return words of which polars can make numbers."""
    if not decimal_comma:
        return words
    whole = words.str.replace(THOUSANDS, "${1}").str.replace_all(".", "", literal=True)
    whole = whole + words.str.extract(THOUSANDS, 2).fill_null("")
    is_parted = words.str.contains(THOUSANDS).fill_null(False)
    return words.zip_with(~is_parted, whole).str.replace(",", ".", literal=True)


def _says(words: Any) -> Any:
    """Return where a column of numbers says something."""
    return words.is_not_null() & ~words.is_in(NO_NUMBER)
