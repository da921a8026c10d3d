"""What a representative costs in the regularised form of DS3: the published unit, and what leaves only one.

D is targets x sources. With v_i the dissimilarities of source i minus those of the best single source, one
representative is optimal at a price lambda exactly if the conditions of Karush, Kuhn and Tucker hold where
the best one represents all targets: multipliers u_j, one for each target, and a subgradient g_i of every
norm with ``D_ji + lambda g_ij >= u_j``, and equality for the best source.

- "l2": the best source has ``g = 1 / sqrt(n_targets)``, so every other one needs ``t = lambda /
  sqrt(n_targets)`` with ``sum_j max(t - v_ij, 0)^2 <= n_targets t^2``.
- "linf": the best source may choose ``w = lambda g``, non-negative with the sum lambda, and every other one
  needs ``sum_j min(w_j, v_ij) >= 0``. The smallest sum of such a w is a linear program.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from smrmf._parallel import row_blocks
from smrmf.graph.exemplars import tie_resolution


def published_price(D: np.ndarray, norm: str) -> float:
    """Return the unit of prices of Elhamifar et al., at which most dissimilarities leave one representative.

    It is ``max_i ||v_i||_1 / 2`` for "linf", and ``max_i sqrt(n_targets) ||v_i||^2 / (2 sum(v_i))`` for "l2".
    The latter is sufficient: it is what the condition above asks if negative ``t - v_ij`` count too. Sources
    whose total equals that of the best one are left out of it: they share the targets at any price.
    """
    totals = np.zeros((3, D.shape[1]))
    for v in _differences(D):
        totals += v.sum(axis=0), np.abs(v).sum(axis=0), np.einsum("ji,ji->i", v, v)
    signed, absolute, squared = totals
    if norm == "linf":
        return float(absolute.max() / 2) or 1.0
    # Totals that differ by rounding are equal: divided by what is left, the price would have no limit.
    other = signed > tie_resolution(D.dtype) * absolute
    prices = np.divide(np.sqrt(len(D)) * squared, 2 * signed, out=np.zeros_like(squared), where=other)
    return float(prices.max()) or 1.0


def sufficient_price(D: np.ndarray, norm: str) -> float:
    """Return a price at which it is optimal that one source represents all targets.

    For "l2" that is the published one. For "linf" it is the sum of a w that meets the conditions: where
    source i is the less unlike one (v_ij < 0) it is better by n_i in all, elsewhere worse by p_i >= n_i, and
    ``w_j = max_i (n_i / p_i) max(v_ij, 0)`` makes up for n_i, whatever the source. The smallest such sum is
    that of a linear program as large as D; on small random dissimilarities this one is at most three times
    as large.
    """
    if norm == "l2":
        return published_price(D, norm)
    better, worse = np.zeros((2, D.shape[1]))
    for v in _differences(D):
        better -= np.minimum(v, 0).sum(axis=0)
        worse += np.maximum(v, 0).sum(axis=0)
    share = np.divide(better, worse, out=np.zeros_like(worse), where=worse > 0)
    return float(sum((share * np.maximum(v, 0)).max(axis=1).sum() for v in _differences(D)))


def best_single(D: np.ndarray) -> int:
    """Return the source with the smallest total: the optimum if only one may be used."""
    return int(np.argmin(D.sum(axis=0)))


def _differences(D: np.ndarray) -> Iterator[np.ndarray]:
    """Yield blocks of the dissimilarities of all sources minus those of the best one."""
    best = best_single(D)
    for block in row_blocks(*D.shape):
        yield D[block] - D[block, best : best + 1]
