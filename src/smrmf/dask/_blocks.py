"""Rows in parts: what has a row for every point, cut into parts that lie on the workers of a cluster.

A part is an array, a sparse matrix, a tuple of arrays: whatever one task makes of the rows of its block.
Nothing is done until it is asked for; what is asked for together is done in one round.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from uuid import uuid4

import dask
import dask.threaded
import numpy as np
from dask._task_spec import DataNode, GraphNode, List, Task, TaskRef
from dask.base import DaskMethodsMixin, get_scheduler, unpack_collections
from dask.core import flatten
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph

from smrmf._parallel import WARNING_FILTERS

T = TypeVar("T")

# Arrays of more bytes are not sent with every task that names them.
LARGE = 2**16
# Rows of so many bytes at most come into the process of the fit at once.
MOST_BYTES = 2**28
# So many parts are added up at a time: a sum of many parts is a tree of sums.
FAN = 16


class Blocks(DaskMethodsMixin):
    """Parts, each the result of a task; a Dask collection."""

    __dask_scheduler__: Any = staticmethod(dask.threaded.get)
    __dask_optimize__ = None

    def __init__(self, keys: Iterable[Any], graph: HighLevelGraph, layer: str) -> None:
        self.keys, self.graph, self.layer = list(keys), graph, layer

    def __dask_graph__(self) -> HighLevelGraph:
        return self.graph

    def __dask_layers__(self) -> tuple[str]:
        return (self.layer,)

    def __dask_keys__(self) -> list[Any]:
        return self.keys

    def __dask_tokenize__(self) -> Any:
        return self.keys

    def __dask_postcompute__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return list, ()

    def __dask_postpersist__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _settled, (self.keys,)

    def __len__(self) -> int:
        return len(self.keys)

    def compute(self, **options: Any) -> list[Any]:
        """Return all parts here; :func:`dask.compute` would gather them on one of the workers first."""
        get = get_scheduler(collections=[self], **options)
        return list(get(self.graph.cull(set(self.keys)), self.keys))

    def __getitem__(self, place: int) -> Blocks:
        """Return one part of every part that is a tuple."""
        return self.map(_item, place=place)

    def at(self, places: Iterable[int]) -> Blocks:
        """Return some parts, each as often as it is named."""
        return Blocks([self.keys[place] for place in places], self.graph, self.layer)

    def map(self, function: Callable[..., Any], *others: Any, **literals: Any) -> Blocks:
        """Apply a function to every part and what else it needs, as :func:`mapped` does."""
        return mapped(len(self), function, self, *others, **literals)

    def total(self, function: Callable[[list[Any]], Any]) -> Delayed:
        """Combine all parts by a function of a list of some, applied to what it returns until one is left."""
        name, keys = _name(function), self.keys
        tasks: dict[Any, Any] = {}
        while not tasks or len(keys) > 1:
            groups = [keys[start : start + FAN] for start in range(0, len(keys), FAN)]
            keys = [(name, len(tasks) + place) for place in range(len(groups))]
            for key, group in zip(keys, groups, strict=True):
                tasks[key] = Task(key, function, List(*map(TaskRef, group)))
        graph = HighLevelGraph.from_collections(name, tasks, dependencies=[self])
        return Delayed(keys[0], graph, layer=name)


@dataclass(frozen=True)
class Groups:
    """For every part a list of parts of other blocks, as an argument of :meth:`Blocks.map`."""

    blocks: Blocks
    places: Sequence[Any]


@dataclass(frozen=True)
class Each:
    """A value of its own for every part, as an argument of :meth:`Blocks.map`."""

    values: Any


def mapped(n_parts: int, function: Callable[..., Any], *arguments: Any, **literals: Any) -> Blocks:
    """Return parts that a function makes, each from one part of blocks, and from values.

    Arguments are blocks of as many parts, :class:`Groups` of parts, :class:`Each` a value, or values that all
    have in common, of which some may be put off.
    """
    name = _name(function)
    arguments = tuple(map(ahead_if_large, arguments))
    literals = {key: ahead_if_large(value) for key, value in literals.items()}
    common = {key: _argument(value, 0) for key, value in literals.items()}
    tasks: dict[Any, Any] = {}
    for place in range(n_parts):
        mine = [_argument(value, place) for value in arguments]
        tasks[(name, place)] = Task((name, place), function, *mine, **common)
    needed = _collections([*arguments, *literals.values()])
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=needed)
    return Blocks(list(tasks), graph, name)


def blocks_of(parts: Sequence[Any]) -> Blocks:
    """Return parts that are put off, or arrays at hand."""
    made = [dask.delayed(part) for part in parts]
    name = f"parts-{uuid4().hex}"
    tasks: dict[Any, Any] = {
        (name, place): Task((name, place), same, TaskRef(part.key)) for place, part in enumerate(made)
    }
    return Blocks(list(tasks), HighLevelGraph.from_collections(name, tasks, dependencies=made), name)


def pairs(n_first: int, n_second: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of two numbers."""
    return np.repeat(np.arange(n_first), n_second), np.tile(np.arange(n_second), n_first)


