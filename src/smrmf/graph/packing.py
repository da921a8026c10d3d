"""Discs side by side in the plane, none on another: where the parts of a picture go that nothing ties."""

from __future__ import annotations

import numpy as np

# So many discs are placed one by one, which takes the cube of their number; the rest go around them.
PLACED = 100
# Directions in which a disc may touch another.
DIRECTIONS = np.arange(16) * (np.pi / 8)
# Turns of this angle never come back to an earlier direction: seeds of a sunflower fill a disc evenly by it.
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
# Discs that touch are on no account told to overlap by rounding.
ROUNDING = 1e-9


def pack_discs(radii: np.ndarray, ties: np.ndarray | None = None) -> np.ndarray:
    """Place discs without overlap, close together, and return their centres.

    Each of the first ones touches an earlier one, where it is nearest to those it is tied to; the others
    wind around them in a spiral. The largest should come first.

    Parameters
    ----------
    radii : array of shape (n_discs,)
        How large the discs are.
    ties : array of shape (n_discs, n_discs) or None, default=None
        How much two of the first discs should be near each other; None ties all of them by their sizes.

    Examples
    --------
    >>> import numpy as np
    >>> centers = pack_discs(np.array([2.0, 1.0, 1.0]))
    >>> bool(np.isclose(np.linalg.norm(centers[1] - centers[0]), 3))
    True
    """
    centers = np.zeros((len(radii), 2))
    n_placed = min(len(radii), PLACED)
    for k in range(1, n_placed):
        pull = radii[:k] if ties is None else ties[k, :k]
        centers[k] = _nearest_place(centers[:k], radii[:k], radii[k], pull)
    if len(radii) > n_placed:
        centers[n_placed:] = _spiral(centers[:n_placed], radii[:n_placed], radii[n_placed:])
    return centers


def _nearest_place(centers: np.ndarray, radii: np.ndarray, radius: float, pull: np.ndarray) -> np.ndarray:
    """Return where a disc touches one of those placed, overlaps none, and is nearest to them by pull."""
    reach = radii + radius
    # Other directions for each disc: on one grid all would come to lie in lines.
    angles = DIRECTIONS + len(radii)
    steps = np.column_stack([np.cos(angles), np.sin(angles)])
    candidates = (centers[:, None] + reach[:, None, None] * steps).reshape(-1, 2)
    distances = np.linalg.norm(candidates[:, None] - centers, axis=2)
    free = (distances >= reach * (1 - ROUNDING)).all(axis=1)
    # One is always free: beyond the outermost disc.
    return candidates[np.argmin(np.where(free, distances @ pull, np.inf))]


def _spiral(centers: np.ndarray, radii: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the places of many small discs around those placed, the area that they need for each."""
    middle = np.average(centers, axis=0, weights=radii**2)
    inner = (np.linalg.norm(centers - middle, axis=1) + radii).max() + others.max()
    # A square around every disc, so that they stay clear of each other.
    distance = np.sqrt(inner**2 + 4 / np.pi * np.cumsum(others**2))
    angles = GOLDEN_ANGLE * np.arange(len(others))
    return middle + distance[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
