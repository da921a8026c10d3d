"""Ask a model that was written down why a row is where it is."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

import smrmf
from smrmf._parallel import WARNING_FILTERS
from smrmf._validation import ParameterError
from smrmf.inspection import Explanation, PlainTable, explain
from smrmf.persistence import ModelFileError
from smrmf.tables import TablePreparation
from smrmf.tables._results import MODEL
from smrmf.tasks._plain import few_digits
from smrmf.tasks._results import rounded
from smrmf.tasks._tables import ROW, RowNames, TableChoice


@dataclass(frozen=True, eq=False)
class WrittenModel:
    """A pipeline from the columns of a table to clusters, and where its rows have names."""

    pipeline: Pipeline
    beside: Path

    @property
    def preparation(self) -> TablePreparation:
        """Return how a table becomes numbers."""
        return self.pipeline[0]

    @property
    def model(self) -> Any:
        """Return the model that was fitted to these."""
        return self.pipeline[-1]

    @cached_property
    def rows(self) -> RowNames:
        """Return the names of the rows of the fit, which are in a table ``beside``; prediction needs none."""
        return _row_names(self.beside, self.model.labels_)


def read_model(path: Path) -> WrittenModel:
    """Read the model of a folder of results, or of a file."""
    file = path / MODEL if path.is_dir() else path
    pipeline = smrmf.load(file)
    if not isinstance(pipeline, Pipeline) or not isinstance(pipeline[0], TablePreparation):
        raise ModelFileError(
            f"{file} has a {type(pipeline).__name__} that knows no table: give what smrmf fit wrote, or use "
            "smrmf.load in Python."
        )
    if not hasattr(pipeline[-1], "labels_"):
        raise ModelFileError(
            f"{file} ends with {type(pipeline[-1]).__name__}, which has found no clusters: give what smrmf "
            "fit wrote."
        )
    return WrittenModel(pipeline, file.with_name("labels.csv"))


def _row_names(beside: Path, labels: np.ndarray) -> RowNames:
    """Return what the table of labels beside a model calls the rows; their numbers, if it is of another."""
    numbers = RowNames(ROW, list(range(1, len(labels) + 1)))
    if not beside.is_file():
        return numbers
    with beside.open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    if header[1:2] != ["cluster"] or [row[1:2] for row in rows] != [[str(label)] for label in labels]:
        return numbers
    names = [row[0] for row in rows]
    return numbers if names == list(map(str, numbers.names)) else RowNames(header[0], names)


def find_row(written: WrittenModel, row: int | None, name: str | None) -> int:
    """Return the place of a row that is given by its number from 1, or by its id."""
    names = written.rows.names
    if name is None:
        if row is None or not 1 <= row <= len(names):
            raise ParameterError(f"There is no row {row}: give one from 1 to {len(names)}.")
        return row - 1
    found = [place for place, each in enumerate(names) if str(each) == name]
    if len(found) != 1:
        how = "No row has" if not found else f"{len(found)} rows have"
        raise ParameterError(
            f"{how} the id {name!r}: give the number of a row by --row (ids are those of labels.csv, which "
            "must lie beside the model)."
        )
    return found[0]


def new_row(written: WrittenModel, choice: TableChoice, row: int | None) -> Any:
    """Return a row of another table, by its number from 1, as the model takes it."""
    table = choice.read()
    if row is None or not 1 <= row <= table.n_rows:
        raise ParameterError(f"{choice.path} has no row {row}: give one from 1 to {table.n_rows}.")
    return written.preparation.transform(table)[[row - 1]]


def explain_row(written: WrittenModel, point: Any, n: int) -> Explanation:
    """Say why a row is in its cluster, by its place in the fit or a new one, in the units of the table."""
    model, preparation = written.model, written.preparation
    if not hasattr(model, "_fit_data"):
        raise ParameterError(f"{type(model).__name__} keeps no points to explain: fit FastSMRMF.")
    names = preparation.feature_names_out_
    with WARNING_FILTERS.changed("ignore"):  # of sparse rows, which have no names
        found = explain(model, point, n=n, feature_names=names)
    if preparation.is_sparse_ or model._fit_metric != "euclidean":
        return found  # of directions no units are known
    places = [names.index(name) for name in found.features["feature"]]
    features = dict(found.features)
    for column in ("value", "exemplar", "next_exemplar"):
        row = np.zeros((1, len(names)))
        row[0, places] = features[column]
        features[column] = preparation.inverse_transform(row)[0, places]
    return replace(found, features=PlainTable(features))


def as_answer(written: WrittenModel, found: Explanation) -> dict[str, Any]:
    """Return an explanation as plain values, rows under the names that the user knows."""
    names, points = written.rows, found.representatives
    nearest = [
        None if place is None else names.names[place] for place in (found.exemplar, found.next_exemplar)
    ]
    return {
        "cluster": found.cluster,
        "confidence": few_digits(found.confidence),
        "next_cluster": found.next_cluster,
        "next_confidence": few_digits(found.next_confidence),
        "outlier_score": few_digits(found.outlier_score),
        "exemplar": nearest[0],
        "next_exemplar": nearest[1],
        "representatives": names.column(points["point"])
        | {name: rounded(column) for name, column in points.items() if name != "point"},
        "features": {name: rounded(column) for name, column in found.features.items()},
    }
