"""The runs of an evaluation, each with its own key, from the file that describes it."""

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

# What a method is in its plan. The paper's own comparison has the first four; "added" stands beside it in
# every table; the last two are run without labels only. A role may be named where methods are listed.
PAPER_ROLES = ("compared", "baseline", "ablation", "ours")
COLUMN_ROLES = (*PAPER_ROLES, "added")
ROLES = (*COLUMN_ROLES, "defaults", "usual")
MEASUREMENT = "measurement"
DETAILS = ("history", "neighborhoods", "picture")


class PlanError(ValueError):
    """A plan that cannot be read, or a choice of methods or data sets that it does not have."""


@dataclass(frozen=True)
class Run:
    """One fit of one method on one data set, or one measurement of the data themselves.

    ``settings`` is all that the plan sets, ``params`` the part of it that varies within the method;
    ``experiments`` has those that the run belongs to, each with the readings that it is an instance of;
    ``record`` names what is kept beside the scores; ``arguments`` is what a measurement is told.
    """

    data: str
    method: str
    estimator: str
    settings: Mapping[str, Any]
    params: Mapping[str, Any]
    seed: int
    experiments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    record: frozenset[str] = frozenset()
    is_measurement: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Return what names the run on disk: the same for the same work, whatever experiments it serves."""
        # Not ``params``, a part of settings; not experiments and record, so that a new experiment reuses old
        # runs; no version or machine, so that an upgrade repeats nothing (the page says where they differ).
        # No arguments either: they follow from a measurement's name and its data set.
        work = (self.data, self.method, self.estimator, dict(self.settings), self.seed)
        # Sorted keys: the order of settings in a plan is no part of the work. 1 and 1.0 are different keys.
        return hashlib.sha256(json.dumps(work, sort_keys=True).encode()).hexdigest()[:20]

    def merge(self, other: Run) -> Run:
        """Return the same run for the experiments of both.

        A method without the choice in which two readings differ has one run for both readings.
        """
        # A dict and not a set, to keep the order of the plan on every start.
        names = {**self.experiments, **other.experiments}
        both = {name: (*self.experiments.get(name, ()), *other.experiments.get(name, ())) for name in names}
        experiments = {name: tuple(dict.fromkeys(readings)) for name, readings in both.items()}
        return replace(self, experiments=experiments, record=self.record | other.record)

    def __str__(self) -> str:
        varied = [f"{name}={value}" for name, value in self.params.items()]
        varied += [f"seed {self.seed}"] if self.seed else []
        return f"{self.method} on {self.data}" + (f" ({', '.join(varied)})" if varied else "")


@dataclass(frozen=True)
class Method:
    """How a method is set up on a data set.

    ``readings`` are its choices that the paper leaves open; ``repeats`` is how often its best point is run
    again from another start.
    """

    estimator: str
    role: str = "added"
    record: Sequence[str] = ("history",)
    settings: str = "paper"
    selector: str | None = None
    readings: Sequence[str] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    untuned: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = 1
    repeats: int = 0

    def base(self) -> dict[str, Any]:
        """Return the settings that all runs of the method have."""
        chosen = {"settings": self.settings} | ({"selector": self.selector} if self.selector else {})
        return chosen | dict(self.fixed)


class Plan:
    """The description of an evaluation, and all of its runs.

    Parameters
    ----------
    content : mapping
        The description, as a plan file has it.
    quick : bool
        Small sets, the ends of each grid and few repetitions.

    Attributes
    ----------
    runs : tuple of Run
        Each once, small sets first.
    """

    def __init__(self, content: Mapping[str, Any], *, quick: bool = False) -> None:
        self.content = content
        self.quick = quick
        for part in ("names", "readings", "methods", "experiments", *(["quick"] if quick else [])):
            content[part]  # a part that is missing shows here, by its name
        self._lists = self._named_lists()
        self._check()
        self.runs = tuple(self._expand())

    @classmethod
    def read(cls, path: Path | None = None, *, quick: bool = False) -> Plan:
        """Read a description, by default the paper's; refuse one that names what it does not have."""
        path = PAPERS / "smrmf.toml" if path is None else path
        try:
            return cls(read_content(path), quick=quick)
        except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
            raise PlanError(f"{path} is not a plan: {type(error).__name__}, {error}.") from error

    def _named_lists(self) -> dict[str, list[str]]:
        """Return the lists that a name may stand for: the roles, the paper's methods, those of the plan."""
        roles = {role: self.methods(role) for role in ROLES}
        return {**roles, "paper": self.methods(*PAPER_ROLES), **self.content["names"]}

    def _check(self) -> None:
        """Look up every name in the description, so that a mistake shows before anything runs."""
        for experiment in self.content["experiments"]:
            if unread := set(experiment.get("readings", [])) - set(self.content["readings"]):
                raise KeyError(f"no reading {unread.pop()!r}")
        known = set(self.method_names())
        for part in (*self.content["experiments"], *self.content.get("exceptions", [])):
            if unknown := set(self.names(part["methods"])) - known:
                raise KeyError(f"no method {unknown.pop()!r}")
        methods = [self.method(name, "") for name in self.method_names()]
        if unknown := {method.role for method in methods} - {*ROLES, MEASUREMENT}:
            raise KeyError(f"no role {unknown.pop()!r}")
        recorded = [*(method.record for method in methods)]
        recorded += [experiment.get("record", ()) for experiment in self.content["experiments"]]
        if unknown := {name for names in recorded for name in names} - set(DETAILS):
            raise KeyError(f"no detail {unknown.pop()!r} to record")

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
        return list(dict.fromkeys(member for name in listed for member in self._lists.get(name, [name])))

    def methods(self, *roles: str) -> list[str]:
        """Return the methods with one of these roles, in the order of the description."""
        methods = self.content["methods"]
        return [name for name, facts in methods.items() if facts.get("role", Method.role) in roles]

    def method(self, name: str, data: str) -> Method:
        """Return a method or a measurement with what is exceptional on a data set."""
        if name in self.content.get("measurements", {}):
            measure = self.content["measurements"][name]["measure"]
            return Method(measure, role=MEASUREMENT, record=())
        method = Method(**self.content["methods"][name])
        for exception in self.content.get("exceptions", []):
            if name in self.names(exception["methods"]) and data in self.names(exception["data"]):
                changes = {k: v for k, v in exception.items() if k not in ("methods", "data", "why")}
                # Fixed settings of several exceptions add up; a grid or a number of seeds is replaced.
                changes["fixed"] = dict(method.fixed) | changes.get("fixed", {})
                method = replace(method, **changes)
        if self.quick:
            limits = self.content["quick"]
            ends = {k: _ends(values, limits["grid_points"]) for k, values in method.grid.items()}
            seeds, repeats = min(method.seeds, limits["seeds"]), min(method.repeats, limits.get("repeats", 0))
            method = replace(method, grid=ends, seeds=seeds, repeats=repeats)
        return method

    def select(self, methods: Iterable[str] = (), data: Iterable[str] = ()) -> list[Run]:
        """Return the runs of some or all methods and data sets."""
        wanted, sets = set(self.names(methods)), set(self.names(data))
        return [
            run
            for run in self.runs
            if (not wanted or run.method in wanted) and (not sets or run.data in sets)
        ]

    def data_names(self) -> list[str]:
        """Return all data sets, in the order in which they run."""
        named = self.names(name for e in self.content["experiments"] for name in e["data"])
        return [name for name in named if not self.quick or name in self.content["names"]["quick"]]

    def method_names(self) -> list[str]:
        """Return all methods in the order of the description, then all measurements."""
        return [*self.content["methods"], *self.content.get("measurements", {})]

    def _expand(self) -> list[Run]:
        found: dict[str, Run] = {}
        order = {name: place for place, name in enumerate(self.data_names())}
        for experiment in self.content["experiments"]:
            for data in self.names(experiment["data"]):
                for method in self.names(experiment["methods"]) if data in order else ():
                    for run in self._cell(experiment, data, method):
                        key = run.key
                        # Work that two experiments share, or that two readings leave the same, is done once.
                        found[key] = found[key].merge(run) if key in found else run
        # Stable: on each set experiments keep the order of the plan.
        return sorted(found.values(), key=lambda run: order[run.data])

    def _cell(self, experiment: Mapping[str, Any], data: str, name: str) -> Iterator[Run]:
        """List the runs of one method on one set for one experiment."""
        method = self.method(name, data)
        record = frozenset([*method.record, *experiment.get("record", [])])
        is_measurement, arguments = method.role == MEASUREMENT, self._arguments(name, data)
        # Without an open choice all readings are the same run, and it belongs to the published one.
        readings = experiment.get("readings", [MAIN]) if method.readings else [MAIN]
        if self.quick:
            readings = readings[: self.content["quick"].get("readings")]
        for reading, point in itertools.product(readings, _points(experiment, method)):
            # The grid wins over a reading, and a reading over what is fixed.
            settings = method.base() | self._choices(reading, method) | point
            serves = {experiment["name"]: (reading,)}
            work = (data, name, method.estimator, settings, point)
            for seed in range(min(method.seeds, experiment.get("seeds", method.seeds))):
                yield Run(*work, seed, serves, record, is_measurement, arguments)

    def _arguments(self, measurement: str, data: str) -> dict[str, str]:
        """Return what a measurement is told on a data set; nothing for a method."""
        facts = self.content.get("measurements", {}).get(measurement, {})
        choices = ((name, by_value) for name, by_value in facts.items() if name != "measure")
        return {
            name: value
            for name, by_value in choices
            for value, sets in by_value.items()
            if data in self.names(sets)
        }

    def main_reading(self) -> str:
        """Return the choices of the published reading in words."""
        words, choices = self.content.get("choices", {}), self.content["readings"].get(MAIN, {})
        return ", ".join(words.get(name, f"{name} = {{}}").format(value) for name, value in choices.items())

    def _choices(self, reading: str, method: Method) -> dict[str, Any]:
        """Return what a reading says on the choices that a method has."""
        return {k: v for k, v in self.content["readings"].get(reading, {}).items() if k in method.readings}


