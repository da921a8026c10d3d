"""Measure how good the clusters and exemplars are, without labels and without tuning.

``python benchmarks/quality.py --data FOLDER`` fits every method once, at its defaults, on ten of the
paper's data sets; labels serve for scoring only. With ``--paper`` it runs the paper's protocol instead:
its settings over its grids, the best kept **with the labels**, beside the numbers of the paper's table.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from pathlib import Path

import joblib
import numpy as np
from _data import PAPER_NAMES, load
from sklearn.base import clone
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import NMF
from sklearn.metrics import normalized_mutual_info_score

from smrmf import RMNMF, SMRMF, FastSMRMF
from smrmf.factorization._start import nndsvd
from smrmf.metrics import bad_neighbor_share, clustering_accuracy

DATA_SETS = [
    "wave",
    "ionosphere",
    "sonar",
    "movement",
    "musk1",
    "coil-5",
    "isolet",
    "semeion",
    "mfeat-fac",
    "mfeat-pix",
]
PAPER_SETS = ["ionosphere", "sonar", "movement", "coil-5", "wave"]
WEIGHTS = (1e-3, 1e-2, 1e-1, 1.0)
SMOOTHNESS = (1e-2, 1e-1, 1.0, 10.0)


def nmf_labels(X: np.ndarray, n_clusters: int, seed: int) -> np.ndarray:
    return NMF(n_clusters, max_iter=1000, random_state=seed).fit_transform(X).argmax(axis=1)


def default_labels(X: np.ndarray, c: int, seed: int) -> tuple[dict[str, np.ndarray], FastSMRMF]:
    """Cluster with every method at its defaults."""
    fast = FastSMRMF(c, random_state=seed).fit(X)
    labels = {
        "FastSMRMF": fast.labels_,
        "SMRMF": SMRMF(c, random_state=seed).fit_predict(X),
        "RMNMF": RMNMF(c, random_state=seed).fit_predict(X),
    }
    spectral = SpectralClustering(c, affinity="nearest_neighbors", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # graphs that are not connected, NMF short of iterations
        labels["KMeans"] = KMeans(c, n_init=10, random_state=seed).fit_predict(X)
        labels["Spectral"] = spectral.fit_predict(X)
        labels["NMF"] = nmf_labels(X, c, seed)
    return labels, fast


def run_defaults(folder: Path, names: list[str], seeds: int) -> None:
    scores: dict[tuple[str, str], list[tuple[float, float]]] = {}
    exemplar_rows = []
    for name in names:
        X, y = load(folder, name)
        c = len(np.unique(y))
        for seed in range(seeds):
            labels, fast = default_labels(X, c, seed)
            for method, found in labels.items():
                pair = (clustering_accuracy(y, found), normalized_mutual_info_score(y, found))
                scores.setdefault((name, method), []).append(pair)
        exemplar_rows.append(exemplar_row(name, X, y, fast))
        print(f"  {name} done", flush=True)
    methods = list(labels)
    for position, title in enumerate(("accuracy", "NMI")):
        print(f"\n{title} (mean of {seeds} seed{'s' * (seeds > 1)}; no labels used)")
        print(f"{'':12s}" + "".join(f"{m:>11s}" for m in methods))
        table = np.array([[np.mean(scores[n, m], axis=0)[position] for m in methods] for n in names])
        for name, row in zip([*names, "mean"], [*table, table.mean(axis=0)], strict=True):
            print(f"{name:12s}" + "".join(f"{value:11.3f}" for value in row))
    print("\nFastSMRMF: exemplars, and predict on the training data")
    print(f"{'':12s}{'bad neighbours':>16s}{'of all points':>15s}{'purer':>7s}{'clusters':>10s}", end="")
    print(f"{'classes':>9s}{'predict = labels_':>19s}")
    print("\n".join(row for row, _ in exemplar_rows))
    print(f"purer than average on {sum(purer for _, purer in exemplar_rows)} of {len(names)} sets")


def exemplar_row(name: str, X: np.ndarray, y: np.ndarray, model: FastSMRMF) -> tuple[str, bool]:
    """Describe the exemplars of one fit: how pure their neighbourhoods are and what they cover."""
    bad = bad_neighbor_share(X, y)
    chosen = model.exemplar_indices_
    clusters = f"{len(np.unique(model.labels_[chosen]))}/{model.n_clusters}"
    classes = f"{len(np.unique(y[chosen]))}/{len(np.unique(y))}"
    purer = bool(bad[chosen].mean() < bad.mean())
    agree = np.mean(model.predict(X) == model.labels_)
    row = f"{name:12s}{bad[chosen].mean():16.3f}{bad.mean():15.3f}{'yes' if purer else 'no':>7s}"
    return row + f"{clusters:>10s}{classes:>9s}{agree:19.4f}", purer


def paper_runs(c: int, reading: dict) -> dict[str, list]:
    """List the paper's grid of every method, under one reading of what the paper leaves open."""
    grid = {"manifold_weight": WEIGHTS, "selection_weight": WEIGHTS, "smoothness": SMOOTHNESS}
    runs = {}
    for method, kind, tuned in (("RMNMF", RMNMF, 1), ("SMRMF", SMRMF, 2), ("f-SMRMF", FastSMRMF, 3)):
        names = list(grid)[:tuned]
        points = itertools.product(*(grid[name] for name in names))
        fixed = kind.paper_settings() | reading
        runs[method] = [kind(c, **fixed | dict(zip(names, point, strict=True))) for point in points]
    return runs


