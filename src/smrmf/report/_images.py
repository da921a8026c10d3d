"""Rows of pixels as images, and whether rows are pixels at all: a false image is worse than none."""

from __future__ import annotations

import re
import struct
import zlib
from base64 import b64encode
from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf.plot._cells import check_image_shape
from smrmf.report._table import ReadableTable

# Smaller squares than 6 x 6 show nothing, and longer sides make the page large.
LEAST_SIDE, LONGEST_SIDE = 6, 96
# Of so many rows the pixels are compared.
COMPARED_ROWS = 1000
# Neighbouring pixels are so much alike at least, and those below each other more so than half a line apart.
ALIKE, MORE_ALIKE = 0.3, 0.1
# What people, and tools, call pixels and columns without a name.
PIXEL = re.compile(
    r"(x|v|f|p|px|pix|pixel|col|column|feature|attr|att)?[_ ]?\d+([_x,-]\d+){0,2}", re.IGNORECASE
)
# Where most of an image is so dark, it is ink on paper, and shown as such.
PAPER = 0.25


def check_shape(image_shape: Any, n_features: int) -> tuple[int, ...]:
    """Return height and width, and 3 for colours; refuse a shape that does not hold the columns."""
    return tuple(int(size) for size in check_image_shape(image_shape, n_features))


def recognised_shape(table: ReadableTable) -> tuple[int, int] | None:
    """Return height and width of a square if the columns are surely its pixels, row by row, else None."""
    n_columns = table.values.shape[1]
    side = int(np.sqrt(n_columns))
    if table.is_sparse or table.words or side < LEAST_SIDE or side**2 != n_columns:
        return None
    if not all(PIXEL.fullmatch(name) for name in table.names):
        return None
    step = max(1, len(table.values) // COMPARED_ROWS)
    rows = table.values[::step]
    if len(rows) < 10 or not np.isfinite(rows).all() or not _have_one_range(rows):
        return None
    return (side, side) if _are_neighbors(rows, side) else None


def _have_one_range(rows: np.ndarray) -> bool:
    """Tell whether columns have one unit: none below zero, and none that rises far above the others."""
    highest = rows.max(axis=0)
    # Half of the pixels come near to the brightest one; those at the margins may stay dark.
    return bool(rows.min() >= 0 and np.quantile(highest, 0.75) >= 0.5 * highest.max() > 0)


def _are_neighbors(rows: np.ndarray, side: int) -> bool:
    """Tell whether values beside and below each other are alike, as in images and not as in curves."""
    spread = rows.std(axis=0)
    lit = spread > 0
    if np.count_nonzero(lit) < rows.shape[1] / 2:
        return False
    standard = np.divide(rows - rows.mean(axis=0), spread, out=np.zeros_like(rows, dtype=float), where=lit)
    pixels, lit = standard.T.reshape(side, side, -1), lit.reshape(side, side)

    def likeness(first: Any, second: Any) -> float:
        both = lit[first] & lit[second]
        return float((pixels[first] * pixels[second]).mean(axis=-1)[both].mean()) if both.any() else 0.0

    every, half = slice(None), side // 2
    beside = likeness((every, slice(None, -1)), (every, slice(1, None)))
    below = likeness((slice(None, -1), every), (slice(1, None), every))
    apart = likeness((every, slice(None, -half)), (every, slice(half, None)))
    # Along a curve values half a line apart are nearer, and so more alike, than those a whole line apart.
    return beside >= ALIKE and below >= ALIKE and below >= apart + MORE_ALIKE


class Images:
    """Draws rows as PNG, all on one scale."""

    def __init__(self, table: ReadableTable, shape: tuple[int, ...]) -> None:
        self.shape = shape
        values = table.values.data if table.is_sparse else table.values
        self.low, self.high = (
            float(np.fmin.reduce(values, axis=None)),
            float(np.fmax.reduce(values, axis=None)),
        )
        self.low = min(self.low, 0.0) if table.is_sparse else self.low
        share = 0.0 if table.is_sparse else float(self._shares(np.nanmedian(values)))
        self.on_paper = len(shape) == 2 and share < PAPER

    def _shares(self, values: Any) -> Any:
        """Return where values lie from lowest to highest: of halves, as the whole range may be too large."""
        return (values / 2 - self.low / 2) / ((self.high / 2 - self.low / 2) or 1.0)

    def uri(self, row: Any) -> str:
        """Return a row as the address of an image."""
        dense = (row.toarray() if sp.issparse(row) else np.asarray(row, dtype=float)).ravel()
        shares = np.clip(self._shares(np.nan_to_num(dense, nan=self.low)), 0, 1)
        picture = shrunk((1 - shares if self.on_paper else shares).reshape(self.shape))
        return png_uri(np.rint(picture * 255).astype(np.uint8))


def shrunk(picture: np.ndarray) -> np.ndarray:
    """Return a picture whose sides are short enough for a page, by means of blocks."""
    step = -(-max(picture.shape[:2]) // LONGEST_SIDE)
    if step == 1:
        return picture
    height, width = (size // step * step for size in picture.shape[:2])
    blocks = picture[:height, :width].reshape(height // step, step, width // step, step, -1).mean(axis=(1, 3))
    return blocks[..., 0] if picture.ndim == 2 else blocks


def png_uri(pixels: np.ndarray, palette: np.ndarray | None = None) -> str:
    """Return an image of bytes as an address: in grey, in three colours, or as places in a palette.

    The first colour of a palette is nothing: what is behind the image shows.
    """
    height, width = pixels.shape[:2]
    kind = 3 if palette is not None else 2 if pixels.ndim == 3 else 0
    lines = np.zeros((height, 1 + pixels[0].size), dtype=np.uint8)  # every line begins with its filter, none
    lines[:, 1:] = pixels.reshape(height, -1)
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))]
    if palette is not None:
        parts += [(b"PLTE", palette.astype(np.uint8).tobytes()), (b"tRNS", b"\0")]
    parts += [(b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
    return "data:image/png;base64," + b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()
