"""The clusters of new rows, by a model that was written, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smrmf._validation import ParameterError
from smrmf.tables._blocks import read_blocks
from smrmf.tables._columns import columns_of
from smrmf.tables._new_rows import NewRows
from smrmf.tasks._ask import WrittenModel
from smrmf.tasks._progress import Tell
from smrmf.tasks._results import rounded
from smrmf.tasks._tables import RowNames, TableChoice


def predict_table(
    written: WrittenModel,
    choice: TableChoice,
    hand_on: Callable[[dict[str, Any]], None],
    tell: Tell = lambda said: None,
    n_rows: int | None = None,
) -> list[str]:
    """Hand on the clusters of new rows, and how sure they are, as columns of some rows each; return notes.

    Blocks have some ``n_rows``, by default so many that a file of any length needs little memory.
    """
    model, preparation = written.model, written.preparation
    if not hasattr(model, "predict"):
        raise ParameterError(f"{type(model).__name__} cannot place new rows: fit FastSMRMF.")
    notes: list[str] = []
    # Of a sparse table nothing is filled.
    seen = None if preparation.is_sparse_ else NewRows(preparation.numbers_, preparation.words_)
    for table in read_blocks(choice.path, preparation, choice.id_column, n_rows):
        X = preparation.transform(table)
        if seen is not None:
            seen.add(columns_of(table))
        hand_on(RowNames.of(table, choice.id_column).column(range(table.n_rows)) | _placed(model, X))
        notes += table.notes
        tell(f"{table.first_row + table.n_rows} rows")
    return notes if seen is None else [*notes, *seen.notes()]


def _placed(model: Any, X: Any) -> dict[str, Any]:
    """Return the clusters of some rows as columns."""
    # The share is largest at the cluster of predict, which need not search for the neighbours again.
    shares = model.predict_proba(X)
    return {
        "cluster": shares.argmax(axis=1),
        "confidence": rounded(shares.max(axis=1)),
        "outlier_score": rounded(model.outlier_scores(X)),
    }
