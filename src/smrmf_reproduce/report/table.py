"""A table of our figures beside the paper's, and how it is written as CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from smrmf_reproduce.report.paper import REAL_SETS, shown_name

WORDS = (
    *("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    "twelve",
)
DASH = "\N{EN DASH}"
# The largest difference that the page calls near.
NEAR = 0.03
# Which way a quantity is good: a difference of this sign is for the better. NEITHER describes the data alone.
HIGHER, LOWER, NEITHER = 1, -1, 0

CSV_COLUMNS = (
    *("table", "kind", "row", "column", "ours", "std", "best_over_grid", "paper", "paper_std", "difference"),
    *("lowest", "highest", "note"),
)


@dataclass(frozen=True)
class Cell:
    """One figure of ours beside the paper's; either may be absent, and ``note`` says why.

    ``std`` is over seeds or repeats; where ``ours`` is a mean of repeats, ``draw`` is the best single run
    over the grid; ``low`` and ``high`` are over equally valid readings of the paper; ``text`` stands where
    the entry is no number.
    """

    ours: float | None = None
    paper: float | None = None
    std: float | None = None
    paper_std: float | None = None
    low: float | None = None
    high: float | None = None
    text: str = ""
    note: str = ""
    draw: float | None = None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, None unless both exist."""
        if self.ours is None or self.paper is None:
            return None
        return self.ours - self.paper


@dataclass(frozen=True)
class TableRow:
    """A named row; ``kind`` is "data", "average", or "apart" (shown below the averages, in none of them)."""

    name: str
    cells: tuple[Cell, ...]
    kind: str = "data"
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells with what a reader needs to understand them.

    ``digits`` is for our figures, ``paper_digits`` for the paper's; ``colored`` cells show
    their difference, which makes sense only where a difference does (not for seconds on another machine);
    ``goals`` has the columns where lower is better, or neither is; ``best`` marks our best figure of each
    row; ``files`` names further files with what a table leaves out.
    """

    name: str
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    corner: str = "data set"
    digits: int = 3
    paper_digits: int = 2
    colored: bool = True
    best: bool = False
    goals: Mapping[str, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    def goal(self, column: str) -> int:
        """Return which way a column is good."""
        return self.goals.get(column, HIGHER)

    def with_first(self, names: Collection[str]) -> Table:
        """Return the same table with some columns before the others, each part in its old order."""
        # Stable, and False before True.
        order = sorted(range(len(self.columns)), key=lambda i: self.columns[i] not in names)
        rows = (replace(row, cells=tuple(row.cells[i] for i in order)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[i] for i in order), rows=tuple(rows))

    def column(self, name: str) -> dict[str, Cell]:
        """Return one column's cells of the rows that count in averages, by row name."""
        index = self.columns.index(name)
        # Without rows apart: what is in no average is in no verdict either.
        return {row.name: row.cells[index] for row in self.rows if row.kind == "data"}

    def row(self, name: str) -> dict[str, Cell]:
        """Return one row's cells by column name."""
        cells = next(row.cells for row in self.rows if row.name == name)
        return dict(zip(self.columns, cells, strict=True))

    @property
    def is_empty(self) -> bool:
        """True when no run of ours is behind any cell."""
        return not any(cell.ours is not None or cell.text for row in self.rows for cell in row.cells)


# All tables of a report, by name.
Tables = Mapping[str, Table]


def data_row(
    data: str, cells: Iterable[Cell], note: str = "", counted: Collection[str] = tuple(REAL_SETS)
) -> TableRow:
    """Return the row of a data set, apart from the others if averages do not count it."""
    return TableRow(shown_name(data), tuple(cells), "data" if data in counted else "apart", note)


def insert_average(rows: list[TableRow], name: str, cells: tuple[Cell, ...]) -> None:
    """Put an average below the rows that it is over, above those apart."""
    rows.insert(sum(row.kind == "data" for row in rows), TableRow(name, cells, "average"))


def mean_cell(cells: list[Cell]) -> Cell:
    """Return the mean of the cells that have both figures, and say over how many."""
    # Ours and the paper's mean over the same sets, so that their difference is the mean difference.
    both = [cell for cell in cells if cell.difference is not None]
    if not both:
        return Cell(note="no set in both")
    ours = fmean(cell.ours for cell in both if cell.ours is not None)
    paper = fmean(cell.paper for cell in both if cell.paper is not None)
    return Cell(ours, paper, note=count(len(both), "set"), draw=mean_draw(both))


