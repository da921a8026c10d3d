"""Where the figures of a report come from: command, machine, versions, and what to know of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smrmf_reproduce.run.progress import clock

PAPERS_MACHINE = "MATLAB 2019b, 2.3 GHz Intel Core i5, 16 GB"


@dataclass(frozen=True)
class Provenance:
    """What ran, when, on what; ``notes`` are sentences for the top of the page."""

    command: str = "smrmf reproduce"
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    total_seconds: float | None = None
    started: str | None = None
    n_runs: int | None = None
    n_failed: int = 0
    notes: Sequence[str] = ()
    exceptions: Sequence[str] = ()

    def facts(self) -> list[str]:
        """Return what ran, when and for how long, as short phrases."""
        found = []
        if self.started:
            found.append(f"started {self.started}")
        # None is not known; zero seconds are a fact.
        if self.total_seconds is not None:
            found.append(f"{clock(self.total_seconds)} of computing")
        if self.n_runs is not None:
            found.append(f"{self.n_runs} runs, {self.n_failed} failed")
        if self.machine:
            found.append(
                ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.machine.items())
            )
        return found

    def details(self) -> list[tuple[str, str]]:
        """Return machine and versions as pairs for a list."""
        pairs = [("command", self.command)]
        pairs += [(name.replace("_", " "), str(value)) for name, value in self.machine.items()]
        pairs += [*self.versions.items(), ("paper's machine", PAPERS_MACHINE)]
        return [(name, value) for name, value in pairs if value]
