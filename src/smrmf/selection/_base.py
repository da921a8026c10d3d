"""Choose a few rows of a table that represent the others: the interface that all selectors share."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from smrmf._estimator import AbstractEstimator


class SelectionInput(NamedTuple):
    """The checked table, and how many of its rows to choose."""

    X: np.ndarray | sp.csr_array
    n_exemplars: int


class Selector(AbstractEstimator):
    """An estimator whose fit sets ``exemplar_indices_``, best first, and ``exemplar_scores_``.

    Any of them can be the ``selector`` of :class:`smrmf.SelectiveRMNMF`, and so can any other estimator that
    sets ``exemplar_indices_``.
    """

    exemplar_indices_: np.ndarray
    exemplar_scores_: np.ndarray

    def fit_select(self, X: Any, y: None = None) -> np.ndarray:
        """Fit to the rows of X and return the indices of the chosen ones, best first.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The points.
        y : None
            Ignored.

        Returns
        -------
        indices : array of shape (n_exemplars,)
            Rows of X.
        """
        return self.fit(X, y).exemplar_indices_
