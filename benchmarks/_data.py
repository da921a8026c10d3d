"""Read the paper's data sets from a folder of ``<name>.npz`` files and prepare them as the paper does."""

from __future__ import annotations

from pathlib import Path

import numpy as np

PER_CLASS_OF_WAVE = 200


def clean(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drop constant features and duplicate rows, scale features to [0, 1] and rows to unit length."""
    X = X.astype(np.float64)
    X = X[:, X.min(axis=0) < X.max(axis=0)]
    first = np.sort(np.unique(X, axis=0, return_index=True)[1])
    X, y = X[first], y[first]
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the cleaned points and classes of one data set."""
    path = folder / f"{name}.npz"
    if not path.is_file():
        raise SystemExit(f"{path} does not exist: give the folder of the data sets with --data.")
    with np.load(path) as data:
        X, y = data["X"], data["y"]
    if name == "wave":
        kept = [np.flatnonzero(y == label)[:PER_CLASS_OF_WAVE] for label in np.unique(y)]
        rows = np.sort(np.concatenate(kept))
        X, y = X[rows], y[rows]
    return clean(X, y)
