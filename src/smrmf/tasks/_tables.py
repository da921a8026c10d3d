"""A table in a file, ready for a model: its numbers, what to call its rows, and what was decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from smrmf._validation import ParameterError
from smrmf.tables import DataTable, TablePreparation, read_table
from smrmf.tables._record import import_polars
from smrmf.tasks._wording import for_a_terminal

# What tables of results call rows that have no ids: by their number, the first after the names being 1.
ROW = "row"
# What else these tables have: a column of the user's that is called so gets another name beside.
RESULT_COLUMNS = frozenset({"cluster", "confidence", "outlier_score", "class", "rank", "score", "weight"})


def beside(name: str, taken: Collection[str] = RESULT_COLUMNS) -> str:
    """Return what to call a column of the user's in a table that has columns of these names."""
    return f"{name} (table)" if name in taken else name


@dataclass(frozen=True)
class TableChoice:
    """Which table, which of its columns, and in which unit."""

    path: str
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    id_column: str | None = None
    label_column: str | None = None
    scale: str = "auto"

    def check(self) -> None:
        """Refuse a choice that contradicts itself."""
        if self.id_column is not None and self.id_column == self.label_column:
            raise ParameterError(f"{self.id_column!r} is given as --id and as --label-column: leave one out.")

    def read(self) -> DataTable:
        """Return the table."""
        self.check()
        return read_table(
            self.path,
            columns=self.columns or None,
            drop=self.drop,
            id_column=self.id_column,
            label_column=self.label_column,
        )


@dataclass(frozen=True, eq=False)
class PreparedTable:
    """A table, and the numbers that were made of it."""

    table: DataTable
    preparation: TablePreparation
    X: Any
    rows: RowNames
    step: int = 1  # of the rows that stand for a table on disk, from one to the next

    @property
    def notes(self) -> list[str]:
        """Return what a user must know of the table."""
        notes = [*self.table.notes, *self.preparation.notes_, *_on_ids(self.rows)]
        return [for_a_terminal(note) for note in notes]

    @property
    def feature_names(self) -> list[str]:
        """Return the names of the features of X."""
        return self.preparation.feature_names_out_

    @cached_property
    def units(self) -> Any:
        """Return the features as they stand in the table, gaps as NaN: a frame, or of an array the array.

        Not what the preparation gives back: that has medians in the gaps, which nobody has measured.
        """
        frame = self.table.frame
        if not hasattr(frame, "columns"):
            return frame if self.preparation.numbers_ == self.table.names else self.units_of(slice(None))
        words = [
            (frame[name].cast(import_polars().String) == word).fill_null(False)
            for name, known in self.preparation.words_.items()
            for word in known
        ]
        columns = [*self._numbers().get_columns(), *words]
        return import_polars().DataFrame(
            [column.rename(name) for name, column in zip(self.feature_names, columns, strict=True)]
        )

    def units_of(self, rows: Any) -> Any:
        """Return the features of some rows of an array as they stand in the table."""
        places = {name: place for place, name in enumerate(self.table.names)}
        return self.table.frame[rows][:, [places[name] for name in self.preparation.numbers_]]

    def to_read(self) -> Any:
        """Return the columns that are used as people read them: values of the table, words as words."""
        if not hasattr(self.table.frame, "columns"):
            return self.units
        polars = import_polars()
        words = self.table.frame.select(polars.col(list(self.preparation.words_)).cast(polars.String))
        # Not added to the numbers, of which there may be none: a frame without columns has no rows.
        return polars.DataFrame([*self._numbers().get_columns(), *words.get_columns()])

    def _numbers(self) -> Any:
        """Return the columns of numbers of a frame as floating-point numbers."""
        polars = import_polars()
        numbers = self.table.frame.select(self.preparation.numbers_)
        return numbers.cast({~polars.selectors.float(): polars.Float64})


@dataclass(frozen=True, eq=False)
class RowNames:
    """What to call the rows of a table: by an id of the user's, or by their numbers from 1."""

    title: str
    names: list[Any]

    @classmethod
    def of(cls, table: DataTable, id_column: str | None) -> RowNames:
        """Return the names of the rows of a table."""
        if table.ids is None or id_column is None:
            return cls(ROW, list(range(table.first_row + 1, table.first_row + table.n_rows + 1)))
        return cls(beside(id_column), table.ids)

    def column(self, rows: Any) -> dict[str, list[Any]]:
        """Return the column of a table of results that names these rows."""
        return {self.title: [self.names[row] for row in rows]}


def _on_ids(rows: RowNames) -> list[str]:
    """Return what a user must know of ids that name several rows."""
    times = Counter(rows.names)
    name, most = times.most_common(1)[0]
    if most == 1:
        return []
    several = sum(count > 1 for count in times.values())
    if several == 1:
        return [f"{most} rows have the id {str(name)!r:.60}: it names no single row."]
    return [f"{several} ids stand on several rows, {str(name)!r:.60} on {most}: they name no single rows."]


def prepare_table(choice: TableChoice) -> PreparedTable:
    """Read a table and make numbers of it."""
    table = choice.read()
    asked = [name for name in table.names if name in choice.columns]
    preparation = TablePreparation(asked or None, scale=choice.scale)
    X = preparation.fit_transform(table)
    return PreparedTable(table, preparation, X, RowNames.of(table, choice.id_column))
