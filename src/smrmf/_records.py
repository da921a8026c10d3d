"""Values as arrays and plain words, and back: in files that are complete or absent, and that run nothing.

A value is a tree. Its leaves are numbers, words and arrays, its branches lists, tuples, dictionaries, sparse
matrices and records: dataclasses, named tuples and enums. A file names the class of a record, and only those
that the reader knows are made, without calling anything of theirs. An array is written as it lies in memory,
without a copy.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import scipy.sparse as sp

from smrmf._files import written_atomically

PLAIN = (type(None), bool, int, float, str)
# By compressed rows or columns; in others no state is.
SPARSE = {kind.__name__: kind for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix)}
Types = Mapping[str, type]
Arrays = Mapping[str, np.ndarray]


class NoRecordError(TypeError):
    """A value has a part that is neither plain, nor an array, nor a record that is known."""


def record_types(owners: Iterable[type]) -> dict[str, type]:
    """Return the records among the names that the modules of classes, and of their bases, have."""
    modules = {base.__module__ for owner in owners for base in owner.__mro__}
    found = [value for module in modules for value in vars(sys.modules[module]).values()]
    return {_name(kind): kind for kind in found if isinstance(kind, type) and _is_record(kind)}


def _is_record(kind: type) -> bool:
    named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return named or dataclasses.is_dataclass(kind) or issubclass(kind, enum.Enum)


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _fields(kind: Any) -> tuple[str, ...]:
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(kind._fields)


# From values to trees


def take_apart(value: Any, types: Types, arrays: list[np.ndarray], given: Arrays | None = None) -> Any:
    """Return the tree of a value for JSON, and append its arrays; each is there once.

    Those that are ``given`` will be there when the value is put together, and are named only.
    """
    known = {id(array): name for name, array in (given or {}).items()}
    places: dict[int, int] = {}

    def part(value: Any) -> Any:
        kind = type(value)
        if kind in PLAIN:
            return value
        if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            if id(value) in known:
                return {"given": known[id(value)]}
            if id(value) not in places:
                places[id(value)] = len(arrays)
                arrays.append(value)  # type: ignore[arg-type]
            return {"scalar" if isinstance(value, np.generic) else "array": places[id(value)]}
        if kind in (list, tuple):
            return {kind.__name__: [part(item) for item in value]}
        if kind is dict:
            return {"dict": [[part(key), part(item)] for key, item in value.items()]}
        if kind in SPARSE.values():
            parts = [part(array) for array in (value.data, value.indices, value.indptr)]
            return {"sparse": [kind.__name__, list(map(int, value.shape)), *parts]}
        if types.get(_name(kind)) is not kind:
            raise NoRecordError(f"{_name(kind)}")
        if isinstance(value, enum.Enum):
            return {"enum": [_name(kind), value.name]}
        return {"record": [_name(kind), {name: part(getattr(value, name)) for name in _fields(kind)}]}

    return part(value)


def put_together(tree: Any, types: Types, arrays: list[np.ndarray], given: Arrays | None = None) -> Any:
    """Return the value of a tree; what is none, raises one exception or another."""

    def whole(tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        ((kind, content),) = tree.items()
        if kind == "given":
            return (given or {})[content]
        if kind in ("array", "scalar"):
            return arrays[content] if kind == "array" else arrays[content][()]
        if kind in ("list", "tuple"):
            return list(map(whole, content)) if kind == "list" else tuple(map(whole, content))
        if kind == "dict":
            return {whole(key): whole(item) for key, item in content}
        if kind == "sparse":
            name, shape, *parts = content
            return _sparse(SPARSE[name], shape, *map(whole, parts))
        name, parts = content
        if kind == "enum":
            return types[name].__members__[parts]  # type: ignore[attr-defined]
        return _record(types[name], {field: whole(part) for field, part in parts.items()})

    return whole(tree)


def _sparse(kind: Any, shape: list[int], data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Any:
    # Not by the constructor, which may choose another width for the indices.
    matrix = kind(tuple(shape), dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    matrix.check_format(full_check=True)
    return matrix


def _record(kind: Any, parts: dict[str, Any]) -> Any:
    if tuple(parts) != _fields(kind):
        raise ValueError(f"{_name(kind)} has other fields")
    if issubclass(kind, tuple):
        return tuple.__new__(kind, parts.values())
    record = object.__new__(kind)
    for name, part in parts.items():
        object.__setattr__(record, name, part)  # a frozen one, too
    return record


# Files of several trees


def write_trees(path: Path, about: Any, trees: Mapping[str, tuple[Any, list[np.ndarray]]]) -> None:
    """Write trees and their arrays to a file, in one step, and what the file is about."""
    with written_atomically(path, overwrite=True) as file, ZipFile(file, "w", ZIP_STORED) as archive:
        archive.writestr("about.json", json.dumps(about | {"trees": list(trees)}))
        for name, (tree, arrays) in trees.items():
            archive.writestr(f"{name}.json", json.dumps({"tree": tree, "n_arrays": len(arrays)}))
            for place, array in enumerate(arrays):
                with archive.open(f"{name}/{place}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def read_about(path: Path) -> dict[str, Any]:
    """Return what a file is about, once sure that all of it is as it was written."""
    with ZipFile(path) as archive:
        if (damaged := archive.testzip()) is not None:
            raise ValueError(f"{damaged} is damaged")
        about: dict[str, Any] = json.loads(archive.read("about.json"))
        return about


def read_tree(path: Path, name: str) -> tuple[Any, list[np.ndarray]]:
    """Return a tree of a file, and its arrays."""
    with ZipFile(path) as archive:
        content = json.loads(archive.read(f"{name}.json"))
        arrays = []
        for place in range(content["n_arrays"]):
            with archive.open(f"{name}/{place}.npy") as member:
                arrays.append(np.lib.format.read_array(member, allow_pickle=False))
        return content["tree"], arrays
