"""Write tables, and what else belongs to a result, into a folder, which is complete or absent."""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from smrmf._files import check_parent
from smrmf.tables._record import TableError

# What a fit of a table writes.
MODEL, REPORT, SUMMARY = "model.smrmf", "report.html", "summary.json"
OF_A_FIT = frozenset({"labels.csv", "profiles.csv", "exemplars.csv", MODEL, REPORT, SUMMARY})


def write_results(
    directory: str | os.PathLike[str],
    tables: Mapping[str, Mapping[str, Sequence[Any]]],
    force: bool = False,
    files: Mapping[str, Callable[[Path], Any]] | None = None,
) -> list[Path]:
    """Write several tables as CSV into a new folder, so that a crash leaves all of them or none.

    They are written beside it, and the folder gets its name when all are complete. An earlier one that is
    replaced is moved aside before, and removed after: at any moment one of both is there, whole, in the worst
    case under a name that begins with a dot.

    Parameters
    ----------
    directory : str or path
        The folder, in one that exists.
    tables : dict of dict of sequences
        By the name of the file, without suffix, the columns of every table by their names. Values are written
        as they are, None as nothing.
    force : bool, default=False
        Whether an earlier folder may be replaced; one that has other files than those written now, or by a
        fit, never is.
    files : dict of functions or None, default=None
        What else belongs to the result, ``model.smrmf``, ``report.html`` or ``summary.json``, each with a
        function that writes it to the path it is given.

    Returns
    -------
    paths : list of Path
        The files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from smrmf.tables import write_results
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tables = {"clusters": {"id": ["007", "b, c"], "cluster": [1, 2]}}
    ...     paths = write_results(Path(folder) / "results", tables)
    ...     print(paths[0].name, paths[0].read_text().splitlines())
    clusters.csv ['id,cluster', '007,1', '"b, c",2']
    """
    # Of a link the folder behind it is replaced, and the link stays.
    folder, files = Path(directory).resolve(), dict(files or {})
    _check_tables(tables)
    names = [*(f"{name}.csv" for name in tables), *files]
    known = OF_A_FIT.union(names)
    check_folder(folder, force, known)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        new = aside / "new"
        new.mkdir()
        for name, columns in tables.items():
            _write(new / f"{name}.csv", columns)
        for name, write in files.items():
            write(new / name)
        check_folder(folder, force, known)  # another process may have been faster
        if folder.exists():
            os.rename(folder, aside / "old")
        try:
            os.rename(new, folder)
        except BaseException:
            if (aside / "old").exists():
                os.rename(aside / "old", folder)
            raise
    finally:
        # Not if the old one could not be brought back: then it is the only one.
        if folder.exists() or not (aside / "old").exists():
            shutil.rmtree(aside, ignore_errors=True)
    return [folder / name for name in names]


def _check_tables(tables: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
    for name, columns in tables.items():
        if not name or Path(name).name != name or name.startswith("."):
            raise TableError(
                f"{name!r} cannot be the name of a table: give one without slashes and leading dots."
            )
        if len({len(column) for column in columns.values()}) > 1:
            lengths = ", ".join(f"{column!r}: {len(values)}" for column, values in columns.items())
            raise TableError(
                f"Columns of {name!r} have different lengths ({lengths}): give all rows of each."
            )


def check_folder(folder: Path, force: bool, known: frozenset[str] = OF_A_FIT) -> None:
    """Refuse a place where no folder of results can be, or where one is that may not be replaced.

    Only files of ``known`` names are ever replaced: whoever gives the folder of their tables by mistake must
    not lose it.
    """
    check_parent(folder)
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: give the name of a new folder.")
    if not force:
        raise FileExistsError(f"{folder} exists already: give another name, or use force to replace it.")
    others = sorted(path.name for path in folder.iterdir() if path.name not in known or not path.is_file())
    if others:
        raise FileExistsError(f"{folder} has {others[0]!r}, which is no result: give another name.")


def write_csv(file: TextIO, columns: Mapping[str, Sequence[Any]], header: bool = True) -> None:
    """Write a table to a stream, or without a header more rows of one."""
    writer = csv.writer(file, lineterminator="\n")
    if header:
        writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))


def _write(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
        write_csv(file, columns)
        file.flush()
        os.fsync(file.fileno())