def filled_start(X: np.ndarray, c: int, fill: float) -> np.ndarray:
    """Return NNDSVD as a widespread implementation has it, with small entries set to a constant."""
    G = nndsvd(X, c)
    return np.where(G < 1e-10, fill, G)


def score_one(model: RMNMF | SMRMF | FastSMRMF, X: np.ndarray, y: np.ndarray) -> tuple[float, bool]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # empty graphs and unconverged corners belong to the grid
        fitted = clone(model).set_params(n_jobs=1).fit(X)
    return clustering_accuracy(y, fitted.labels_), fitted.converged_


def run_paper(
    folder: Path, table: Path, names: list[str], jobs: int, penalty: float, fill: float | None
) -> None:
    printed = json.loads(table.read_text())["tables"]["acc"]["values"]
    print("best over the grid, chosen with the labels (the paper's protocol); p = printed in the paper")
    print(f"{'':12s}" + "".join(f"{m:>9s}{'p':>7s}{'conv':>7s}" for m in ("RMNMF", "SMRMF", "f-SMRMF")))
    for name in names:
        X, y = load(folder, name)
        line, c = f"{name:12s}", len(np.unique(y))
        reading = {"penalty": penalty}
        if fill is not None:
            reading["init"] = filled_start(X, c, fill)
        for method, models in paper_runs(c, reading).items():
            results = joblib.Parallel(n_jobs=jobs)(joblib.delayed(score_one)(m, X, y) for m in models)
            best = max(accuracy for accuracy, _ in results)
            converged = np.mean([good for _, good in results])
            stated = printed[PAPER_NAMES[name]][method]
            line += f"{best:9.3f}{stated:7.2f}{converged:7.0%}"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the .npz files")
    parser.add_argument("--sets", nargs="+", help="only these data sets")
    parser.add_argument("--seeds", type=int, default=1, help="seeds to average over")
    parser.add_argument("--paper", action="store_true", help="the paper's settings over its grids")
    parser.add_argument("--tables", type=Path, help="the paper's tables (default: beside the data)")
    parser.add_argument("--penalty", type=float, default=0.1, help="first penalty for --paper")
    parser.add_argument("--fill", type=float, help="fill small entries of NNDSVD with this, for --paper")
    parser.add_argument("--jobs", type=int, default=-1, help="processes for --paper")
    options = parser.parse_args()
    if options.paper:
        tables = options.tables or options.data.parent / "paper" / "tables.json"
        names = options.sets or PAPER_SETS
        run_paper(options.data, tables, names, options.jobs, options.penalty, options.fill)
    else:
        run_defaults(options.data, options.sets or DATA_SETS, options.seeds)


if __name__ == "__main__":
    main()
