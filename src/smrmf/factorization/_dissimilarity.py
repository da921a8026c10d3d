"""How unlike two points are, in the input space and in the latent space of G and H.

The affinity learners minimise ``<D + (lambda/beta) D_hg, Z>``. A dissimilarity supplies both terms, as
dense row blocks (SMRMF) or on candidate lists (f-SMRMF), and says how low the latent term can go,
which is what certifies short lists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from smrmf._parallel import Pool, row_blocks
from smrmf.factorization._points import Problem
from smrmf.factorization._start import Start
from smrmf.graph.candidates import Neighbors
from smrmf.graph.neighbors import MeasuredPoints
from smrmf.kernels.distances import (
    LatentPoints,
    gather_kernel_lists,
    gather_roughness_lists,
    latent_kernel_lists,
    latent_kernel_tile,
    latent_kth_squared,
    latent_roughness_lists,
    latent_squared_lists,
    neighbor_bandwidth,
    squared_distances,
    squared_norms,
    symmetric_kernel_dissimilarity,
)

# Edge of a square tile of n x n work: two of them and their inner products stay in cache.
TILE = 256
# From lists of this share of the points on, one product with all points beats one per candidate
# (benchmarks/kernels.py, "latent terms").
LONG_SHARE = 0.75


@dataclass(frozen=True)
class InputSpace:
    """The points, their neighbours, and distances among them in blocks of rows."""

    points: MeasuredPoints
    neighbors: Neighbors
    n_neighbors: int
    pool: Pool

    @property
    def n_samples(self) -> int:
        """Return the number of points."""
        return self.points.n_samples

    def squared_block(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return squared distances of some points to all points; exactly zero to themselves."""
        return self.points.squared_block(rows)

    def blocks(self) -> list[slice]:
        """Return row blocks narrow enough for n-wide work."""
        return row_blocks(self.n_samples, self.n_samples)


class ListBlock(NamedTuple):
    """Candidate lists of consecutive columns of Z, the first of them being column ``first``."""

    indptr: np.ndarray
    indices: np.ndarray
    first: int

    @property
    def columns(self) -> slice:
        """Return the columns whose lists these are."""
        return slice(self.first, self.first + len(self.indptr) - 1)

    def are_long(self, n: int) -> bool:
        """Tell whether products with all ``n`` points cost less than one per candidate."""
        n_columns, n_entries = len(self.indptr) - 1, self.indptr[-1] - self.indptr[0]
        return bool(n_entries >= LONG_SHARE * n_columns * n)


class Latent(NamedTuple):
    """What the latent terms of one iteration have in common.

    No latent term is below ``floor``, which certifies short lists; ``shared`` is made once for all blocks.
    """

    floor: float
    shared: Any = None


class Smallest(NamedTuple):
    """The smallest D of every point to others, smallest first; unless exact, smaller ones may be missing."""

    indices: np.ndarray
    D: np.ndarray
    exact: bool = True


