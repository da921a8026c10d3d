"""Draw what the start listens to: a graph of two noisy moons, before and after many clusterings vote on it.

``python examples/consensus_moons.py [FILE]`` draws the graph as it is, the same without the edges that most
candidates cut, and the confidence of every point. Needs ``pip install 'smrmf[plot]'``.
"""

from __future__ import annotations

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from matplotlib.collections import LineCollection
from sklearn.datasets import make_moons
from sklearn.metrics import adjusted_rand_score

from smrmf import FastSMRMF
from smrmf._parallel import SERIAL
from smrmf.graph.consensus import find_candidates, trusted_graph
from smrmf.graph.graphs import simplex_graph, symmetrize
from smrmf.graph.labels import graph_labels
from smrmf.graph.neighbors import find_neighbors
from smrmf.graph.partitions import joined_shares

COLORS = np.array(["#0072b2", "#d55e00"])
NEIGHBORS = 10


def draw_graph(axes: plt.Axes, X: np.ndarray, W: sp.csr_array, labels: np.ndarray, title: str) -> None:
    """Draw edges by their weight, and points by their cluster."""
    upper = sp.coo_array(sp.triu(W, 1))
    shades = np.clip(upper.data / np.quantile(upper.data, 0.9), 0, 1)
    colors = np.column_stack([np.full((len(shades), 3), 0.2), shades])
    axes.add_collection(LineCollection(X[np.column_stack([upper.row, upper.col])], colors=colors, lw=1))
    axes.scatter(*X.T, c=COLORS[labels], s=12, zorder=2, lw=0)
    axes.set_title(title)


def main() -> None:
    X, y = make_moons(400, noise=0.12, random_state=0)
    near = find_neighbors(X, 2 * NEIGHBORS + 1)
    W, wide = (symmetrize(simplex_graph(near, size)) for size in (NEIGHBORS, 2 * NEIGHBORS))
    candidates, _ = find_candidates(X, W, [W, wide], 2, np.random.RandomState(0), SERIAL)
    trusted = trusted_graph(W, joined_shares(W, np.column_stack(candidates)))
    one = graph_labels(X, W, 2, np.random.RandomState(0), SERIAL)
    model = FastSMRMF(2, random_state=0).fit(X)
    before, after = (adjusted_rand_score(y, labels) for labels in (one, model.labels_))
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 3.2), layout="constrained")
    draw_graph(left, X, W, one, f"the graph, and one clustering of it\nadjusted Rand index {before:.2f}")
    draw_graph(
        middle,
        X,
        trusted,
        model.labels_,
        f"edges weighed by trust, and the clusters\nadjusted Rand index {after:.2f}",
    )
    points = right.scatter(*X.T, c=model.confidence_, s=14, cmap="viridis", lw=0)
    figure.colorbar(points, ax=right, label="confidence_", shrink=0.75)
    right.set_title(f"how sure the labels are\nstability_ {model.stability_:.2f}")
    for axes in (left, middle, right):
        axes.set(xticks=[], yticks=[], aspect="equal")
        axes.spines[:].set_visible(False)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "consensus_moons.png", dpi=110)


if __name__ == "__main__":
    main()
