"""Rows of a table that are the same, and labels that do not tell them apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf._parallel import row_blocks
from smrmf.graph.groups import numbered_by_first


def distinct_rows(X: Any) -> np.ndarray:
    """Return the group of identical rows that every row belongs to, numbered by their first rows.

    A sparse X has every entry once, in the order of the columns.
    """
    n = X.shape[0]
    with np.errstate(over="ignore", invalid="ignore"):
        # In double precision: of many rows fewer have the same sum by chance.
        sums = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    # Identical rows have identical sums: all others are alone, and need no closer look.
    _, groups, sizes = np.unique(sums, return_inverse=True, return_counts=True)
    suspects = np.flatnonzero(sizes[groups] > 1)
    known: dict[bytes, int] = {}
    for i, digest in zip(suspects, _digests(X, suspects), strict=True):
        groups[i] = known.setdefault(digest, n + len(known))
    return numbered_by_first(groups)


def _digests(X: Any, rows: np.ndarray) -> Iterator[bytes]:
    """Return 16 bytes for each of some rows, which no other row shares."""
    if sp.issparse(X):
        X = X[rows]
        X.eliminate_zeros()
        for start, stop in itertools.pairwise(X.indptr):
            row = slice(start, stop)
            yield blake2b(X.indices[row].tobytes() + X.data[row].tobytes(), digest_size=16).digest()
        return
    for block in row_blocks(len(rows), X.shape[1]):
        for row in X[rows[block]] + 0.0:  # which makes -0 a 0
            yield blake2b(row, digest_size=16).digest()


def agreeing_labels(labels: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Give every group the label that most of its rows have, and number what is left without gaps."""
    n_groups = int(groups.max()) + 1
    if n_groups == len(groups):
        return labels
    votes = sp.csr_array((np.ones(len(labels)), (groups, labels))).toarray()
    return np.unique(votes.argmax(axis=1)[groups], return_inverse=True)[1]
