"""What a fit on Dask costs a cluster: tasks and bytes between workers, stage by stage, at several sizes.

Run ``python benchmarks/traffic.py``; it takes some minutes, and needs no idle machine: it counts. Parts have
the same number of rows at every size, as on a larger cluster. Beside what the workers have sent stands what
they would send if every part lay on a machine of its own (docs/larger_data.md works it out).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, SchedulerPlugin
from points_to_scale import KINDS, blocks_of

from smrmf.dask import FastSMRMF, _fit, _search, _shuffle
from smrmf.graph.coarse import GUARD
from smrmf.graph.consensus import twice

N_FEATURES, N_CLUSTERS, ROWS, ITEM = 50, 10, 5000, 4
SIZES = (50_000, 200_000)
FEW, MORE = 2, 12
# The functions after which a stage has ended.
ENDS = {
    (_search, "centers_of"): "sample",
    (_search, "place"): "placement",
    (_search, "tuned"): "recall",
    (_fit, "center_of"): "search",
    (_fit, "spectral_labels"): "start",
    (_fit, "started"): "plane",
    (_fit, "looped"): "loop",
    (_fit, "results"): "results",
}


class Finished(SchedulerPlugin):
    """Counts the tasks that have been done, by the function they call."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def transition(self, key: Any, start: str, finish: str, *rest: Any, **more: Any) -> None:
        """Count a task that was being done, and is."""
        if start == "processing" and finish == "memory":
            self.counts[str(key[0] if isinstance(key, tuple) else key).rpartition("-")[0]] += 1


class Meter:
    """Reads what a cluster has done so far, and keeps what every stage adds."""

    def __init__(self, cluster: LocalCluster, client: Client) -> None:
        self.client, self.finished = client, Finished()
        cluster.scheduler.add_plugin(self.finished, name="finished")
        self.stages: dict[str, np.ndarray] = {}
        self.arguments: dict[str, Any] = {}

    def read(self) -> np.ndarray:
        """Return tasks done and bytes sent."""
        while any(future.status == "pending" for future in self.client.futures.values()):
            time.sleep(0.05)
        sent = sum(self.client.run(bytes_sent).values())
        return np.array([self.finished.counts.total(), sent])

    def at_the_end_of(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        """Return a function that reads the meter when it has ended."""

        def measured(*arguments: Any, **named: Any) -> Any:
            result = function(*arguments, **named)
            now = self.read()
            self.stages[stage], self.last = now - self.last, now
            self.arguments[stage] = arguments
            return result

        return measured

    def fit(self, X: da.Array, max_iter: int) -> dict[str, np.ndarray]:
        """Return what every stage of a fit has taken."""
        self.stages, self.last = {}, self.read()
        self.finished.counts.clear()
        self.last[0] = 0
        real = {place: getattr(*place) for place in ENDS}
        try:
            for (module, name), stage in ENDS.items():
                setattr(module, name, self.at_the_end_of(real[module, name], stage))
            FastSMRMF(N_CLUSTERS, max_iter=max_iter, tol=0, random_state=0).fit(X)
        finally:
            for (module, name), function in real.items():
                setattr(module, name, function)
        return self.stages

    def expected(self, n: int) -> dict[str, float]:
        """Return the bytes that stages send if every part is on a machine of its own, and what makes them."""
        halo, counts = self.arguments["loop"][1].halo, self.finished.counts
        n_parts, row = len(halo.starts) - 1, N_FEATURES * ITEM
        sizes = np.array(halo.mail.rows.map(len).compute())
        received = sum(int(sizes[mine].sum()) for mine in halo.mail.received)
        ways, met = self.arguments["results"][1].found.ways, counts["nearest_in_other"] - n_parts
        rounds = max(1, int(np.ceil(np.log(n_parts) / np.log(_shuffle.MOST_PIECES))))
        return {
            "placement": rounds * n * (row + 24),
            "search": met * n / n_parts * row,
            "start": counts["stepped"] / n_parts * received * (twice(N_CLUSTERS) + GUARD) * ITEM,
            "an iteration": 2 * received * N_CLUSTERS * ITEM,
            "cells": ways.cell_map.number,
            "cells asked by a point": ways.n_asked,
            "parts met by a part": met / n_parts,
            "points of others known by a point": int(halo.counts.sum()) / n,
            "points in the letters to a part, for each of its own": received / n,
            "products with a graph in the start": counts["stepped"] / n_parts,
        }


def bytes_sent(dask_worker: Any) -> int:
    """Return how many bytes a worker has sent to others and to this process."""
    return int(dask_worker.transfer_outgoing_bytes_total)


def report(kind: str, n: int, meter: Meter) -> None:
    """Fit some points twice, with few and with more iterations, and print what that took."""
    X, _ = blocks_of(kind, n, N_FEATURES, N_CLUSTERS, seed=0)
    table = da.from_array(X, chunks=(ROWS, -1))
    few = meter.fit(table, FEW)["loop"]
    stages = meter.fit(table, MORE)
    stages["an iteration"] = (stages.pop("loop") - few) / (MORE - FEW)
    expected = meter.expected(n)
    print(f"{kind}, {n} points in parts of {ROWS}, of {X.nbytes / 1e6:.1f} MB in all")
    for name, (tasks, sent) in stages.items():
        most = f", at most {expected[name] / 1e6:.1f}" if name in expected else ""
        print(f"    {name:12} {tasks:7.0f} tasks, {sent / 1e6:8.1f} MB sent{most}")
    for name in list(expected)[4:]:
        print(f"    {name}: {expected[name]:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="N")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["manifolds"], help="of points")
    parser.add_argument("--workers", type=int, default=4, metavar="N", help="processes of one thread")
    options = parser.parse_args()
    cluster = LocalCluster(
        n_workers=options.workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0
    )
    with cluster, Client(cluster) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that few iterations do not converge, and that graphs are large
        meter = Meter(cluster, client)
        for kind in options.kinds:
            for n in options.sizes:
                report(kind, n, meter)


if __name__ == "__main__":
    main()
