"""Text files of a table: find out how they are written, and read them with polars."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from smrmf.tables._cells import DECIMAL, MISSING, has_decimal_comma, is_blank, with_numbers
from smrmf.tables._record import (
    DataTable,
    TableError,
    check_different,
    for_polars,
    import_polars,
    listed,
)

LOOKED_AT = 2**16  # bytes from which the way of writing is known
LOOKED_AT_ROWS = 10_000  # from which types are guessed; all, where the guess is wrong
SEPARATORS = ",;\t|"
csv.field_size_limit(2**27)  # texts may be long


class Source(NamedTuple):
    """A file, or bytes that were read, and how sentences call it."""

    name: str
    content: Path | bytes

    def open(self) -> Any:
        """Return a stream of the bytes, unpacked."""
        if isinstance(self.content, bytes):
            return io.BytesIO(self.content)
        return gzip.open(self.content) if self.content.suffix.lower() == ".gz" else self.content.open("rb")


class Form(NamedTuple):
    """How a file is written; without a header, ``names`` are made up."""

    separator: str
    names: list[str]
    has_header: bool
    decimal_comma: bool
    unnamed: list[str]


def read_delimited(
    source: Source, separator: str | None, beside: list[str]
) -> tuple[DataTable, dict[str, list[str]]]:
    """Return all columns of a file, and the columns ``beside`` as words, as they stand there."""
    with told_of(source):
        with source.open() as file:
            form = find_form(first_bytes(file, source.name), separator, source.name)
        frame = _frame(source, form, null_values=MISSING, try_parse_dates=True)
        keep = not_blank(source, form, frame)
        # As words, not as numbers of which words are made again: 007 must not become 7.
        as_words = _frame(source, form, infer_schema=False) if set(beside) & set(form.names) else None
    words = {}
    if as_words is not None:
        kept = as_words if keep is None else as_words.filter(keep)
        words = {name: kept[name].fill_null("").to_list() for name in beside if name in form.names}
    frame = with_numbers(frame if keep is None else frame.filter(keep), form.decimal_comma)
    return DataTable(frame, form.names, notes=notes_on_form(form, separator)), words


def notes_on_form(form: Form, separator: str | None) -> list[str]:
    """Return what a user must know of how a file is written, where ``separator`` is its usual one."""
    notes = []
    if form.separator not in (",", separator):
        notes.append(f"Columns are separated by {form.separator!r}.")
    if form.decimal_comma:
        notes.append("Decimals are written with a comma.")
    if not form.has_header:
        notes.append(
            f"The first row has numbers, so columns have no names and are called {listed(form.names)}."
        )
    elif form.unnamed:
        one = len(form.unnamed) == 1
        what = "The column without a name is" if one else "Columns without a name are"
        notes.append(f"{what} called {listed(form.unnamed)}.")
    return notes


@contextmanager
def told_of(source: Source) -> Iterator[None]:
    """Tell of a file what is wrong with its bytes."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise TableError(
            f"{source.name} is not written in UTF-8 (it has the byte {error.object[error.start]:#x}): save "
            "it as UTF-8 first, with iconv, say, or as 'CSV UTF-8' in a spreadsheet."
        ) from error
    except (gzip.BadGzipFile, EOFError) as error:
        raise TableError(f"{source.name} is no gzip file, or damaged ({error}): pack it again.") from error


# How it is written


def first_bytes(file: Any, name: str) -> bytes:
    """Read so much of a file that its way of writing is known."""
    # To the end of a line, and of the second one at least, however many columns there are.
    found = file.read(LOOKED_AT) + file.readline() + file.readline()
    if found.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise TableError(f"{name} is written in UTF-16: save it as UTF-8 first.")
    if not found.strip():
        raise TableError(f"{name} is empty: give a table with a row of names and rows of values.")
    return found


