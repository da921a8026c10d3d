"""Cluster a table in a file."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from smrmf._validation import ParameterError
from smrmf.inspection import Suggestion, cluster_profiles, suggest_n_clusters
from smrmf.inspection._suggestion import POINTS_PER_CLUSTER, checked_numbers
from smrmf.tasks._methods import chooses, find_method, is_set, refuse_twice, set_known, set_written
from smrmf.tasks._on_disk import prepare_on_disk, some_rows
from smrmf.tasks._plain import columns_of_frame
from smrmf.tasks._progress import FitTeller, Stages, silent
from smrmf.tasks._scores import compare
from smrmf.tasks._tables import PreparedTable, TableChoice, prepare_table
from smrmf.tasks._wording import notes_of

MOST_PROFILED = 20  # features of every cluster that are described
FEW_ROWS = 100  # of every cluster of a table on disk that are described, however small it is
MOST_ASKED = 20_000  # rows of a table on disk that are asked for the number of clusters


@dataclass(frozen=True)
class FitRequest:
    """What to cluster and how; without a number of clusters the one that the table suggests.

    A report shows the evidence for the number of clusters, also for one that was given.
    """

    choice: TableChoice
    n_clusters: int | None = None
    method: str = "FastSMRMF"
    exemplars: int | float | None = None
    settings: tuple[str, ...] = ()
    seed: int | None = None
    report: bool = False


@dataclass(frozen=True, eq=False)
class FittedTable:
    """A fitted pipeline, from the columns of the table to clusters, and what to say of it."""

    pipeline: Pipeline
    prepared: PreparedTable
    suggestion: Suggestion | None
    notes: list[str]
    scores: dict[str, float] | None

    @property
    def model(self) -> Any:
        """Return the model at the end of the pipeline."""
        return self.pipeline[-1]

    @cached_property
    def shown(self) -> Any:
        """Return the rows that clusters are described by: all; of a table on disk some, and some of each."""
        labels, step = self.model.labels_, self.prepared.step
        if step == 1:
            return slice(None)
        first = [np.flatnonzero(labels == cluster)[:FEW_ROWS] for cluster in range(labels.max() + 1)]
        return np.unique(np.concatenate([np.arange(0, len(labels), step), *first]))

    @cached_property
    def units(self) -> Any:
        """Return the features of these rows as they stand in the table."""
        return self.prepared.units if self.prepared.step == 1 else self.prepared.units_of(self.shown)

    @property
    def shown_labels(self) -> np.ndarray:
        """Return the labels of these rows."""
        return self.model.labels_[self.shown]

    @cached_property
    def profiles(self) -> dict[str, Any]:
        """Return the features of every cluster, those that set it apart most first, as columns."""
        some, names = SimpleNamespace(labels_=self.shown_labels), self.prepared.feature_names
        labels = self.model.labels_
        found = columns_of_frame(
            cluster_profiles(some, self.units, n_features=MOST_PROFILED, feature_names=names)
        )
        return found | {"size": np.bincount(labels[labels >= 0])[found["cluster"]]}


def fit_table(request: FitRequest, stages: Stages = silent) -> FittedTable:
    """Cluster the rows of a table in a file."""
    # First of all: a wrong word should not be found out after a long search.
    model = requested_model(request)
    with stages(f"Reading {request.choice.path}"):
        prepared = prepare_on_disk(request.choice, request.report) or prepare_table(request.choice)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        suggestion = _choose_number(model, request, prepared, stages)
        with stages(f"Clustering {prepared.table.n_rows} rows") as tell:
            model.set_callbacks(FitTeller(tell)).fit(prepared.X)
    notes = notes_of(said, prepared.preparation)
    if not prepared.preparation.is_sparse_:
        # As if the table had come as a frame, of which the fit would have made two copies more.
        model.feature_names_in_ = np.array(prepared.feature_names, dtype=object)
        prepared.preparation.set_output(transform="polars")
    if request.report and suggestion is None:
        suggestion = _compare_numbers(model, prepared, stages)
    pipeline = Pipeline([("table", prepared.preparation), ("model", model)])
    scores = compare(prepared.table.labels, model.labels_)
    return FittedTable(pipeline, prepared, suggestion, [*prepared.notes, *notes], scores)


def requested_model(request: FitRequest) -> Any:
    """Return the estimator that is asked for, not yet fitted; refuse what contradicts itself."""
    model = find_method(request.method)
    if request.exemplars is not None and not chooses(model):
        raise ParameterError(f"{type(model).__name__} chooses no exemplars: leave --exemplars out.")
    refuse_twice(
        request.settings,
        n_clusters=None if request.n_clusters is None else "--clusters",
        exemplars=None if request.exemplars is None else "--exemplars",
        random_state=None if request.seed is None else "--seed",
    )
    seed = request.seed or 0
    set_known(model, exemplars=request.exemplars, random_state=seed, n_clusters=request.n_clusters)
    set_written(model, request.settings)
    model._check_parameters()
    return model


def _choose_number(
    model: Any, request: FitRequest, prepared: PreparedTable, stages: Stages
) -> Suggestion | None:
    """Set the number of clusters to one that is clear, unless one is given."""
    given = request.n_clusters is not None or is_set(request.settings, "n_clusters")
    if given or model.get_params(deep=False)["n_clusters"] is None:
        return None
    if (n_rows := prepared.table.n_rows) < 2 * POINTS_PER_CLUSTER:
        raise ParameterError(f"Of {n_rows} rows no number of clusters can be clear: give one by --clusters.")
    with stages("Looking for the number of clusters"):
        some = prepared.X if prepared.step == 1 else some_rows(prepared.X, MOST_ASKED)
        suggestion = suggest_n_clusters(some, **({"random_state": request.seed or 0} | _shared(model)))
    if suggestion.n_clusters is None:
        first = suggestion.ranked[0]
        raise ParameterError(f"{suggestion.reason} Choose a number yourself, such as --clusters {first}.")
    model.set_params(n_clusters=suggestion.n_clusters)
    return suggestion


def _compare_numbers(model: Any, prepared: PreparedTable, stages: Stages) -> Suggestion | None:
    """Return the evidence for the number that was fitted beside the usual ones; None if it has none."""
    n_rows, fitted = prepared.table.n_rows, len(set(model.labels_.tolist()))
    if not 2 <= fitted <= n_rows // POINTS_PER_CLUSTER:
        return None
    numbers = sorted({*checked_numbers(None, n_rows), fitted})
    # The fit has said what there is to say of the columns.
    with stages("Comparing numbers of clusters"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return suggest_n_clusters(prepared.X, numbers, **_shared(model))


def _shared(model: Any) -> dict[str, Any]:
    """Return the parameters of a model that the search for the number has, too."""
    parameters = model.get_params(deep=False)
    return {name: parameters[name] for name in ("metric", "random_state") if name in parameters}
