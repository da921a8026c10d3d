"""FastSMRMF on Dask arrays: the same parameters, the same loop, rows that stay on the workers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from typing import Any, Self
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.highlevelgraph import HighLevelGraph
from distributed import KilledWorker
from distributed.comm import CommClosedError
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from smrmf._estimator import callers_stack_level
from smrmf._validation import ParameterError, check_parameters
from smrmf.dask._blocks import Blocks
from smrmf.dask._consensus import beside
from smrmf.dask._fit import fit_in_parts
from smrmf.dask._input import parts_of, queries_of, row_chunks
from smrmf.dask._new_points import apartness, label_of, mean_of_known, met, shares_of
from smrmf.factorization.fast_smrmf import FastSMRMF as InMemory


class FastSMRMF(BaseEstimator):
    """Cluster the rows of a Dask array, and find exemplars among them: f-SMRMF on a cluster.

    It has the parameters of :class:`smrmf.FastSMRMF` and its fitted attributes, of which those with an entry
    for every point are Dask arrays; ``affinity_``, ``representation_`` and ``kept_indices_`` are not set.
    """

    __init__ = InMemory.__init__

    def fit(self, X: Any, y: None = None) -> Self:
        """Fit the model to the rows of X."""
        check_parameters(type(self).__name__, self.get_params(deep=False), InMemory._constraints)
        with told_of_lost_work():
            fitted = fit_in_parts(self, X)
            placed = fitted.attributes["_fit_placed"]
            forms = {name: blocks.at([0]).map(form_of).compute()[0] for name, blocks in fitted.blocks.items()}
        for message, category in fitted.warnings:
            warnings.warn(message, category, stacklevel=callers_stack_level())
        known = {f"_fit_{name.strip('_')}": blocks for name, blocks in fitted.blocks.items()}
        rows = {
            name: array_of(placed.returned(blocks), placed.chunk_sizes, forms[name])
            for name, blocks in fitted.blocks.items()
            if name.endswith("_")
        }
        earlier = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.__dict__ = earlier | fitted.attributes | known | rows
        return self

    def fit_predict(self, X: Any, y: None = None) -> Any:
        """Fit the model and return the labels."""
        return self.fit(X).labels_

    def predict(self, X: Any) -> da.Array:
        """Assign points to clusters by the vote of their nearest training points."""
        check_is_fitted(self)
        known = self._fit_labels.map(as_rows)
        return self._answered(X, known, partial(label_of, clusters=self._fit_clusters))

    def predict_proba(self, X: Any) -> da.Array:
        """Say how sure it is to which cluster points belong."""
        check_is_fitted(self)
        known = self._fit_labels.map(beside, self._fit_membership)
        return self._answered(X, known, partial(shares_of, clusters=self._fit_clusters))

    def transform(self, X: Any) -> da.Array:
        """Embed points: each is a mixture of its nearest training points."""
        check_is_fitted(self)
        return self._answered(X, self._fit_embedding, mean_of_known)

    def outlier_scores(self, X: Any) -> da.Array:
        """Say how far points lie from all training points."""
        check_is_fitted(self)
        return self._answered(X, self._fit_reach.map(as_rows), partial(apartness, least=self._fit_least))

    def _answered(self, X: Any, known: Blocks, answer: Callable[..., Any]) -> da.Array:
        """Answer for new points by what is known of their nearest training points."""
        X = row_chunks(X)
        if X.shape[1] != self.n_features_in_:
            raise ParameterError(
                f"X has {X.shape[1]} features, but {type(self).__name__} was fitted to {self.n_features_in_}."
            )
        metric, n_columns, magnitude = self._fit_input
        parts, sizes = parts_of(X)
        form = {"metric": metric, "n_columns": n_columns, "magnitude": magnitude}
        queries = parts.map(queries_of, dtype=self.components_.dtype, **form)
        k, placed = self._fit_neighbors, self._fit_placed
        count = min(k + 1, int(placed.starts[-1]))
        found = met(queries, placed, known, self._fit_ways, count)
        return array_of(queries.map(answer, found, n_neighbors=k), sizes, self._form(answer))

    def _form(self, answer: Callable[..., Any]) -> tuple[np.dtype, tuple[int, ...]]:
        """Return type and width of the answers."""
        function = answer.func if isinstance(answer, partial) else answer
        return {
            label_of: (np.dtype(np.int64), ()),
            shares_of: (np.dtype(np.float64), (len(self._fit_clusters.sizes),)),
            mean_of_known: (self.components_.dtype, (len(self.components_),)),
            apartness: (self.components_.dtype, ()),
        }[function]


@contextmanager
def told_of_lost_work() -> Iterator[None]:
    """Say in one sentence that the scheduler has gone away, or that workers die."""
    try:
        yield
    except KilledWorker as error:
        raise MemoryError(
            "Workers died again and again while they did one task, as they do if their memory does not hold "
            "it: give them more memory, or make chunks of fewer rows; the model is as it was."
        ) from error
    except (CancelledError, CommClosedError) as error:
        raise ConnectionError(
            "The Dask scheduler is gone, or has cancelled the work: connect to one that runs and fit again; "
            "the model is as it was."
        ) from error


def array_of(blocks: Blocks, chunk_sizes: list[int], form: tuple[np.dtype, tuple[int, ...]]) -> da.Array:
    """Return a Dask array of parts that have so many rows each."""
    dtype, width = form
    name = f"rows-{uuid4().hex}"
    tasks: dict[Any, Any] = {(name, place, *([0] * len(width))): key for place, key in enumerate(blocks.keys)}
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=[blocks])
    return da.Array(graph, name, chunks=(tuple(chunk_sizes), *((w,) for w in width)), dtype=dtype)


def form_of(part: np.ndarray) -> tuple[np.dtype, tuple[int, ...]]:
    return part.dtype, part.shape[1:]


def as_rows(values: np.ndarray) -> np.ndarray:
    return values[:, None]
