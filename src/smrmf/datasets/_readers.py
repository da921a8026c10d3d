"""The formats in which the data sets are published, read as X and y; classes are numbered from 0."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf.datasets._unpack import (
    check_lzw,
    check_mat,
    check_npy,
    check_npz,
    check_size,
    limited,
    read_zip_member,
)

Dense = tuple[np.ndarray, np.ndarray]
COMPRESS_MAGIC = b"\x1f\x9d"  # how a .Z file of the Unix program compress begins
# Grey values of COIL's colour images with the weights of MATLAB's rgb2gray, and the pixels kept of each
# 128 x 128: every fourth, from the offsets that give Deng Cai's table (the fingerprint verifies it).
GREY = np.array([0.298936, 0.587043, 0.114021])
IMAGE_SIZE = (128, 128)
KEPT_PIXELS = (slice(3, None, 4), slice(0, None, 4))
VIEWS = range(0, 360, 5)
# The smallest class of the test documents: 20 x 251 are the paper's 5020 (paper note 37).
DOCUMENTS_PER_CLASS = 251
RAREST, MOST_COMMON = 0.01, 0.5  # shares of the documents that a word may occur in
TEST_FOLDER = "20news-bydate-test"


def read_member(path: Path, member: str) -> bytes:
    """Return a member of a zip archive, or a file that is not one; .Z files are uncompressed."""
    check_size(path.name, path.stat().st_size)
    content = path.read_bytes()
    if content.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            wanted = {member, f"{member}.Z"}
            found = [name for name in archive.namelist() if PurePosixPath(name).name in wanted]
            if not found:
                raise ValueError(f"the archive has no file {member}")
            content = read_zip_member(archive, found[0])
    if not content.startswith(COMPRESS_MAGIC):
        return content
    from unlzw3 import unlzw

    check_lzw(content, f"{member}.Z")
    return unlzw(content)


def read_text(
    path: Path,
    member: str,
    *,
    split: Callable[[np.ndarray, list[str]], Dense] | None = None,
    delimiter: str | None = ",",
    skip: int = 0,
    n_classes: int | None = None,
    sha256: str | None = None,
) -> Dense:
    """Read a line per row; ``skip`` columns of names come first and the class last, or see ``split``."""
    content = read_member(path, member)
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"the SHA-256 of {member} does not start with {sha256[:12]}")
    numbers, last = [], []
    # latin-1 cannot fail, and all that is read as a number is ASCII.
    for line in content.decode("latin-1").splitlines():
        if line.strip() and not line.startswith(";"):  # a semicolon starts a remark
            *fields, field = line.split(delimiter)
            numbers.append(np.array(fields[skip:], dtype=np.float64))
            last.append(field)
    X, y = (split or class_last)(np.array(numbers), last)
    return first_classes(X, y, n_classes)


def class_last(numbers: np.ndarray, last: list[str]) -> Dense:
    """Take the last column as the class."""
    return numbers, class_numbers(last)


def class_one_hot(numbers: np.ndarray, last: list[str]) -> Dense:
    """Take the last ten columns as the class: a single one among zeros."""
    table = np.column_stack([numbers, np.array(last, dtype=np.float64)])
    return np.ascontiguousarray(table[:, :-10]), table[:, -10:].argmax(axis=1)


def class_by_two_hundred(numbers: np.ndarray, last: list[str]) -> Dense:
    """Take every two hundred rows as a class."""
    table = np.column_stack([numbers, np.array(last, dtype=np.float64)])
    return table, np.arange(len(table)) // 200


def class_numbers(labels: Sequence[str]) -> np.ndarray:
    """Return classes as numbers from 0, in the order of numbers or of words."""
    try:
        # As numbers if they are: as words, class 10 would come before class 2.
        values = np.array(labels, dtype=np.float64)
    except ValueError:
        values = np.array([label.strip().strip("'\"") for label in labels])
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def first_classes(X: np.ndarray, y: np.ndarray, n_classes: int | None) -> Dense:
    """Keep the rows of the first classes."""
    if n_classes is None:
        return X, y.astype(np.int64)
    # Classes are numbered from 0 without gaps, so these are the first ones.
    kept = y < n_classes
    return X[kept], y[kept].astype(np.int64)


def first_of_each_class(y: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of the first rows of every class, class by class."""
    return np.concatenate([np.flatnonzero(y == label)[:count] for label in np.unique(y)])


def read_mat(path: Path, n_classes: int | None = None) -> Dense:
    """Read a MATLAB file with the rows in ``fea`` and the classes, from 1, in ``gnd``."""
    from scipy.io import loadmat

    check_mat(path)
    stored = loadmat(path)
    X, y = stored["fea"].astype(np.float64), stored["gnd"].ravel().astype(np.int64) - 1
    return first_classes(X, y, n_classes)