def read_content(path: Path) -> dict[str, Any]:
    """Read a plan file; one that says ``extends = "smrmf"`` adds to the plan of that paper.

    What it names again replaces the paper's; its experiments, exceptions, claims and targets come after.
    """
    content = tomllib.loads(path.read_text(encoding="utf8"))
    paper = content.pop("extends", None)
    if paper is None:
        return content
    if not (PAPERS / f"{paper}.toml").is_file():
        raise KeyError(f"no plan {paper!r} to extend")
    whole = read_content(PAPERS / f"{paper}.toml")
    for part, added in content.items():
        # An empty dict or list, so that a part the paper's plan lacks is added like any other.
        known = whole.get(part, type(added)())
        whole[part] = known | added if isinstance(added, dict) else known + added
    return whole


def _points(experiment: Mapping[str, Any], method: Method) -> list[dict[str, Any]]:
    """Return the points of the experiment's grid, or of the method's own."""
    grid = experiment.get("grid", method.grid)
    if grid == "untuned":
        return [dict(method.untuned)]
    if grid == "short":
        # The weight that all methods of the loop have, so that every reading gets the same number of trials.
        weights = method.grid.get("manifold_weight", [])
        return [dict(method.untuned) | {"manifold_weight": weight} for weight in weights]
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def _ends(values: list[Any], count: int) -> list[Any]:
    """Return at most ``count`` of the values: the first ones and the last."""
    return values if len(values) <= count else [*values[: count - 1], values[-1]]
