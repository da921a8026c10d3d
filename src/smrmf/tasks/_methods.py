"""Estimators by their names, and their parameters by words."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Sequence
from typing import Any

from sklearn.base import BaseEstimator, is_clusterer

import smrmf
from smrmf._validation import ParameterError


def method_names(clusters: bool = True) -> list[str]:
    """Return the names of all estimators; of those that find clusters, or that choose points."""
    public = {name: getattr(smrmf, name) for name in dir(smrmf)}
    wanted = is_clusterer if clusters else chooses
    return sorted(
        name
        for name, each in public.items()
        if inspect.isclass(each) and issubclass(each, BaseEstimator) and wanted(each())
    )


def chooses(estimator: Any) -> bool:
    """Tell whether an estimator can be asked for so many points."""
    return "exemplars" in estimator.get_params(deep=False)


def find_method(name: str, clusters: bool = True) -> Any:
    """Return an estimator by its name, however that is written; refuse one that does something else."""
    known = {_plain(each): each for each in method_names(clusters)}
    if _plain(name) in known:
        return getattr(smrmf, known[_plain(name)])()
    if _plain(name) in {_plain(each) for each in method_names(not clusters)}:
        raise ParameterError(
            f"{name} chooses points, but finds no clusters: take FastSMRMF, or smrmf select."
            if clusters
            else f"{name} cannot be asked for a number of points: take one of {', '.join(known.values())}."
        )
    near = difflib.get_close_matches(_plain(name), known, n=1)
    instead = f"did you mean {known[near[0]]}?" if near else f"there are {', '.join(known.values())}."
    raise ParameterError(f"There is no method {name!r}: {instead}")


def _plain(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "")


def set_known(estimator: Any, **values: Any) -> Any:
    """Set those parameters that an estimator has, and that are given."""
    known = estimator.get_params(deep=False)
    return estimator.set_params(
        **{name: value for name, value in values.items() if value is not None and name in known}
    )


def set_written(estimator: Any, settings: Sequence[str]) -> Any:
    """Set parameters that are written as ``name=value``."""
    known = list(estimator.get_params(deep=False))
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ParameterError(f"{setting!r} sets nothing: write it as name=value, such as n_neighbors=20.")
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            instead = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}."
            raise ParameterError(f"{type(estimator).__name__} has no parameter {name!r}: {instead}")
        estimator.set_params(**{name: read_value(value)})
    return estimator


def refuse_twice(settings: Sequence[str], **options: str | None) -> None:
    """Refuse parameters that are set, and also given by an option, each by its name with the option."""
    for name, option in options.items():
        if option is not None and is_set(settings, name):
            raise ParameterError(f"{option} and --set {name} say the same: give one of both.")


def is_set(settings: Sequence[str], name: str) -> bool:
    """Tell whether a parameter is set."""
    return any(setting.startswith(f"{name}=") for setting in settings)


def read_value(text: str) -> Any:
    """Return a number, None or a truth where a text is one, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
