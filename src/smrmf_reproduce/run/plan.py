"""From a file that describes an evaluation to the list of its runs, each with a key of its own."""

from __future__ import annotations

import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

MAIN = "main"
# Plans and the tables that papers print.
PAPERS = Path(__file__).parents[1] / "papers"


class PlanError(ValueError):
    """A plan that cannot be read, or a choice of methods or data sets that it does not have."""


@dataclass(frozen=True)
class Run:
    """One fit of one method on one data set.

    ``settings`` is all that the plan sets, ``params`` the part of it that varies within the method; ``feeds``
    has the experiments that the run belongs to, each with the readings that it is an instance of.
    """

    data: str
    method: str
    estimator: str
    settings: Mapping[str, Any]
    params: Mapping[str, Any]
    seed: int
    feeds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return what names the run on disk: the same for the same work, whatever it feeds."""
        work = (self.data, self.method, self.estimator, dict(self.settings), self.seed)
        return hashlib.sha256(json.dumps(work, sort_keys=True).encode()).hexdigest()[:20]

    def __str__(self) -> str:
        varied = [f"{name}={value}" for name, value in self.params.items()]
        varied += [f"seed {self.seed}"] if self.seed else []
        return f"{self.method} on {self.data}" + (f" ({', '.join(varied)})" if varied else "")


@dataclass(frozen=True)
class Method:
    """How a method is set up on a data set; ``readings`` are its choices that the paper leaves open."""

    estimator: str
    settings: str = "paper"
    selector: str | None = None
    readings: Sequence[str] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    untuned: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 1

    def base(self) -> dict[str, Any]:
        """Return what the same method always has."""
        chosen = {"settings": self.settings} | ({"selector": self.selector} if self.selector else {})
        return chosen | dict(self.fixed)


@dataclass(frozen=True)
class Plan:
    """The description of an evaluation."""

    content: Mapping[str, Any]
    quick: bool = False

    @classmethod
    def read(cls, path: Path | None = None, *, quick: bool = False) -> Plan:
        """Read a description, by default the paper's; refuse one that names what it does not have."""
        path = PAPERS / "smrmf.toml" if path is None else path
        try:
            plan = cls(tomllib.loads(path.read_text(encoding="utf8")), quick)
            plan._check()
        except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
            raise PlanError(f"{path} is not a plan: {type(error).__name__}, {error}.") from error
        return plan

    def _check(self) -> None:
        """Meet every part of the description once, so that a mistake shows before anything runs."""
        for part in ("names", "readings", "methods", "experiments", *(["quick"] if self.quick else [])):
            self.content[part]
        known = set(self.content["methods"])
        for experiment in self.content["experiments"]:
            if unread := set(experiment.get("readings", [])) - set(self.content["readings"]):
                raise KeyError(f"no reading {unread.pop()!r}")
        for part in (*self.content["experiments"], *self.content.get("exceptions", [])):
            if unknown := set(self.names(part["methods"])) - known:
                raise KeyError(f"no method {unknown.pop()!r}")
        for name in known:
            self.method(name, "")
        self.runs()

    def exceptions(self, runs: Iterable[Run]) -> list[str]:
        """Return a sentence for every exception that touches one of these runs."""
        pairs = {(run.data, run.method) for run in runs}
        sentences = []
        for exception in self.content.get("exceptions", []):
            methods = self.names(exception["methods"])
            sets = [d for d in self.names(exception["data"]) if any((d, m) in pairs for m in methods)]
            if sets and "why" in exception:
                sentences.append(f"{', '.join(methods)} on {', '.join(sets)}: {exception['why']}.")
        return sentences

    def names(self, listed: Iterable[str]) -> list[str]:
        """Replace the names of lists by what they stand for."""
        lists = self.content["names"]
        return list(dict.fromkeys(one for name in listed for one in lists.get(name, [name])))

    def method(self, name: str, data: str) -> Method:
        """Return a method with what is exceptional on a data set."""
        method = Method(**self.content["methods"][name])
        for exception in self.content.get("exceptions", []):
            if name in self.names(exception["methods"]) and data in self.names(exception["data"]):
                changes = {k: v for k, v in exception.items() if k not in ("methods", "data", "why")}
                changes["fixed"] = dict(method.fixed) | changes.get("fixed", {})
                method = replace(method, **changes)
        if self.quick:
            limits = self.content["quick"]
            ends = {k: _ends(values, limits["grid_points"]) for k, values in method.grid.items()}
            method = replace(method, grid=ends, seeds=min(method.seeds, limits["seeds"]))
        return method

    def runs(self, methods: Iterable[str] = (), data: Iterable[str] = ()) -> list[Run]:
        """Return the runs of some or all methods and data sets, small sets first, each once."""
        found: dict[str, Run] = {}
        for run in self._expand(set(self.names(methods)), set(self.names(data))):
            known = found.setdefault(run.key, run)
            # A method that lacks the choice in which two readings differ has one run for both.
            both = {k: known.feeds.get(k, ()) + run.feeds.get(k, ()) for k in {**known.feeds, **run.feeds}}
            feeds = {experiment: tuple(dict.fromkeys(readings)) for experiment, readings in both.items()}
            found[run.key] = replace(known, feeds=feeds)
        order = {name: place for place, name in enumerate(self.data_names())}
        return sorted(found.values(), key=lambda run: order[run.data])

    def data_names(self) -> list[str]:
        """Return all data sets, in the order in which they run."""
        named = self.names(name for e in self.content["experiments"] for name in e["data"])
        return [name for name in named if not self.quick or name in self.content["names"]["quick"]]

    def method_names(self) -> list[str]:
        """Return all methods, in the order of the description."""
        return list(self.content["methods"])

    def _expand(self, methods: set[str], data: set[str]) -> Iterator[Run]:
        for experiment in self.content["experiments"]:
            for name in self.names(experiment["data"]):
                if name not in self.data_names() or (data and name not in data):
                    continue
                for method in self.names(experiment["methods"]):
                    if not methods or method in methods:
                        yield from self._cell(experiment, name, method)

    def _cell(self, experiment: Mapping[str, Any], data: str, name: str) -> Iterator[Run]:
        """List the runs of one method on one set for one experiment."""
        method = self.method(name, data)
        readings = experiment.get("readings", [MAIN]) if method.readings else [MAIN]
        for reading, point in itertools.product(readings, _points(experiment, method)):
            settings = method.base() | self._choices(reading, method) | point
            for seed in range(method.seeds):
                feeds = {experiment["name"]: (reading,)}
                yield Run(data, name, method.estimator, settings, point, seed, feeds)

    def main_reading(self) -> str:
        """Return the choices of the published reading in words."""
        return ", ".join(
            f"{name} = {value}" for name, value in self.content["readings"].get(MAIN, {}).items()
        )

    def _choices(self, reading: str, method: Method) -> dict[str, Any]:
        """Return what a reading says on the choices that a method has."""
        return {k: v for k, v in self.content["readings"].get(reading, {}).items() if k in method.readings}


def _points(experiment: Mapping[str, Any], method: Method) -> list[dict[str, Any]]:
    """Return the points of the experiment's grid, or of the method's own."""
    grid = experiment.get("grid", method.grid)
    if grid == "untuned":
        return [dict(method.untuned)]
    if grid == "short":
        weights = method.grid.get("manifold_weight", [])
        return [dict(method.untuned) | {"manifold_weight": weight} for weight in weights]
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def _ends(values: list[Any], count: int) -> list[Any]:
    """Return at most ``count`` of the values, the outermost ones."""
    return values if len(values) <= count else [*values[: count - 1], values[-1]]
