"""Which documents and words of 20 Newsgroups make up a table of about the paper's size.

The paper gives 5020 x 1796. 5020 is twenty times the smallest class of the test documents, but the vocabulary
cannot be told from its size, so one plain rule is fixed here and the result is not called the paper's table.
"""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

DOCUMENTS_PER_CLASS = 251
RAREST, MOST_COMMON = 0.01, 0.5  # shares of the documents that a word may occur in
TEST_FOLDER = "20news-bydate-test"


def read_news_folder(folder: Path) -> tuple[sp.csr_array, np.ndarray]:
    """Return the chosen counts and classes from counts of all words in all documents."""
    counts = sp.csr_array(sp.load_npz(folder / "counts.npz"))
    y, split = np.load(folder / "labels.npy"), np.load(folder / "split.npy")
    words = (folder / "vocab.txt").read_text(encoding="utf8").split("\n")[: counts.shape[1]]
    test = [np.flatnonzero((split == 1) & (y == label)) for label in np.unique(y)]
    rows = np.concatenate([indices[:DOCUMENTS_PER_CLASS] for indices in test])
    return choose_words(counts[rows], words), y[rows]


def read_news_archive(path: Path) -> tuple[sp.csr_array, np.ndarray]:
    """Return the same from the archive of the texts, one file per document in one folder per class."""
    from sklearn.feature_extraction.text import CountVectorizer

    groups: dict[str, list[tarfile.TarInfo]] = {}
    with tarfile.open(path) as archive:
        for member in archive:
            place = Path(member.name).parts
            if member.isfile() and TEST_FOLDER in place:
                groups.setdefault(place[-2], []).append(member)
        texts, y = [], []
        for label, group in enumerate(sorted(groups)):
            numbered = sorted(groups[group], key=lambda member: int(Path(member.name).name))
            for member in numbered[:DOCUMENTS_PER_CLASS]:
                # Headers stay; latin-1 gives every byte a meaning.
                texts.append(archive.extractfile(member).read().decode("latin-1"))  # type: ignore[union-attr]
                y.append(label)
    vectorizer = CountVectorizer()
    counts = sp.csr_array(vectorizer.fit_transform(texts))
    return choose_words(counts, vectorizer.get_feature_names_out()), np.array(y, dtype=np.int64)


def choose_words(counts: sp.csr_array, words: Sequence[str]) -> sp.csr_array:
    """Keep the words of letters only that are neither rare, nor in most documents, nor stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    share = np.bincount(counts.indices, minlength=counts.shape[1]) / counts.shape[0]
    kept = (share >= RAREST) & (share <= MOST_COMMON)
    kept &= np.array([word.isalpha() and word not in ENGLISH_STOP_WORDS for word in words])
    return sp.csr_array(counts[:, np.flatnonzero(kept)], dtype=np.float64)


def weigh_words(counts: Any) -> sp.csr_array:
    """Return counts as TF-IDF weights."""
    from sklearn.feature_extraction.text import TfidfTransformer

    return sp.csr_array(TfidfTransformer().fit_transform(counts))
