"""The tables that clusterings are judged on: four groups that a good default must not trade.

``as they are`` are the paper's sets and, from the folder ``more`` beside them if there is one, others;
``unequal`` the same with classes of very different sizes; ``text`` is 20-news in two sizes, whole and
thinned; ``shapes`` are drawn in the plane. Labels are for scoring only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import datasets
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler

from smrmf.datasets import clean, load

PAPER_SETS = [
    "wave",
    "ionosphere",
    "sonar",
    "movement",
    "musk1",
    "coil-5",
    "isolet",
    "semeion",
    "mfeat-fac",
    "mfeat-pix",
    "orl",
    "gordon",
]
# The smallest class of an unequal version has a tenth of its points, and at least these.
SMALLEST_SHARE, FEWEST = 0.1, 3
# Of 20-news with all its words: every second document, words of at least so many of them.
LARGE_TEXT_STEP, LARGE_TEXT_DOCUMENTS = 2, 3


class Case(NamedTuple):
    """A table with its classes, made for a seed when it is needed; only shapes are drawn anew by it."""

    group: str
    name: str
    make: Callable[[int], tuple[Any, np.ndarray]]


def thin(X: Any, y: np.ndarray, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Keep the first class, and ever fewer points of the others, geometrically down to a tenth."""
    rng = np.random.default_rng(seed)
    classes = np.unique(y)
    shares = np.geomspace(1, SMALLEST_SHARE, len(classes))
    kept = []
    for label, share in zip(classes, shares, strict=True):
        members = np.flatnonzero(y == label)
        size = min(len(members), max(FEWEST, round(share * len(members))))
        kept.append(rng.choice(members, size, replace=False))
    rows = np.sort(np.concatenate(kept))
    return X[rows], y[rows]


def every_case(folder: Path | None = None) -> Iterator[Case]:
    """Yield all cases whose data are at hand."""
    home = folder or (Path(os.environ["SMRMF_DATA"]) if "SMRMF_DATA" in os.environ else None)
    tables: dict[str, Callable[[], Any]] = {
        name: partial(load, name, data_home=folder) for name in PAPER_SETS
    }
    for path in sorted((home / "more").glob("*.npz")) if home else []:
        tables[path.stem] = partial(_cleaned_file, path)
    for name, make in tables.items():
        yield Case("as they are", name, partial(_the_same, make))
    for name, make in tables.items():
        yield Case("unequal", name, partial(_thinned, make))
    texts: dict[str, Callable[[], Any]] = {"20-news": partial(load, "20-news", data_home=folder)}
    if home and (home / "20-news" / "counts.npz").exists():
        texts["20-news, all words"] = partial(_large_text, home / "20-news")
    for name, make in texts.items():
        yield Case("text", name, partial(_the_same, make))
        yield Case("text", f"{name}, thinned", partial(_thinned, make))
    for name, draw in SHAPES.items():
        yield Case("shapes", name, partial(_shape, draw))


def _cleaned_file(path: Path) -> tuple[Any, np.ndarray]:
    with np.load(path) as file:
        return clean(file["X"], file["y"])


def _the_same(make: Callable[[], Any], seed: int) -> tuple[Any, np.ndarray]:
    return make()


def _thinned(make: Callable[[], Any], seed: int) -> tuple[Any, np.ndarray]:
    return thin(*make())


def _large_text(folder: Path) -> tuple[sp.csr_array, np.ndarray]:
    counts = sp.csr_array(sp.load_npz(folder / "counts.npz"))[::LARGE_TEXT_STEP]
    y = np.load(folder / "labels.npy")[::LARGE_TEXT_STEP]
    documents = np.bincount(counts.indices, minlength=counts.shape[1])
    # Words that most documents have tell nothing, and rare ones join no two.
    counts = counts[:, (documents >= LARGE_TEXT_DOCUMENTS) & (documents <= counts.shape[0] / 10)]
    filled = np.diff(counts.indptr) > 0
    weights = TfidfTransformer(sublinear_tf=True).fit_transform(counts[filled].astype(np.float64))
    return sp.csr_array(weights), y[filled]


def _shape(draw: Callable[[int], Any], seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = draw(seed)
    return StandardScaler().fit_transform(X), y


def _stretched_blobs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = datasets.make_blobs(500, random_state=seed)
    return X @ [[0.6, -0.6], [-0.4, 0.8]], y


def uneven_blobs(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw a wide blob of 600 points and two tight ones of 60 and 30."""
    centers = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
    sizes, widths = [600, 60, 30], [2.0, 0.5, 0.5]
    return datasets.make_blobs(sizes, centers=centers, cluster_std=widths, random_state=seed)


def _circles(seed: int) -> tuple[np.ndarray, np.ndarray]:
    return datasets.make_circles(500, factor=0.5, noise=0.05, random_state=seed)


def _moons(noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return datasets.make_moons(500, noise=noise, random_state=seed)


def _blobs(widths: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    return datasets.make_blobs(500, cluster_std=widths, random_state=seed)


SHAPES: dict[str, Callable[[int], Any]] = {
    "circles": _circles,
    "moons": partial(_moons, 0.05),
    "noisy moons": partial(_moons, 0.11),
    "blobs": partial(_blobs, 1.0),
    "varied blobs": partial(_blobs, [1.0, 2.5, 0.5]),
    "stretched blobs": _stretched_blobs,
    "uneven blobs": uneven_blobs,
}
