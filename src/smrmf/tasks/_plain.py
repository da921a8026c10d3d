"""Results as plain values, for files and programs that know nothing of Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from smrmf._files import write_atomically

# Digits of the numbers in tables of results: more would be rounding.
DIGITS = 6


def plain(value: Any) -> Any:
    """Return a value of which JSON can be made: lists, words, finite numbers and None."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None  # JSON knows no NaN
    return value if isinstance(value, str | int | bool | None) else str(value)


def few_digits(value: float) -> float | None:
    """Return a number with few digits, but all of those before its point; None for NaN."""
    if np.isnan(value):
        return None
    return float(f"{value:.{DIGITS}g}" if not 10**DIGITS <= abs(value) < np.inf else f"{value:.0f}")


def as_json(value: Any) -> str:
    """Return a value as JSON, readable by people, too."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False)


def as_records(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a table as a list of its rows."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def columns_of_frame(frame: Any) -> dict[str, Any]:
    """Return the columns of a table of results, whichever library it is of."""
    if isinstance(frame, Mapping):
        return dict(frame)
    return {name: frame[name].to_numpy() for name in frame.columns}


def save_json(path: Path, value: Any) -> None:
    """Write a value to a new file."""
    write_atomically(path, (as_json(value) + "\n").encode("utf-8", "replace"), overwrite=False)
