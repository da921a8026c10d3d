"""Time every hand-tuned kernel against its plain form, to see whether the tuning is worth its code.

Run ``python benchmarks/kernels.py`` on an otherwise idle machine: it takes less than two minutes and needs
no data. A line gives the best time of each form over repetitions that take turns, their ratio (above 1 the
tuned form is faster), and whether both forms gave the same answer. All forms are compiled with the same
settings and run on one thread, except for the neighbour search, where both sides use all cores.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from plain_kernels import (
    columns_solver,
    keep_by_branch,
    keep_by_storing,
    michelot,
    over_rows,
    smallest_in_one_chain,
)
from sklearn.datasets import make_blobs
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits
from timing_and_tables import seconds_in_turns, table_line

from smrmf._parallel import SERIAL, row_blocks, thread_pool
from smrmf.graph.neighbors import find_neighbors
from smrmf.kernels.balls import _column_tails, _Tails
from smrmf.kernels.distances import (
    LatentPoints,
    gather_kernel_lists,
    gather_roughness_lists,
    latent_kernel_lists,
    latent_roughness_lists,
    squared_distances,
    squared_norms,
)
from smrmf.kernels.simplex import (
    SAMPLE_STRIDE,
    neighbor_smoothness,
    project_simplex,
    simplex_threshold,
    solve_columns,
)

COLUMN_SIZES = (20, 200, 2000)
ENTRIES = 400_000  # of all columns of one size together
NEIGHBORS = 10
TITLE_WIDTH, WIDTH = 70, 15

Form = Callable[..., Any]


def print_heading(title: str) -> None:
    print("\n" + table_line(title, ["tuned", "plain", "plain / tuned", ""], TITLE_WIDTH, WIDTH))


def print_ratio(title: str, tuned: Form, plain: Form, repeats: int = 9) -> None:
    """Print the times of two forms, their ratio and whether they agree; both may return the same array."""
    # A copy, because the plain form may write its answer into the same array.
    answer = np.array(tuned())
    same = "same answer" if np.allclose(answer, plain(), rtol=1e-9, atol=1e-9) else "ANOTHER ANSWER"
    # The minimum: kernels have a fixed amount of work, and whatever disturbs them only adds time.
    fast, slow = seconds_in_turns(tuned, plain, repeats=repeats, summary=np.min)
    cells = [f"{1e3 * fast:.2f} ms", f"{1e3 * slow:.2f} ms", f"{slow / fast:.2f}", same]
    print(table_line("  " + title, cells, TITLE_WIDTH, WIDTH), flush=True)


def narrow_columns(size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of dissimilarities, as rows, and the smoothness that gives each ten neighbours."""
    # Squared distances of normal points in five dimensions, up to their scale, have this distribution.
    D = rng.chisquare(5, (ENTRIES // size, size))
    return D, neighbor_smoothness(np.sort(D, axis=1)[:, : NEIGHBORS + 1], NEIGHBORS)


def wide_columns(size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return dissimilarities of a kernel, and the smoothness 1, with which all points are candidates."""
    # In [-1, 0], as D_K of (4.10).
    D = -np.exp(-0.5 * rng.chisquare(5, (ENTRIES // size, size)))
    return D, np.ones(len(D))


def solved(solver: Form, *arrays: np.ndarray) -> np.ndarray:
    solver(*arrays)
    return arrays[4]


def compare_minimum(rng: np.random.Generator) -> None:
    print_heading("solve_columns: the minimum in four chains, against one")
    plain_solver = columns_solver(smallest_in_one_chain, simplex_threshold.compile())
    for size in COLUMN_SIZES:
        for make in (narrow_columns, wide_columns):
            D, delta = make(size, rng)
            # Lists of equal length; an infinite bound certifies every column, so both forms do the same work.
            indptr, no_bound = np.arange(0, D.size + 1, size), np.full(len(D), np.inf)
            arrays = (indptr, D.ravel(), delta, no_bound, np.empty(D.size), np.empty(len(D)))
            print_ratio(
                f"{len(D)} {make.__name__.replace('_', ' ')} of {size} entries",
                partial(solved, solve_columns, *arrays),
                partial(solved, plain_solver, *arrays),
            )


def thresholds_of(form: Form, Y: np.ndarray, active: np.ndarray, out: np.ndarray) -> np.ndarray:
    form(Y, 1.0, active, out)
    return out


def compare_threshold(rng: np.random.Generator) -> None:
    print_heading("simplex_threshold: sample, store, count; against Michelot's passes")
    tuned = over_rows(simplex_threshold.compile())
    forms = {
        "plain": over_rows(michelot((1,), keep_by_branch)),
        "tuned without its sample": over_rows(michelot((1,), keep_by_storing)),
        "tuned with a branch": over_rows(michelot((SAMPLE_STRIDE, 1), keep_by_branch)),
    }
    for size in COLUMN_SIZES:
        for make in (narrow_columns, wide_columns):
            D, delta = make(size, rng)
            # simplex_threshold asks for a largest entry of zero.
            Y = (D.min(axis=1, keepdims=True) - D) / delta[:, None]
            arrays = (Y, np.empty(size), np.empty(len(Y)))
            # In the title, because the time depends on the size of the support.
            positive = np.mean((thresholds_of(tuned, *arrays)[:, None] < Y).sum(axis=1))
            for name, form in forms.items():
                print_ratio(
                    f"{len(Y)} x {size}, {positive:.0f} positive; {name}",
                    partial(thresholds_of, tuned, *arrays),
                    partial(thresholds_of, form, *arrays),
                )


def collected_tails(P: np.ndarray, levels: list[np.ndarray]) -> np.ndarray:
    tails = _Tails(P, P, 0.0, SERIAL)
    return np.array([tails(level) for level in levels])


def dense_tails(P: np.ndarray, levels: list[np.ndarray]) -> np.ndarray:
    """Return what :func:`collected_tails` does, by passes over all entries, zeros included."""
    answer = np.zeros((len(levels), 2, P.shape[1]))
    for level, (sums, counts) in zip(levels, answer, strict=True):
        for block in row_blocks(len(P), max(1, P.shape[1] // 4)):
            _column_tails(P[block], P[block], 0.0, level, sums, counts)
        # At least 1, as _Tails returns them: Newton's step divides by them.
        np.maximum(counts, 1.0, out=counts)
    return answer


def compare_tails(rng: np.random.Generator, n: int = 2000, steps: int = 6) -> None:
    """Compare what the Newton steps of a projection on the l1,inf ball ask for."""
    print_heading(f"_Tails: collected entries, against dense passes in {steps} Newton steps")
    on_simplex = project_simplex(-squared_distances(*rng.normal(size=(2, n, 5))))
    random = (rng.random((n, n)) * (rng.random((n, n)) < share) for share in (0.05, 0.2, 1.0))
    for P in (on_simplex, *random):
        # Positive even for a column of zeros, whose zeros a dense pass would count.
        largest = np.maximum(P.max(axis=0), 1e-9)
        # Falling levels stand for Newton's iterates: more and more entries reach them.
        levels = [share * largest for share in np.linspace(1.0, 0.5, steps)]
        print_ratio(
            f"{n} x {n}, {np.mean(P > 0):.1%} of the entries not zero",
            partial(collected_tails, P, levels),
            partial(dense_tails, P, levels),
            repeats=5,
        )


class LatentTerms:
    """The latent terms of candidate lists in four forms, for points that have found their clusters."""

    def __init__(self, n: int, n_clusters: int, rng: np.random.Generator) -> None:
        indicator = np.eye(n_clusters)[rng.integers(0, n_clusters, n)]
        # n x c, nearly indicators and nearly equal, as G and H are late in a fit.
        self.G, self.H = (indicator + rng.normal(0, 0.02, indicator.shape) for _ in range(2))
        # -1 / (2 gamma^2) with one gamma for all points, the root mean square distance of g_i and h_i.
        self.decay = np.full(n, -0.5 / np.mean(squared_norms(self.G - self.H)))

    def kernel_by_product(self, lists: tuple, columns: slice, out: np.ndarray) -> None:  # noqa: D102
        G, H = self.G, self.H
        products = (H[columns] @ G.T, G[columns] @ H.T)
        gather_kernel_lists(
            *lists, *products, LatentPoints(squared_norms(G), squared_norms(H), self.decay), out
        )

    def kernel_by_candidate(self, lists: tuple, columns: slice, out: np.ndarray) -> None:  # noqa: D102
        latent_kernel_lists(*lists, self.G, self.H, self.decay, out)

    def roughness_by_product(self, lists: tuple, columns: slice, out: np.ndarray) -> None:  # noqa: D102
        G, H = self.G, self.H
        cross = G[columns] @ H.T
        cross += H[columns] @ G.T
        gather_roughness_lists(*lists, cross, np.einsum("ij,ij->i", G, H), out)

    def roughness_by_candidate(self, lists: tuple, columns: slice, out: np.ndarray) -> None:  # noqa: D102
        latent_roughness_lists(*lists, self.G, self.H, out)


def in_blocks(form: Form, indptr: np.ndarray, indices: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Fill the lists in blocks of columns, as the library does."""
    n = len(indptr) - 1
    for columns in row_blocks(n, max(512, len(indices) // n)):
        form((indptr[columns.start : columns.stop + 1], indices, columns.start), columns, out)
    return out


def compare_lists(rng: np.random.Generator, n: int = 2048) -> None:
    print_heading("latent terms: one product with all points, against one per candidate")
    # One random order per point: its first entries, sorted, are candidates without any locality.
    order = np.argsort(rng.random((n, n)), axis=1)
    for n_clusters in (10, 40):
        terms = LatentTerms(n, n_clusters, rng)
        forms = {
            "kernel": (terms.kernel_by_product, terms.kernel_by_candidate),
            "roughness": (terms.roughness_by_product, terms.roughness_by_candidate),
        }
        for name, (product, candidate) in forms.items():
            # A product costs the same for lists of any length, so the ratio rises with the length; where it
            # crosses 1 is LONG_SHARE of factorization/_dissimilarity.py.
            for part in (32, 16, 8, 4, 2, 1):
                length = n // part
                indices = np.sort(order[:, :length], axis=1).ravel()
                arrays = (np.arange(0, n * length + 1, length), indices, np.empty(n * length))
                print_ratio(
                    f"{name}, {n} lists of n / {part}, {n_clusters} clusters",
                    partial(in_blocks, product, *arrays),
                    partial(in_blocks, candidate, *arrays),
                    repeats=5,
                )


def our_distances(X: np.ndarray, k: int) -> np.ndarray:
    with thread_pool(-1) as pool:
        return np.sqrt(find_neighbors(X, k, pool=pool).squared)


def sklearn_distances(X: np.ndarray, k: int) -> np.ndarray:
    return NearestNeighbors(n_neighbors=k, algorithm="brute").fit(X).kneighbors()[0]


def compare_search(k: int = 20) -> None:
    print_heading("find_neighbors, against scikit-learn's brute search")
    for n, m in ((2000, 10), (2000, 200), (8000, 50)):
        X, _ = make_blobs(n, m, centers=10, cluster_std=8.0, random_state=0)
        print_ratio(
            f"{n} points, {m} features, {k} neighbours",
            partial(our_distances, X, k),
            partial(sklearn_distances, X, k),
            repeats=5,
        )


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    rng = np.random.default_rng(0)
    # BLAS too, or products on all cores would be compared with kernels on one.
    with threadpool_limits(1):
        compare_minimum(rng)
        compare_threshold(rng)
        compare_tails(rng)
        compare_lists(rng)
    compare_search()


if __name__ == "__main__":
    main()
