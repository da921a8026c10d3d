"""Load a data set by its name, and list what there is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from smrmf.datasets._catalogue import CATALOGUE, CatalogueEntry
from smrmf.datasets._clean import clean
from smrmf.datasets._fetch import (
    DatasetError,
    RawTable,
    Reader,
    cache_home,
    fetch,
    fingerprint,
    read_file,
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
    values are verified: a file with other values is refused. Only for ova-colon, whose fingerprint is not
    known, the shape alone is verified.

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
        If the set cannot be loaded or a file is not the right one; the message says what to do.
    """
    entry = _entry_named(name)
    X, y = _raw_table(entry, data_home, download)
    if entry.select is not None:
        # After verification: the fingerprint is that of the whole table.
        X, y = entry.select(X, y)
    if cleaned:
        # TF-IDF weighs by document frequencies, so it comes before rows and features are dropped.
        X, y = clean(X if entry.prepare is None else entry.prepare(X), y)
    return Dataset(X, y)


def list_datasets(data_home: str | os.PathLike[str] | None = None) -> list[DatasetInfo]:
    """Tell which data sets there are, where they come from, and which need no download.

    Examples
    --------
    >>> from smrmf.datasets import list_datasets
    >>> [info.name for info in list_datasets() if info.paper_name == "Wave"]
    ['wave']
    """
    folders = list(_folders(data_home))
    return [
        DatasetInfo(
            name=entry.name,
            paper_name=entry.paper_name,
            n=entry.shape[0] if entry.shape else None,
            m=entry.shape[1] if entry.shape else None,
            classes=entry.n_classes,
            raw_n=entry.raw_shape[0],
            raw_m=entry.raw_shape[1],
            source=entry.source,
            licence=entry.licence,
            present=any(_file_in(folder, entry) for folder in folders),
        )
        for entry in CATALOGUE
    ]


def _entry_named(name: str) -> CatalogueEntry:
    entries = {entry.name: entry for entry in CATALOGUE}
    if name not in entries:
        raise ValueError(f"name={name!r} is not a data set: choose one of {', '.join(entries)}.")
    return entries[name]


def _folders(data_home: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Yield the folders to look in, the user's before the cache."""
    chosen = data_home or os.environ.get("SMRMF_DATA")
    if chosen:
        folder = Path(chosen).expanduser()
        # A mistyped folder must not end in a silent download.
        if not folder.is_dir():
            origin = "data_home" if data_home else "SMRMF_DATA"
            raise DatasetError(
                f"{origin}={str(chosen)!r} is not a folder: give the one that has the data sets."
            )
        yield folder
    yield cache_home()


def _file_in(folder: Path, entry: CatalogueEntry) -> tuple[Path, Reader] | None:
    """Return the table, folder or original file that a folder has of a data set, and how to read it."""
    # First the form in which fetch keeps tables, which needs no unpacking and no parsing.
    if (path := folder / f"{entry.name}.npz").is_file():
        return path, read_table
    if entry.read_folder is not None and (path := folder / entry.name).is_dir():
        return path, entry.read_folder
    originals = ((folder / route.file_name, route.read) for route in entry.routes)
    return next(((path, read) for path, read in originals if path.is_file()), None)


def _raw_table(entry: CatalogueEntry, data_home: str | os.PathLike[str] | None, download: bool) -> RawTable:
    """Return the verified table as the source has it."""
    folders = []
    for folder in _folders(data_home):
        # A file that is refused ends the search: a wrong file in the user's folder should be known, not be
        # passed over for a download.
        if found := _file_in(folder, entry):
            return _read_verified(entry, *found)
        folders.append(folder)
    tried = f"{entry.name} is not in {' or '.join(map(str, folders))}"
    table = f"{entry.name}.npz with arrays X ({_shape_text(entry.raw_shape)}) and y into {folders[0]}"
    if not entry.routes:
        raise DatasetError(
            f"{tried} and the file of its source, {entry.source}, is not read here: put {table}."
        )
    origin = entry.routes[-1]
    by_hand = f"put its file {origin.file_name} or a file {table}"
    if not download:
        raise DatasetError(f"{tried} and download=False forbids {origin.url}: allow it, or {by_hand}.")
    try:
        return fetch(entry.routes, lambda table: _verify(entry, table), cache_home() / f"{entry.name}.npz")
    except DatasetError as error:
        raise DatasetError(f"{tried} and {error}: try again, or {by_hand}.") from error


def _read_verified(entry: CatalogueEntry, path: Path, read: Reader) -> RawTable:
    """Read a file of a folder or of the cache, and verify it."""
    try:
        table = read_file(path, read)
    except DatasetError as error:
        raise DatasetError(f"{path} {error}: replace it by a complete copy, or remove it.") from error
    try:
        _verify(entry, table)
    except DatasetError as error:
        raise DatasetError(
            f"{path} is refused, as {error}: replace it by the original, or remove it."
        ) from error
    return table


def _verify(entry: CatalogueEntry, table: RawTable) -> None:
    """Refuse a table that is not that of the entry."""
    X, y = table
    if X.shape != entry.raw_shape or y.shape != X.shape[:1]:
        found, expected = _shape_text(X.shape), _shape_text(entry.raw_shape)
        raise DatasetError(f"its X is {found} with {y.size} labels where {entry.name} is {expected}")
    if (classes := len(np.unique(y))) != entry.n_classes:
        raise DatasetError(f"its labels are of {classes} classes where {entry.name} has {entry.n_classes}")
    # Shape and classes first, because their messages help more than two hashes that differ.
    found = fingerprint(X, y)
    if entry.fingerprint is not None and found != entry.fingerprint:
        raise DatasetError(
            f"its values are not those of {entry.name}, with fingerprint {found[:12]} where "
            f"{entry.fingerprint[:12]} is expected"
        )


def _shape_text(shape: tuple[int, ...]) -> str:
    return " x ".join(str(size) for size in shape)
