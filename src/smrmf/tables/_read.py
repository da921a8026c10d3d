"""Read a table from a file, by its suffix, and take the columns that are wanted."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smrmf.tables._array_files import read_array, read_arrays
from smrmf.tables._cells import as_class
from smrmf.tables._delimited import Source, read_delimited
from smrmf.tables._parquet import read_parquet
from smrmf.tables._record import DataTable, TableError, listed

SEPARATORS = {".csv": None, ".tsv": "\t"}
READABLE = ".csv, .tsv (both also .gz), .parquet, .npy or .npz"


def read_table(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    id_column: str | None = None,
    label_column: str | None = None,
) -> DataTable:
    r"""Read a table from a file, so that every row can be clustered and named.

    CSV and TSV, also compressed by gzip, Parquet, and arrays of NumPy and SciPy are known by their suffix. In
    ``.csv`` the separator may also be a semicolon, a tab or a bar. Arrays are mapped, not read.

    Parameters
    ----------
    path : str or path
        The file; ``-`` is standard input, as CSV. A ``.npz`` file has one two-dimensional array, or ``X``
        and perhaps ``y`` and ``feature_names``, or a sparse array of SciPy.
    columns : sequence of str or None, default=None
        The columns to use; None takes all. Those of an array without names are ``x0``, ``x1``, ...
    drop : sequence of str, default=()
        Columns not to use.
    id_column : str or None, default=None
        The column that names the rows; it is kept as it stands in the file, and not used.
    label_column : str or None, default=None
        The column of known classes; it is kept for comparison, and not used. Missing ones
        are no class.

    Returns
    -------
    table : DataTable
        ``frame`` with the columns ``names``, and for every row ``ids`` and ``labels``, or None; ``notes``
        says what was found out about the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from smrmf.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "birds.csv"
    ...     _ = path.write_text("code;mass;wing\n007;12,5;60\n008;14,0;63\n")
    ...     table = read_table(path, id_column="code")
    >>> table.ids, table.names, table.frame.rows()
    (['007', '008'], ['mass', 'wing'], [(12.5, 60), (14.0, 63)])
    >>> table.notes
    ["Columns are separated by ';'.", 'Decimals are written with a comma.']
    """
    columns = [columns] if isinstance(columns, str) else columns
    drop = [drop] if isinstance(drop, str) else drop
    beside = [name for name in (id_column, label_column) if name is not None]
    whole, words = _read(path, beside)
    for name in (*(columns or ()), *drop, *beside):
        check_name(str(path), name, whole.names)
    if not whole.n_rows:
        raise TableError(f"{path} has the names of {len(whole.names)} columns, but no rows: give some.")
    unused = {*drop, *beside}
    used = [name for name in dict.fromkeys(columns or whole.names) if name not in unused]
    if not used:
        raise TableError(f"Of {path} no column is left: give other columns, or drop fewer.")
    ids = None if id_column is None else words[id_column]
    labels = whole.labels if label_column is None else words[label_column]
    known = None if labels is None else [as_class(word) for word in labels]
    return DataTable(_take(whole, used), used, ids, known, whole.notes)


def _read(path: str | os.PathLike[str], beside: list[str]) -> tuple[DataTable, dict[str, list[str]]]:
    """Return all columns of a file, and the columns ``beside`` as words, as they stand there."""
    if str(path) == "-":
        return read_delimited(Source("standard input", sys.stdin.buffer.read()), None, beside)
    file, kind = Path(path), kind_of(path)
    if kind in SEPARATORS:
        return read_delimited(Source(str(file), file), SEPARATORS[kind], beside)
    table = {".parquet": read_parquet, ".npy": read_array, ".npz": read_arrays}[kind](file)
    return table, {name: words_of(table, name) for name in beside if name in table.names}


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return the suffix that tells how a table is read; refuse a path where there is none to read."""
    if str(path) == "-":
        return ".csv"
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file} is a folder: give the path of a table in it ({READABLE}).")
    if not file.is_file():
        raise FileNotFoundError(f"There is no file {file}: give the path of a table ({READABLE}).")
    suffixes = [suffix.lower() for suffix in file.suffixes]
    packed = suffixes[-1:] == [".gz"] and len(suffixes) > 1
    kind = suffixes[-2] if packed else "".join(suffixes[-1:])
    if kind not in SEPARATORS and (packed or kind not in (".parquet", ".npy", ".npz")):
        raise TableError(f"{file} ends in {file.suffix or 'no suffix'!r}: give a table in {READABLE}.")
    return kind


def words_of(table: DataTable, name: str) -> list[str]:
    """Return a column as words, as they stand in the table."""
    if isinstance(table.frame, np.ndarray):
        return [str(value) for value in table.frame[:, table.names.index(name)].tolist()]
    if hasattr(table.frame, "columns"):
        return ["" if value is None else str(value) for value in table.frame[name].to_list()]
    raise TableError(f"The table is sparse, so {name!r} cannot name its rows: give the classes as y.")


def _take(table: DataTable, used: list[str]) -> Any:
    if used == table.names:
        return table.frame
    if hasattr(table.frame, "columns"):
        return table.frame.select(used)
    places = {name: place for place, name in enumerate(table.names)}
    return table.frame[:, [places[name] for name in used]]


def check_name(source: str, name: str, names: list[str]) -> None:
    """Refuse the name of a column that a table does not have."""
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        instead = f"did you mean {near[0]!r}?" if near else f"it has {listed(names)}."
        raise TableError(f"{source} has no column {name!r}: {instead}")
