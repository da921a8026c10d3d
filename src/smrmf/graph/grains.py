"""Grains of a graph: points that no clustering of several has parted, taken as one.

Where clusterings agree nothing is left to decide, but where each grain goes. The graph of the grains has the
weight between any two of them, and that inside each as a loop: a clustering of the grains cuts in it what it
cuts in the graph of the points. The less doubt there is, the smaller it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from smrmf.graph.groups import membership, numbered_by_first


def find_grains(partitions: Sequence[np.ndarray]) -> np.ndarray:
    """Return the grain of every point; points of one grain are together in all partitions.

    Grains are numbered by their first point, so they do not depend on how the partitions name their clusters.
    """
    grains = partitions[0]
    for labels in partitions:
        # Numbered anew each time, so that the product stays small.
        grains = numbered_by_first(grains * (labels.max() + 1) + labels)
    return grains


def graph_of_grains(W: sp.csr_array, grains: np.ndarray) -> sp.csr_array:
    """Add the weights of all edges between any two grains, and of those inside of each."""
    members = membership(grains, int(grains.max()) + 1, W.dtype)
    return (members @ W @ members.T).tocsr()
