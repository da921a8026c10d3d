"""From ten thousand points to a million: time, memory, recall and accuracy of FastSMRMF beside its peers.

Run ``python benchmarks/scale.py`` on an otherwise idle machine with 12 GB of free memory; it takes an hour,
and a quarter of it with ``--alone``, which leaves out all peers. Everything is measured in one process: the
fit, the approximate search alone (that of the library, and that of faiss where it is installed), and the
peers for as long as they take less than some minutes. ``--agreement`` compares labels by approximate and by
exact neighbours instead.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from peers import umap_kmeans
from points_to_scale import KINDS, blocks_of
from quality_cases import every_case
from sklearn.cluster import KMeans, MiniBatchKMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score
from timing_and_tables import seconds, table_line

from smrmf import FastSMRMF
from smrmf._parallel import thread_pool
from smrmf.graph.candidates import Neighbors
from smrmf.graph.cells import train_cells
from smrmf.graph.neighbors import find_neighbors
from smrmf.graph.search import FEWEST_IN_CELLS, InCells, search

N_FEATURES, N_CLUSTERS = 50, 10
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
AGREEMENT_SIZES = (20_000, 40_000, 60_000)
# Twice the default neighbours and one more, as a fit asks for.
N_NEIGHBORS = 21
# Points whose true neighbours are found to measure the recall; others than those the search itself takes.
MEASURED = 1000
# A peer that takes longer is not asked for more points, of which there would be three times as many.
LONGEST_SECONDS = 100.0


class Peer(NamedTuple):
    """A clustering by somebody else."""

    name: str
    labels: Callable[[np.ndarray], np.ndarray]


PEERS = [
    Peer("KMeans", lambda X: KMeans(N_CLUSTERS, n_init=10, random_state=0).fit_predict(X)),
    Peer("MiniBatchKMeans", lambda X: MiniBatchKMeans(N_CLUSTERS, n_init=10, random_state=0).fit_predict(X)),
    Peer(
        "SpectralClustering",
        lambda X: SpectralClustering(N_CLUSTERS, affinity="nearest_neighbors", random_state=0).fit_predict(X),
    ),
    Peer("UMAP + KMeans", lambda X: umap_kmeans(X, N_CLUSTERS, 0)),
]


class PeakMemory:
    """The most memory of the process inside a block, above what it has at the beginning."""

    def __enter__(self) -> PeakMemory:
        # The system forgets the largest size so far (Linux).
        Path("/proc/self/clear_refs").write_text("5")
        self.before = self._line("VmRSS")
        return self

    def __exit__(self, *error: object) -> None:
        self.bytes = self._line("VmHWM") - self.before

    @staticmethod
    def _line(name: str) -> int:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
        raise RuntimeError(f"/proc/self/status has no {name}")


def search_alone(X: np.ndarray) -> tuple[np.ndarray, Neighbors]:
    """Do the search of a fit; return the points in the order of their cells, and their neighbours."""
    with thread_pool(-1) as pool:
        cells, order = InCells(*train_cells(X, pool)).ordered()
        X = X[order]
        return X, search(X, N_NEIGHBORS, pool, cells)[1]


def true_recall(X: np.ndarray, squared: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return which share of the true neighbours of some points their lists have, ties included."""
    rows = np.random.default_rng(1).choice(len(X), MEASURED, replace=False)
    with thread_pool(-1) as pool:
        # Every point finds itself first.
        exact = find_neighbors(X, N_NEIGHBORS + 1, X[rows], pool=pool).squared[:, 1:]
    return float(np.mean(squared(rows) <= exact[:, -1:] * (1 + 1e-5)))


def faiss_search(X: np.ndarray) -> tuple[float, float] | None:
    """Return seconds and recall of faiss' search in cells, where it is installed."""
    try:
        import faiss
    except ImportError:
        return None

    def search() -> None:
        quantizer = faiss.IndexFlatL2(X.shape[1])
        index = faiss.IndexIVFFlat(quantizer, X.shape[1], int(4 * len(X) ** 0.5))
        sample = np.random.default_rng(0).choice(len(X), min(len(X), 64 * index.nlist), replace=False)
        index.train(X[sample])
        index.add(X)
        index.nprobe = 16
        found[:] = index.search(X, N_NEIGHBORS + 1)[1]

    found = np.empty((len(X), N_NEIGHBORS + 1), np.int64)
    took = seconds(search)

    def squared(rows: np.ndarray) -> np.ndarray:
        # Without the point itself, and what was not found farther than anything.
        near = found[rows]
        apart = np.sum((X[rows][:, None] - X[near]) ** 2, axis=2)
        apart[(near < 0) | (near == rows[:, None])] = np.inf
        return np.sort(apart, axis=1)[:, :N_NEIGHBORS]

    return took, true_recall(X, squared)


