"""Measure how good the clusters and exemplars are, without labels and without tuning, against peers.

``python benchmarks/quality.py`` fits every method at its defaults on four groups of tables, with five seeds;
labels serve for scoring only. A run of all takes about an hour on two cores: every score is written to
``--records`` as it comes, and what is there is not computed again: begin a new file for another version of a
method. The first of ``--methods`` is compared with the others. Peers need ``pip install 'smrmf[bench]'``. The
paper's protocol is ``smrmf reproduce``'s business.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from peers import PEERS
from quality_cases import Case, every_case
from quality_tables import Score, print_tables
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.neighbors import KNeighborsClassifier
from timing_and_tables import argument_parser, table_line

from smrmf import FastSMRMF
from smrmf.graph.partitions import contingency
from smrmf.metrics import bad_neighbor_share, clustering_accuracy

EXEMPLAR_COLUMNS = ["bad neighbours", "of all points", "purer", "clusters", "classes", "predict = labels_"]
HALVES_COLUMNS = ["fitted half", "predicted half", "by 10 neighbours"]


def ours(X: Any, c: int, seed: int) -> np.ndarray:
    """Cluster with the library's default."""
    return FastSMRMF(c, random_state=seed).fit_predict(X)


METHODS = {"FastSMRMF": ours, **PEERS}


def score_case(case: Case, seed: int, methods: Iterable[str]) -> list[Score]:
    """Run methods on a table with a seed, and score their labels."""
    X, y = case.make(seed)
    c, scores = len(np.unique(y)), []
    for method in methods:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # graphs that are not connected, few iterations, threads
            start = time.perf_counter()
            labels = METHODS[method](X, c, seed)
            seconds = time.perf_counter() - start
        values = (
            clustering_accuracy(y, labels),
            normalized_mutual_info_score(y, labels),
            adjusted_rand_score(y, labels),
        )
        scores.append(Score(case.group, case.name, seed, method, *values, seconds))
    return scores


def measure(cases: list[Case], methods: list[str], seeds: int, records: Path, jobs: int) -> list[Score]:
    """Return the scores of all cases, those that are recorded and those that are missing."""
    known = (
        [Score(**json.loads(line)) for line in records.read_text().splitlines()] if records.exists() else []
    )
    done = {score[:4] for score in known}
    work = []
    for case in cases:
        for seed in range(seeds):
            missing = [m for m in methods if (case.group, case.name, seed, m) not in done]
            if missing:
                work.append(joblib.delayed(score_case)(case, seed, missing))
    names = {case[:2] for case in cases}
    found = [score for score in known if score[:2] in names and score.seed < seeds]
    for scores in joblib.Parallel(jobs, return_as="generator_unordered", batch_size=1)(work):
        with records.open("a") as file:
            file.writelines(json.dumps(score._asdict()) + "\n" for score in scores)
        found += scores
        print(f"  {scores[0].group}: {scores[0].case}, seed {scores[0].seed} done", flush=True)
    return found


def describe_exemplars(X: np.ndarray, y: np.ndarray, seed: int = 0) -> tuple[list[str], bool]:
    """Return the cells of one fit: how pure the exemplars' neighbourhoods are and what they cover."""
    model = FastSMRMF(len(np.unique(y)), random_state=seed).fit(X)
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


def print_exemplars(cases: list[Case]) -> None:
    """Print what the exemplars of one fit are worth on every table as it is."""
    print("\nFastSMRMF: exemplars, and predict on the training data")
    print(table_line("", EXEMPLAR_COLUMNS, 16, 19))
    verdicts = []
    for case in cases:
        cells, purer = describe_exemplars(*case.make(0))
        verdicts.append(purer)
        print(table_line(case.name, cells, 16, 19), flush=True)
    print(f"purer than average on {sum(verdicts)} of {len(verdicts)} sets")


