"""How every estimator fits: check at the door, solve, and leave a mark only when all is done."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.utils.validation import validate_data

from smrmf._parallel import Pool, thread_pool
from smrmf._validation import (
    NOTHING,
    RANDOM_STATE,
    Number,
    Rule,
    check_parameters,
    finite_array,
)

RULES: dict[str, Iterable[Rule]] = {
    "n_clusters": (Number(1, integer=True),),
    "exemplars": (Number(1, integer=True), Number(0, 1, above=True)),
    "max_iter": (Number(1, 10**9, integer=True),),
    "tol": (Number(0),),
    "random_state": (RANDOM_STATE, Number(0, 2**32 - 1, integer=True)),
    "n_jobs": (NOTHING, Number(1, integer=True), Number(high=-1, integer=True)),
}


class Watch:
    """Tell the callbacks of every step of a fit; they may ask to stop."""

    def __init__(self, estimator: AbstractEstimator, context: Any, X: Any) -> None:
        self._estimator = estimator
        self._context = context
        self._X = X
        self._about_input = _about_input(estimator, X)

    def __call__(self, metadata: dict[str, Any], attributes: Callable[[], dict[str, Any]]) -> bool:
        """Report a step: ``attributes`` makes the fitted attributes as of now, if anyone wants them."""
        task = self._context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self._estimator, X=self._X)
        return task.call_on_fit_task_end(
            estimator=self._estimator,
            X=self._X,
            metadata=metadata,
            reconstruction_attributes=lambda: attributes() | self._about_input,
        )


class AbstractEstimator(CallbackSupportMixin, BaseEstimator, ABC):
    """The fit that all estimators share; a subclass prepares and solves its problem.

    ``_rules`` says what each parameter may be.
    """

    _rules: ClassVar[dict[str, Iterable[Rule]]]
    n_jobs: int | None

    @abstractmethod
    def _prepare(self, X: np.ndarray | sp.csr_array) -> Any:
        """Return the problem to solve; refuse what does not fit, before any work is done."""

    @abstractmethod
    def _n_steps(self, problem: Any) -> int:
        """Return how many steps the solution takes at most."""

    @abstractmethod
    def _solve(self, problem: Any, pool: Pool, watch: Watch) -> dict[str, Any]:
        """Return the fitted attributes."""

    @with_callbacks
    def fit(self, X: Any, y: None = None) -> Self:
        """Fit the model to the rows of X.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The points.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted estimator.
        """
        check_parameters(type(self).__name__, self.get_params(deep=False), self._rules)
        # A copy of its own: what is kept of the data must stay as it is now.
        problem = self._prepare(finite_array(self, X, copy=True))
        context = self._init_callback_context(max_subtasks=self._n_steps(problem))
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        with thread_pool(self.n_jobs) as pool:
            fitted = self._solve(problem, pool, Watch(self, context, X))
        # Only a finished fit leaves its mark; a refused or interrupted one leaves the old one.
        validate_data(self, X, skip_check_array=True, reset=True)
        for name, value in fitted.items():
            setattr(self, name, value)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self


def _about_input(estimator: AbstractEstimator, X: Any) -> dict[str, Any]:
    """Return the attributes that a fit on X sets about its features."""
    probe = clone(estimator)
    validate_data(probe, X, skip_check_array=True, reset=True)
    return {k: v for k, v in vars(probe).items() if k in ("feature_names_in_", "n_features_in_")}
