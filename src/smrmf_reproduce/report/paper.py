"""The figures the paper prints, and the names it gives to methods and data sets."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache

from smrmf_reproduce.run.plan import PAPERS

METHODS = (
    *("NMF", "DS3", "GNMF", "RMNMF", "AMRMF", "APMF", "DPP", "IPM", "ESC-FFS", "DSMF"),
    *("SMRMF-Euc", "SMRMF-NS", "SMRMF", "f-SMRMF"),
)

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

# The paper's thirteenth set is not distributed with the others; everything else is one of these.
TWELVE_SETS = tuple(name for name in REAL_SETS if name != "ova-colon")

PAPER_NAMES = MOONS | REAL_SETS


@dataclass(frozen=True)
class PrintedValue:
    """One printed cell: ``value`` is None where the paper prints a dash or N/A."""

    value: float | None
    std: float | None


class Printed:
    """The paper's tables, looked up cell by cell under the names this library uses.

    Examples
    --------
    >>> printed = load_printed()
    >>> printed.value("acc", "wave", "SMRMF")
    0.85
    >>> printed.average("run-time", "SMRMF-NS")  # as printed; its column averages 145.22
    148.45
    >>> printed.value("acc", "gordon", "SMRMF") is None  # not in the paper
    True
    """

    def __init__(self, cells: dict[tuple[str, str, str], PrintedValue]):
        self.cells = cells

    def cell(self, table: str, data: str, quantity: str) -> PrintedValue:
        """Return the cell, empty where the paper has none."""
        return self.cells.get((table, PAPER_NAMES.get(data, data), quantity), PrintedValue(None, None))

    def value(self, table: str, data: str, quantity: str) -> float | None:
        """Return the printed number, None where the paper has none."""
        return self.cell(table, data, quantity).value

    def average(self, table: str, quantity: str) -> float | None:
        """Return the average as printed, over whichever sets the paper had."""
        return self.value(table, "AVG", quantity)


@cache
def load_printed(paper: str = "smrmf") -> Printed:
    """Read ``papers/<paper>_tables.csv``, one row per printed cell."""
    with (PAPERS / f"{paper}_tables.csv").open(encoding="utf-8", newline="") as file:
        return Printed(
            {
                (row["table"], row["dataset"], row["quantity"]): PrintedValue(
                    _number(row["value"]), _number(row["std"])
                )
                for row in csv.DictReader(file)
            }
        )


def _number(text: str) -> float | None:
    return float(text) if text else None
