"""Results on disk: one small file per run, which is either complete or absent."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from smrmf_reproduce.run.plan import Run

Record = dict[str, Any]
DONE, FAILED = "done", "failed"
NONE = type(None)
# What every record has, each with the types that JSON may give it.
FIELDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("key", "data", "method", "status", "started"), (str,)),
    **dict.fromkeys(("params", "settings", "versions", "machine"), (dict,)),
    **dict.fromkeys(("n_samples", "n_features", "n_classes", "n_iter"), (int, NONE)),
    **dict.fromkeys(("seconds", "spent", "peak_memory", "objective"), (int, float, NONE)),
    **dict.fromkeys(("accuracy", "nmi_max", "nmi_arithmetic"), (int, float, NONE)),
    "seed": (int,),
    "error": (str, NONE),
    "converged": (bool, NONE),
    "history": (list, NONE),
    "neighborhoods": (dict, NONE),
    "picture": (dict, NONE),
}
PICTURE = ("points", "classes", "labels", "edges", "exemplars")


def check_record(record: Any, key: str) -> None:
    """Raise ValueError, with the reason in a few words, for what is not the record of the run of this key."""
    if type(record) is not dict:
        raise ValueError("not an object")
    for name, types in FIELDS.items():
        if name not in record:
            raise ValueError(f"no {name}")
        # Not isinstance, for which True is a number.
        if type(record[name]) not in types:
            raise ValueError(f"{name} is a {type(record[name]).__name__}")
    if record["key"] != key:
        raise ValueError("of another run")
    if record["status"] not in (DONE, FAILED):
        raise ValueError("neither done nor failed")
    # An objective may be infinite: some methods diverge at the corners of a grid.
    for name in ("seconds", "spent", "peak_memory", "accuracy", "nmi_max", "nmi_arithmetic"):
        if not _is_finite(record[name]):
            raise ValueError(f"{name} is {record[name]}")
    # With loading, compiling and scoring; records of before have none.
    if not _is_finite(record.get("took")):
        raise ValueError(f"took is {record['took']}")
    if record["status"] == DONE and record["spent"] is None:
        raise ValueError("done in no time")
    if datetime.fromisoformat(record["started"]).tzinfo is None:
        raise ValueError("started in no time zone")
    _check_details(record)


def _check_details(record: Record) -> None:
    if not all(type(value) in (int, float) for value in record["history"] or ()):
        raise ValueError("a history without numbers")
    if not all(_is_finite(value) for value in (record["neighborhoods"] or {}).values()):
        raise ValueError("neighborhoods without numbers")
    picture = record["picture"]
    if picture is not None and not all(type(picture.get(part)) is list for part in PICTURE):
        raise ValueError("half a picture")


def _is_finite(value: Any) -> bool:
    """Tell whether a value is a number to count with, or stands for none."""
    return value is None or (type(value) in (int, float) and math.isfinite(value))


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a crash at any moment leaves the old one or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder, because a rename is atomic within one file system only.
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            # Without it a power cut after the rename may leave the new name with no content behind it.
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)  # mkstemp makes files for their owner alone
        os.replace(temporary, path)
    except BaseException:
        # Also for Ctrl-C. What a kill leaves here begins with a dot, and forget_marks removes it.
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def sole_use(folder: Path) -> Iterator[None]:
    """Keep a second command out of a folder, where both would do the same work and remove each other's marks.

    The system releases the lock when this process ends, whatever ends it, so no stale lock can remain.
    """
    if sys.platform == "win32":  # which has no locks on folders
        yield
        return
    import fcntl

    # Python opens it as not inheritable, so a worker that outlives a killed parent holds no lock.
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            said = f"Another command is at work in {folder}: let it end, or give this one another --output."
            raise BlockingIOError(said) from None
        except OSError:  # some network drives have no locks, and one command is no danger to itself
            pass
        yield
    finally:
        os.close(handle)


class Mark(NamedTuple):
    """A run that is under way: in which process, since when (seconds of the epoch), and in words."""

    process: int
    began: float
    words: str


class Store:
    """Results by key, and marks of the runs that are under way.

    ``damaged`` has the files that were read and are no records, each with the reason.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged: dict[Path, str] = {}
        self.results = folder / "runs"
        self.marks = folder / "running"
        self.results.mkdir(parents=True, exist_ok=True)
        self.marks.mkdir(exist_ok=True)

    def save(self, record: Record) -> None:
        """Keep a record, in place of an earlier one of the same run."""
        # Keys are hashes of the work: the same run can only replace itself.
        write_atomically(self._path(record["key"]), json.dumps(record).encode())

    def read(self, key: str) -> Record | None:
        """Return the record of a run, if there is one; a damaged one counts as none."""
        path = self._path(key)
        if not path.is_file():
            return None
        content = path.read_bytes()
        try:
            record = json.loads(content)
            check_record(record, key)
        # Besides what check_record says: no JSON, or JSON that nests without end.
        except (ValueError, OverflowError, RecursionError) as error:
            self.damaged[path] = " ".join(str(error).split())
            return None
        self.damaged.pop(path, None)
        return record

    def stamp(self, key: str) -> tuple[int, int] | None:
        """Return what changes whenever a record is saved; None without a record."""
        try:
            status = self._path(key).stat()
        except FileNotFoundError:
            return None
        # The rename of write_atomically brings a new file, and so another inode or a later time.
        return status.st_ino, status.st_mtime_ns

    def _path(self, key: str) -> Path:
        return self.results / f"{key}.json"

    def begin(self, run: Run) -> None:
        """Mark a run as under way in this process."""
        # Not atomic: losing a mark costs a hint on what failed, never a result.
        (self.marks / run.key).write_text(f"{os.getpid()} {run}", encoding="utf-8")

    def end(self, run: Run) -> None:
        """Take the mark away."""
        (self.marks / run.key).unlink(missing_ok=True)

    def under_way(self) -> dict[str, Mark]:
        """Return the marks by key."""
        found = {}
        for path in self.marks.iterdir():
            try:
                process, words = path.read_text(encoding="utf-8").split(" ", 1)
                found[path.name] = Mark(int(process), path.stat().st_mtime, words)
            except (FileNotFoundError, ValueError):  # it has just ended, or is being written
                continue
        return found

    def forget_marks(self) -> None:
        """Take away what a killed process left: marks, and files it was writing."""
        # The pattern has the prefix of write_atomically, which no complete record has.
        for left in (*self.marks.iterdir(), *self.results.glob(".*.json.*")):
            left.unlink(missing_ok=True)


def count_failed(records: Iterable[Record]) -> int:
    """Return how many of the runs have no result."""
    return sum(record["status"] != DONE for record in records)


def busy_seconds(records: Iterable[Record]) -> float:
    """Return the seconds in which at least one run was under way, pauses between two starts left out."""
    # The length of a union of intervals: sorted by their starts, each adds what lies after the latest end.
    lengths = ((r["started"], r.get("took") or r["spent"] or 0.0) for r in records)
    spans = sorted((datetime.fromisoformat(started).timestamp(), length) for started, length in lengths)
    total, end = 0.0, float("-inf")
    for start, length in spans:
        total += max(0.0, start + length - max(start, end))
        end = max(end, start + length)
    return total
