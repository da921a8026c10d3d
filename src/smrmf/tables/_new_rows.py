"""What new rows lack, or have that the fit has not seen, counted block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smrmf.tables._columns import Columns
from smrmf.tables._decisions import finite_numbers
from smrmf.tables._notes import note_on_strange_words, notes_on_gaps, notes_on_gaps_in_words


class NewRows:
    """Counts of gaps and of strange words in the columns that a preparation uses."""

    def __init__(self, numbers: Sequence[str], words: Mapping[str, Sequence[str]]) -> None:
        self.words = words
        self.n_rows = 0
        # In the order of the preparation, which is that of the sentences.
        self.gaps = dict.fromkeys(numbers, 0)
        self.wordless = dict.fromkeys(words, 0)
        self.strange: dict[str, tuple[str, int]] = {}

    def add(self, columns: Columns) -> None:
        """Count in some rows."""
        self.n_rows += columns.n_rows
        for name in self.gaps:
            self.gaps[name] += int(finite_numbers(columns, name)[1].sum())
        for name, known in self.words.items():
            words = columns.words(name)
            self.wordless[name] += int(words.null_count())
            strange = words.filter(words.is_not_null() & ~words.is_in(known))
            if len(strange):
                first, count = self.strange.get(name, (strange[0], 0))
                self.strange[name] = first, count + len(strange)

    def notes(self) -> list[str]:
        """Return one sentence for every column that lacks something, or for many."""
        gaps, wordless = (
            {name: count for name, count in found.items() if count} for found in (self.gaps, self.wordless)
        )
        done = "filled with the median of the fit"
        strange = [(name, *self.strange[name]) for name in self.words if name in self.strange]
        return [
            *notes_on_gaps(gaps, self.n_rows, [done] * len(gaps), done),
            *notes_on_gaps_in_words(wordless, self.n_rows),
            *(note_on_strange_words(*each) for each in strange),
        ]
