"""The multiplicative step of semi-NMF, in one pass over its arrays."""

from __future__ import annotations

import numpy as np

from smrmf._numba import kernel


@kernel
def multiply_rows(G, attracted, repelled, XF, smallest):
    """Write ``G sqrt((attracted + XF+) / (repelled + XF-))`` over XF, whose parts these are."""
    for i in range(G.shape[0]):
        for q in range(G.shape[1]):
            x = XF[i, q]
            up = attracted[i, q] + max(x, 0)
            down = repelled[i, q] + max(-x, 0)
            XF[i, q] = G[i, q] * np.sqrt(up / max(down, smallest))