def find_form(first: bytes, separator: str | None, name: str) -> Form:
    """Find out how a file is written from its first bytes."""
    lines = first.decode("utf-8-sig").splitlines(keepends=True)
    separator = separator or max(SEPARATORS, key=lambda candidate: _n_columns(lines, candidate))
    rows = list(csv.reader(lines, delimiter=separator))
    header = [cell.strip() for cell in rows[0]]
    if not header:
        raise TableError(f"{name} begins with an empty line: the first must have the names of the columns.")
    has_header = not any(DECIMAL.fullmatch(cell) for cell in header) and not all(
        cell.lstrip("+-").isdigit() for cell in header
    )
    # A column without a name, as row numbers often are, could not be asked for.
    names = [
        (cell or f"unnamed_{place}") if has_header else f"column_{place}"
        for place, cell in enumerate(header, start=1)
    ]
    check_different(name, names)
    comma = separator != "," and has_decimal_comma({cell for row in rows[1:] for cell in row})
    unnamed = [name for name, cell in zip(names, header, strict=True) if not cell and has_header]
    return Form(separator, names, has_header, comma, unnamed)


def _n_columns(lines: list[str], separator: str) -> int:
    """Return how many columns a separator makes of the first two rows; 0 if not the same number of both."""
    rows = filter(None, csv.reader(lines, delimiter=separator))
    widths = {len(row) for row in islice(rows, 2)}
    return widths.pop() if len(widths) == 1 else 0


# Reading


def _frame(source: Source, form: Form, **options: Any) -> Any:
    """Return the table as polars reads it."""
    polars = import_polars()
    read = partial(
        polars.read_csv,
        source.content if isinstance(source.content, bytes) else for_polars(source.content),
        separator=form.separator,
        has_header=form.has_header,
        decimal_comma=form.decimal_comma,
        glob=False,
        **options,
    )
    try:
        try:
            frame = read(infer_schema_length=LOOKED_AT_ROWS)
        except polars.exceptions.ComputeError as error:
            if "could not parse" not in str(error):
                raise
            # The guess from the first rows was wrong: look at all of them, which takes twice as long.
            frame = read(infer_schema_length=None)
        # By place: polars has other names for those with spaces around them.
        frame.columns = form.names
    except polars.exceptions.PolarsError as error:
        refuse_first_strange_row(source, form)
        reason = str(error).partition("\n")[0]
        said = f"{source.name} cannot be read as a table ({reason:.200}): correct the file."
        raise TableError(said) from error
    return frame


def _rows(source: Source, form: Form) -> Iterator[tuple[int, list[str]]]:
    """Yield every row of values as words, with its line in the file."""
    with source.open() as file:
        reader = csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline=""), delimiter=form.separator)
        if form.has_header:
            next(reader)
        for row in reader:
            yield reader.line_num, row


def refuse_first_strange_row(source: Source, form: Form, n_lines: int = 0) -> list[int]:
    """Refuse a row with more or fewer fields than columns; return the places of blank lines.

    There are ``n_lines`` in the file before those of the source.
    """
    blank = []
    for place, (line, row) in enumerate(_rows(source, form)):
        if len(row) <= 1 and not "".join(row).strip():
            blank.append(place)
        elif len(row) != len(form.names):
            raise TableError(
                f"{source.name} has {len(form.names)} columns, but {len(row)} in line {n_lines + line}: "
                "correct the line; a field with a separator in it must be quoted."
            )
    return blank


def not_blank(source: Source, form: Form, frame: Any, n_lines: int = 0) -> Any:
    """Return which rows of the frame are no blank lines, or None for all; refuse rows that are too short."""
    polars = import_polars()
    # What is missing in a row that is too short is null, and so is all of a blank line but for its spaces:
    # without a null in the last column there is neither, and going through the text again is spared.
    if not frame.height or not is_blank(frame[frame.columns[-1]]).any():
        return None
    blank = np.zeros(frame.height, dtype=bool)
    blank[[place for place in refuse_first_strange_row(source, form, n_lines) if place < frame.height]] = True
    for name in frame.columns:
        blank &= is_blank(frame[name]).to_numpy()
    return polars.Series(~blank) if blank.any() else None
