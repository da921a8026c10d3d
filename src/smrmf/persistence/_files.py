"""Write a model to a file, in the format of skops, and read it."""

from __future__ import annotations

import copy
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import smrmf
from smrmf._arrays import check_memory
from smrmf._files import check_place, write_atomically
from smrmf.persistence._checks import (
    ABOUT,
    LOADABLE,
    SCHEMA,
    ModelFileError,
    check_archive,
    check_caches,
    check_contents,
)


def save(model: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a fitted model to a file, of which :func:`load` makes the same model, here or elsewhere.

    On the same machine it predicts as before to the last bit. Callbacks are not saved. The file holds the
    points of the fit, which prediction needs: who has the file has the data.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library, or a scikit-learn ``Pipeline`` of one and the usual scalers.
    path : str or path
        The file; its folder must exist. It is complete or absent, whatever happens.
    overwrite : bool, default=False
        Whether a file of this name may be replaced.

    Returns
    -------
    path : Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import smrmf
    >>> from sklearn.datasets import load_iris
    >>> X, _ = load_iris(return_X_y=True)
    >>> model = smrmf.FastSMRMF(n_clusters=3, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = smrmf.save(model, Path(folder) / "iris.smrmf")
    ...     same = smrmf.load(path)
    >>> bool((same.predict(X + 0.1) == model.predict(X + 0.1)).all())
    True
    """
    path = Path(path)
    _check_fitted(model)
    check_place(path, overwrite)
    write_atomically(path, _packed(model), overwrite)
    return path


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that :func:`save` wrote; nothing in the file is run, even if it was made to do harm.

    Only types on a fixed list are made, so that a file of unknown origin may be tried. What such a model
    predicts is another question.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    model : estimator
        The fitted model.

    Examples
    --------
    >>> import smrmf
    >>> smrmf.load("no_such.smrmf")
    Traceback (most recent call last):
    FileNotFoundError: There is no file no_such.smrmf: give the path of one that smrmf.save wrote.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}: give the path of one that smrmf.save wrote.")
    skops_io = _skops_io()
    with path.open("rb") as file:
        with _told_of(path):
            needed = check_archive(file)
        check_memory("The model", needed, "its arrays", "load it on a larger machine")
        with _told_of(path):
            model = skops_io.load(file, trusted=[name for names in LOADABLE.values() for name in names])
            check_contents(model)
    return model


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """Tell of a file whatever is found wrong with it, in one sentence."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}.") from error
    # Whatever skops, zipfile, json and NumPy may stumble over in a file that somebody has changed.
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelFileError(
            f"{path} is damaged ({reason:.200}): copy it again, or save the model again."
        ) from error


def _skops_io() -> Any:
    # Imported here: it takes longer than most predictions.
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("Model files need skops: pip install 'smrmf[app]'.") from error
    return skops.io


def _check_fitted(model: Any) -> None:
    name = type(model).__name__
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(f"{name} is no estimator: give a fitted model of smrmf, or a pipeline with one.")
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        said = f"This {name} is not fitted, so there is nothing to save: fit it first."
        raise NotFittedError(said) from error


def _packed(model: Any) -> bytes:
    """Return the contents of a file, once sure that it can be loaded."""
    skops_io, buffer = _skops_io(), io.BytesIO()
    try:
        check_caches(model)
        # Not compressed: real numbers shrink by a twentieth only, and reading takes three times as long.
        skops_io.dump(_without_callbacks(model), buffer, compression=ZIP_STORED)
        with ZipFile(buffer, "a") as archive:
            archive.writestr(ABOUT, json.dumps({"schema": SCHEMA, "smrmf": smrmf.__version__}))
        check_archive(buffer)
    except Exception as error:  # of skops, or of a parameter that cannot be taken apart
        reason = " ".join(str(error).split())
        raise ModelFileError(
            f"This {type(model).__name__} cannot be saved: {reason}; change the parameter that has it, or "
            "keep the data and fit again."
        ) from error
    return buffer.getvalue()


def _without_callbacks(value: Any) -> Any:
    """Return a model without its callbacks, which may be any code; arrays are not copied."""
    if isinstance(value, BaseEstimator):
        bare = copy.copy(value)
        kept = {name: part for name, part in vars(value).items() if name != "_skl_callbacks"}
        bare.__dict__ = {name: _without_callbacks(part) for name, part in kept.items()}
        return bare
    return type(value)(map(_without_callbacks, value)) if type(value) in (list, tuple) else value
