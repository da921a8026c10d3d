"""The same fit in memory and on Dask: seconds, agreement of labels and objectives, on one machine.

Run ``python benchmarks/spread.py`` on an otherwise idle machine; it takes some minutes. One machine gains
nothing from more processes: what is shown is what the way over a scheduler costs, and that the result is the
same.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from points_to_scale import KINDS, blocks_of
from sklearn.metrics import adjusted_rand_score
from timing_and_tables import seconds

import smrmf
from smrmf.dask import FastSMRMF

N_FEATURES, N_CLUSTERS, N_PARTS = 50, 10, 10
SIZES = (20_000, 100_000)


def compare(kind: str, n: int, folder: Path) -> None:
    """Print how a fit on Dask compares with one in memory."""
    X, y = blocks_of(kind, n, N_FEATURES, N_CLUSTERS, seed=0)
    np.save(folder / "X.npy", X)
    table = da.from_array(np.load(folder / "X.npy", mmap_mode="r"), chunks=(-(-n // N_PARTS), -1))
    spread, here = FastSMRMF(N_CLUSTERS, random_state=0), smrmf.FastSMRMF(N_CLUSTERS, random_state=0)
    took = seconds(lambda: spread.fit(table)), seconds(lambda: here.fit(X))
    labels = spread.labels_.compute()
    print(
        f"{kind}, {n} points: {took[0]:.1f} s on Dask, {took[1]:.1f} s in memory; adjusted Rand index of "
        f"the two {adjusted_rand_score(labels, here.labels_):.4f}, with the classes "
        f"{adjusted_rand_score(y, labels):.3f} and {adjusted_rand_score(y, here.labels_):.3f}; objectives "
        f"differ by {abs(spread.objective_ / here.objective_ - 1):.1e}; recall {spread.neighbor_recall_:.3f} "
        f"and {here.neighbor_recall_:.3f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="processes of one thread")
    options = parser.parse_args()
    cluster = LocalCluster(
        n_workers=options.workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0
    )
    with cluster, Client(cluster), tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # That the rows come from this process, and not from files that workers read.
        warnings.filterwarnings("ignore", message="Sending large graph")
        small = blocks_of("blobs", 3000, N_FEATURES, 3, 0)[0]
        FastSMRMF(3).fit(da.from_array(small, chunks=(1000, -1)))  # compiles
        smrmf.FastSMRMF(3, neighbors="approximate").fit(small)
        for kind in KINDS:
            for n in options.sizes:
                compare(kind, n, Path(folder))


if __name__ == "__main__":
    main()
