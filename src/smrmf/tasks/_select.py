"""Choose a few rows of a table that stand for the rest, and ask a table how many clusters it has."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from smrmf._validation import ParameterError
from smrmf.inspection import Suggestion, suggest_n_clusters
from smrmf.inspection._suggestion import POINTS_PER_CLUSTER, checked_numbers
from smrmf.tasks._methods import find_method, refuse_twice, set_known, set_written
from smrmf.tasks._plain import columns_of_frame
from smrmf.tasks._progress import FitTeller, Stages, silent
from smrmf.tasks._results import rounded, rows_of
from smrmf.tasks._tables import TableChoice, prepare_table
from smrmf.tasks._wording import notes_of


def select_rows(
    choice: TableChoice,
    n: int,
    method: str = "FastSMRMF",
    settings: tuple[str, ...] = (),
    seed: int | None = None,
    stages: Stages = silent,
) -> tuple[dict[str, Any], list[str]]:
    """Return so many rows that stand for the rest, best first, as they stand in the file, and notes."""
    refuse_twice(settings, exemplars="-n", random_state=None if seed is None else "--seed")
    model = set_known(find_method(method, clusters=False), exemplars=n, random_state=seed or 0)
    if model.get_params(deep=False).get("n_clusters") is not None:
        # One cluster for every row to choose: then each stands for others.
        model.set_params(n_clusters=n)
    set_written(model, settings)
    model._check_parameters()
    with stages(f"Reading {choice.path}"):
        prepared = prepare_table(choice)
    if n > prepared.table.n_rows:
        raise ParameterError(f"-n {n} is more than the {prepared.table.n_rows} rows there are: give fewer.")
    with warnings.catch_warnings(record=True) as said, stages(f"Choosing {n} rows") as tell:
        warnings.simplefilter("always")
        model.set_callbacks(FitTeller(tell)).fit(prepared.X)
    chosen = np.asarray(model.exemplar_indices_)
    found = {"rank": np.arange(1, len(chosen) + 1)} | prepared.rows.column(chosen)
    found["score"] = model.exemplar_scores_
    found |= rows_of(prepared, chosen, set(found))
    notes = [*prepared.notes, *notes_of(said, prepared.preparation)]
    return {name: rounded(column) for name, column in found.items()}, notes


def suggest_number(
    choice: TableChoice,
    least: int,
    most: int | None,
    seed: int | None = None,
    metric: str = "euclidean",
    stages: Stages = silent,
) -> tuple[Suggestion, list[str]]:
    """Return how many clusters a table seems to have, with the evidence, and notes."""
    with stages(f"Reading {choice.path}"):
        prepared = prepare_table(choice)
    n_rows = prepared.table.n_rows
    possible = n_rows // POINTS_PER_CLUSTER
    for option, number in (("--from", least), ("--to", most or least)):
        if number > possible >= 2:
            raise ParameterError(
                f"{option} {number} is too many for {n_rows} rows: give at most {possible}, so that there "
                f"are {POINTS_PER_CLUSTER} rows for each cluster."
            )
    asked = None if most is None else range(least, most + 1)
    numbers = [number for number in checked_numbers(asked, n_rows) if number >= least]
    if not numbers:
        raise ParameterError(f"--from {least} is more than what is usual: give --to, too.")
    with warnings.catch_warnings(record=True) as said, stages("Looking for the number of clusters"):
        warnings.simplefilter("always")
        suggestion = suggest_n_clusters(prepared.X, numbers, metric=metric, random_state=seed or 0)
    return suggestion, [*prepared.notes, *notes_of(said, prepared.preparation)]


def evidence(suggestion: Suggestion) -> dict[str, Any]:
    """Return the evidence for every number as columns."""
    return {name: rounded(column) for name, column in columns_of_frame(suggestion.table).items()}
