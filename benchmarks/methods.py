"""Run every method of the paper once, at its defaults, on every data set, and time it.

``python benchmarks/methods.py`` prints seconds beside the paper's (other hardware, its own settings), the
accuracy of the same runs (labels for scoring only, no tuning), and how much faster the library's forms of
IPM, ESC-FFS and the projections of DS3 are than plain ones with the same answer (those of the tests). All
code is warm, compiled and run once, before it is timed. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances
from timing_and_tables import argument_parser, seconds, table_line

from smrmf import (
    AMRMF,
    APMF,
    DS3,
    ESC,
    GNMF,
    IPM,
    KDPP,
    RMNMF,
    SMRMF,
    DeepSemiNMF,
    FastSMRMF,
    NMFClustering,
    SelectiveRMNMF,
)
from smrmf._parallel import thread_pool
from smrmf.datasets import load
from smrmf.kernels.balls import L1InfBall, WeightedSum
from smrmf.kernels.row_sparse import shrink_rows
from smrmf.kernels.simplex import project_simplex
from smrmf.metrics import clustering_accuracy
from smrmf_reproduce.report.paper import TWELVE_SETS, Paper
from smrmf_reproduce.run.plan import Plan

# The plain forms are those of the tests, which are no package.
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from oracle.esc import farthest_first
from oracle.projections import sorted_l1inf, sorted_simplex
from oracle.selection import plain_ipm

SETS = [*TWELVE_SETS, "gordon"]

# The columns of the paper's tables, in its order.
METHODS: dict[str, Callable[[int], Any]] = {
    "NMF": lambda c: NMFClustering(c, random_state=0),
    "DS3": lambda c: DS3(n_clusters=c),
    "GNMF": lambda c: GNMF(c, random_state=0),
    "RMNMF": lambda c: RMNMF(c, random_state=0),
    "AMRMF": lambda c: AMRMF(c, random_state=0),
    "APMF": lambda c: APMF(c, random_state=0),
    "DPP": lambda c: SelectiveRMNMF(c, selector=KDPP(), random_state=0),
    "IPM": lambda c: SelectiveRMNMF(c, selector=IPM(), random_state=0),
    "ESC-FFS": lambda c: ESC(c, random_state=0),
    "DSMF": lambda c: DeepSemiNMF(c, random_state=0),
    "SMRMF-Euc": lambda c: SMRMF(c, dissimilarity="euclidean", random_state=0),
    "SMRMF-NS": lambda c: SMRMF(c, selection=None, random_state=0),
    "SMRMF": lambda c: SMRMF(c, random_state=0),
    "f-SMRMF": lambda c: FastSMRMF(c, random_state=0),
}


def fit_once(name: str, method: str, X: Any, y: np.ndarray) -> tuple[float, float, str]:
    """Fit one method on one data set; return seconds, accuracy and what went wrong, if anything."""
    model = METHODS[method](len(np.unique(y)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            duration = seconds(lambda: model.fit(X))
        # A cell that fails is a line of the report; the other cells still count.
        except Exception as error:
            return np.nan, np.nan, f"{name}, {method}: {type(error).__name__}: {error}"
    notes = "; ".join(sorted({str(w.message).split(":")[0] for w in caught}))
    note = f"{name}, {method}: {notes}" if notes else ""
    return duration, clustering_accuracy(y, model.labels_), note


def warm_up() -> None:
    X, y = make_blobs(60, 5, centers=3, random_state=0)
    # Not negative, as NMF and GNMF need it.
    X -= X.min()
    for method in METHODS:
        fit_once("", method, X, y)


def run_table(folder: Path | None, names: list[str], methods: list[str]) -> bool:
    """Print the tables of seconds and accuracies; tell whether every cell finished."""
    printed = Paper.of(Plan.read())
    warm_up()
    print("seconds, one run at the defaults; in the second line the paper's (other hardware and settings)\n")
    print(table_line("", methods))
    accuracies, notes, total = {}, [], 0.0
    for name in names:
        X, y = load(name, data_home=folder)
        results = [fit_once(name, method, X, y) for method in methods]
        total += float(np.nansum([duration for duration, _, _ in results]))
        print(table_line(f"{name} {X.shape[0]} x {X.shape[1]}", [f"{r[0]:.2f}" for r in results]))
        paper = [printed.value("run-time", name, method) for method in methods]
        stated = ["-" if value is None else f"{value:.2f}" for value in paper]
        print(table_line("", stated), flush=True)
        accuracies[name] = [accuracy for _, accuracy, _ in results]
        notes += [note for _, _, note in results if note]
    print(f"\nall runs together: {total:.0f} s")
    print("\naccuracy of the same runs (no tuning; labels for scoring only)\n")
    print(table_line("", methods))
    for name, row in accuracies.items():
        print(table_line(name, [f"{value:.3f}" for value in row]))
    # NaN where a cell failed: a mean over fewer sets would not compare.
    print(table_line("mean", [f"{value:.3f}" for value in np.mean(list(accuracies.values()), axis=0)]))
    if notes:
        print("\nwarnings:\n" + "\n".join(f"  {note}" for note in notes))
    return bool(np.isfinite(list(accuracies.values())).all())


def print_ratio(title: str, ours: Callable[[], Any], plain: Callable[[], Any], repeats: int) -> None:
    """Print the ratio of a plain form's time to ours, and whether they have the same answer."""
    same = "same answer" if np.allclose(ours(), plain(), atol=1e-9) else "ANOTHER ANSWER"
    fast = np.median([seconds(ours) for _ in range(repeats)])
    slow = np.median([seconds(plain) for _ in range(min(repeats, 3))])  # some take many seconds
    cells = [f"{fast:.4f} s", f"{slow:.3f} s", f"{slow / fast:.1f} x", same]
    print(table_line(title, cells, 44, 16), flush=True)


