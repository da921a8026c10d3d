"""What a fit says about its own labels: how sure each is, and which points lie apart from all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf.graph.candidates import Neighbors
from smrmf.graph.membership import favor_labels, mean_distances, one_hot, outlyingness, walked_shares


def certainty(
    labels: np.ndarray,
    graph: sp.csr_array,
    neighbors: Neighbors,
    n_neighbors: int,
    votes: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return how sure the labels are, by public names, and what new points need to be judged alike.

    Every point sends a short walk over the graph. What counts at its end is half the label there and half
    the votes of the clusterings that were tried, where there were some: columns of ``votes`` are clusters.
    """
    n_clusters = int(labels.max()) + 1
    shares = one_hot(labels, n_clusters, graph.dtype)
    if votes is not None:
        shares += votes[:, :n_clusters]
        shares /= 2
    shares = walked_shares(graph, shares)
    shares /= shares.sum(axis=1, keepdims=True)
    near = slice(0, n_neighbors)
    reach = mean_distances(neighbors.squared[:, near])
    return {
        "membership_": favor_labels(shares, labels),
        # Before the label is put first: a point labelled against its neighbourhood is in doubt.
        "confidence_": shares[np.arange(len(labels)), labels],
        "outlier_scores_": outlyingness(reach, neighbors.indices[:, near], reach),
        "_fit_reach": reach,
    }
