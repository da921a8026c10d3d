"""The columns of Z in parts: f-SMRMF's graph where the lists of candidates are spread over workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from smrmf.dask._blocks import Blocks
from smrmf.dask._graph import BlockGraph
from smrmf.dask._halo import Halo
from smrmf.dask._largest import largest
from smrmf.factorization._slots import AbstractAffinity, GraphTerm
from smrmf.graph.exemplars import ExemplarRule, keep_largest, tie_resolution
from smrmf.graph.graphs import keep_entries, positive_entries
from smrmf.kernels.distances import latent_squared_lists
from smrmf.kernels.simplex import columns_value, neighbor_smoothness, solve_columns


class Columns(NamedTuple):
    """The candidates of every point of a part, by their places in it and its halo, and its smoothness.

    Lists may miss a candidate, so they are all that a column can choose from: nothing bounds what they leave
    out.
    """

    places: np.ndarray
    D: np.ndarray
    delta: np.ndarray


@dataclass(frozen=True)
class BlockColumns(AbstractAffinity[Blocks]):
    """Every column of Z by itself, in closed form, on its candidates; the graph of the best exemplars.

    Its state is the solution on the lists. What :class:`~smrmf.factorization._closed_form.ClosedFormAffinity`
    is in memory, with automatic smoothness and squared distances.
    """

    columns: Blocks
    halo: Halo
    n_exemplars: int
    n_neighbors: int
    beta: float
    rule: ExemplarRule = "mass"

    @classmethod
    def of(cls, places: Blocks, squared: Blocks, halo: Halo, scale: float, **sizes: Any) -> BlockColumns:
        """Take lists of neighbours by their places, and their squared distances, in a unit of all."""
        columns = places.map(measured_columns, squared, scale=scale, n_neighbors=sizes["n_neighbors"])
        return cls(columns.persist(), halo, **sizes)

    def init(self, X: Blocks) -> tuple[Blocks, GraphTerm]:
        z = self.columns.map(solved)
        return z, self.graph_term(z)

    def update(
        self, state: Blocks, X: Blocks, G: Blocks, H: Blocks, lam: float, mu: float
    ) -> tuple[Blocks, GraphTerm | None]:
        if lam == 0:
            return state, None
        z = self.columns.map(solved_with_latent, self.halo.gathered(G), H, ratio=lam / self.beta)
        return z, self.graph_term(z)

    def representation(self, state: Blocks) -> BlockGraph:
        return BlockGraph(self.columns.map(rows_of_zt, state, self.halo.numbers), self.halo)

    def graph_term(self, z: Blocks) -> GraphTerm:
        """Return the graph of the exemplars' neighbourhoods, and ``beta`` times the value of (5.18)."""
        total = self.columns.map(value_of, z, beta=self.beta).total(sum)
        Z = self.representation(z).transposed().parts
        chosen = largest(Z.map(masses if self.rule == "mass" else norms), self.n_exemplars)
        kept = Z.map(neighborhoods, chosen, n_neighbors=self.n_neighbors)
        return GraphTerm(BlockGraph(kept, self.halo).symmetrized(), total, chosen)


def measured_columns(places: np.ndarray, squared: np.ndarray, scale: float, n_neighbors: int) -> Columns:
    D = (squared / squared.dtype.type(scale)).astype(squared.dtype, copy=False)
    return Columns(places, D, neighbor_smoothness(D[:, : n_neighbors + 1], n_neighbors))


def ends_of(lists: np.ndarray) -> np.ndarray:
    """Return where every list ends if they stand behind each other."""
    return np.arange(0, lists.size + 1, lists.shape[1])


def solved(columns: Columns, latent: np.ndarray | None = None) -> np.ndarray:
    """Return the solution of (5.18) on the lists of a part, with the latent terms of its candidates."""
    D, delta = columns.D, columns.delta
    z = D.ravel().copy() if latent is None else latent
    unbounded = np.full(len(delta), np.inf, D.dtype)
    solve_columns(ends_of(D), z, delta, unbounded, z, np.empty_like(delta))
    return z


def solved_with_latent(columns: Columns, G: np.ndarray, H: np.ndarray, ratio: float) -> np.ndarray:
    """Return the solution with ``D + ratio D_hg``."""
    latent = np.empty(columns.D.size, columns.D.dtype)
    latent_squared_lists(ends_of(columns.D), columns.places.ravel(), 0, G, H, latent)
    latent *= latent.dtype.type(ratio)
    latent += columns.D.ravel()
    return solved(columns, latent)


def value_of(columns: Columns, z: np.ndarray, beta: float) -> float:
    D = columns.D
    return beta * float(columns_value(ends_of(D), D.ravel(), columns.delta, z))


def rows_of_zt(columns: Columns, z: np.ndarray, numbers: np.ndarray) -> sp.csr_array:
    """Return the rows of Zt of a part, with columns for its points and its halo."""
    n = len(columns.D)
    kept = positive_entries(ends_of(columns.D), columns.places.ravel(), z)
    return sp.csr_array((kept.data, kept.indices, kept.indptr), shape=(n, n + len(numbers)))


def masses(Z: sp.csr_array) -> np.ndarray:
    """Return the mass of others that every point of a part represents."""
    scores: np.ndarray = np.asarray(Z.sum(axis=1)).ravel() - Z[:, : Z.shape[0]].diagonal()
    return scores


def norms(Z: sp.csr_array) -> np.ndarray:
    """Return the L2 norm of the row of Z of every point of a part."""
    return np.sqrt(np.asarray(Z.multiply(Z).sum(axis=1)).ravel())


def neighborhoods(Z: sp.csr_array, chosen: np.ndarray, n_neighbors: int) -> sp.csr_array:
    """Return the largest entries of the rows of the chosen points; all other rows are empty."""
    rows = np.repeat(np.arange(Z.shape[0]), np.diff(Z.indptr))
    Z = keep_entries(Z, chosen[rows] & (Z.indices != rows) & (Z.data > 0))
    Z.sort_indices()
    kept = np.zeros(Z.nnz, dtype=bool)
    keep_largest(Z.indptr, Z.data, np.zeros_like(Z.data), n_neighbors, tie_resolution(Z.dtype), kept)
    return keep_entries(Z, kept)
