"""Refuse packed files that would be too large unpacked: a small file can hold more than fits in memory.

Where the library that reads a file goes no further than its header says, the header is asked; elsewhere the
unpacked bytes are counted piece by piece. All files of the data sets are far below the limit.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

LARGEST_UNPACKED = 2**29  # bytes; the largest table has 129 MiB
COMPRESSED_ELEMENT = 15  # the type of an element of a MATLAB file that is packed by zlib
CHUNK = 2**16


def check_size(what: str, n_bytes: int) -> None:
    """Refuse what is too large."""
    if n_bytes > LARGEST_UNPACKED:
        raise ValueError(
            f"{what} has {n_bytes / 2**20:,.0f} MiB or more unpacked, above the limit of "
            f"{LARGEST_UNPACKED / 2**20:,.0f} MiB"
        )


def read_zip_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a member of an archive; zipfile unpacks no more of it than its header says."""
    check_size(name, archive.getinfo(name).file_size)
    return archive.read(name)


def check_npy(file: Any, what: str) -> None:
    """Refuse an array whose header asks for too much; NumPy makes the array before it reads it."""
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(file)
    if version not in readers:
        raise ValueError(f"{what} has the unknown format {version}")
    shape, _, dtype = readers[version](file)
    check_size(what, math.prod(shape) * dtype.itemsize)


def check_npz(path: Path) -> None:
    """Refuse an .npz file whose arrays are too large, by the headers of the archive and of the arrays."""
    with zipfile.ZipFile(path) as archive:
        check_size(path.name, sum(info.file_size for info in archive.infolist()))
        for info in archive.infolist():
            with archive.open(info) as member:
                check_npy(member, info.filename)


def check_mat(path: Path) -> None:
    """Refuse a MATLAB file whose packed variables are too large, by unpacking them piece by piece."""
    total = 0
    with path.open("rb") as file:
        order = "little" if file.read(128)[126:] == b"IM" else "big"
        while len(tag := file.read(8)) == 8:
            kind, n_bytes = (int.from_bytes(part, order) for part in (tag[:4], tag[4:]))  # type: ignore[arg-type]
            if kind != COMPRESSED_ELEMENT:
                file.seek(n_bytes, 1)
                continue
            unpacker, end = zlib.decompressobj(), file.tell() + n_bytes
            while file.tell() < end and (piece := file.read(min(CHUNK, end - file.tell()))):
                while piece:
                    total += len(unpacker.decompress(piece, CHUNK))
                    check_size(path.name, total)
                    piece = unpacker.unconsumed_tail


def check_lzw(content: bytes, what: str) -> None:
    """Refuse a .Z file that is too large, by the lengths of the strings that its codes stand for.

    Codes come in groups of eight of one width; where the width changes, the rest of a group is padding.
    """
    if len(content) < 3:
        return
    widest, clears = max(content[2] & 0x1F, 10), bool(content[2] & 0x80)
    first = [1] * 256 + [0] * clears  # single bytes, and the code that clears the table
    lengths, width, total, place, last = first.copy(), 9, 0, 3, 0
    while place < len(content):
        group = content[place : place + width]
        place += width
        bits = int.from_bytes(group, "little")
        for _ in range(len(group) * 8 // width):
            code, bits = bits & ((1 << width) - 1), bits >> width
            if clears and code == 256:
                lengths, width, last = first.copy(), 9, 0
                break
            if code > len(lengths):  # damaged, which the unpacking itself will tell
                return
            length = lengths[code] if code < len(lengths) else last + 1
            total += length
            if last and len(lengths) < 1 << widest:
                lengths.append(last + 1)
            last = length
            if len(lengths) >= 1 << width and width < widest:
                width += 1
                break
        check_size(what, total)


def limited(file: Any, what: str) -> Any:
    """Return an unpacked stream that ends in a refusal once it has given too much."""
    return _LimitedReader(file, what)


class _LimitedReader:
    """The part of a file that tarfile needs of a stream."""

    def __init__(self, file: Any, what: str) -> None:
        self.file, self.what, self.total = file, what, 0

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        piece = self.file.read(size)
        self.total += len(piece)
        check_size(self.what, self.total)
        return piece
