"""Which runs of an evaluation have a record: read from disk once, then kept up to date."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from smrmf_reproduce.run.plan import Run
from smrmf_reproduce.run.store import DONE, Record, Store


@dataclass(frozen=True)
class Session:
    """Runs, where their results are kept, and the record of each that has one."""

    runs: Sequence[Run]
    store: Store
    known: dict[str, Record]

    @classmethod
    def open(cls, runs: Sequence[Run], store: Store) -> Session:
        """Read the records of these runs, each once."""
        found = ((run.key, store.read(run.key)) for run in runs)
        return cls(runs, store, {key: record for key, record in found if record is not None})

    def with_runs(self, runs: Sequence[Run]) -> Session:
        """Return the same with more runs, and the records that these have."""
        there = {run.key for run in self.runs}
        more = Session.open([run for run in runs if run.key not in there], self.store)
        return Session([*self.runs, *more.runs], self.store, self.known | more.known)

    def without(self, sets: Collection[str]) -> Session:
        """Return the same without some data sets, their runs and their records."""
        runs = [run for run in self.runs if run.data not in sets]
        known = {key: record for key, record in self.known.items() if record["data"] not in sets}
        return Session(runs, self.store, known)

    def take(self, record: Record) -> None:
        """Take in the record of a run that has just finished."""
        self.known[record["key"]] = record

    def pending(self) -> list[Run]:
        """Return the runs without a result; one that failed has none."""
        # A failure may be of the machine, such as memory, so each start tries it again.
        return [run for run in self.runs if self.known.get(run.key, {}).get("status") != DONE]

    def records(self) -> list[Record]:
        """Return all records, each with the experiments that its run serves."""
        # Experiments come from the plan, not from the disk: an old record serves new experiments.
        found = ((run, self.known.get(run.key)) for run in self.runs)
        return [record | {"experiments": run.experiments} for run, record in found if record is not None]
