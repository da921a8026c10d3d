"""From the state of a loop in parts to what a fit gives, in the order in which the points came."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from smrmf.dask._blocks import Blocks, Each, added, value
from smrmf.dask._graph import BlockGraph, row_sums
from smrmf.dask._halo import Halo
from smrmf.dask._largest import median
from smrmf.dask._shuffle import Origin, Placed
from smrmf.graph.exemplars import best_first, cluster_quotas, readable_quotas
from smrmf.graph.membership import NEAR, WALK_STEPS, favor_labels, mean_distances, outlyingness


class Labelled(NamedTuple):
    """Labels, the columns of G in the order of the labels, the sizes of the clusters, and who was moved."""

    labels: Blocks
    order: np.ndarray
    sizes: np.ndarray
    moved: list[int]


def labelled(G: Blocks, halo: Halo) -> Labelled:
    """Label every point by the largest entry of its row; an empty cluster gets the point nearest to it."""
    n_columns = G.map(n_columns_of).total(max).compute()
    labels = G.map(largest_column)
    sizes = labels.map(np.bincount, minlength=n_columns).total(added).compute()
    moved: dict[int, int] = {}
    for empty in np.flatnonzero(sizes == 0)[: max(0, int(sizes.sum()) - np.count_nonzero(sizes))]:
        donors = G.map(
            best_donor,
            labels,
            Each(halo.starts[:-1].tolist()),
            column=int(empty),
            sizes=sizes,
            moved=dict(moved),
        )
        _, number, label = max(donors.compute())
        sizes[label] -= 1
        sizes[empty] += 1
        moved[number] = int(empty)
    if moved:
        labels = labels.map(relabelled, Each(halo.starts[:-1].tolist()), moved=moved)
    order = np.argsort(sizes == 0, kind="stable")
    labels = labels.map(renumbered, np.argsort(order).astype(np.int64)).persist()
    return Labelled(labels, order, sizes[order], list(moved))


def n_columns_of(G: np.ndarray) -> int:
    return int(G.shape[1])


def largest_column(G: np.ndarray) -> np.ndarray:
    return G.argmax(axis=1)


def best_donor(
    G: np.ndarray, labels: np.ndarray, first: int, column: int, sizes: np.ndarray, moved: dict[int, int]
) -> tuple[float, int, int]:
    """Return the point of a part that is nearest to an empty cluster, of a cluster that can do without it."""
    labels = relabelled(labels, first, moved)
    scores = np.where(sizes[labels] > 1, G[:, column], -np.inf)
    best = int(scores.argmax())
    return float(scores[best]), first + best, int(labels[best])


def relabelled(labels: np.ndarray, first: int, moved: dict[int, int]) -> np.ndarray:
    labels = labels.copy()
    for number, label in moved.items():
        if first <= number < first + len(labels):
            labels[number - first] = label
    return labels


def renumbered(labels: np.ndarray, rank: np.ndarray) -> np.ndarray:
    return rank[labels]


def embedding_part(G: np.ndarray, order: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return rows of G that are nearly those of an indicator."""
    scaled: np.ndarray = G[:, order] * np.sqrt(np.maximum(sizes, 1)).astype(G.dtype)
    return scaled


# How sure the labels are


def certainty(
    labels: Blocks,
    votes: Blocks | None,
    graph: BlockGraph,
    places: Blocks,
    squared: Blocks,
    n: int,
    n_neighbors: int,
    n_clusters: int,
    dtype: np.dtype,
) -> dict[str, Blocks]:
    """Return membership, confidence and outlier scores of all points, and how far their neighbours are."""
    degrees = graph.parts.map(row_sums)
    found = [] if votes is None else [votes]
    shares = labels.map(first_shares, *found, n_clusters=n_clusters, dtype=dtype)
    for _ in range(WALK_STEPS):
        shares = graph.parts.map(walked, degrees, graph.halo.gathered(shares))
    reach = squared.map(reach_of, n_neighbors=n_neighbors)
    usual = value(share_of, median(reach, n))
    scores = reach.map(scores_of, places, graph.halo.gathered(reach), usual, n_neighbors=n_neighbors)
    return {
        "membership_": shares.map(normalized).map(favor_labels, labels),
        "confidence_": shares.map(confidence_of, labels),
        "outlier_scores_": scores,
        "reach": reach,
    }


