"""Tables from addresses and files: downloaded, read, kept in the cache, and identified by one number.

What goes wrong becomes a :class:`DatasetError`, whose words are a part of the sentence that ``load`` raises.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import scipy.sparse as sp

from smrmf.datasets._unpack import check_npz

RawTable = tuple[Any, np.ndarray]  # X and y as the source has them, before any cleaning
Reader = Callable[[Path], RawTable]
TIMEOUT = 30.0  # seconds without a byte after which a host counts as silent


class DatasetError(RuntimeError):
    """A data set cannot be loaded, or a file is not the right one."""


@dataclass(frozen=True)
class Route:
    """Where a file is, how to read a table from it and, if known, the SHA-256 of the file itself."""

    url: str
    read: Reader
    sha256: str | None = None

    @property
    def file_name(self) -> str:
        """The name that the host gives the file."""
        return PurePosixPath(urlsplit(self.url).path).name


def cache_home() -> Path:
    """Return the folder of downloaded tables: SMRMF_CACHE, else where the system keeps caches."""
    if chosen := os.environ.get("SMRMF_CACHE"):
        return Path(chosen).expanduser()
    try:
        import pooch
    except ImportError:  # without pooch there are no downloads, so any place will do
        return Path.home() / ".cache" / "smrmf"
    return Path(pooch.os_cache("smrmf"))


def fetch(routes: Iterable[Route], verify: Callable[[RawTable], None], target: Path) -> RawTable:
    """Download a table by the first route that gives the right one, and keep it as the file ``target``.

    All work is done in a hidden folder beside the target, which is removed whatever goes wrong. The table
    gets its name by a rename, which is atomic: if two processes load at once, both download and the
    complete file of one of them stays.
    """
    if find_spec("pooch") is None:
        raise DatasetError("downloading needs pooch (pip install 'smrmf[data]')")
    reasons = []
    with _hidden_folder(target.parent) as workplace:
        for route in routes:
            try:
                # Verified by its values and not by the file: hosts repack archives without changing a number.
                table = read_file(_download(route, workplace / "original"), route.read)
                verify(table)
            except DatasetError as error:
                reasons.append(f"{route.url} ({error})")
            else:
                write_table(workplace / "complete.npz", *table)
                # The workplace is inside the target's folder, so this is one rename on one file system.
                os.replace(workplace / "complete.npz", target)
                return table
    raise DatasetError(f"cannot be downloaded from {' or '.join(reasons)}")


@contextmanager
def _hidden_folder(parent: Path) -> Iterator[Path]:
    """Make a hidden folder inside a folder, and remove it afterwards."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=parent, prefix=".") as name:
            yield Path(name)
    except OSError as error:  # no permission, a full disk, a file where the folder should be
        raise DatasetError(
            f"the cache folder {parent} cannot be written ({error.strerror}; SMRMF_CACHE names another)"
        ) from error


def _download(route: Route, path: Path) -> Path:
    """Save the file of a route and verify it where its checksum is known.

    ``pooch.retrieve`` would do both in one call, but it writes to the standard error stream, takes a file
    that an earlier route has left as its own, and explains another checksum in several sentences.
    """
    import pooch
    import requests

    # The first kind that fits counts: a time-out while connecting is also a failed connection.
    failures = (
        (requests.HTTPError, "the host refused with status {0.response.status_code}"),
        (requests.Timeout, f"no answer within {TIMEOUT:g} s"),
        (requests.ConnectionError, "the connection failed or fell silent"),
        (requests.exceptions.ChunkedEncodingError, "the transfer broke off"),
        (requests.RequestException, "{0}"),
    )
    try:
        pooch.HTTPDownloader(timeout=TIMEOUT)(route.url, str(path), None)
    except requests.RequestException as error:
        words = next(words for kind, words in failures if isinstance(error, kind))
        raise DatasetError(words.format(error)) from error
    if route.sha256 and pooch.file_hash(str(path)) != route.sha256:
        raise DatasetError(f"the file is another one, its SHA-256 does not start with {route.sha256[:12]}")
    return path


def read_file(path: Path, read: Reader) -> RawTable:
    """Read a table from a file, which may hold anything: every format fails in its own way."""
    try:
        return read(path)
    except ImportError as error:
        raise DatasetError(
            f"cannot be read, as {error.name} is not installed (pip install 'smrmf[data]')"
        ) from error
    # zipfile, tarfile, numpy, PIL: no common class of errors, and all mean a file that is not the right one.
    except Exception as error:
        words = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise DatasetError(f"cannot be read, as {words}") from error


def fingerprint(X: Any, y: np.ndarray) -> str:
    """Return a SHA-256 that depends on the values only, not on file format, stored type or memory order."""
    digest = hashlib.sha256(f"{X.shape[0]} {X.shape[1]}".encode())
    if sp.issparse(X):
        X = sp.csr_array(X, copy=True)
        # Also sorts the indices of every row: one matrix, one set of arrays.
        X.sum_duplicates()
        # Fixed width and byte order: scipy picks 32 or 64 bits by the size of the matrix.
        parts = [(X.indptr, "<i8"), (X.indices, "<i8"), (X.data, "<f8"), (y, "<i8")]
    else:
        parts = [(X, "<f8"), (y, "<i8")]
    for values, kind in parts:
        # Some copies write -0.0 where others write 0.0; the sum makes them the same.
        digest.update(np.ascontiguousarray(values + np.zeros((), dtype=kind), dtype=kind).tobytes())
    return digest.hexdigest()


def read_table(path: Path) -> RawTable:
    """Return X and y of an .npz file; a sparse X is stored by the three arrays of its CSR form."""
    check_npz(path)
    # Opened here, as np.load leaves the file open when it is damaged. A pickle could run any code.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        y = stored["y"].astype(np.int64)
        if "indptr" not in stored:
            return np.ascontiguousarray(stored["X"], dtype=np.float64), y
        parts = stored["data"], stored["indices"], stored["indptr"]
        return sp.csr_array(parts, shape=tuple(stored["shape"])), y


def write_table(path: Path, X: Any, y: np.ndarray) -> None:
    """Write an .npz file that ``read_table`` reads."""
    if sp.issparse(X):
        arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
    else:
        arrays = {"X": X}
    np.savez_compressed(path, allow_pickle=False, y=y, **arrays)
