"""What a page is about: a fitted model, its rows as people read them, and what they are called."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from smrmf._validation import ParameterError, shown
from smrmf.inspection._explanation import unit_rows
from smrmf.inspection._table import last_step
from smrmf.plot._model import check_model
from smrmf.report._images import check_shape, recognised_shape
from smrmf.report._table import ReadableTable, is_missing, table_of, table_of_fit

# So many rows tell whether the table is in the unit of the fit.
COMPARED_ROWS = 50


@dataclass(frozen=True)
class Subject:
    """A fitted model and all that is known of its rows."""

    model: Any
    pipeline: Any
    table: ReadableTable
    ids: list[str] | None
    classes: np.ndarray | None
    image_shape: tuple[int, ...] | None

    @property
    def labels(self) -> np.ndarray:
        """The cluster of every row."""
        return np.asarray(self.model.labels_)

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        return len(self.labels)

    @cached_property
    def sizes(self) -> np.ndarray:
        """How many rows every cluster has."""
        return np.bincount(self.labels)

    @cached_property
    def clusters(self) -> list[int]:
        """The clusters that have a row."""
        return [int(cluster) for cluster in np.flatnonzero(self.sizes)]

    @cached_property
    def confidence(self) -> np.ndarray | None:
        """How sure every label is."""
        found = getattr(self.model, "confidence_", None)
        return None if found is None else np.clip(np.asarray(found, dtype=float), 0, 1)

    @cached_property
    def in_unit_of_fit(self) -> bool:
        """Whether the table has the numbers that were fitted, so that components are in its unit."""
        values, fitted = self.table.values, unit_rows(self.model, slice(0, COMPARED_ROWS))
        if values.shape[1] != fitted.shape[1]:
            return False
        mine = values[:COMPARED_ROWS]
        mine, fitted = (part.toarray() if sp.issparse(part) else part for part in (mine, fitted))
        return bool(np.allclose(mine, fitted))

    def name(self, row: int) -> str:
        """Return what a row is called."""
        return str(row) if self.ids is None else self.ids[row]


def subject_of(model: Any, X: Any, ids: Any, feature_names: Any, image_shape: Any, classes: Any) -> Subject:
    """Return what the page is about; refuse in one sentence what no page can be made of."""
    pipeline = model if hasattr(model, "steps") else None
    model = last_step(model)
    check_model(model, "labels_")
    if not hasattr(model, "_fit_data"):
        raise ParameterError(
            f"{type(model).__name__} keeps no points to show: give a fitted factorisation, such as "
            "FastSMRMF, or a pipeline that ends with one."
        )
    n = len(model.labels_)
    before = pipeline[:-1] if pipeline is not None and len(pipeline) > 1 else None
    table = table_of_fit(model, before, feature_names) if X is None else table_of(X, n, model, feature_names)
    return Subject(
        model=model,
        pipeline=pipeline,
        table=table,
        ids=None if ids is None else one_word_each("ids", ids, n),
        classes=None if classes is None else _classes(classes, n),
        image_shape=_image_shape(image_shape, table),
    )


def one_word_each(name: str, given: Any, n_samples: int) -> list[str]:
    """Return a word for every row; refuse another number of them."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ParameterError(
            f"{name}={shown(given)} is not valid: give one word for each of the {n_samples} rows."
        )
    found = [str(word) for word in given]
    if len(found) != n_samples:
        raise ParameterError(
            f"{name} has {len(found)} entries, but the model was fitted to {n_samples} rows: give one "
            "for each."
        )
    return found


def _classes(given: Any, n_samples: int) -> np.ndarray:
    """Return the known class of every row as a word, empty where it is not known."""
    if isinstance(given, Iterable) and not isinstance(given, str):
        given = ["" if is_missing(value) else value for value in given]
    return np.array(one_word_each("classes", given, n_samples))


def _image_shape(given: Any, table: ReadableTable) -> tuple[int, ...] | None:
    if given is None:
        return None
    if isinstance(given, str):
        if given != "auto":
            raise ParameterError(
                f"image_shape={given!r} is not valid: give 'auto', None, or (height, width)."
            )
        return recognised_shape(table)
    return check_shape(given, table.values.shape[1])