def compare_selectors(folder: Path | None) -> None:
    """Compare IPM and ESC-FFS with the plain forms of the tests."""
    X, _ = load("mfeat-fac", data_home=folder)
    count = 100
    ipm = IPM(exemplars=count)
    print_ratio(
        f"IPM, {count} of {len(X)} points (mfeat-fac)",
        lambda: ipm.fit(X).exemplar_indices_,
        lambda: plain_ipm(X, count),
        1,
    )
    few = 20
    esc = ESC(10, exemplars=few, random_state=0)
    # The first exemplar is random: the plain form starts from the same one.
    first = esc.fit(X).exemplar_indices_[0]
    print_ratio(
        f"ESC-FFS, {few} of {len(X)} points (mfeat-fac)",
        lambda: esc.fit(X).exemplar_indices_,
        lambda: farthest_first(X, int(first), few, 100.0)[0],
        1,
    )


def compare_projections() -> None:
    """Compare the projections of DS3 with sorting, the plain form of the tests."""
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(2000, 2000))
    with thread_pool(-1) as pool:
        print_ratio(
            "simplex projection, 2000 x 2000",
            lambda: project_simplex(dense, 1.0, pool),
            lambda: sorted_simplex(dense),
            7,
        )
        # What the ball meets inside DS3: columns on the simplex, most entries zero, stored transposed.
        points = rng.normal(size=(2000, 5))
        Zt = project_simplex(-pairwise_distances(points), 1.0, pool)
        C, ball = np.empty_like(Zt), L1InfBall(20.0)

        def project(Y: np.ndarray) -> np.ndarray:
            pool.over_rows(shrink_rows, (Y, C), ball.shrinkage(WeightedSum(Y, Y, 0.0), 1.0, None, pool))
            return C

        for title, Y in (("as DS3 meets it", Zt), ("dense", dense)):
            print_ratio(
                f"l1,inf ball, 2000 x 2000, {title}",
                lambda Y=Y: project(Y),
                lambda Y=Y: sorted_l1inf(Y.T, 20.0).T,
                7,
            )


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="SET")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS, metavar="METHOD")
    parser.add_argument("--no-ratios", action="store_true", help="leave out the plain forms")
    options = parser.parse_args()
    finished = run_table(options.data, options.sets, options.methods)
    if not options.no_ratios:
        print("\n" + table_line("against the plain form", ["ours", "plain", "ratio", ""], 44, 16))
        compare_selectors(options.data)
        compare_projections()
    if not finished:
        raise SystemExit("some cells did not finish")


if __name__ == "__main__":
    main()