class AbstractDissimilarity(ABC):
    """The two terms of D-hat for one set of points.

    ``smallest`` are known where the neighbour search has found them.
    """

    space: InputSpace

    @property
    @abstractmethod
    def smallest(self) -> Smallest | None:
        """Return the smallest D of every point, if they are known."""

    @abstractmethod
    def block(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return D between some points and all points."""

    @abstractmethod
    def measure_latent(self, G: np.ndarray, H: np.ndarray) -> Latent:
        """Measure what the latent terms of one iteration share."""

    @abstractmethod
    def add_latent(
        self, G: np.ndarray, H: np.ndarray, latent: Latent, weight: float, target: np.ndarray
    ) -> None:
        """Add ``weight`` times D_hg, transposed as all that is n x n, to ``target``."""

    @abstractmethod
    def latent_lists(
        self, G: np.ndarray, H: np.ndarray, latent: Latent, lists: ListBlock, out: np.ndarray
    ) -> None:
        """Write D_hg of the candidates of a block of columns to their places in ``out``."""

    @abstractmethod
    def balanced_ratio(self, n_samples: int, n_clusters: int) -> float:
        """Return the lambda / beta at which both terms weigh about the same."""

    def dense(self) -> np.ndarray:
        """Return D between all points, filled block by block."""
        n = self.space.n_samples
        D = np.empty((n, n), self.space.points.X.dtype)
        self.space.pool.map(lambda rows: np.copyto(D[rows], self.block(rows)), self.space.blocks())
        return D


@dataclass(frozen=True)
class KernelDissimilarity(AbstractDissimilarity):
    """Minus the symmetrised adaptive Gaussian kernel, (4.9) and (4.10), in both spaces.

    ``mean_latent_width`` replaces the latent bandwidths of the points by their mean, as f-SMRMF does
    (paper note 28).
    """

    space: InputSpace
    bandwidth: Literal["distance", "squared-distance"]
    mean_latent_width: bool

    @property
    def smallest(self) -> None:
        """Return nothing: a far point with a wide kernel may rank before a near one."""
        return

    @cached_property
    def input_widths(self) -> np.ndarray:
        """Return sigma_i, from the k-th neighbour of every point."""
        # Neighbours exclude the point itself, so place k - 1 is the k-th.
        kth = self.space.neighbors.squared[:, self.space.n_neighbors - 1]
        return neighbor_bandwidth(kth, self.bandwidth)

    def block(self, rows: slice | np.ndarray) -> np.ndarray:
        widths = self.input_widths
        return symmetric_kernel_dissimilarity(self.space.squared_block(rows), widths[rows], widths)

    def measure_latent(self, G: np.ndarray, H: np.ndarray) -> Latent:
        # gamma_i: g_i's k-th neighbour among the h_j, j != i (paper note 31).
        kth = latent_kth_squared(G, H, self.space.n_neighbors, self.space.pool)
        widths = neighbor_bandwidth(kth, self.bandwidth)
        if self.mean_latent_width:
            widths = np.full_like(widths, widths.mean())
        # The mean of two kernels in [0, 1], negated, is at least -1.
        return Latent(-1.0, LatentPoints.from_widths(G, H, widths))

    def add_latent(
        self, G: np.ndarray, H: np.ndarray, latent: Latent, weight: float, target: np.ndarray
    ) -> None:
        """Add the latent term, which is symmetric, tile by tile with its mirror image."""
        tiles = [slice(start, min(start + TILE, len(G))) for start in range(0, len(G), TILE)]
        # Each unordered pair of tiles once. It alone writes to its tile and the mirror image, so threads
        # never meet, and every entry is added in one operation.
        pairs = [(a, b) for place, a in enumerate(tiles) for b in tiles[place:]]

        def add_tile(pair: tuple[slice, slice]) -> None:
            a, b = pair
            entries = np.empty(target[a, b].shape)
            products = (G[a] @ H[b].T, G[b] @ H[a].T)
            latent_kernel_tile(*products, latent.shared.part(a), latent.shared.part(b), weight, entries)
            target[a, b] += entries
            if a != b:
                target[b, a] += entries.T

        self.space.pool.map(add_tile, pairs)

    def latent_lists(
        self, G: np.ndarray, H: np.ndarray, latent: Latent, lists: ListBlock, out: np.ndarray
    ) -> None:
        # Short lists sum differences per candidate; products with all points pay off for long ones only.
        if not lists.are_long(len(G)):
            latent_kernel_lists(*lists, G, H, latent.shared.decay, out)
            return
        products = (H[lists.columns] @ G.T, G[lists.columns] @ H.T)
        gather_kernel_lists(*lists, *products, latent.shared, out)

    def balanced_ratio(self, n_samples: int, n_clusters: int) -> float:
        return 1.0  # both terms lie in [-1, 0]


@dataclass(frozen=True)
class EuclideanDissimilarity(AbstractDissimilarity):
    """Scaled distances (``power=1``, divided by the largest) or squared distances (``power=2``).

    Squared distances are divided by the mean one to the neighbour after the k-th, so that D has no
    unit. The latent term is ``||g_i - h_j||^2`` as printed (paper note 16).
    """

    space: InputSpace
    power: Literal[1, 2]
    scale: float

    @classmethod
    def from_space(cls, space: InputSpace, power: Literal[1, 2]) -> EuclideanDissimilarity:
        """Find the scale of the dissimilarities."""
        if power == 2:
            # The (k+1)-th neighbour is where the simplex graph of k neighbours gives its first zero.
            scale = space.neighbors.squared[:, : space.n_neighbors + 1][:, -1].mean()
        else:
            # A pass of its own: f-SMRMF has no room to keep all distances for later.
            largest = space.pool.map(lambda rows: space.squared_block(rows).max(), space.blocks())
            scale = np.sqrt(max(largest))
        return cls(space, power, float(scale) if scale > 0 else 1.0)

    @property
    def smallest(self) -> Smallest:
        """Return the distances to the neighbours, made when they are asked for, and not kept."""
        known = self.space.neighbors
        return Smallest(known.indices, scaled_distances(known.squared, self.power, self.scale), known.exact)

    def block(self, rows: slice | np.ndarray) -> np.ndarray:
        return scaled_distances(self.space.squared_block(rows), self.power, self.scale)

    def measure_latent(self, G: np.ndarray, H: np.ndarray) -> Latent:
        # Squared distances are non-negative, and nothing about them is shared.
        return Latent(0.0)

    def add_latent(
        self, G: np.ndarray, H: np.ndarray, latent: Latent, weight: float, target: np.ndarray
    ) -> None:
        def add_rows(rows: slice) -> None:
            # Transposed: row j holds ||g_i - h_j||^2 for all i, and this is not symmetric unless G = H.
            terms = squared_distances(H[rows], G)
            terms *= weight
            target[rows] += terms

        self.space.pool.map(add_rows, self.space.blocks())

    def latent_lists(
        self, G: np.ndarray, H: np.ndarray, latent: Latent, lists: ListBlock, out: np.ndarray
    ) -> None:
        latent_squared_lists(*lists, G, H, out)

    def balanced_ratio(self, n_samples: int, n_clusters: int) -> float:
        return balanced_ratio_of_squares(n_samples, n_clusters)


@dataclass(frozen=True)
class RoughnessDissimilarity(AbstractDissimilarity):
    """Squared distances, and in the latent space the exact coefficient of z_ij in ``tr(G' L_Z H)``.

    The coefficient is ``(g_i - g_j)'(h_i - h_j) / 2`` (paper note 4). With it the S step of AMRMF minimises
    the augmented Lagrangian exactly; unlike a squared distance it can be negative while G and H differ.
    """

    space: InputSpace
    distances: EuclideanDissimilarity

    @classmethod
    def from_space(cls, space: InputSpace) -> RoughnessDissimilarity:
        """Measure the squared distances of the points."""
        return cls(space, EuclideanDissimilarity.from_space(space, 2))

    @property
    def smallest(self) -> Smallest:
        """Return those of the squared distances."""
        return self.distances.smallest

    def block(self, rows: slice | np.ndarray) -> np.ndarray:
        return self.distances.block(rows)

    def measure_latent(self, G: np.ndarray, H: np.ndarray) -> Latent:
        # With d = h - g: 2 q_ij = ||g_i - g_j + (d_i - d_j)/2||^2 - ||d_i - d_j||^2 / 4, and
        # ||d_i - d_j||^2 <= 4 max ||d||^2, so q_ij >= -max ||d||^2 / 2. It goes to zero as H - G does.
        floor = -0.5 * float(squared_norms(G - H).max())
        return Latent(floor, np.einsum("ij,ij->i", G, H))

    def add_latent(
        self, G: np.ndarray, H: np.ndarray, latent: Latent, weight: float, target: np.ndarray
    ) -> None:
        own = latent.shared

        def add_rows(rows: slice) -> None:
            # 2 q_ij = g_i'h_i + g_j'h_j - g_i'h_j - g_j'h_i, symmetric in i and j.
            cross = G[rows] @ H.T
            cross += H[rows] @ G.T
            target[rows] += (0.5 * weight) * (own[rows, None] + own[None, :] - cross)

        self.space.pool.map(add_rows, self.space.blocks())

    def latent_lists(
        self, G: np.ndarray, H: np.ndarray, latent: Latent, lists: ListBlock, out: np.ndarray
    ) -> None:
        if not lists.are_long(len(G)):
            latent_roughness_lists(*lists, G, H, out)
            return
        cross = G[lists.columns] @ H.T
        cross += H[lists.columns] @ G.T
        gather_roughness_lists(*lists, cross, latent.shared, out)

    def balanced_ratio(self, n_samples: int, n_clusters: int) -> float:
        # Rows of two clusters lie about 2 c/n apart, as above, and the coefficient has half of that.
        return n_samples / float(n_clusters)


def scaled_distances(squared: np.ndarray, power: int, scale: float) -> np.ndarray:
    """Return squared distances, or distances, in units of ``scale``."""
    return (squared if power == 2 else np.sqrt(squared)) / scale


def make_dissimilarity(
    name: str, bandwidth: Any, mean_latent_width: bool, problem: Problem
) -> AbstractDissimilarity:
    """Return the named dissimilarity of the problem's points."""
    space = InputSpace(problem.points, problem.neighbors, problem.sizes.n_neighbors, problem.pool)
    if name == "kernel":
        return KernelDissimilarity(space, bandwidth, mean_latent_width)
    return EuclideanDissimilarity.from_space(space, 1 if name == "euclidean" else 2)


def scaled_selection_weight(
    given: float | str, dissimilarity: AbstractDissimilarity, problem: Problem, start: Start
) -> float:
    """Return beta of the scaled problem; automatic, both terms of D-hat weigh about the same."""
    sizes = problem.sizes
    return selection_weight(given, dissimilarity.balanced_ratio(sizes.n_samples, sizes.n_clusters), start)


def selection_weight(given: float | str, ratio: float, start: Start) -> float:
    """Return the weight that is given, in the unit of the loop, or that for a balanced lambda / beta."""
    if not isinstance(given, str):
        # The objective of the loop is that of the data divided by its unit; D has none.
        weight = float(given) / start.unit
        return start.check_weight("selection_weight", given, weight, start.unit, start.lam)
    # With lambda = 0 the graph has no effect on G, and any beta serves.
    return start.lam / ratio if start.lam > 0 else 1.0


def balanced_ratio_of_squares(n_samples: int, n_clusters: int) -> float:
    """Return the lambda / beta at which squared distances in both spaces weigh about the same."""
    # G'G = I: rows of G have mean squared length c/n, and rows of two clusters are orthogonal, so they
    # lie about 2 c/n apart, while D is of the order of one.
    return n_samples / (2.0 * n_clusters)
