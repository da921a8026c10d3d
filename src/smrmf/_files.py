"""Files that are complete or absent: where one may be written, and how it is."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def check_place(path: Path, overwrite: bool) -> None:
    """Refuse a file that is there already, unless it may be replaced, and a folder that is not there."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file in it.")
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path} is no usual file, but a device or a pipe: give the name of a file.")
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists already: give another name, or overwrite=True to replace it.")
    # Of a link the file behind it is replaced, and the link stays.
    check_parent(path.resolve())


def check_parent(path: Path) -> None:
    """Refuse a place in a folder that is not there, or where nobody may write."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} in: make it first.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{path.parent} may not be written to: give a place in another folder.")


def write_atomically(path: Path, content: bytes, overwrite: bool) -> None:
    """Write a file in one step: whatever happens on the way, there is the old one, or none."""
    with atomic_file(path, overwrite) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path, overwrite: bool) -> Iterator[BinaryIO]:
    """Give a file to write to, which gets its name when all is written, and is gone if anything fails."""
    place = path.resolve()
    # In the same folder, because a rename is atomic within one file system only.
    temporary = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
    try:
        # Not by tempfile, which makes files for their owner alone: who may read it is for the umask to say.
        with temporary.open("xb") as file:
            yield file
            file.flush()
            # Without it a power cut after the rename may leave the new name with no content behind it.
            os.fsync(file.fileno())
        check_place(path, overwrite)  # another process may have been faster
        os.replace(temporary, place)
    except BaseException:  # also for Ctrl-C
        temporary.unlink(missing_ok=True)
        raise
