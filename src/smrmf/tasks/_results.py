"""What was found, as tables, a summary, a model and a page, in one folder that is complete or absent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import smrmf
from smrmf._validation import ParameterError
from smrmf.tables._results import MODEL, REPORT, SUMMARY, check_folder, write_results
from smrmf.tasks._fit import FitRequest, FittedTable
from smrmf.tasks._methods import find_method
from smrmf.tasks._plain import few_digits, plain, save_json
from smrmf.tasks._progress import Stages, silent
from smrmf.tasks._tables import PreparedTable, beside


def result_tables(fitted: FittedTable) -> dict[str, dict[str, Any]]:
    """Return labels, exemplars and profiles as columns, each row under the name that the user knows."""
    model, rows = fitted.model, fitted.prepared.rows
    every = range(len(model.labels_))
    labels = rows.column(every) | {"cluster": model.labels_}
    for name, attribute in (("confidence", "confidence_"), ("outlier_score", "outlier_scores_")):
        if hasattr(model, attribute):
            labels[name] = getattr(model, attribute)
    if fitted.prepared.table.labels is not None:
        labels["class"] = fitted.prepared.table.labels
    tables = {"labels": labels, "profiles": fitted.profiles}
    if hasattr(model, "exemplar_indices_"):
        tables["exemplars"] = exemplar_table(fitted)
    return {name: {title: rounded(column) for title, column in t.items()} for name, t in tables.items()}


def exemplar_table(fitted: FittedTable) -> dict[str, Any]:
    """Return the exemplars, cluster by cluster and best first, with their rows as they stand in the file."""
    model, prepared = fitted.model, fitted.prepared
    clusters = model.labels_[model.exemplar_indices_]
    order = np.argsort(clusters, kind="stable")
    chosen, clusters = model.exemplar_indices_[order], clusters[order]
    rank = np.arange(len(clusters)) - np.searchsorted(clusters, clusters) + 1
    found = {"cluster": clusters, "rank": rank} | prepared.rows.column(chosen)
    if hasattr(model, "confidence_"):
        found["confidence"] = model.confidence_[chosen]
    return found | rows_of(prepared, chosen, set(found))


def rows_of(prepared: PreparedTable, chosen: np.ndarray, taken: set[str]) -> dict[str, Any]:
    """Return rows as they stand in the file, under other names where these are ``taken``."""
    frame, names = prepared.table.frame, prepared.table.names
    if hasattr(frame, "columns"):
        part = frame[chosen.tolist()]
        columns = {
            name: as_it_stands(part[name].to_numpy()) if dtype.is_float() else part[name].to_list()
            for name, dtype in part.schema.items()
        }
    elif isinstance(frame, np.ndarray):
        columns = {name: as_it_stands(column) for name, column in zip(names, frame[chosen].T, strict=True)}
    else:
        return {}  # of texts: most of thousands of words are zero in every row
    return {beside(name, taken): column for name, column in columns.items()}


def as_it_stands(column: np.ndarray) -> list[Any]:
    """Return values of a table with the digits that they have in their precision."""
    if column.dtype.kind != "f":
        return list(column.tolist())
    return [None if np.isnan(value) else float(str(value)) for value in column]


def rounded(column: Any) -> Any:
    """Return a column as tables of results have it: real numbers with few digits."""
    if isinstance(column, list):
        return column
    values = np.asarray(column)
    return [few_digits(value) for value in values.tolist()] if values.dtype.kind == "f" else values.tolist()


def summary(fitted: FittedTable, request: FitRequest) -> dict[str, Any]:
    """Return what was found and how, for scripts."""
    model, prepared = fitted.model, fitted.prepared
    found: dict[str, Any] = {
        "smrmf": smrmf.__version__,
        "table": request.choice.path,
        "n_rows": prepared.table.n_rows,
        "features": prepared.feature_names if len(prepared.feature_names) <= 1000 else None,
        "method": type(model).__name__,
        "parameters": model.get_params(deep=False),
        "n_clusters": int(model.labels_.max()) + 1,
        "sizes": np.bincount(model.labels_),
        "exemplars": exemplar_names(fitted),
        "agreement": few_digits(model.stability_) if hasattr(model, "stability_") else None,
        "mean_confidence": few_digits(model.confidence_.mean()) if hasattr(model, "confidence_") else None,
        "scores": fitted.scores and {name: few_digits(score) for name, score in fitted.scores.items()},
        "suggestion": None if fitted.suggestion is None else fitted.suggestion.reason,
        "notes": fitted.notes,
    }
    return plain(found)


def exemplar_names(fitted: FittedTable) -> list[list[Any]]:
    """Return for every cluster what its exemplars are called, best first."""
    model, names = fitted.model, fitted.prepared.rows.names
    indices = getattr(model, "exemplar_indices_", np.empty(0, int))
    clusters = range(int(model.labels_.max()) + 1)
    return [[names[i] for i in indices if model.labels_[i] == cluster] for cluster in clusters]


def check_output(directory: Path, request: FitRequest, force: bool, report: bool = False) -> None:
    """Refuse a folder, or a page that cannot be made, before anything is computed for it."""
    if report and not hasattr(method := find_method(request.method), "predict_proba"):
        raise ParameterError(
            f"There is no report about {type(method).__name__}, which factorises nothing: leave --report "
            "out, or take FastSMRMF."
        )
    folder = directory.resolve()
    check_folder(folder, force)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / SUMMARY).is_file():
        raise FileExistsError(f"{directory} has no {SUMMARY}, so no fit wrote it: give another folder.")
    table = Path(request.choice.path).resolve()
    if folder in table.parents and folder.exists():
        raise ParameterError(f"{directory} has the table {table.name} in it: give another folder.")


def write_fit(
    fitted: FittedTable,
    request: FitRequest,
    directory: Path,
    *,
    force: bool = False,
    report: bool = False,
    command: str | None = None,
    stages: Stages = silent,
) -> list[Path]:
    """Write tables, model, summary and perhaps a page about them into a folder, all or nothing."""
    with stages("Describing the clusters"):
        tables = result_tables(fitted)
    files = {
        MODEL: lambda path: smrmf.save(fitted.pipeline, path),
        SUMMARY: lambda path: save_json(path, summary(fitted, request) | {"command": command}),
    }
    if report:
        files[REPORT] = lambda path: write_page(fitted, request, path, command)
    with stages("Writing the report" if report else "Writing"):
        return write_results(directory, tables, force, files)


def write_page(fitted: FittedTable, request: FitRequest, path: Path, command: str | None) -> Path:
    """Write the page about a fit."""
    from smrmf.report import write_report

    prepared, table = fitted.prepared, fitted.prepared.to_read()
    return write_report(
        fitted.pipeline,
        path,
        table,
        title=Path(request.choice.path).name,
        ids=[str(name) for name in prepared.rows.names],
        feature_names=None if hasattr(table, "columns") else prepared.feature_names,
        notes=fitted.notes,
        command=command,
        suggestion=fitted.suggestion,
        classes=prepared.table.labels,
    )
