"""How a model was fitted: its parameters that are not the usual ones, and the code that fits it again."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import smrmf
from smrmf._validation import shown
from smrmf.report._subject import Subject

PLAIN = (bool, int, float, str, type(None), np.integer, np.floating, np.bool_)
# More than this on a line, and each parameter has its own.
LINE = 88


def changed_parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters that are not as they are by default, and those without a default."""
    signature = inspect.signature(type(estimator).__init__).parameters
    given = estimator.get_params(deep=False)
    return {name: value for name, value in given.items() if not _is_default(value, signature[name].default)}


def _is_default(value: Any, default: Any) -> bool:
    if value is default:
        return True
    return isinstance(value, PLAIN) and type(value) is type(default) and bool(value == default)


def written_parameters(estimator: Any) -> list[tuple[str, str]]:
    """Return the parameters that are not the usual ones as people read them."""
    return [(name, _code(value, [], [])[0]) for name, value in changed_parameters(estimator).items()]


def code_of(subject: Subject, n_columns: int) -> str:
    """Return Python code that fits the model again."""
    imports: list[str] = []
    remarks: list[str] = []
    if subject.pipeline is None:
        made = _code(subject.model, imports, remarks)[0]
        fitted = "model"
    else:
        imports.append("from sklearn.pipeline import make_pipeline")
        steps = [_code(step, imports, remarks)[0] for _, step in subject.pipeline.steps]
        made, fitted = _call("make_pipeline", steps), "model[-1]"
    if getattr(subject.model, "random_state", 0) is None:
        remarks.append("random_state is not set: another fit may differ a little")
    lines = [*sorted(set(imports)), "", *(f"# {remark}" for remark in remarks)]
    lines += [
        f"model = {made}",
        f"model.fit(X)  # X: your {subject.n_samples:,} rows and {n_columns:,} columns",
    ]
    return "\n".join([*lines, f"labels = {fitted}.labels_"])


def _code(value: Any, imports: list[str], remarks: list[str]) -> tuple[str, bool]:
    """Return a value as code, and whether it is all of it; note imports, and what is left out."""
    if isinstance(value, BaseEstimator):
        name = type(value).__name__
        imports.append(f"from {_home(type(value))} import {name}")
        parts = []
        for parameter, given in changed_parameters(value).items():
            text, whole = _code(given, imports, remarks)
            if whole:
                parts.append(f"{parameter}={text}")
            else:
                remarks.append(f"{name} also had {parameter}={text}, which cannot be written here")
        return _call(name, parts), True
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, PLAIN):
        return repr(value), True
    if isinstance(value, list | tuple) and all(isinstance(part, PLAIN) for part in value):
        return repr(value), True
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}", False
    return (
        "a RandomState" if isinstance(value, np.random.RandomState) else shown(type(value).__name__)
    ), False


def _call(name: str, parts: list[str]) -> str:
    """Return a call on one line, or on several if it is long."""
    line = f"{name}({', '.join(parts)})"
    if len(line) <= LINE and "\n" not in line:
        return line
    inner = "".join("    " + part.replace("\n", "\n    ") + ",\n" for part in parts)
    return f"{name}(\n{inner})"


def _home(kind: type) -> str:
    """Return the public module of a class."""
    if getattr(smrmf, kind.__name__, None) is kind:
        return "smrmf"
    parts = kind.__module__.split(".")
    private = next((place for place, part in enumerate(parts) if part.startswith("_")), len(parts))
    return ".".join(parts[: max(private, 1)])