def value(function: Callable[..., Any], *values: Any, **literals: Any) -> Delayed:
    """Put off a function of values, some of which may be put off themselves, also inside of lists."""
    return dask.delayed(partial(function, **literals) if literals else function, pure=False)(*values)


def shared(given: Any) -> Delayed:
    """Return a value that is sent once, and then known to all tasks that name it."""
    # Dask warns of what is large, which users can do nothing about here.
    with WARNING_FILTERS.changed("ignore"):
        kept: Delayed = value(same, given).persist()
    return kept


def ahead_if_large(given: Any) -> Any:
    """Return an array that is sent ahead, once, if it is too large to be sent with every task."""
    return shared(given) if isinstance(given, np.ndarray) and given.nbytes > LARGE else given


def rows_by_number(values: Blocks, starts: np.ndarray, numbers: np.ndarray) -> Any:
    """Return the rows of some points, whose numbers ascend; ``starts`` is where those of every part begin."""
    inside = np.split(numbers, np.searchsorted(numbers, starts[1:-1]))
    places = [mine - start for mine, start in zip(inside, starts, strict=False)]
    return np.concatenate(values.map(taken, Each(places)).compute())


def taken(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return values[rows]


def added(parts: list[Any]) -> Any:
    """Add arrays, or tuples of arrays, in their order."""
    if isinstance(parts[0], tuple):
        return tuple(added(list(each)) for each in zip(*parts, strict=True))
    return np.sum(parts, axis=0)


def settled(step: T) -> T:
    """Do all that has been put off inside of records and tuples, in one round; blocks stay where they are."""
    found, repack = unpack_collections(step)
    if not found:
        return step
    keys = [list(flatten(part.__dask_keys__())) for part in found]
    graph = HighLevelGraph.merge(*(part.__dask_graph__() for part in found))
    together = Blocks(dict.fromkeys(itertools.chain(*keys)), graph, next(iter(graph.layers)))
    made = together.persist().graph.to_dict()
    # Each has what is its own alone: arrays that nobody asks for any more can go.
    kept = [_settled(made, mine) for mine in keys]
    values = [place for place, part in enumerate(found) if isinstance(part, Delayed)]
    if values:
        numbers = Blocks(
            [keys[place][0] for place in values], *_only(made, [keys[place][0] for place in values])
        )
        for place, number in zip(values, numbers.compute(), strict=True):
            kept[place] = number
    result: T = repack(kept)[0]
    return result


def _only(made: Any, keys: list[Any]) -> tuple[HighLevelGraph, str]:
    """Return a graph of some results alone, and the name of its layer."""
    name = f"kept-{uuid4().hex}"
    parts = {key: made[key] for key in keys}
    # A future stands for itself, and data are no tasks, whatever they look like.
    tasks = {
        k: part if isinstance(part, GraphNode | TaskRef) else DataNode(k, part) for k, part in parts.items()
    }
    return HighLevelGraph({name: tasks}, {name: set()}), name


def _settled(made: Any, keys: list[Any], *, rename: Any = None) -> Blocks:
    """Return blocks whose parts have been made: results, or futures of them."""
    return Blocks(keys, *_only(made, keys))


def _argument(value: Any, place: int) -> Any:
    """Return what stands for a value among the arguments of a task."""
    if isinstance(value, Blocks):
        return TaskRef(value.keys[place])
    if isinstance(value, Each):
        return value.values[place]
    if isinstance(value, Groups):
        return List(*(TaskRef(value.blocks.keys[other]) for other in value.places[place]))
    return TaskRef(value.key) if isinstance(value, Delayed) else value


def _collections(arguments: Sequence[Any]) -> list[Any]:
    found = [value.blocks if isinstance(value, Groups) else value for value in arguments]
    return [value for value in found if isinstance(value, Blocks | Delayed)]


def _name(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__name__', 'step').strip('_')}-{uuid4().hex}"


def same(part: Any) -> Any:
    return part


def _item(part: Any, place: int) -> Any:
    return part[place]