def first_shares(
    labels: np.ndarray, votes: np.ndarray | None = None, *, n_clusters: int, dtype: np.dtype
) -> np.ndarray:
    """Return indicators of the labels, or their mean with the votes."""
    shares = np.eye(n_clusters, dtype=dtype)[labels]
    return shares if votes is None else (shares + votes[:, :n_clusters].astype(dtype)) / 2


def walked(W: sp.csr_array, degrees: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the mean shares over the neighbours of every point; a point without any keeps its own."""
    alone = degrees <= np.finfo(W.dtype).tiny
    means = (W @ shares) / np.where(alone, 1, degrees)[:, None]
    means[alone] = shares[: W.shape[0]][alone]
    return np.asarray(means)


def normalized(shares: np.ndarray) -> np.ndarray:
    return shares / shares.sum(axis=1, keepdims=True)


def confidence_of(shares: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return normalized(shares)[np.arange(len(labels)), labels]


def reach_of(squared: np.ndarray, n_neighbors: int) -> np.ndarray:
    return mean_distances(squared[:, :n_neighbors])


def share_of(usual: float) -> float:
    return NEAR * usual


def scores_of(
    own: np.ndarray, places: np.ndarray, reach: np.ndarray, least: float, n_neighbors: int
) -> np.ndarray:
    return outlyingness(own, places[:, :n_neighbors], reach, least)


# Exemplars


class Ranked(NamedTuple):
    """Points that may be exemplars: their numbers in the order in which they came, scores and clusters."""

    rows: np.ndarray
    scores: np.ndarray
    labels: np.ndarray


def exemplars(
    Z: BlockGraph, labels: Blocks, placed: Placed, sizes: np.ndarray, count: int | None, rule: str
) -> Ranked:
    """Choose and rank exemplars: of every cluster its share, those that represent the most of it."""
    scores = Z.parts.map(scores_in_part, Z.halo.gathered(labels), rule=rule)
    filled = sizes[sizes > 0]
    by_norm = rule == "norm" and count is not None
    quotas = readable_quotas(filled) if count is None else cluster_quotas(filled, count)
    most = np.full(len(filled), count) if by_norm else quotas
    chunk_starts = np.concatenate([[0], np.cumsum(placed.chunk_sizes)])
    best = (
        placed.origin.map(best_in_part, scores, labels, chunk_starts=chunk_starts, most=most)
        .total(joined)
        .compute()
    )
    order = np.argsort(best.rows, kind="stable")
    best = Ranked(*(side[order] for side in best))
    if not by_norm:
        taken = np.concatenate(
            [
                of[best_first(best.scores[of], quota)]
                for label, quota in enumerate(quotas)
                if len(of := telling(best, label, count))
            ]
        )
        taken.sort()
        best = Ranked(*(side[taken] for side in best))
    ranks = best_first(best.scores, len(best.rows) if count is None else count)
    return Ranked(*(side[ranks] for side in best))


def telling(best: Ranked, label: int, count: int | None) -> np.ndarray:
    """Return the candidates of a cluster; those that are looked at stand for others, unless none does."""
    of = np.flatnonzero(best.labels == label)
    some = of[best.scores[of] > 0]
    return some if count is None and len(some) else of[:1] if count is None else of


def scores_in_part(Z: sp.csr_array, labels: np.ndarray, rule: str) -> np.ndarray:
    """Score the points of a part by what they represent: the norm, or the mass inside of their cluster."""
    if rule == "norm":
        return np.sqrt(np.asarray(Z.multiply(Z).sum(axis=1)).ravel())
    rows = np.repeat(np.arange(Z.shape[0]), np.diff(Z.indptr))
    inside = (labels[rows] == labels[Z.indices]) & (rows != Z.indices)
    return np.bincount(rows[inside], Z.data[inside], minlength=Z.shape[0]).astype(Z.dtype)


def best_in_part(
    origin: Origin, scores: np.ndarray, labels: np.ndarray, chunk_starts: np.ndarray, most: np.ndarray
) -> Ranked:
    """Return the best points of a part for every cluster, so many of each."""
    numbers = chunk_starts[origin.chunk] + origin.row
    by_number = np.argsort(numbers)
    chosen = []
    for label, count in enumerate(most):
        members = by_number[labels[by_number] == label]
        if len(members):
            chosen.append(members[np.argsort(-scores[members], kind="stable")[:count]])
    best = np.concatenate(chosen)
    return Ranked(numbers[best], scores[best], labels[best])


def joined(parts: list[Ranked]) -> Ranked:
    return Ranked(*(np.concatenate(side) for side in zip(*parts, strict=True)))
