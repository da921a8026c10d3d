"""Draw sets of rows with probability proportional to the squared volume that they span."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from smrmf._parallel import Pool
from smrmf.kernels.distances import squared_norms
from smrmf.kernels.principal_axes import orthogonal_remainder
from smrmf.kernels.scaling import matmul

# A row with less than this share of its square outside the span of the rows drawn counts as inside: what the
# subtractions leave of it is rounding.
SAME_ROW = 1e-8


def log_elementary(log_values: np.ndarray, k: int) -> np.ndarray:
    """Compute ``log e_l(v_1, ..., v_j)`` as entry (j, l); ``e_l`` sums the products of all sets of l values.

    Logarithms, because a few hundred values above one already overflow (paper note 46).
    """
    table = np.full((len(log_values) + 1, k + 1), -np.inf)
    table[:, 0] = 0
    for j, value in enumerate(log_values):
        # e_l(v_1..v_j+1) = e_l(v_1..v_j) + v_j+1 e_(l-1)(v_1..v_j): sets without and with the new value.
        np.logaddexp(table[j, 1:], value + table[j, :-1], out=table[j + 1, 1:])
    return table


def draw_values(log_values: np.ndarray, table: np.ndarray, random_state: np.random.RandomState) -> np.ndarray:
    """Draw as many values as the table provides for, with probability proportional to their product."""
    uniform = random_state.uniform(size=len(log_values))
    size = table.shape[1] - 1
    drawn = []
    for j in reversed(range(len(log_values))):
        if size == 0:
            break
        # The share of the last of the first j + 1 values in all sets of them. It is exactly one where all of
        # them must be drawn, as logaddexp(-inf, x) is x: the set never comes out too small.
        if uniform[j] < np.exp(log_values[j] + table[j, size - 1] - table[j + 1, size]):
            drawn.append(j)
            size -= 1
    return np.array(drawn[::-1], dtype=np.intp)


def random_complement(V: np.ndarray, size: int, random_state: np.random.RandomState) -> np.ndarray:
    """Draw a random space orthogonal to the orthonormal columns of V; return an orthonormal basis."""
    basis = random_state.normal(size=(len(V), size))
    for _ in range(2):  # rounding leaves a little of V the first time
        basis -= V @ (V.T @ basis)
        basis = np.linalg.qr(basis)[0]
    return basis


def draw_rows(V: np.ndarray, random_state: np.random.RandomState, pool: Pool) -> Iterator[int]:
    """Draw as many rows Y as V has columns, which are orthonormal, with probability ``det(V_Y)^2``.

    One after the other, each with a probability proportional to what is left of its square outside the
    span of those before; duplicates of these have nothing left.
    """
    squared = squared_norms(V)
    left = squared.copy()
    span = np.empty((V.shape[1], V.shape[1]))
    for t in range(V.shape[1]):
        total = np.cumsum(left)
        # From the right: a row with nothing left has the cumulative sum of the one before and is skipped.
        row = int(np.searchsorted(total, random_state.uniform() * total[-1], side="right"))
        yield row
        span[t] = orthogonal_remainder(span[:t], V[row])
        # Pythagoras, O(n k) for each draw. The errors of the differences add up, hence the threshold.
        left -= matmul(V, span[t], pool) ** 2
        left[left < SAME_ROW * squared] = 0
        left[row] = 0
