"""Load a data set by its name, and list what there is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from smrmf.datasets._catalogue import ROWS, Row
from smrmf.datasets._clean import clean
from smrmf.datasets._fetch import (
    DatasetError,
    Reader,
    Table,
    cache_home,
    fetch,
    fingerprint,
    in_one_line,
    read_table,
)


class Dataset(NamedTuple):
    """Rows and their classes; unpacks as ``X, y``."""

    X: Any
    y: np.ndarray


class DatasetInfo(NamedTuple):
    """What there is to know of a data set without loading it.

    ``n`` x ``m`` is what ``load`` returns, None where not known; ``raw_n`` x ``raw_m`` is the source's table.
    ``paper_name`` is None for a set that the paper does not have; ``present`` means no download is needed.
    """

    name: str
    paper_name: str | None
    n: int | None
    m: int | None
    classes: int
    raw_n: int
    raw_m: int
    source: str
    licence: str
    present: bool


def load(
    name: str,
    *,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
    cleaned: bool = True,
) -> Dataset:
    """Get a data set of the paper by its name, verified and ready to cluster.

    It is looked for in a folder of yours, then in the cache, then at its origin. Wherever it comes from, its
    values are verified: a file with other values is refused. Only for ova-colon, whose values could not be
    had when this was written, the shape alone is.

    Parameters
    ----------
    name : str
        One of the names that :func:`list_datasets` gives.
    data_home : path, optional
        Folder with files ``<name>.npz`` of arrays ``X`` and ``y``, or with the original files as their hosts
        name them; by default that of the environment variable ``SMRMF_DATA``, if it is set.
    download : bool, default=True
        Whether to download what neither the folder nor the cache has. Downloads need pooch:
        ``pip install 'smrmf[data]'``. The cache is the folder of the environment variable ``SMRMF_CACHE``, by
        default where the system keeps caches.
    cleaned : bool, default=True
        Whether to apply :func:`clean`. Otherwise values are the source's, of the rows that the paper uses:
        of wave the first 200 of each class, of 20-news counts of the chosen words in 251 documents of each.

    Returns
    -------
    Dataset
        ``X``, of floats, in CSR form for 20-news and an array otherwise, and ``y``, classes from 0.

    Raises
    ------
    DatasetError
        If the set cannot be had or a file is not what it should be; the message says what to do.
    """
    row = _row(name)
    X, y = _raw(row, data_home, download)
    if row.select is not None:
        X, y = row.select(X, y)
    if cleaned:
        X, y = clean(X if row.prepare is None else row.prepare(X), y)
    return Dataset(X, y)


def list_datasets(data_home: str | os.PathLike[str] | None = None) -> list[DatasetInfo]:
    """Tell which data sets there are, where they come from, and which need no download.

    Examples
    --------
    >>> from smrmf.datasets import list_datasets
    >>> [info.name for info in list_datasets() if info.paper_name == "Wave"]
    ['wave']
    """
    homes = list(_homes(data_home))
    return [
        DatasetInfo(
            name=row.name,
            paper_name=row.paper_name,
            n=row.shape[0] if row.shape else None,
            m=row.shape[1] if row.shape else None,
            classes=row.n_classes,
            raw_n=row.raw_shape[0],
            raw_m=row.raw_shape[1],
            source=row.source,
            licence=row.licence,
            present=any(_place(row, home) for home in homes),
        )
        for row in ROWS
    ]


def _row(name: str) -> Row:
    rows = {row.name: row for row in ROWS}
    if name not in rows:
        raise ValueError(f"name={name!r} is not a data set: choose one of {', '.join(rows)}.")
    return rows[name]


def _homes(data_home: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Yield the folders to look in, the user's before the cache."""
    chosen = data_home or os.environ.get("SMRMF_DATA")
    if chosen:
        folder = Path(chosen).expanduser()
        if not folder.is_dir():
            origin = "data_home" if data_home else "SMRMF_DATA"
            raise DatasetError(
                f"{origin}={str(chosen)!r} is not a folder: give the one that has the data sets."
            )
        yield folder
    yield cache_home()


def _place(row: Row, home: Path) -> tuple[Path, Reader] | None:
    """Return the table, folder or original file that a folder has of a data set, and how to read it."""
    if (path := home / f"{row.name}.npz").is_file():
        return path, read_table
    if row.read_folder is not None and (path := home / row.name).is_dir():
        return path, row.read_folder
    originals = ((home / route.file_name, route.read) for route in row.routes)
    return next(((path, read) for path, read in originals if path.is_file()), None)


def _raw(row: Row, data_home: str | os.PathLike[str] | None, download: bool) -> Table:
    """Return the verified table as the source has it."""
    homes = []
    for home in _homes(data_home):
        if place := _place(row, home):
            return _verified_file(row, *place)
        homes.append(home)
    tried = f"{row.name} is not in {' or '.join(str(home) for home in homes)}"
    table = f"{row.name}.npz with arrays X ({_shape(row.raw_shape)}) and y into {homes[0]}"
    if not row.routes:
        raise DatasetError(
            f"{tried} and the file of its source, {row.source}, is not read here: put {table}."
        )
    origin = row.routes[-1]
    by_hand = f"put its file {origin.file_name} or a file {table}"
    if not download:
        raise DatasetError(f"{tried} and download=False forbids {origin.url}: allow it, or {by_hand}.")
    try:
        return fetch(row.routes, lambda table: _verify(row, table), cache_home() / f"{row.name}.npz")
    except DatasetError as error:
        raise DatasetError(f"{tried} and {error}: try again, or {by_hand}.") from error


def _verified_file(row: Row, path: Path, read: Reader) -> Table:
    try:
        table = read(path)
    except Exception as error:  # a damaged file fails in as many ways as there are formats
        raise DatasetError(
            f"{path} cannot be read ({in_one_line(error)}): replace it by a complete copy, or remove it."
        ) from error
    try:
        _verify(row, table)
    except DatasetError as error:
        raise DatasetError(
            f"{path} is refused, as {error}: replace it by the original, or remove it."
        ) from error
    return table


def _verify(row: Row, table: Table) -> None:
    """Refuse a table that is not that of the row."""
    X, y = table
    if X.shape != row.raw_shape or y.shape != X.shape[:1]:
        raise DatasetError(
            f"its X is {_shape(X.shape)} with {y.size} labels where {row.name} is {_shape(row.raw_shape)}"
        )
    if (classes := len(np.unique(y))) != row.n_classes:
        raise DatasetError(f"its labels are of {classes} classes where {row.name} has {row.n_classes}")
    found = fingerprint(X, y)
    if row.fingerprint is not None and found != row.fingerprint:
        raise DatasetError(
            f"its values are not those of {row.name}, with fingerprint {found[:12]} where "
            f"{row.fingerprint[:12]} is expected"
        )


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(str(size) for size in shape)
