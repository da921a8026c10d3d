"""The non-negative SVD, the paper's start: of every singular pair the larger of its non-negative parts."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from sklearn.utils import check_array

from smrmf._validation import check_nonnegative


def nndsvd(X: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return a first G without negative entries, the paper's start: the plain non-negative SVD.

    What ``init="nndsvd"`` starts from, exact and unscaled (paper note 13); change it as you like and give
    it to ``init``.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Points without negative entries.
    n_clusters : int
        How many columns, at most the smaller side of X.

    Returns
    -------
    array of shape (n_samples, n_clusters)
        One column per singular pair, the largest first, in the precision of X.

    Examples
    --------
    >>> import numpy as np
    >>> nndsvd(np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 1.0]]), 2).round(3)
    array([[1.342, 0.   ],
           [1.789, 0.   ],
           [0.   , 1.   ]])
    """
    # A public name and so its own door, unlike the other kernels; the checks are nothing beside the SVD.
    X = check_array(X, dtype=[np.float64, np.float32], input_name="X")
    check_nonnegative("nndsvd", float(X.min()))
    limit = min(X.shape)
    if not 1 <= n_clusters <= limit:
        raise ValueError(
            f"n_clusters={n_clusters} must be at least 1 and at most min(n_samples, n_features)={limit}."
        )
    left, values, right = scipy.linalg.svd(X, full_matrices=False, check_finite=False)
    return nonnegative_parts(left[:, :n_clusters], values, right)[0]


def nonnegative_parts(
    left: np.ndarray, values: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return G (n x c) and F (c x m) of the non-negative SVD, ``G F`` near the table and both non-negative.

    Of the positive and the negative part of each singular pair, the one with the larger product of lengths.
    """
    n, c = left.shape
    G, F = np.zeros((n, c), left.dtype), np.zeros((c, right.shape[1]), left.dtype)
    # The leading pair of a non-negative table has no mixed signs (Perron and Frobenius), but for rounding.
    G[:, 0] = np.sqrt(values[0]) * np.abs(left[:, 0])
    F[0] = np.sqrt(values[0]) * np.abs(right[0])
    for q in range(1, c):
        u, v = left[:, q], right[q]
        # The non-negative part of u v' is u+ v+' + u- v-'. The larger of the two terms is kept.
        parts = [(np.maximum(s * u, 0), np.maximum(s * v, 0)) for s in (1, -1)]
        lengths = [(np.linalg.norm(a), np.linalg.norm(b)) for a, b in parts]
        side = int(np.prod(lengths[1]) > np.prod(lengths[0]))
        u_length, v_length = lengths[side]
        # u+ v+' has the length u_length v_length; G and F share it, and the singular value, equally.
        if u_length > 0 and v_length > 0:
            size = np.sqrt(values[q] * u_length * v_length)
            G[:, q] = size * parts[side][0] / u_length
            F[q] = size * parts[side][1] / v_length
    return G, F
