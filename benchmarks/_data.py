"""Read the paper's data sets from a folder of ``<name>.npz`` files and prepare them as the paper does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfTransformer
from sklearn.preprocessing import normalize

# File name and the paper's name; gordon stands in for OVA_Colon, under its own name.
PAPER_NAMES: dict[str, str | None] = {
    "wave": "Wave",
    "ionosphere": "Ionosphere",
    "sonar": "Sonar",
    "movement": "Movement",
    "musk1": "Musk1",
    "mfeat-fac": "mfeat-fac",
    "mfeat-pix": "mfeat-pix",
    "semeion": "Semeion",
    "isolet": "ISOLET",
    "coil-5": "COIL-5",
    "20-news": "20-news",
    "orl": "ORL",
    "gordon": None,
}
PER_CLASS_OF_WAVE = 200
DOCUMENTS_PER_CLASS = 251


def clean(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Drop constant features and duplicate rows, scale features to [0, 1] and rows to unit length."""
    X = X.astype(np.float64)
    X = X[:, X.min(axis=0) < X.max(axis=0)]
    first = np.sort(np.unique(X, axis=0, return_index=True)[1])
    X, y = X[first], y[first]
    X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def load_news(folder: Path) -> tuple[sp.csr_array, np.ndarray]:
    """Return 20 Newsgroups as a sparse table of about the paper's size; its vocabulary is not known.

    The first 251 test documents of every class, words in 1 to 50 % of them without English stop words,
    tf-idf, features scaled to [0, 1], documents to unit length.
    """
    counts = sp.csr_array(sp.load_npz(folder / "counts.npz"))
    y, split = np.load(folder / "labels.npy"), np.load(folder / "split.npy")
    chosen = [np.flatnonzero((split == 1) & (y == label))[:DOCUMENTS_PER_CLASS] for label in np.unique(y)]
    rows = np.concatenate(chosen)
    counts, y = counts[rows], y[rows]
    words = (folder / "vocab.txt").read_text(encoding="utf8").split("\n")[: counts.shape[1]]
    share = np.bincount(counts.indices, minlength=counts.shape[1]) / len(rows)
    kept = (share >= 0.01) & (share <= 0.5)
    kept &= [word.isalpha() and word not in ENGLISH_STOP_WORDS for word in words]
    X = sp.csr_array(TfidfTransformer().fit_transform(counts[:, np.flatnonzero(kept)].astype(np.float64)))
    X = X[:, np.flatnonzero(X.max(axis=0).toarray().ravel() > 0)]
    first = np.sort(np.unique(X.toarray(), axis=0, return_index=True)[1])
    first = first[np.diff(X[first].indptr) > 0]  # a document without any of the words has no direction
    X, y = X[first], y[first]
    return sp.csr_array(normalize(X / X.max(axis=0).toarray().ravel())), y


def load(folder: Path, name: str) -> tuple[Any, np.ndarray]:
    """Return the cleaned points and classes of one data set."""
    if name == "20-news" and (folder / name).is_dir():
        return load_news(folder / name)
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
