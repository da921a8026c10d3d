"""All singular vectors of a dense table, also where the fast way to them fails."""

from __future__ import annotations

import numpy as np
import scipy.linalg


def thin_svd(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``left, values, right`` of the SVD of a finite X, as many as its shorter side is long."""
    try:
        return scipy.linalg.svd(X, full_matrices=False, check_finite=False)
    except scipy.linalg.LinAlgError:
        # LAPACK's fast driver fails on some matrices of low rank, on which the plain one does not.
        return scipy.linalg.svd(X, full_matrices=False, check_finite=False, lapack_driver="gesvd")
