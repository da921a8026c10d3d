"""What a paper prints and claims, and who is who among the methods of its plan."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smrmf_reproduce.run.plan import COLUMN_ROLES, PAPER_ROLES, PAPERS, Plan

MOONS = {"2d-moons": "2DMoons", "10d-moons": "10DMoons"}

REAL_SETS = {
    "wave": "Wave",
    "ionosphere": "Ionosphere",
    "sonar": "Sonar",
    "movement": "Movement",
    "musk1": "Musk1",
    "mfeat-fac": "mfeat-fac",
    "mfeat-pix": "mfeat-pix",
    "semeion": "Semeion",
    "isolet": "ISOLET",
    "coil-5": "COIL-5",
    "20-news": "20-news",
    "orl": "ORL",
    "ova-colon": "OVA_Colon",
}

# All of the paper's real sets but the one whose file we could not get (paper note 40).
TWELVE_SETS = tuple(name for name in REAL_SETS if name != "ova-colon")

PAPER_NAMES = MOONS | REAL_SETS


def shown_name(data: str) -> str:
    """Return the name under which the paper prints a data set; a set that it does not have keeps its own."""
    return PAPER_NAMES.get(data, data)


@dataclass(frozen=True)
class PrintedValue:
    """One printed cell: ``value`` is None where the paper prints a dash or N/A."""

    value: float | None
    std: float | None


@dataclass(frozen=True)
class Paper:
    """The paper's tables, cell by cell under the names this library uses, and the facts of its plan.

    Attributes
    ----------
    order : tuple of str
        All methods, in the order in which tables show them.
    columns : tuple of str
        Those that have a column in the comparison: the paper's, and one's own beside them.
    methods : tuple of str
        Those that the paper compares.
    ours : tuple of str
        Those that the paper proposes; ``main`` is the first of them.
    baseline : str
        The method that ``main`` improves on.
    claims, targets : sequence of mapping
        What is judged, as the plan has it.
    grids : mapping
        The grid of every experiment that has its own, parameter by parameter.
    remarks : mapping
        Sentences on what is odd in the paper's figures, by where they stand.

    Examples
    --------
    >>> paper = Paper.of(Plan.read())
    >>> paper.value("acc", "wave", "SMRMF")
    0.85
    >>> paper.average("run-time", "SMRMF-NS")  # as printed; its column averages 145.22
    148.45
    >>> paper.value("acc", "gordon", "SMRMF") is None  # not in the paper
    True
    >>> paper.baseline, paper.ours
    ('RMNMF', ('SMRMF', 'f-SMRMF'))
    """

    cells: Mapping[tuple[str, str, str], PrintedValue]
    order: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()
    baseline: str = ""
    claims: Sequence[Mapping[str, Any]] = ()
    targets: Sequence[Mapping[str, Any]] = ()
    grids: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> Paper:
        """Return the facts of a plan beside the paper's printed tables."""
        return cls(
            printed_cells(),
            order=tuple(plan.method_names()),
            columns=tuple(plan.methods(*COLUMN_ROLES)),
            methods=tuple(plan.methods(*PAPER_ROLES)),
            ours=tuple(plan.methods("ours")),
            baseline=next(iter(plan.methods("baseline")), ""),
            claims=plan.content.get("claims", ()),
            targets=plan.content.get("targets", ()),
            grids={each["name"]: each["grid"] for each in plan.content["experiments"] if "grid" in each},
            remarks=plan.content.get("remarks", {}),
        )

    @property
    def main(self) -> str:
        """The method whose neighbourhoods, curves and settings are shown; empty if the plan has none."""
        return self.ours[0] if self.ours else ""

    def cell(self, table: str, data: str, quantity: str) -> PrintedValue:
        """Return the cell, empty where the paper has none."""
        return self.cells.get((table, shown_name(data), quantity), PrintedValue(None, None))

    def value(self, table: str, data: str, quantity: str) -> float | None:
        """Return the printed number, None where the paper has none."""
        return self.cell(table, data, quantity).value

    def average(self, table: str, quantity: str) -> float | None:
        """Return the average as printed, over the sets that the paper has for this column (paper note 59)."""
        return self.value(table, "AVG", quantity)

    def remark(self, place: str) -> str:
        """Return the remark for a place, with a space before it; empty where there is none."""
        return f" {self.remarks[place]}" if place in self.remarks else ""


def printed_cells() -> dict[tuple[str, str, str], PrintedValue]:
    """Read the tables of the paper, one row per printed cell."""
    with (PAPERS / "smrmf_tables.csv").open(encoding="utf-8", newline="") as file:
        return {
            # As printed, errors included: an average that is off (paper note 60) is shown and not corrected.
            (row["table"], row["dataset"], row["quantity"]): PrintedValue(
                _number(row["value"]), _number(row["std"])
            )
            for row in csv.DictReader(file)
        }


def _number(text: str) -> float | None:
    return float(text) if text else None