def mean_draw(cells: Iterable[Cell]) -> float | None:
    """Return the mean of the best over the grid, None if it is that of our figures."""
    cells = list(cells)
    # A figure without repeats is the best over its grid itself.
    values = [cell.ours if cell.draw is None else cell.draw for cell in cells]
    known = [value for value in values if value is not None]
    return fmean(known) if any(cell.draw is not None for cell in cells) else None


def count(number: int, noun: str) -> str:
    """Return "1 set", "2 sets"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def in_words(number: int) -> str:
    """Return a small number as a word, a larger one in digits."""
    return WORDS[number] if 0 <= number < len(WORDS) else str(number)


def exceeds(difference: float, size: float) -> bool:
    """Tell whether a difference, as shown, is larger than a size: 0.034 is printed +0.03 and counts so."""
    return round(difference, 2) > size + 1e-9


def to_csv(table: Table) -> str:
    """Return the table in long form, one line a cell, our figures to four digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            ours = (_four(cell.ours), _four(cell.std), _four(cell.draw))
            numbers = (*ours, cell.paper, cell.paper_std, _four(cell.difference))
            note = "; ".join(part for part in (cell.text, cell.note, row.note) if part)
            writer.writerow(
                (table.name, row.kind, row.name, column, *numbers, _four(cell.low), _four(cell.high), note)
            )
    return text.getvalue()


def to_markdown(table: Table) -> str:
    """Return the table as Markdown, each cell "ours / paper"."""
    lines = [_line((table.corner, *table.columns)), _line(("---", *("---:" for _ in table.columns)))]
    for row in table.rows:
        name = f"**{row.name}**" if row.kind == "average" else row.name
        name += f" ({row.note})" if row.note else ""
        best = best_columns(table, row)
        lines.append(
            _line((name, *(markdown_cell(table, cell, i in best) for i, cell in enumerate(row.cells))))
        )
    return "\n".join(lines) + "\n"


def markdown_cell(table: Table, cell: Cell, best: bool = False) -> str:
    """Return "ours ± std, best draw [low, high] / paper (note)", leaving out what a cell does not have."""
    ours = cell.text or number(cell.ours, table.digits)
    if best:
        ours = f"**{ours}**"
    if cell.std is not None:
        ours += f" ± {number(cell.std, table.digits)}"
    if cell.draw is not None:
        ours += f", best {number(cell.draw, table.digits)}"
    if cell.low is not None and cell.high is not None:
        ours += f" [{number(cell.low, table.digits)}, {number(cell.high, table.digits)}]"
    if cell.paper is not None:
        ours += f" / {printed_number(cell.paper, table.paper_digits)}"
    return f"{ours} ({cell.note})" if cell.note else ours


def best_columns(table: Table, row: TableRow) -> set[int]:
    """Return the columns of our best figure in a row, none where that means nothing."""
    goals = [table.goal(column) for column in table.columns]
    values = {i: goals[i] * cell.ours for i, cell in enumerate(row.cells) if cell.ours is not None}
    # Averages over different numbers of sets, which the notes give, are not comparable.
    notes = {row.cells[i].note for i in values}
    if not table.best or len(values) < 2 or (row.kind == "average" and len(notes) > 1):
        return set()
    # All of equals, so that the order of the columns favours none. In full precision, not as printed.
    return {i for i, value in values.items() if value == max(values.values())}


SYMBOLS = {
    "manifold_weight": "λ",
    "selection_weight": "β",
    "smoothness": "δ",
    "projection_weight": "ω",
    "n_components": "p/m",
    "n_neighbors": "k",
}


def format_params(params: Mapping[str, Any]) -> str:
    """Return parameters as a short text: ``λ=0.1, β=1``."""
    return ", ".join(f"{SYMBOLS.get(name, name)}={_short(value)}" for name, value in sorted(params.items()))


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def number(value: float | None, digits: int, sign: bool = False) -> str:
    """Return a figure with a fixed number of digits, a dash for none; never "-0.00"."""
    if value is None:
        return DASH
    # -0.0 + 0.0 is 0.0.
    rounded = round(value, digits) + 0.0
    return f"{rounded:{'+' if sign else ''}.{digits}f}"


def printed_number(value: float | None, digits: int) -> str:
    """Return the paper's figure with its usual digits, more where it has more (0.002, a recomputed mean)."""
    if value is None:
        return DASH
    fixed = f"{value:.{digits}f}"
    # Large figures, such as sizes and seconds, need no more digits than usual.
    return fixed if float(fixed) == value or abs(value) >= 1 else f"{value:.3g}"


def _four(value: float | None) -> float | None:
    # Four digits hide the last bits, in which machines and library versions differ.
    return None if value is None else round(value, 4) + 0.0


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
