"""Values that become arrays and plain words, and come back: the same to the last bit, and nothing else."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np
import pytest
import scipy.sparse as sp

from smrmf._records import (
    NoRecordError,
    put_together,
    read_about,
    read_tree,
    record_types,
    take_apart,
    write_trees,
)


class Colour(enum.Enum):
    RED = "red"


class Pair(NamedTuple):
    one: Any
    two: Any = None


@dataclass(frozen=True)
class Frozen:
    value: Any
    more: Any = 1

    def __post_init__(self):
        raise AssertionError("reading runs nothing")


def frozen(value, more=1):
    made = object.__new__(Frozen)
    object.__setattr__(made, "value", value)
    object.__setattr__(made, "more", more)
    return made


class Owner:
    """A class whose module has the records above."""


TYPES = record_types([Owner])


def again(value, tmp_path, given=None):
    arrays = []
    tree = take_apart(value, TYPES, arrays, given)
    write_trees(tmp_path / "file", {"about": 1}, {"value": (tree, arrays)})
    assert read_about(tmp_path / "file") == {"about": 1, "trees": ["value"]}
    return put_together(
        *read_tree(tmp_path / "file", "value")[:1], TYPES, read_tree(tmp_path / "file", "value")[1], given
    )


def same(one, two):
    assert type(one) is type(two)
    if isinstance(one, np.ndarray | np.generic):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)
    elif sp.issparse(one):
        for name in ("data", "indices", "indptr"):
            same(getattr(one, name), getattr(two, name))
        assert one.shape == two.shape
    elif isinstance(one, list | tuple):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            same(a, b)
    elif isinstance(one, dict):
        same(list(one.items()), list(two.items()))
    elif isinstance(one, Frozen):
        same(vars(one), vars(two))
    else:
        assert one == two or one != one


VALUES = [
    *(None, True, 3, 2**200, 0.1, -0.0, 1e-320, float("inf"), float("nan"), "", "a\n\ud7ff"),
    *(np.float32(0.1), np.float64(0.1), np.bool_(True), np.int16(-3), np.array(1.5), np.zeros((0, 3))),
    *(np.arange(6, dtype=np.float32).reshape(2, 3), np.asfortranarray(np.eye(3)), np.array(["ab", "c"])),
    *([], [1, [2.0]], (), (1, (None,)), {}, {"a": 1, 2: [3], (1, "x"): None}),
    *(Colour.RED, Pair(1, Pair(np.ones(2))), frozen(Pair("x", 2), frozen(None))),
    sp.csr_array(np.eye(3)),
    sp.csc_matrix(np.eye(4, dtype=np.float32)),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}")
def test_values_come_back_as_they_were(value, tmp_path):
    same(value, again(value, tmp_path))


def test_the_order_in_memory_and_the_width_of_indices_stay(tmp_path):
    wide = sp.csr_array(np.eye(3))
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    columns, found = again((np.asfortranarray(np.ones((3, 4))), wide), tmp_path)
    assert columns.flags.f_contiguous
    assert columns.flags.writeable
    assert found.indices.dtype == found.indptr.dtype == np.int64


def test_an_array_that_is_there_twice_is_written_once_and_a_given_one_never(tmp_path):
    one, given = np.ones(3), np.zeros(1000)
    first, second, third = again([one, one, given], tmp_path, {"given": given})
    assert first is second
    assert third is given
    assert (tmp_path / "file").stat().st_size < 2000


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, np.array([None]), 1j, sp.coo_array(np.eye(2)), Pair, b"x"]
)
def test_what_is_no_record_is_refused(value):
    with pytest.raises(NoRecordError):
        take_apart([value], TYPES, [])


def test_records_of_other_modules_are_refused_both_ways():
    from fractions import Fraction

    class Other(NamedTuple):
        x: int

    for value in (Fraction(1, 2), Other(1)):
        with pytest.raises(NoRecordError):
            take_apart(value, TYPES, [])
    for tree in (
        {"record": ["subprocess.Popen", {"args": "true"}]},
        {"record": ["builtins.object", {}]},
        {"enum": [f"{__name__}.Pair", "one"]},
        {"record": [f"{__name__}.Pair", {"one": 1}]},
        {"record": [f"{__name__}.Pair", {"one": 1, "two": 2, "three": 3}]},
        {"sparse": ["array", [2, 2], {"array": 0}, {"array": 0}, {"array": 0}]},
        {"sparse": ["csr_array", [2, 2], {"array": 0}, {"array": 1}, {"array": 2}]},
        {"array": 7},
        {"given": "nothing"},
        {"eval": "1"},
        {},
    ):
        arrays = [np.ones(1), np.array([5]), np.array([0, 1, 1])]
        with pytest.raises((ValueError, LookupError, TypeError, AttributeError)):
            put_together(tree, TYPES, arrays)


def test_a_file_with_a_pickle_in_it_is_not_read(tmp_path):
    path = tmp_path / "file"
    write_trees(path, {}, {"value": ({"array": 0}, [np.ones(3)])})
    with ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with ZipFile(path, "w") as archive:
        for name, content in parts.items():
            if not name.endswith(".npy"):
                archive.writestr(name, content)
        with archive.open("value/0.npy", "w") as member:
            np.lib.format.write_array(member, np.array([print]), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        read_tree(path, "value")


def test_a_changed_byte_is_found(tmp_path):
    path = tmp_path / "file"
    write_trees(path, {}, {"value": ({"array": 0}, [np.arange(1000.0)])})
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"value/0\.npy is damaged"):
        read_about(path)


def test_trees_are_json(tmp_path):
    arrays = []
    tree = take_apart(Pair(np.ones(2), Colour.RED), TYPES, arrays)
    assert json.loads(json.dumps(tree)) == {
        "record": [f"{__name__}.Pair", {"one": {"array": 0}, "two": {"enum": [f"{__name__}.Colour", "RED"]}}]
    }
