"""What stands in the cells of text files: numbers, however they are written, words, or nothing."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from smrmf.tables._decisions import MOSTLY_NUMBERS
from smrmf.tables._record import import_polars

# What people, and programs, write where there is nothing to write.
MISSING = ["", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None", "?"]
# With a decimal comma points part thousands: 1.034,06.
THOUSANDS = r"^([+-]?\d{1,3}(?:\.\d{3})+)(,\d+)?$"
# What stands for nothing among numbers; as a word it may say something, as of + and -.
NO_NUMBER = ["-", "--", "\N{EN DASH}", "\N{EM DASH}", ".", ".."]
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
    polars, found = import_polars(), []
    for name, dtype in frame.schema.items():
        if dtype == polars.String:
            bare = frame[name].str.strip_chars()
            bare = bare.set(bare.is_in(MISSING), None)
            found.append(_as_numbers(bare, decimal_comma).alias(name))
    # All at once: one by one takes the square of the number of columns.
    return frame.with_columns(found) if found else frame


def _as_numbers(words: Any, decimal_comma: bool) -> Any:
    """Return a column of words as numbers, if all of them are, or stand for nothing.

    Where most are, these are written as polars writes numbers: so the others can be told from them.
    """
    polars = import_polars()
    usual = words
    if decimal_comma:
        whole = words.str.replace(THOUSANDS, "${1}").str.replace_all(".", "", literal=True)
        whole = whole + words.str.extract(THOUSANDS, 2).fill_null("")
        is_parted = words.str.contains(THOUSANDS).fill_null(False)
        usual = words.zip_with(~is_parted, whole).str.replace(",", ".", literal=True)
    numbers = usual.cast(polars.Float64, strict=False)
    says = words.is_not_null() & ~words.is_in(NO_NUMBER)
    n_says, n_numbers = int(says.sum()), int(numbers.is_not_null().sum())
    if not n_numbers or n_numbers < MOSTLY_NUMBERS * n_says:
        return words
    if n_numbers < n_says:
        return words.set(~says, None).zip_with(numbers.is_null(), usual)
    integers = usual.cast(polars.Int64, strict=False)
    return integers if integers.null_count() == numbers.null_count() else numbers
