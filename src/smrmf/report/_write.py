"""Write one page about a fitted model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smrmf._files import check_place, write_atomically
from smrmf._validation import ParameterError, shown
from smrmf.plot._layout import layout
from smrmf.report._exemplars import shown_exemplars
from smrmf.report._map import map_data, places_of, still_map
from smrmf.report._page import jinja, render
from smrmf.report._sections import sections
from smrmf.report._subject import subject_of


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    X: Any = None,
    *,
    title: str | None = None,
    ids: Any = None,
    feature_names: Any = None,
    image_shape: str | Sequence[int] | None = "auto",
    notes: str | Iterable[str] = (),
    command: str | None = None,
    suggestion: Any = None,
    classes: Any = None,
    overwrite: bool = False,
) -> Path:
    """Write one HTML page about a fitted model, to show to somebody who has not fitted it.

    The page says what was found and how firm it is, has a map to explore, what sets every cluster apart,
    which rows are in doubt, and how to repeat the fit. It is one file that loads nothing and works without a
    network, on a phone, in print and, but for the exploring, without scripts. The same model gives the same
    page.

    The page holds the ids of all rows, and values of some: who has the page has these.

    Parameters
    ----------
    model : fitted factorisation
        A model with ``labels_`` and the points of its fit, such as :class:`~smrmf.FastSMRMF`, or a
        pipeline that ends with one.
    path : str or path
        The file; its folder must exist. It is complete or absent, whatever happens.
    X : array-like, frame or CSR matrix, default=None
        A row for every point of the fit, in the units that people read; columns of a frame that are no
        numbers are shown as they are. None takes the points as they were fitted.
    title : str or None, default=None
        The title of the page.
    ids : array-like of n_samples words or None, default=None
        What rows are called; None is by their numbers.
    feature_names : array-like of str or None, default=None
        Names of the columns, if neither X nor the model has any.
    image_shape : "auto", None, (height, width) or (height, width, 3), default="auto"
        How rows are drawn as images. "auto" recognises squares of pixels that have no other names, None draws
        no images.
    notes : iterable of str, default=()
        Sentences on the data and their preparation, to be shown.
    command : str or None, default=None
        The shell command that repeats the fit, to be shown beside code that does.
    suggestion : Suggestion or None, default=None
        The evidence for the number of clusters, of :func:`smrmf.inspection.suggest_n_clusters`.
    classes : array-like of n_samples or None, default=None
        Known classes, only to be compared with the clusters; None or NaN where one is not known.
    overwrite : bool, default=False
        Whether a file of this name may be replaced.

    Returns
    -------
    path : Path
        The page.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from smrmf import FastSMRMF
    >>> from smrmf.report import write_report
    >>> iris = load_iris()
    >>> model = FastSMRMF(n_clusters=3, random_state=0).fit(iris.data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(model, Path(folder) / "iris.html", feature_names=iris.feature_names)
    ...     page = path.read_text(encoding="utf-8")
    >>> "The 150 rows fall into 3 clusters" in page
    True
    """
    path = Path(path)
    _check_text("title", title)
    _check_text("command", command)
    notes = _checked_notes(notes)
    _check_suggestion(suggestion)
    check_place(path, overwrite)
    jinja()  # before anything that takes long
    subject = subject_of(model, X, ids, feature_names, image_shape, classes)
    exemplars = shown_exemplars(subject)
    places = places_of(subject, layout(subject.model))
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # a sum beyond the largest number is written as missing
        context, rows = sections(subject, exemplars, suggestion)
        context |= {
            "title": title or f"{len(subject.clusters)} clusters of {subject.n_samples:,} rows",
            "notes": notes,
            "command": command,
            "still": still_map(subject, places, exemplars),
        }
        data = {"map": map_data(subject, places, exemplars), "rows": rows, "words": context["words"]}
        page = render(context, data)
    write_atomically(path, page.encode("utf-8", "replace"), overwrite)
    return path


def _check_text(name: str, value: Any) -> None:
    if value is not None and not isinstance(value, str):
        raise ParameterError(f"{name}={shown(value)} is not valid: it must be a str or None.")


def _checked_notes(notes: Any) -> list[str]:
    found = [notes] if isinstance(notes, str) else list(notes) if isinstance(notes, Iterable) else [notes]
    for note in found:
        if not isinstance(note, str):
            raise ParameterError(f"notes has {shown(note)}, but must have sentences: give a list of str.")
    return found


def _check_suggestion(suggestion: Any) -> None:
    wanted = ("table", "n_clusters", "reason")
    if suggestion is not None and not all(hasattr(suggestion, name) for name in wanted):
        raise ParameterError(
            f"suggestion={shown(suggestion)} is not valid: give what smrmf.inspection.suggest_n_clusters "
            "returns, or None."
        )
