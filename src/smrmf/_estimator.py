"""The fit that all estimators share: check, solve, warn, and set all attributes in one step at the end."""

from __future__ import annotations

import os
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import ConvergenceWarning

from smrmf._arrays import check_results, feature_attributes, finite_array
from smrmf._parallel import WARNING_FILTERS, Pool, thread_pool
from smrmf._progress import Progress, Step
from smrmf._scratch import is_mapped
from smrmf._validation import Constraints, check_parameters

# Code in these folders is not the caller's. With the separator at the end, "smrmf_reproduce" is no match.
_LIBRARIES = tuple(os.path.join(os.path.dirname(file), "") for file in (__file__, sklearn.__file__))


Warnings = list[tuple[str, type[Warning]]]


class Fitted(NamedTuple):
    """What a solver returns: attributes by their public names, and warnings for the caller."""

    attributes: dict[str, Any]
    warnings: Warnings


@dataclass(frozen=True)
class FitReporter:
    """Report every step of a fit to the callbacks, which may ask to stop."""

    estimator: AbstractEstimator
    context: Any
    X: Any
    features: dict[str, Any]

    def __call__(self, metadata: dict[str, Any], attributes: Callable[[], dict[str, Any]]) -> bool:
        """Report a step and return whether to stop; ``attributes`` makes the fitted attributes on request."""
        task = self.context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        return task.call_on_fit_task_end(
            estimator=self.estimator,
            X=self.X,
            metadata=metadata,
            # A function: the attributes may take as long as a step, and most callbacks do not need them.
            reconstruction_attributes=lambda: attributes() | self.features,
        )

    @contextmanager
    def stage(self, name: str, n_tasks: int) -> Iterator[FitReporter]:
        """Report a stage of the fit, which reports at most so many tasks itself; it ends if it succeeds."""
        task = self.context.subcontext(task_name=name, max_subtasks=n_tasks)
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        yield replace(self, context=task)
        task.call_on_fit_task_end(estimator=self.estimator, X=self.X)


class StageProgress(Progress):
    """Report the progress of a stage, of which the callbacks see as many equal parts as it has tasks."""

    def __init__(self, stage: FitReporter) -> None:
        self._stage = stage
        self._n_ended = 0

    def steps(self, total: int) -> Step:
        """Return what to call after each of so many steps; there may be more or fewer steps than parts."""
        n_parts, n_done = self._stage.context.max_subtasks, 0

        def step() -> None:
            nonlocal n_done
            n_done += 1
            while self._n_ended < n_parts * n_done // total:
                self._n_ended += 1
                # What a callback returns asks to stop. Half a stage is of no use, so only the loop heeds it.
                with self._stage.stage("part", 0):
                    pass

        return step


class AbstractEstimator(CallbackSupportMixin, BaseEstimator, ABC):
    """The fit that all estimators share; a subclass prepares and solves its problem.

    ``_constraints`` adds parameters to the common table of constraints, or replaces its entries.
    """

    _constraints: ClassVar[Constraints] = {}
    # Whether a table in a file may stay there.
    _reads_files: ClassVar[bool] = False
    n_jobs: int | None

    @abstractmethod
    def _prepare(self, X: np.ndarray | sp.csr_array) -> tuple[Any, int]:
        """Return the problem to solve, and how many tasks the solution reports at most: steps or stages.

        Data and sizes that do not fit are refused here, before any work is done.
        """

    @abstractmethod
    def _solve(self, given: Any, pool: Pool, report: FitReporter) -> Fitted:
        """Return the solution of the prepared problem; it may not change ``self``."""

    def _check_memory(self, X: Any) -> None:
        """Refuse data for which there is not enough memory, before any is asked for."""

    def _check_parameters(self) -> None:
        """Refuse parameters that are not valid, whatever the data."""
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)

    @with_callbacks
    def fit(self, X: Any, y: None = None) -> Self:
        """Fit the model to the rows of X.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The points. A memory-mapped array of many rows (``numpy.load(file, mmap_mode="r")``) is not read
            into memory by ``FastSMRMF``, ``AMRMF`` and ``RMNMF``; its file must stay as it is while the model
            is used.
        y : None
            Ignored.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        features = feature_attributes(X)
        self._check_memory(X)
        # A copy of its own: what is kept of the data must not change with the caller's array. For one of an
        # array in a file there may be no room.
        copy = not (self._reads_files and is_mapped(X))
        given, n_tasks = self._prepare(finite_array(self, X, copy=copy))
        context = self._init_callback_context(max_subtasks=n_tasks)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        with thread_pool(self.n_jobs) as pool:
            fitted = self._solve(given, pool, FitReporter(self, context, X, features))
        check_results(type(self).__name__, fitted.attributes)
        # Before the attributes: where warnings are errors, the fit fails and leaves no results. Not while
        # another thread ignores or collects its own.
        with WARNING_FILTERS.lock:
            for message, category in fitted.warnings:
                warnings.warn(message, category, stacklevel=callers_stack_level())
        # One step, at the end: a fit that is refused or interrupted leaves the earlier one as it is.
        # What an earlier fit has set goes: the new X may have no names, the new start no candidates.
        earlier = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = earlier | fitted.attributes | features
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return self


def convergence_warnings(name: str, n_iter: int, reason: str) -> Warnings:
    """Return the warning that the iterations did not suffice, and why."""
    message = f"{name} did not converge in max_iter={n_iter} iterations: {reason}."
    return [(message, ConvergenceWarning)]


def callers_stack_level() -> int:
    """Return the stack level at which a warning points to the code that uses the library.

    ``fit`` may be called by ``fit_predict``, by a decorator or by a pipeline: frames of this library and of
    scikit-learn do not count.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        level, frame = level + 1, frame.f_back
    return level
