"""How much memory a fit of f-SMRMF takes, told before any of it is asked for.

All of it grows with the number of points: their rows, once more than the user has them; lists of their
neighbours; graphs of these and functions on the graphs in the start; factors, multipliers and Z in the loop.
"""

from __future__ import annotations

import numpy as np

from smrmf._validation import Sizes
from smrmf.factorization._plane import saves_coordinates
from smrmf.graph.consensus import twice
from smrmf.graph.spectrum import GUARD

# Short-lived arrays and blocks beside those that are counted, as a share of these: of few points more.
BESIDE_MANY, BESIDE_FEW = 1.05, 1.3


def memory_of_fit(sizes: Sizes, n_features: int, dtype: np.dtype, *, many: bool, mapped: bool) -> int:
    """Return about how many bytes a fit takes beside the table that it is given.

    ``many`` points are searched in cells, and ``mapped`` ones lie in a file.
    """
    number, index = dtype.itemsize, 4 if sizes.n_samples <= np.iinfo(np.int32).max else 8
    c, k, length = sizes.n_clusters, sizes.n_neighbors, 2 * sizes.n_neighbors + 1
    entry = number + index
    # The fit's own rows, and about their middle; then the lists of neighbours.
    rows = 0 if mapped else n_features * number * (1 if many else 2)
    always = rows + length * entry + 4 * 8
    # The graph of k neighbours, that of 2 k, what it becomes when neighbours are one; functions twice.
    start = (2 * k + 4 * k + 3 * k) * entry + 2 * (twice(c) + GUARD) * number
    coordinates = c + 1 if many and saves_coordinates(c, n_features) else n_features
    # X, E, G F and a multiplier; G, H, their multiplier, L G, N, votes and the start; D and z; Z.
    loop = (4 * coordinates + 8 * c) * number + 2 * length * number + 3 * k * entry // 2
    beside = BESIDE_MANY if many else BESIDE_FEW
    return int(beside * sizes.n_samples * (always + max(start, loop)))