def score_halves(case: Case, seed: int) -> list[float]:
    """Fit a random half; return the accuracy there, of predict on the other half, and of its neighbours."""
    X, y = case.make(seed)
    order = np.random.RandomState(seed).permutation(X.shape[0])
    old, new = order[::2], order[1::2]
    model = FastSMRMF(len(np.unique(y)), random_state=seed).fit(X[old])
    neighbors = KNeighborsClassifier(10).fit(X[old], model.labels_)
    predicted = (m.predict(X[new]) for m in (model, neighbors))
    return [clustering_accuracy(y[old], model.labels_), *(clustering_accuracy(y[new], p) for p in predicted)]


def print_halves(cases: list[Case], seeds: int) -> None:
    """Print how well new points are placed, by set and by group."""
    print("\nFastSMRMF: accuracy on a half that is fitted, on the other by predict, and there by votes of")
    print("the ten nearest points of the first, mean over the seeds")
    print(table_line("", HALVES_COLUMNS, 28, 18))
    for group in dict.fromkeys(case.group for case in cases):
        found = []
        for case in (case for case in cases if case.group == group):
            found.append(np.mean([score_halves(case, seed) for seed in range(seeds)], axis=0))
            print(table_line(case.name, [f"{value:.3f}" for value in found[-1]], 28, 18), flush=True)
        print(table_line(f"{group}, mean", [f"{value:.3f}" for value in np.mean(found, axis=0)], 28, 18))


def score_confidence(case: Case, seed: int) -> list[float]:
    """Return the accuracy of the more confident half of the points, that of the others, and the mean trust.

    Clusters are matched to classes on all points; equal confidences are put in order by chance.
    """
    X, y = case.make(seed)
    model = FastSMRMF(len(np.unique(y)), random_state=seed).fit(X)
    classes, y = np.unique(y, return_inverse=True)
    _, matched = contingency(model.labels_, y, len(classes))
    right = matched[model.labels_] == y
    order = np.lexsort((np.random.RandomState(seed).permutation(len(y)), -model.confidence_))
    half = len(y) // 2
    return [right[order[:half]].mean(), right[order[half:]].mean(), float(model.confidence_.mean())]


def print_confidence(cases: list[Case], seeds: int) -> None:
    """Print whether the points that a fit is sure of are those that it has right, by set and by group."""
    print("\nFastSMRMF: accuracy of the more confident half of the points, of the rest, and mean confidence")
    print(table_line("", ["confident half", "the rest", "confidence_"], 28, 18))
    for group in dict.fromkeys(case.group for case in cases):
        found = []
        for case in (case for case in cases if case.group == group):
            found.append(np.mean([score_confidence(case, seed) for seed in range(seeds)], axis=0))
            print(table_line(case.name, [f"{value:.3f}" for value in found[-1]], 28, 18), flush=True)
        ahead = sum(row[0] > row[1] for row in found)
        even = sum(row[0] == row[1] for row in found)
        print(table_line(f"{group}, mean", [f"{value:.3f}" for value in np.mean(found, axis=0)], 28, 18))
        print(f"  the confident half is ahead on {ahead} of {len(found)} sets, level on {even}")


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--groups", nargs="+", help="only these groups")
    parser.add_argument("--sets", nargs="+", help="only cases whose names begin so")
    parser.add_argument(
        "--methods", nargs="+", choices=list(METHODS), default=list(METHODS), help="only these"
    )
    parser.add_argument("--seeds", type=int, default=5, help="seeds to average over")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--records", type=Path, default=Path("quality.jsonl"), help="where scores are kept")
    parser.add_argument("--no-exemplars", action="store_true", help="leave out all but the scores")
    options = parser.parse_args()
    cases = [
        case
        for case in every_case(options.data)
        if (not options.groups or case.group in options.groups)
        and (not options.sets or case.name.startswith(tuple(options.sets)))
    ]
    scores = measure(cases, options.methods, options.seeds, options.records, options.jobs)
    print_tables(scores, options.methods)
    if "FastSMRMF" in options.methods and not options.no_exemplars:
        print_exemplars([case for case in cases if case.group == "as they are"])
        print_halves(cases, options.seeds)
        print_confidence(cases, options.seeds)


if __name__ == "__main__":
    main()
