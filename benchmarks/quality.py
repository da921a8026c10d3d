"""Measure how good the clusters and exemplars are, without labels and without tuning.

``python benchmarks/quality.py --data FOLDER`` fits every method once, at its defaults, on ten of the
paper's data sets; labels serve for scoring only. The paper's protocol is ``smrmf reproduce``'s business.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import NMF
from sklearn.metrics import normalized_mutual_info_score

from smrmf import RMNMF, SMRMF, FastSMRMF
from smrmf.datasets import load
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
        X, y = load(name, data_home=folder)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of the .npz files")
    parser.add_argument("--sets", nargs="+", help="only these data sets")
    parser.add_argument("--seeds", type=int, default=1, help="seeds to average over")
    options = parser.parse_args()
    run_defaults(options.data, options.sets or DATA_SETS, options.seeds)


if __name__ == "__main__":
    main()
