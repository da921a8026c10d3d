"""How unlike two points are, in the input space and in the latent space of G and H.

The affinity learners minimise ``<D + (lambda/beta) D_hg, Z>``. A dissimilarity supplies both terms, as
dense row blocks (SMRMF) or on candidate lists (f-SMRMF), and says how low the latent term can go,
which is what certifies short lists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from smrmf._parallel import Pool, row_blocks
from smrmf.graph.neighbors import Neighbors, latent_kth_squared, typical_point
from smrmf.kernels.distances import (
    neighbor_bandwidth,
    refine_small,
    squared_distances,
    squared_norms,
    symmetric_kernel_dissimilarity,
)
from smrmf.kernels.row_sparse import add_kernel_tiles
from smrmf.kernels.simplex import (
    gather_kernel_lists,
    gather_roughness_lists,
    latent_kernel_lists,
    latent_roughness_lists,
    latent_squared_lists,
)

# Edge of a square tile of n x n work: two of them and their inner products stay in cache.
TILE = 256
# From lists of one in so many points on, one product with all points beats one per candidate.
LONG_LISTS = 8


@dataclass(frozen=True)
class Points:
    """The centred data with what every dissimilarity needs of it."""

    X: np.ndarray
    norms: np.ndarray
    neighbors: Neighbors
    n_neighbors: int
    pool: Pool

    @classmethod
    def from_data(cls, X: np.ndarray, neighbors: Neighbors, n_neighbors: int, pool: Pool) -> Points:
        """Centre the data, so that the product form of the distances keeps its digits."""
        centred = X - typical_point(X)
        return cls(centred, squared_norms(centred), neighbors, n_neighbors, pool)

    def squared_block(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return squared distances of some points to all points; exactly zero to themselves."""
        near, norms = self.X[rows], self.norms[rows]
        block = squared_distances(near, self.X, norms, self.norms)
        refine_small(block, near, self.X, norms, self.norms, float(np.finfo(block.dtype).eps) ** 0.5)
        return block

    def blocks(self) -> list[slice]:
        """Return row blocks narrow enough for n-wide work."""
        return row_blocks(len(self.X), len(self.X))


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
        return bool(n_entries * LONG_LISTS >= n_columns * n)


