"""The map of all rows: numbers for the interactive one, and a still picture for print and without scripts."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np

from smrmf.plot._style import COLORS, color_of
from smrmf.report._exemplars import ShownExemplar
from smrmf.report._images import png_uri
from smrmf.report._subject import Subject

# Letters of all names of rows together, and of a single one at most and at least.
ALL_LETTERS, MOST_LETTERS, LEAST_LETTERS = 2_000_000, 80, 12
# Pixels of the still picture: two for each that it is shown at.
WIDTH, MARGIN = 1400, 24
# The still picture is drawn in so many rounds over all clusters, so that none covers the others.
ROUNDS = 4


def _regular(n: int, turn: float, radius: float = 1.0, inner: float | None = None) -> list[list[float]]:
    """Return the corners of a polygon, or with a second radius of a star."""
    radii = [radius] * n if inner is None else [radius, inner] * n
    angles = np.pi * (2 * np.arange(len(radii)) / len(radii) + turn)
    places = np.column_stack([np.sin(angles) * radii, -np.cos(angles) * radii])
    return [[round(float(x), 3), round(float(y), 3)] for x, y in places]


_PLUS = [
    [-1, -3],
    [1, -3],
    [1, -1],
    [3, -1],
    [3, 1],
    [1, 1],
    [1, 3],
    [-1, 3],
    [-1, 1],
    [-3, 1],
    [-3, -1],
    [-1, -1],
]
PLUS = [[round(x / 2.9, 3), round(y / 2.9, 3)] for x, y in _PLUS]
# As the library's pictures have them: circle, triangle, square, diamond, triangle down, plus, cross, star.
SHAPES = [
    _regular(20, 0, 0.95),
    _regular(3, 0, 1.3),
    _regular(4, 0.25, 1.2),
    _regular(4, 0, 1.2),
    _regular(3, 1, 1.3),
    PLUS,
    [[round((x - y) * 0.707, 3), round((x + y) * 0.707, 3)] for x, y in PLUS],
    _regular(5, 0, 1.4, 0.6),
]


def shape_of(cluster: int) -> int:
    """Return the shape of a cluster: the next one for each, so that colours alone never tell them apart."""
    # Colours repeat after 12 and shapes after 8, both together after 24; a further turn goes on from there.
    return (cluster + cluster // 24) % len(SHAPES)


@dataclass(frozen=True)
class Places:
    """Where the rows go: whole numbers up to 65535 for the width, the y-axis down, and the aspect."""

    xy: np.ndarray
    height: int
    middles: dict[int, int]  # the row of every cluster on which its number is written


def places_of(subject: Subject, coordinates: np.ndarray) -> Places:
    """Return places on a grid, both axes on one scale."""
    coordinates = np.asarray(coordinates, dtype=float) * [1, -1]
    low, high = coordinates.min(axis=0), coordinates.max(axis=0)
    unit = 65535 / (float((high - low).max()) or 1.0)
    xy = np.rint((coordinates - low) * unit).astype(np.uint16)
    middles = {}
    for cluster in subject.clusters:
        members = np.flatnonzero(subject.labels == cluster)
        mine = xy[members].astype(float)
        # A row, not the median itself, which may lie among other clusters if this one is in two parts.
        middles[cluster] = int(members[np.argmin(((mine - np.median(mine, axis=0)) ** 2).sum(axis=1))])
    return Places(xy, int(xy[:, 1].max()), middles)


def map_data(subject: Subject, places: Places, exemplars: list[ShownExemplar]) -> dict[str, Any]:
    """Return what the interactive map is drawn from."""
    labels = subject.labels
    wide = int(labels.max()) > 255
    confidence = subject.confidence
    return {
        "n": subject.n_samples,
        "xy": _packed(places.xy),
        "labels": _packed(labels.astype(np.uint16 if wide else np.uint8)),
        "wide": wide,
        "confidence": None if confidence is None else _packed(np.rint(confidence * 100).astype(np.uint8)),
        "ids": short_ids(subject),
        "clusters": [
            {
                "cluster": cluster,
                "color": color_of(cluster),
                "shape": shape_of(cluster),
                "middle": places.middles[cluster],
            }
            for cluster in subject.clusters
        ],
        "shapes": SHAPES,
        "exemplars": [
            {"row": found.row, "joined": found.joined.tolist(), "count": found.count, "inside": found.inside}
            for found in exemplars
        ],
    }


def _packed(numbers: np.ndarray) -> str:
    """Return whole numbers as text, the lowest byte first."""
    return b64encode(numbers.astype(numbers.dtype.newbyteorder("<")).tobytes()).decode()


def short_ids(subject: Subject) -> list[str] | None:
    """Return what rows are called where these are no numbers, cut where they are long texts."""
    if subject.ids is None:
        return None
    most = int(np.clip(ALL_LETTERS // subject.n_samples, LEAST_LETTERS, MOST_LETTERS))
    return [short(name, most) for name in subject.ids]


def short(text: str, most: int = MOST_LETTERS) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True)
class Still:
    """The map as a picture: dots as an image, and above it rings of exemplars and numbers of clusters."""

    uri: str
    width: int
    height: int
    ring: float
    rings: list[tuple[int, int]]
    numbers: list[tuple[int, int, int]]


def still_map(subject: Subject, places: Places, exemplars: list[ShownExemplar]) -> Still:
    """Draw the map without a library of pictures."""
    inner = WIDTH - 2 * MARGIN
    height = max(round(inner * places.height / 65535), WIDTH // 4)
    pixels = np.rint(places.xy * (inner / 65535)).astype(int) + MARGIN
    radius = float(np.clip(220 / np.sqrt(subject.n_samples), 1.8, 9))
    board = np.zeros((height + 2 * MARGIN, WIDTH), dtype=np.uint8)
    for turn in range(ROUNDS):
        for cluster in subject.clusters:
            mine = pixels[turn::ROUNDS][subject.labels[turn::ROUNDS] == cluster]
            for across, down in _stamp(shape_of(cluster), radius):
                board[mine[:, 1] + down, mine[:, 0] + across] = 1 + cluster % len(COLORS)
    palette = np.array([[255] * 3, *([int(c[k : k + 2], 16) for k in (1, 3, 5)] for c in COLORS)])
    return Still(
        uri=png_uri(board, palette),
        width=WIDTH,
        height=board.shape[0],
        ring=radius + 5,
        rings=[(int(x), int(y)) for x, y in pixels[[found.row for found in exemplars]]] if exemplars else [],
        numbers=[
            (cluster, int(pixels[row, 0]), int(pixels[row, 1])) for cluster, row in places.middles.items()
        ],
    )


def _stamp(shape: int, radius: float) -> np.ndarray:
    """Return the pixels of a shape around its middle: those from which a ray crosses its border once."""
    reach = int(np.ceil(1.4 * radius))
    grid = np.arange(-reach, reach + 1)
    x, y = (part.ravel() for part in np.meshgrid(grid, grid))
    corners = np.array(SHAPES[shape]) * radius
    inside = np.zeros(len(x), dtype=bool)
    # A hair beside the pixels, so that no ray meets a corner.
    level = y + 1e-3
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if y0 != y1:
            crossed = (y0 > level) != (y1 > level)
            inside ^= crossed & (x < x0 + (level - y0) * (x1 - x0) / (y1 - y0))
    return np.column_stack([x[inside], y[inside]])
