"""Measure how good the clusters and exemplars are, without labels and without tuning.

``python benchmarks/quality.py`` fits every method once, at its defaults, on ten of the
paper's data sets; labels serve for scoring only. The paper's protocol is ``smrmf reproduce``'s business.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import NMF
from sklearn.metrics import normalized_mutual_info_score
from timing_and_tables import argument_parser, table_line

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


EXEMPLAR_COLUMNS = ["bad neighbours", "of all points", "purer", "clusters", "classes", "predict = labels_"]


def default_labels(X: np.ndarray, c: int, seed: int) -> tuple[dict[str, np.ndarray], FastSMRMF]:
    """Cluster with every method at its defaults; return the labels, and the fitted FastSMRMF."""
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
        nmf = NMF(c, max_iter=1000, random_state=seed)
        labels["NMF"] = nmf.fit_transform(X).argmax(axis=1)
    return labels, fast


def score_data_set(
    name: str, folder: Path | None, seeds: int
) -> tuple[dict[str, np.ndarray], list[str], bool]:
    """Return accuracy and NMI of every method, what to print of the exemplars, and whether they are purer."""
    X, y = load(name, data_home=folder)
    scores: dict[str, list[tuple[float, float]]] = {}
    for seed in range(seeds):
        labels, fast = default_labels(X, len(np.unique(y)), seed)
        for method, found in labels.items():
            pair = (clustering_accuracy(y, found), normalized_mutual_info_score(y, found))
            scores.setdefault(method, []).append(pair)
    # Every seed counts; nothing is chosen by a score.
    means = {method: np.mean(pairs, axis=0) for method, pairs in scores.items()}
    return means, *describe_exemplars(X, y, fast)


def describe_exemplars(X: np.ndarray, y: np.ndarray, model: FastSMRMF) -> tuple[list[str], bool]:
    """Return the cells of one fit: how pure the exemplars' neighbourhoods are and what they cover."""
    # Of nearest points in the input space, not of the learned graph: a quality of where exemplars lie.
    bad = bad_neighbor_share(X, y)
    chosen = model.exemplar_indices_
    # Against all points and not the others: what a random choice of exemplars has in expectation.
    purer = bool(bad[chosen].mean() < bad.mean())
    cells = [
        f"{bad[chosen].mean():.3f}",
        f"{bad.mean():.3f}",
        "yes" if purer else "no",
        f"{len(np.unique(model.labels_[chosen]))}/{model.n_clusters}",
        f"{len(np.unique(y[chosen]))}/{len(np.unique(y))}",
        f"{np.mean(model.predict(X) == model.labels_):.4f}",
    ]
    return cells, purer


def run_defaults(folder: Path | None, names: list[str], seeds: int) -> None:
    """Print accuracy, NMI and exemplars of all methods on all data sets."""
    results = {}
    for name in names:
        results[name] = score_data_set(name, folder, seeds)
        print(f"  {name} done", flush=True)
    methods = list(results[names[0]][0])
    for position, title in enumerate(("accuracy", "NMI")):
        print(f"\n{title} (mean of {seeds} seed{'s' * (seeds > 1)}; no labels used)")
        print(table_line("", methods, 12))
        # sets x methods; the mean weighs every set alike, whatever its size.
        table = np.array([[results[name][0][method][position] for method in methods] for name in names])
        for name, row in zip([*names, "mean"], [*table, table.mean(axis=0)], strict=True):
            print(table_line(name, [f"{value:.3f}" for value in row], 12))
    print("\nFastSMRMF: exemplars, and predict on the training data")
    print(table_line("", EXEMPLAR_COLUMNS, 12, 19))
    for name, (_, cells, _) in results.items():
        print(table_line(name, cells, 12, 19))
    print(f"purer than average on {sum(purer for _, _, purer in results.values())} of {len(names)} sets")


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=DATA_SETS, help="only these data sets")
    parser.add_argument("--seeds", type=int, default=1, help="seeds to average over")
    options = parser.parse_args()
    run_defaults(options.data, options.sets, options.seeds)


if __name__ == "__main__":
    main()