class AbstractDissimilarity(ABC):
    """The two terms of D-hat for one set of points."""

    points: Points

    @abstractmethod
    def block(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return D between some points and all points."""

    @abstractmethod
    def nearest(self) -> Neighbors | None:
        """Return the smallest D of every point if the neighbour search already knows them."""

    @abstractmethod
    def latent_floor(self, G: np.ndarray, H: np.ndarray) -> float:
        """Return what no latent term is ever below."""

    @abstractmethod
    def latent_widths(self, G: np.ndarray, H: np.ndarray) -> np.ndarray | None:
        """Return this iteration's latent bandwidths, if there are any."""

    @abstractmethod
    def add_latent(
        self, G: np.ndarray, H: np.ndarray, widths: np.ndarray | None, weight: float, target: np.ndarray
    ) -> None:
        """Add ``weight`` times D_hg, transposed as all that is n x n, to ``target``."""

    @abstractmethod
    def latent_lists(
        self, G: np.ndarray, H: np.ndarray, widths: np.ndarray | None, lists: ListBlock, out: np.ndarray
    ) -> None:
        """Write D_hg of the candidates of a block of columns to their places in ``out``."""

    @abstractmethod
    def balanced_ratio(self, n_samples: int, n_clusters: int) -> float:
        """Return the lambda / beta at which both terms weigh about the same."""

    def dense(self) -> np.ndarray:
        """Return D between all points, filled block by block."""
        n = len(self.points.X)
        D = np.empty((n, n), self.points.X.dtype)
        self.points.pool.map(lambda b: np.copyto(D[b], self.block(b)), self.points.blocks())
        return D


@dataclass(frozen=True)
class KernelDissimilarity(AbstractDissimilarity):
    """Minus the symmetrised adaptive Gaussian kernel, (4.9) and (4.10), in both spaces.

    ``mean_latent_width`` replaces the latent bandwidths of the points by their mean, as f-SMRMF does
    (paper note 28).
    """

    points: Points
    bandwidth: Literal["distance", "squared-distance"]
    mean_latent_width: bool

    @cached_property
    def input_widths(self) -> np.ndarray:
        """Return sigma_i, from the k-th neighbour of every point."""
        kth = self.points.neighbors.squared[:, self.points.n_neighbors - 1]
        return neighbor_bandwidth(kth, self.bandwidth)

    def block(self, rows: slice | np.ndarray) -> np.ndarray:
        widths = self.input_widths
        return symmetric_kernel_dissimilarity(self.points.squared_block(rows), widths[rows], widths)

    def nearest(self) -> None:
        return None  # a far point with a wide kernel may rank before a near one

    def latent_floor(self, G: np.ndarray, H: np.ndarray) -> float:
        return -1.0

    def latent_widths(self, G: np.ndarray, H: np.ndarray) -> np.ndarray:
        kth = latent_kth_squared(G, H, self.points.n_neighbors, self.points.pool)
        widths = neighbor_bandwidth(kth, self.bandwidth)
        return np.full_like(widths, widths.mean()) if self.mean_latent_width else widths

    def add_latent(
        self, G: np.ndarray, H: np.ndarray, widths: np.ndarray | None, weight: float, target: np.ndarray
    ) -> None:
        """Add the latent term, which is symmetric, tile by tile with its mirror image."""
        assert widths is not None
        decay = -0.5 / widths**2
        g, h = squared_norms(G), squared_norms(H)
        tiles = [slice(start, min(start + TILE, len(G))) for start in range(0, len(G), TILE)]
        pairs = [(a, b) for place, a in enumerate(tiles) for b in tiles[place:]]

        def one(pair: tuple[slice, slice]) -> None:
            a, b = pair
            mirror = target[b, a] if a != b else target[:0, :0]
            rows, columns = (g[a], h[a], decay[a]), (g[b], h[b], decay[b])
            products = (G[a] @ H[b].T, G[b] @ H[a].T)
            add_kernel_tiles(*products, *rows, *columns, weight, target[a, b], mirror)

        self.points.pool.map(one, pairs)

    def latent_lists(
        self, G: np.ndarray, H: np.ndarray, widths: np.ndarray | None, lists: ListBlock, out: np.ndarray
    ) -> None:
        assert widths is not None
        decay = -0.5 / widths**2
        if not lists.are_long(len(G)):
            latent_kernel_lists(*lists, G, H, decay, out)
            return
        products = (H[lists.columns] @ G.T, G[lists.columns] @ H.T)
        gather_kernel_lists(*lists, *products, squared_norms(G), squared_norms(H), decay, out)

    def balanced_ratio(self, n_samples: int, n_clusters: int) -> float:
        return 1.0  # both terms lie in [-1, 0]


@dataclass(frozen=True)
class EuclideanDissimilarity(AbstractDissimilarity):
    """Scaled distances (``power=1``, divided by the largest) or squared distances (``power=2``).

    Squared distances are divided by the mean one to the neighbour after the k-th, so that D has no
    unit. The latent term is ``||g_i - h_j||^2`` as printed (paper note 16).
    """

    points: Points
    power: Literal[1, 2]
    scale: float

    @classmethod
    def from_points(cls, points: Points, power: Literal[1, 2]) -> EuclideanDissimilarity:
        """Find the scale of the dissimilarities."""
        if power == 2:
            scale = points.neighbors.squared[:, : points.n_neighbors + 1][:, -1].mean()
        else:
            blocks = points.pool.map(lambda b: points.squared_block(b).max(), points.blocks())
            scale = np.sqrt(max(blocks))
        return cls(points, power, float(scale) if scale > 0 else 1.0)

    def _scaled(self, squared: np.ndarray) -> np.ndarray:
        return (squared if self.power == 2 else np.sqrt(squared)) / self.scale

    def block(self, rows: slice | np.ndarray) -> np.ndarray:
        return self._scaled(self.points.squared_block(rows))

    def nearest(self) -> Neighbors:
        known = self.points.neighbors
        return Neighbors(known.indices, self._scaled(known.squared))

    def latent_floor(self, G: np.ndarray, H: np.ndarray) -> float:
        return 0.0

    def latent_widths(self, G: np.ndarray, H: np.ndarray) -> None:
        return None

    def add_latent(
        self, G: np.ndarray, H: np.ndarray, widths: np.ndarray | None, weight: float, target: np.ndarray
    ) -> None:
        def one(rows: slice) -> None:
            latent = squared_distances(H[rows], G)
            latent *= weight
            target[rows] += latent

        self.points.pool.map(one, self.points.blocks())

    def latent_lists(
        self, G: np.ndarray, H: np.ndarray, widths: np.ndarray | None, lists: ListBlock, out: np.ndarray
    ) -> None:
        latent_squared_lists(*lists, G, H, out)

    def balanced_ratio(self, n_samples: int, n_clusters: int) -> float:
        # Rows of G have mean squared length c/n, so two clusters lie about 2 c/n apart.
        return n_samples / (2.0 * n_clusters)


@dataclass(frozen=True)
class RoughnessDissimilarity(AbstractDissimilarity):
    """Squared distances, and in the latent space the exact coefficient of z_ij in ``tr(G' L_Z H)``.

    The coefficient is ``(g_i - g_j)'(h_i - h_j) / 2``, what AMRMF's graph minimises.
    """

    distances: EuclideanDissimilarity

    @property
    def points(self) -> Points:  # type: ignore[override]
        """Return the points of the distances."""
        return self.distances.points

    def block(self, rows: slice | np.ndarray) -> np.ndarray:
        return self.distances.block(rows)

    def nearest(self) -> Neighbors:
        return self.distances.nearest()

    def latent_floor(self, G: np.ndarray, H: np.ndarray) -> float:
        # With D = H - G: 2 q = ||g_i - g_j + (d_i - d_j)/2||^2 - ||d_i - d_j||^2 / 4.
        return -0.5 * float(squared_norms(G - H).max())

    def latent_widths(self, G: np.ndarray, H: np.ndarray) -> None:
        return None

    def add_latent(
        self, G: np.ndarray, H: np.ndarray, widths: np.ndarray | None, weight: float, target: np.ndarray
    ) -> None:
        own = np.einsum("ij,ij->i", G, H)

        def one(rows: slice) -> None:
            cross = G[rows] @ H.T
            cross += H[rows] @ G.T
            target[rows] += (0.5 * weight) * (own[rows, None] + own[None, :] - cross)

        self.points.pool.map(one, self.points.blocks())

    def latent_lists(
        self, G: np.ndarray, H: np.ndarray, widths: np.ndarray | None, lists: ListBlock, out: np.ndarray
    ) -> None:
        if not lists.are_long(len(G)):
            latent_roughness_lists(*lists, G, H, out)
            return
        cross = G[lists.columns] @ H.T
        cross += H[lists.columns] @ G.T
        gather_roughness_lists(*lists, cross, np.einsum("ij,ij->i", G, H), out)

    def balanced_ratio(self, n_samples: int, n_clusters: int) -> float:
        # Two clusters lie about 2 c/n apart, and half of that counts.
        return n_samples / float(n_clusters)
