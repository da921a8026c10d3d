"""Text files of a table in blocks of rows, for new rows: what stands in a column is known from the fit."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from smrmf.tables._cells import MISSING, with_known_kinds
from smrmf.tables._delimited import (
    Form,
    Source,
    find_form,
    first_bytes,
    not_blank,
    notes_on_form,
    refuse_first_strange_row,
    told_of,
)
from smrmf.tables._record import DataTable, TableError, import_polars

# Bytes of one row: more are hardly a row, but all that follows a quote that is never closed.
LONGEST_ROW = 2**28


@dataclass(frozen=True)
class Wanted:
    """The columns of new rows that are used, of words with those that the fit has seen, and their ids."""

    numbers: Sequence[str]
    words: Mapping[str, Sequence[str]]
    id_column: str | None = None


@dataclass
class _Reader:
    """How a file is read piece by piece, and how far."""

    name: str
    form: Form
    wanted: Wanted
    n_lines: int
    is_typed: bool  # numbers are parsed as such, which is faster, until some are written in another way

    def table(self, piece: bytes) -> DataTable:
        """Return the rows of a piece that begins and ends with whole rows."""
        source, form = Source(self.name, piece), self.form._replace(has_header=False)
        typed = self._frame(piece)
        keep = not_blank(source, form, typed, self.n_lines)
        used = typed.select([*self.wanted.numbers, *self.wanted.words])
        ids = self._ids(piece, keep)
        self.n_lines += piece.count(b"\n")
        used = with_known_kinds(
            used if keep is None else used.filter(keep), self.wanted.words, form.decimal_comma
        )
        return DataTable(used, used.columns, ids)

    def _frame(self, piece: bytes) -> Any:
        polars = import_polars()
        try:
            if self.is_typed:
                try:
                    return self._parsed(piece, self.wanted.numbers, null_values=MISSING)
                except polars.exceptions.ComputeError as error:
                    if "could not parse" not in str(error):
                        raise
                    self.is_typed = False
            return self._parsed(piece, (), null_values=MISSING)
        except polars.exceptions.PolarsError as error:
            refuse_first_strange_row(
                Source(self.name, piece), self.form._replace(has_header=False), self.n_lines
            )
            reason = str(error).partition("\n")[0]
            raise TableError(
                f"{self.name} cannot be read as a table from line {self.n_lines + 1} on ({reason:.200}): "
                "correct the file."
            ) from error

    def _ids(self, piece: bytes, keep: Any) -> list[str] | None:
        """Return ids as they stand there, also where these are words for a value that is missing."""
        if self.wanted.id_column is None:
            return None
        ids = self._parsed(piece, (), columns=[self.form.names.index(self.wanted.id_column)]).to_series()
        return list((ids if keep is None else ids.filter(keep)).fill_null("").to_list())

    def _parsed(self, piece: bytes, numbers: Iterable[str], **options: Any) -> Any:
        """Return a piece as polars reads it, all but some columns of numbers as words."""
        polars, form, kinds = import_polars(), self.form, set(numbers)
        # Names of our own, as those of the file may have quotes; and a header, as without one polars takes
        # the width of the first row for that of all.
        schema = {
            f"c{place}": polars.Float64 if name in kinds else polars.String
            for place, name in enumerate(form.names)
        }
        header = form.separator.join(schema).encode() + b"\n"
        found = polars.read_csv(
            header + piece,
            separator=form.separator,
            decimal_comma=form.decimal_comma,
            schema=schema,
            glob=False,
            **options,
        )
        called = dict(zip(schema, form.names, strict=True))
        return found.rename({name: called[name] for name in found.columns})


def delimited_blocks(
    name: str, file: Any, separator: str | None, wanted: Wanted, n_rows: int, most_bytes: int
) -> Iterator[DataTable]:
    """Yield a table with all names, but no rows, and then about ``n_rows`` at a time."""
    with told_of(Source(name, b"")):
        first = first_bytes(file, name).removeprefix(codecs.BOM_UTF8)
        form = find_form(first, separator, name)
        yield DataTable(None, form.names, notes=notes_on_form(form, separator))
        begin = _end_of_first_row(first) if form.has_header else 0
        # With a decimal comma polars would take the points of 1.034 for such commas, too.
        reader = _Reader(name, form, wanted, first.count(b"\n", 0, begin), not form.decimal_comma)
        size = max(1, n_rows * len(first) // max(1, first.count(b"\n")))
        for piece in whole_rows(_pieces(file, first[begin:], min(size, most_bytes)), name):
            yield reader.table(piece)


def _pieces(file: Any, first: bytes, size: int) -> Iterator[bytes]:
    """Yield the bytes that were read, and the rest of the file, with an end of line at its end."""
    last = b""
    for piece in chain(
        (first[at : at + size] for at in range(0, len(first), size)), iter(lambda: file.read(size), b"")
    ):
        if last:
            yield last
        last = piece
    if last:
        yield last if last.endswith(b"\n") else last + b"\n"


def whole_rows(pieces: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield the bytes of pieces so that every one begins and ends with whole rows."""
    rest = b""
    for piece in pieces:
        rest += piece
        end = _end_of_last_row(rest)
        if end:
            yield rest[:end]
            rest = rest[end:]
        elif len(rest) > LONGEST_ROW:
            raise TableError(
                f"{name} has a row of more than {LONGEST_ROW / 2**20:.0f} MiB: close the quote with which a "
                "cell of it begins."
            )
    if rest:
        yield rest


def _end_of_last_row(text: bytes) -> int:
    """Return where the last row ends that is whole, of a text that begins with one; 0 if there is none."""
    end = text.rfind(b"\n") + 1
    n_quotes = text.count(b'"', 0, end)
    while n_quotes % 2:  # this line goes on in a quoted cell, which begins with the quote before
        quote = text.rfind(b'"', 0, end)
        before = text.rfind(b"\n", 0, quote) + 1
        n_quotes -= text.count(b'"', before, end)
        end = before
    return end


def _end_of_first_row(text: bytes) -> int:
    end = text.find(b"\n") + 1
    while end and text.count(b'"', 0, end) % 2:
        end = text.find(b"\n", end) + 1
    return end or len(text)
