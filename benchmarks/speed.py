"""Time the library against peers: every figure is a ratio, measured in one process.

Run ``python benchmarks/speed.py`` on an otherwise idle machine. All code is warm (compiled and run once)
before it is timed; times are medians over repetitions that alternate with their peer. Seconds of all methods
beside the paper's are in ``methods.py``, ratios of hand-tuned kernels to plain ones in ``kernels.py``.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering
from sklearn.datasets import make_blobs
from timing_and_tables import argument_parser, seconds, seconds_in_turns

from smrmf import SMRMF, FastSMRMF
from smrmf._parallel import thread_pool
from smrmf.datasets import load
from smrmf.graph.neighbors import find_neighbors


class IterationClock:
    """A callback that notes when every iteration ends."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def setup(self, estimator, context):  # noqa: D102
        pass

    def teardown(self, estimator, context):  # noqa: D102
        pass

    def on_fit_task_begin(self, estimator, context):  # noqa: D102
        pass

    def on_fit_task_end(self, estimator, context):  # noqa: D102
        if context.task_name == "iteration":
            self.ends.append(time.perf_counter())


def against_spectral_clustering(folder: Path | None) -> None:
    print("FastSMRMF at its defaults against SpectralClustering(affinity='nearest_neighbors')")
    for name in ("mfeat-fac", "semeion"):
        X, y = load(name, data_home=folder)
        c = len(np.unique(y))
        ours, theirs = seconds_in_turns(
            lambda X=X, c=c: FastSMRMF(c, random_state=0).fit(X),
            lambda X=X, c=c: SpectralClustering(c, affinity="nearest_neighbors", random_state=0).fit(X),
        )
        print(f"  {name:10s} {ours:6.3f} s against {theirs:6.3f} s: {ours / theirs:5.2f}x")


def on_a_text(n: int = 9394, m: int = 36771, length: int = 140) -> None:
    print(f"\nThe same on a sparse table of {n} x {m}, as texts have them")
    rng = np.random.default_rng(0)
    # Words by Zipf's law, half of them from the words that one of twenty topics prefers.
    words = (m ** rng.random((n, length))).astype(int)
    own = rng.random((n, length)) < 0.5
    words[own] = (words[own] * 20 + np.broadcast_to(np.arange(n)[:, None] % 20, words.shape)[own]) % m
    rows = np.repeat(np.arange(n), length)
    X = sp.csr_array((rng.uniform(0.5, 1, n * length), (rows, words.ravel())), shape=(n, m))
    ours, theirs = seconds_in_turns(
        lambda: FastSMRMF(20, metric="cosine", random_state=0).fit(X),
        lambda: SpectralClustering(20, affinity="nearest_neighbors", random_state=0).fit(X),
        repeats=1,
    )
    print(f"  {X.nnz} entries: {ours:6.1f} s against {theirs:6.1f} s: {ours / theirs:5.2f}x")


def smrmf_iteration(n: int = 2000) -> None:
    print(f"\nOne SMRMF iteration at n = {n} against np.copyto of one n x n float64 array")
    X, _ = make_blobs(n, 50, centers=10, cluster_std=8.0, random_state=0)
    clock = IterationClock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Without a stopping rule, so that there are enough iterations to take a median of.
        model = SMRMF(10, random_state=0, tol=0, max_iter=30).set_callbacks(clock)
        total = seconds(lambda: model.fit(X))
    source, target = np.random.default_rng(0).random((n, n)), np.empty((n, n))
    copies = [seconds(lambda: np.copyto(target, source)) for _ in range(30)]
    # From the sixth on: the first ones compile and start far from the solution. A copy is the unit,
    # because work over all pairs is bound by memory.
    iteration, copy = float(np.median(np.diff(clock.ends)[5:])), float(np.median(copies))
    ratio = f"{1e3 * iteration:6.1f} ms against {1e3 * copy:5.2f} ms: {iteration / copy:5.1f}x"
    print(f"  {ratio} (whole fit {total:.1f} s)")
    # Apart from the timed fit, because tracing slows every allocation down.
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        SMRMF(10, random_state=0, tol=0, max_iter=3).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"  peak memory of a whole fit: {peak / (8 * n * n):.2f} n x n arrays")


def scaling(sizes: tuple[int, ...] = (2000, 4000, 8000, 16000)) -> None:
    print("\nFastSMRMF on blobs with 50 features and 10 clusters: time beyond the neighbour search")
    beyond = []
    for n in sizes:
        X, _ = make_blobs(n, 50, centers=10, cluster_std=8.0, random_state=0)

        def search(X: np.ndarray = X) -> None:
            with thread_pool(-1) as pool:
                # Twice the default neighbours and one more, as a fit asks for.
                find_neighbors(X, 21, pool=pool)

        whole, knn = seconds_in_turns(lambda X=X: FastSMRMF(10, random_state=0).fit(X), search, repeats=3)
        tracemalloc.start()
        model = FastSMRMF(10, random_state=0).fit(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        beyond.append(whole - knn)
        print(
            f"  n = {n:6d}: fit {whole:6.2f} s, search {knn:6.2f} s, beyond {beyond[-1]:6.2f} s, "
            f"{model.n_iter_} iterations, peak {peak / (8 * n * n):.3f} n x n arrays"
        )
    # Slope in log-log: n^1 gives 1, n^2 gives 2.
    exponent = np.polyfit(np.log(sizes), np.log(beyond), 1)[0]
    print(f"  exponent of the time beyond the search: {exponent:.2f}")


def main() -> None:
    options = argument_parser(__doc__).parse_args()
    against_spectral_clustering(options.data)
    on_a_text()
    smrmf_iteration()
    scaling()


if __name__ == "__main__":
    main()
