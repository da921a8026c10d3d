"""Tables of results that come block by block, and go where they are wanted only when they are whole."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Literal, TextIO, cast

from smrmf._files import written_atomically
from smrmf.tables._results import write_csv
from smrmf.tasks._plain import as_json, as_records

IN_MEMORY = 2**22  # letters; more are kept in a file without a name, which is gone whatever happens


class GrowingTable:
    """A table of which rows are added, as CSV or JSON, and that is then sent on as a whole."""

    def __init__(self, file: TextIO, form: Literal["csv", "json"]) -> None:
        self.file, self.form = file, form
        self.begun = False

    def add(self, columns: Mapping[str, Any]) -> None:
        """Add rows, at least one."""
        if self.form == "json":
            # A list without its brackets, so that several make one.
            self.file.write(("," if self.begun else "[") + as_json(as_records(columns))[1:-2])
        else:
            write_csv(self.file, columns, header=not self.begun)
        self.begun = True

    def send(self, to: TextIO) -> None:
        """Send all rows to a stream."""
        self.file.seek(0)
        shutil.copyfileobj(self.file, to)
        if self.form == "json":
            to.write("\n]\n")

    def save(self, path: Path, overwrite: bool) -> None:
        """Write all rows to a file, which is complete or absent."""
        with written_atomically(path, overwrite) as file:
            text = TextIOWrapper(file, "utf-8", errors="replace", newline="")
            self.send(text)
            text.flush()
            text.detach()


@contextmanager
def growing_table(form: Literal["csv", "json"] = "csv") -> Iterator[GrowingTable]:
    """Give a table that grows in memory, and when it is long in a scratch file."""
    with tempfile.SpooledTemporaryFile(
        IN_MEMORY, "w+", encoding="utf-8", errors="surrogatepass", newline=""
    ) as file:
        yield GrowingTable(cast(TextIO, file), form)


class FirstRows:
    """The first rows of a table of which rows are added, and how many there are."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.n_rows = 0
        self.columns: dict[str, list[Any]] = {}

    def add(self, columns: Mapping[str, Any]) -> None:
        """Add rows."""
        for name, values in columns.items():
            kept = self.columns.setdefault(name, [])
            kept += list(values[: self.most - len(kept)])
        self.n_rows += len(next(iter(columns.values())))
