"""Which fit it is: the words by which two fits are told to be the same, or what is different between them.

Two fits are the same if they give the same result to the last bit. What changes none, such as the number of
threads, is left out, and so are limits of the loop, from which it can go on.
"""

from __future__ import annotations

import hashlib
import numbers
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

import smrmf
from smrmf._validation import ParameterError, shown

# Of the estimator and of the estimators that it has.
WITHOUT_EFFECT = {"n_jobs", "verbose"}
LIMITS = {"max_iter", "tol"}
# Bytes that are hashed at a time: rows that do not lie behind each other are copied.
PIECE = 2**24
# Longer values of parameters, such as whole selectors, a sentence leaves out.
LONGEST_SHOWN = 100


def fit_key(model: Any, data: Any, magnitude: float) -> dict[str, Any]:
    """Return what identifies a fit, in words and numbers."""
    parameters = model.get_params(deep=False)
    return {
        "version": smrmf.__version__,
        "method": f"{type(model).__module__}.{type(model).__qualname__}",
        "table": [_of_array(data), float(magnitude)],
        "parameters": {
            name: described(name, _kind_of_generator(value) if name == "random_state" else value)
            for name, value in sorted(parameters.items())
            if name not in WITHOUT_EFFECT | LIMITS
        },
    }


def _kind_of_generator(random_state: Any) -> Any:
    """Return a seed, or the kind of a generator: what it has drawn goes with what the stages have found."""
    if isinstance(random_state, np.random.RandomState):
        return f"RandomState of {random_state.get_state(legacy=False)['bit_generator']}"
    return random_state


def difference(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """Return what the other fit has that this one has not; nothing if they are the same."""
    if theirs["method"] != ours["method"]:
        return f"of {theirs['method'].rpartition('.')[2]}"
    if theirs["table"] != ours["table"]:
        return "of another table"
    if theirs["version"] != ours["version"]:
        return f"by smrmf {theirs['version']}"
    for name, value in ours["parameters"].items():
        if (other := theirs["parameters"].get(name)) != value:
            if len(str(other)) + len(value) > LONGEST_SHOWN:
                return f"with another {name}"
            return f"with {name}={other}, where this one has {name}={value}"
    return "" if theirs == ours else "with other parameters"


def described(name: str, value: Any) -> str:
    """Return words that are equal for equal values of a parameter."""
    if value is None or isinstance(value, bool | str):
        return repr(value)
    if isinstance(value, numbers.Number):
        return repr(int(value) if isinstance(value, numbers.Integral) else float(value))  # type: ignore[arg-type]
    if isinstance(value, np.random.RandomState):  # of a selector, which is cloned with it
        return f"RandomState {joblib.hash(value.get_state())}"
    if sp.issparse(value) or isinstance(value, np.ndarray):
        return _of_array(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(described(name, item) for item in value)}]"
    if hasattr(value, "get_params"):
        return _of_estimator(name, value)
    try:
        return f"{type(value).__name__} {joblib.hash(value)}"
    except Exception as error:
        raise ParameterError(
            f"By {name}={shown(value)} a checkpoint cannot tell whether a later fit is the same: give a "
            "value that can be pickled, or fit without a checkpoint."
        ) from error


def _of_estimator(name: str, value: Any) -> str:
    # Its parameters, and what it has learned: neighbours may come from one that is fitted.
    parts = vars(value) if hasattr(value, "__dict__") else value.get_params(deep=False)
    kept = {part: found for part, found in parts.items() if part not in WITHOUT_EFFECT | {"_skl_callbacks"}}
    inside = ", ".join(f"{part}={described(name, kept[part])}" for part in sorted(kept))
    return f"{type(value).__name__}({inside})"


def _of_array(array: Any) -> str:
    """Return the shape of an array or a sparse matrix, and a hash of type and entries."""
    digest = hashlib.blake2b(digest_size=16)
    parts = [array]
    if sp.issparse(array):
        array = sp.csr_array(array)
        parts = [array.data, array.indices.astype(np.int64), array.indptr.astype(np.int64)]
    for part in parts:
        digest.update(f"{part.dtype.str} {part.shape}".encode())
        rows = part.reshape(1, -1) if part.ndim < 2 else part
        size = max(1, PIECE * len(rows) // max(rows.nbytes, 1))
        for start in range(0, len(rows), size):
            digest.update(np.ascontiguousarray(rows[start : start + size]).data)
    return f"array {'x'.join(map(str, array.shape))} {digest.hexdigest()}"