def read_coil(path: Path, n_objects: int) -> Dense:
    """Read the first objects of COIL-100 from the archive of its images, as 32 x 32 grey values.

    Pixels come column by column, as in the copies that are published as MATLAB files.
    """
    from PIL import Image

    rows = []
    with zipfile.ZipFile(path) as archive:
        names = {PurePosixPath(name).name: name for name in archive.namelist()}
        for wanted in (f"obj{number}__{angle}.png" for number in range(1, n_objects + 1) for angle in VIEWS):
            with Image.open(io.BytesIO(read_zip_member(archive, names[wanted]))) as image:
                if image.size != IMAGE_SIZE:  # known before the pixels are unpacked
                    raise ValueError(f"{wanted} has {image.size} pixels where {IMAGE_SIZE} are expected")
                grey = np.round(np.asarray(image.convert("RGB")) @ GREY)
            # 32 x 32, transposed for MATLAB's column-major order.
            rows.append(grey[KEPT_PIXELS].T.ravel())
    return np.array(rows), np.repeat(np.arange(n_objects), len(VIEWS))


def read_arff(path: Path, label: str, row_name: str | None = None) -> Dense:
    """Read a dense ARFF file of numbers, one attribute that is the class and, maybe, one that names the row.

    SciPy's reader makes a record type of all attributes, which is slow for ten thousand of them.
    """
    attributes: list[str] = []
    numbers, labels = [], []
    with path.open(encoding="utf8") as lines:
        for line in lines:
            if match := re.match(r"@attribute\s+('[^']*'|\"[^\"]*\"|\S+)", line, re.IGNORECASE):
                attributes.append(match[1].strip("'\""))
            if line.lower().startswith("@data"):
                break
        column = attributes.index(label)
        kept = [index for index, name in enumerate(attributes) if name not in (label, row_name)]
        for line in lines:
            if line.strip() and not line.startswith("%"):
                fields = line.split(",")
                labels.append(fields[column])
                numbers.append(np.array([fields[index] for index in kept], dtype=np.float64))
    return np.array(numbers), class_numbers(labels)


def read_news_folder(folder: Path) -> tuple[sp.csr_array, np.ndarray]:
    """Return counts of the chosen words and classes from a folder of counts of all words.

    The paper gives 5020 x 1796. 5020 is twenty times the smallest class of the test documents, but the
    vocabulary cannot be told from its size, so one plain rule is fixed here (:func:`choose_words`) and the
    result is not called the paper's table.
    """
    check_npz(folder / "counts.npz")
    counts = sp.csr_array(sp.load_npz(folder / "counts.npz"))
    y, split = read_npy(folder / "labels.npy"), read_npy(folder / "split.npy")
    words = (folder / "vocab.txt").read_text(encoding="utf8").split("\n")[: counts.shape[1]]
    test = np.flatnonzero(split == 1)
    rows = test[first_of_each_class(y[test], DOCUMENTS_PER_CLASS)]
    return choose_words(counts[rows], words), y[rows]


def read_npy(path: Path) -> np.ndarray:
    """Return the array of an .npy file."""
    with path.open("rb") as file:
        check_npy(file, path.name)
    return np.load(path, allow_pickle=False)


def read_news_archive(path: Path) -> tuple[sp.csr_array, np.ndarray]:
    """Return the same table from the archive of the texts, one file per document in one folder per class.

    scikit-learn's ``fetch_20newsgroups`` is not used: it knows one address, waits for it without a time
    limit, keeps a pickle in the cache, and does not read an archive that somebody has put into a folder.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    documents = []
    # A stream, "r|", read in the order of the archive: going back would unpack it again.
    with (
        gzip.open(path) as unpacked,
        tarfile.open(fileobj=limited(unpacked, path.name), mode="r|") as archive,
    ):
        for member in archive:
            *_, folder, group, number = ("", "", *PurePosixPath(member.name).parts)
            if folder == TEST_FOLDER and (file := archive.extractfile(member)):
                # Headers stay; latin-1 gives every byte a meaning.
                documents.append((group, int(number), file.read().decode("latin-1")))
    # By class and then by number as a number, whatever the order of the archive.
    documents.sort()
    y = class_numbers([group for group, _, _ in documents])
    rows = first_of_each_class(y, DOCUMENTS_PER_CLASS)
    # Fitted on the chosen documents alone: words of the others have a share of zero here and would be
    # dropped.
    vectorizer = CountVectorizer()
    counts = sp.csr_array(vectorizer.fit_transform([documents[row][2] for row in rows]))
    return choose_words(counts, vectorizer.get_feature_names_out()), y[rows]


def choose_words(counts: sp.csr_array, words: Sequence[str]) -> sp.csr_array:
    """Keep the words of letters only that are neither rare, nor in most documents, nor stop words."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    # Stored entries of a column are the documents that have the word: counts have no stored zeros.
    share = np.bincount(counts.indices, minlength=counts.shape[1]) / counts.shape[0]
    kept = (share >= RAREST) & (share <= MOST_COMMON)
    kept &= np.array([word.isalpha() and word not in ENGLISH_STOP_WORDS for word in words])
    return sp.csr_array(counts[:, np.flatnonzero(kept)], dtype=np.float64)


def weigh_words(counts: Any) -> sp.csr_array:
    """Return counts as TF-IDF weights."""
    from sklearn.feature_extraction.text import TfidfTransformer

    return sp.csr_array(TfidfTransformer().fit_transform(counts))
