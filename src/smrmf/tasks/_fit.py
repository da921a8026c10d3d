"""Cluster a table in a file."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline

from smrmf._validation import ParameterError
from smrmf.graph.columns import SILENCE
from smrmf.inspection import Suggestion, suggest_n_clusters
from smrmf.tasks._methods import find_method, set_known, set_written
from smrmf.tasks._progress import IterationTeller, Stages, silent
from smrmf.tasks._scores import compare
from smrmf.tasks._tables import PreparedTable, TableChoice, prepare_table


@dataclass(frozen=True)
class FitRequest:
    """What to cluster and how; without a number of clusters the one that the table suggests."""

    choice: TableChoice
    n_clusters: int | None = None
    method: str = "FastSMRMF"
    exemplars: int | float | None = None
    settings: tuple[str, ...] = ()
    seed: int = 0


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


def fit_table(request: FitRequest, stages: Stages = silent) -> FittedTable:
    """Cluster the rows of a table in a file."""
    # First of all: a wrong word should not be found out after a long search.
    model = set_known(find_method(request.method), exemplars=request.exemplars, random_state=request.seed)
    set_written(model, request.settings)
    model._check_parameters()
    with stages(f"Reading {request.choice.path}"):
        prepared = prepare_table(request.choice)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        suggestion = _choose_number(model, request, prepared, stages)
        with stages(f"Clustering {prepared.table.n_rows} rows") as tell:
            model.set_callbacks(IterationTeller(tell)).fit(prepared.X)
    notes = list(dict.fromkeys(for_a_terminal(str(warning.message)) for warning in said))
    pipeline = Pipeline([("table", prepared.preparation), ("model", model)])
    scores = compare(prepared.table.labels, model.labels_)
    return FittedTable(pipeline, prepared, suggestion, [*prepared.notes, *notes], scores)


def _choose_number(
    model: Any, request: FitRequest, prepared: PreparedTable, stages: Stages
) -> Suggestion | None:
    """Set the number of clusters, the given one or one that is clear."""
    given = request.n_clusters is not None or any(s.startswith("n_clusters=") for s in request.settings)
    if given or model.get_params(deep=False)["n_clusters"] is None:
        set_known(model, n_clusters=request.n_clusters)
        return None
    with stages("Looking for the number of clusters"):
        suggestion = suggest_n_clusters(prepared.X, random_state=request.seed, **_metric(model))
    if suggestion.n_clusters is None:
        first = suggestion.ranked[0]
        raise ParameterError(f"{suggestion.reason} Choose a number yourself, such as --clusters {first}.")
    model.set_params(n_clusters=suggestion.n_clusters)
    return suggestion


def _metric(model: Any) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    return {name: parameters[name] for name in ("metric",) if name in parameters}


def for_a_terminal(note: str) -> str:
    """Return a warning without the part that only a program can follow."""
    return note.replace(f", {SILENCE}", "")