def measure(kind: str, n: int, running: list[Peer], alone: bool = False) -> tuple[float, float]:
    """Print what a fit of so many points takes; return seconds of the fit and of the search."""
    X, y = blocks_of(kind, n, N_FEATURES, N_CLUSTERS, seed=0)
    model = FastSMRMF(N_CLUSTERS, neighbors="auto", random_state=0)
    with PeakMemory() as peak:
        total = seconds(lambda: model.fit(X))
    found: list[tuple[np.ndarray, Neighbors]] = []
    of_search = seconds(lambda: found.append(search_alone(X)))
    ordered, near = found.pop()
    recall = true_recall(ordered, lambda rows: near.squared[rows])
    print(
        f"{kind}, {n} points: {total:.1f} s, {total / of_search:.2f}x the search ({of_search:.1f} s, recall "
        f"{recall:.3f}, told {near.recall:.3f}), peak memory {peak.bytes / X.nbytes + 1:.1f}x the table, "
        f"{model.n_iter_} iterations, adjusted Rand index {adjusted_rand_score(y, model.labels_):.3f}",
        flush=True,
    )
    if not alone and (theirs := faiss_search(X)) is not None:
        print(f"    faiss in cells: {theirs[0]:.1f} s, recall {theirs[1]:.3f}", flush=True)
    for peer in list(running):
        took, score = of_peer(peer, X, y)
        print(
            f"    {peer.name:20s} {took:7.1f} s, ours {total / took:6.2f}x, adjusted Rand index {score:.3f}"
        )
        if took > LONGEST_SECONDS:
            running.remove(peer)
    return total, of_search


def of_peer(peer: Peer, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return seconds and score of a peer; infinite ones if memory does not suffice."""
    begun = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = peer.labels(X)
    except MemoryError:
        return np.inf, np.nan
    return time.perf_counter() - begun, float(adjusted_rand_score(y, labels))


def exponent(sizes: list[int], values: list[float]) -> float:
    """Return the slope in log-log: 1 is linear, 2 quadratic."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def draw(path: Path, sizes: list[int], times: dict[str, list[tuple[float, float]]]) -> None:
    """Draw the seconds of fits and searches over the number of points."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
    for color, (kind, both) in zip(("C0", "C1"), times.items(), strict=True):
        total, search = map(list, zip(*both, strict=True))
        axes.plot(sizes, total, "o-", color=color, label=f"{kind}: fit")
        axes.plot(sizes, search, "o:", color=color, label=f"{kind}: its search alone")
    axes.plot(sizes, np.array(sizes) * 1e-4, color="0.7", lw=1, label="linear: 10,000 points a second")
    axes.set(xscale="log", yscale="log", xlabel="points", ylabel="seconds")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def scale(sizes: list[int], plot: Path | None, alone: bool) -> None:
    # Compiles: kernels of ours, and of UMAP.
    small = blocks_of("blobs", 3000, N_FEATURES, 3, 0)[0]
    FastSMRMF(3, neighbors="approximate").fit(small)
    if not alone:
        umap_kmeans(small, 3, 0)
    times: dict[str, list[tuple[float, float]]] = {}
    for kind in KINDS:
        running = [] if alone else list(PEERS)
        times[kind] = [measure(kind, n, running, alone) for n in sizes]
        large = [place for place, n in enumerate(sizes) if n >= 30_000]
        if len(large) > 1:
            slope = exponent([sizes[i] for i in large], [times[kind][i][0] for i in large])
            print(f"{kind}: the fit grows with the power {slope:.2f} of the points from 30,000 on\n")
    if plot is not None:
        draw(plot, sizes, times)


def tables_of_some_size(folder: Path | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the tables at hand that cells can be made of, and points of both kinds."""
    for case in every_case(folder):
        if case.group == "as they are":
            X, y = case.make(0)
            if len(X) >= FEWEST_IN_CELLS:
                yield case.name, X, y
    for kind in KINDS:
        for n in AGREEMENT_SIZES:
            yield f"{kind}, {n}", *blocks_of(kind, n, N_FEATURES, N_CLUSTERS, seed=1)


def agreement(folder: Path | None) -> None:
    """Print how far labels by approximate neighbours are from those by exact ones.

    Beside it, how far another seed moves the latter: so far nobody knows where points belong.
    """
    near, seeds = [], []
    print(table_line("", ["points", "agreement", "other seed", "to truth", "exact", "recall"], 30))
    for name, X, y in tables_of_some_size(folder):
        c = len(np.unique(y))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, exact, other = (
                FastSMRMF(c, neighbors=how, random_state=seed).fit(X)
                for how, seed in (("approximate", 0), ("exact", 0), ("exact", 1))
            )
        near.append(adjusted_rand_score(model.labels_, exact.labels_))
        seeds.append(adjusted_rand_score(other.labels_, exact.labels_))
        truth = [adjusted_rand_score(y, labels) for labels in (model.labels_, exact.labels_)]
        scores = [f"{score:.3f}" for score in (near[-1], seeds[-1], *truth, model.neighbor_recall_)]
        print(table_line(name, [str(len(X)), *scores], 30), flush=True)
    for kind, scores in (("approximate neighbours", near), ("another seed", seeds)):
        print(f"{kind}: mean {np.mean(scores):.3f} of {len(scores)}, least {min(scores):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="where to draw times over sizes")
    parser.add_argument("--alone", action="store_true", help="without the peers and faiss")
    parser.add_argument("--agreement", action="store_true", help="compare with exact neighbours instead")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="folder of the data sets")
    options = parser.parse_args()
    begun = time.perf_counter()
    if options.agreement:
        agreement(options.data)
    else:
        scale(options.sizes, options.plot, options.alone)
    print(f"{time.perf_counter() - begun:.0f} s in all")


if __name__ == "__main__":
    main()
