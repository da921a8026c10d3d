"""The multiplicative step of semi-NMF, in one pass over its arrays."""

from __future__ import annotations

import numpy as np

from smrmf._numba import kernel


@kernel
def multiply_rows(G, attracted, repelled, XF, smallest):
    """Write ``G sqrt((attracted + XF+) / (repelled + XF-))`` over XF, whose parts ``XF+`` and ``XF-`` are.

    ``attracted`` and ``repelled`` are ``G`` times the negative and the positive part of ``F F'``.
    """
    for i in range(G.shape[0]):
        for q in range(G.shape[1]):
            x = XF[i, q]
            up = attracted[i, q] + max(x, 0)
            down = repelled[i, q] + max(-x, 0)
            # The proof that no step raises the cost needs the square root where F has both signs.
            XF[i, q] = G[i, q] * np.sqrt(up / max(down, smallest))
