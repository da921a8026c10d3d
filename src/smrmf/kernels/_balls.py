"""The sets that make Z row-sparse: l1,inf (tau counts exemplars), l1,2, or no constraint (-NS).

Projecting on any of them scales and clips whole rows of Z, which are columns in our storage. A ball
therefore answers with one factor and one cap per row, and n x n arrays are touched by kernels only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from smrmf._parallel import Pool
from smrmf.kernels.balls import l1inf_levels, l1inf_penalty_levels, l12_factors, l12_penalty_factors


class Shrinkage(NamedTuple):
    """A projection: ``C = scale * clip(factor * Y, -cap, cap)``, columns of Y as groups."""

    factor: np.ndarray
    cap: np.ndarray
    scale: float


class Sum(NamedTuple):
    """``P + weight Q``, which the kernels never store."""

    P: np.ndarray
    Q: np.ndarray
    weight: float


class AbstractBall(ABC):
    """A set of matrices on which rows of Z are projected, or a price whose proximal map acts alike."""

    @abstractmethod
    def shrinkage(self, Y: Sum, scale: float, warm: Shrinkage | None, pool: Pool) -> Shrinkage:
        """Project ``scale * Y``; ``warm`` is the answer to a nearby question."""


@dataclass(frozen=True)
class L1InfBall(AbstractBall):
    """``sum_i max_j |z_ij| <= radius``."""

    radius: float

    def shrinkage(self, Y: Sum, scale: float, warm: Shrinkage | None, pool: Pool) -> Shrinkage:
        guess = None if warm is None else warm.cap * (warm.scale / scale)
        levels = l1inf_levels(*Y, self.radius / scale, guess, pool)
        return Shrinkage(np.ones_like(levels), levels, scale)


@dataclass(frozen=True)
class L12Ball(AbstractBall):
    """``sum_i ||z_i||_2 <= radius``; the radius must be at least sqrt(n) for columns that sum to one."""

    radius: float

    def shrinkage(self, Y: Sum, scale: float, warm: Shrinkage | None, pool: Pool) -> Shrinkage:
        factors = l12_factors(*Y, self.radius / scale, pool)
        return Shrinkage(factors, np.full_like(factors, np.inf), scale)


@dataclass(frozen=True)
class WholeSpace(AbstractBall):
    """No selection constraint: the paper's SMRMF-NS."""

    def shrinkage(self, Y: Sum, scale: float, warm: Shrinkage | None, pool: Pool) -> Shrinkage:
        n = Y.P.shape[1]
        return Shrinkage(np.ones(n), np.full(n, np.inf), scale)


@dataclass(frozen=True)
class L1InfPenalty(AbstractBall):
    """No set but a price, ``threshold sum_i max_j |z_ij|``: its proximal map has the same form."""

    threshold: float

    def shrinkage(self, Y: Sum, scale: float, warm: Shrinkage | None, pool: Pool) -> Shrinkage:
        guess = None if warm is None else warm.cap * (warm.scale / scale)
        levels = l1inf_penalty_levels(*Y, self.threshold / scale, guess, pool)
        return Shrinkage(np.ones_like(levels), levels, scale)


@dataclass(frozen=True)
class L12Penalty(AbstractBall):
    """The price ``threshold sum_i ||z_i||_2``."""

    threshold: float

    def shrinkage(self, Y: Sum, scale: float, warm: Shrinkage | None, pool: Pool) -> Shrinkage:
        factors = l12_penalty_factors(*Y, self.threshold / scale, pool)
        return Shrinkage(factors, np.full_like(factors, np.inf), scale)
