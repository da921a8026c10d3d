"""The paper's claims under every reading: which verdicts rest on a choice that the paper leaves open."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from smrmf_reproduce.report.claims import judge_claims
from smrmf_reproduce.report.paper import shown_name
from smrmf_reproduce.report.results import READINGS, Results
from smrmf_reproduce.report.table import Cell, Table, TableRow, count
from smrmf_reproduce.report.tables import build_tables
from smrmf_reproduce.report.verdicts import UNTESTED, VERDICTS, Claim
from smrmf_reproduce.run.plan import MAIN

# The column of the verdicts that the page gives beside each claim.
IN_FULL = "published run in full"

# The claims with their verdicts, by reading.
ByReading = Mapping[str, Sequence[Claim]]


def judge_by_reading(results: Results) -> dict[str, tuple[Claim, ...]]:
    """Return every claim's verdict as if each reading were the published one; empty with a single reading."""
    readings = results.readings() if results.other_readings()[0] else []
    paper = results.paper
    return {name: judge_claims(paper.claims, build_tables(results.under(name)), paper) for name in readings}


def with_readings(claims: Sequence[Claim], found: ByReading) -> tuple[Claim, ...]:
    """Return the claims, each with what became of it under the readings."""
    return tuple(replace(claim, by_reading=_described(claim, found)) for claim in claims)


def _described(claim: Claim, found: ByReading) -> str:
    if not found:
        return ""
    verdicts = verdicts_of(claim, found)
    if firm(claim, found):
        return f"the same under all {count(len(verdicts), 'reading')}"
    tally = Counter(verdicts)
    counts = ", ".join(f"{verdict} under {tally[verdict]}" for verdict in VERDICTS if tally[verdict])
    return f"{counts} of {count(len(verdicts), 'reading')}"


def verdicts_of(claim: Claim, found: ByReading) -> list[str]:
    """Return a claim's verdict under every reading."""
    return [other.verdict for claims in found.values() for other in claims if other.name == claim.name]


def firm(claim: Claim, found: ByReading) -> bool:
    """Tell whether a claim has the verdict of the published run under every reading."""
    # What could not be tested anywhere rests on nothing.
    return claim.verdict != UNTESTED and set(verdicts_of(claim, found)) == {claim.verdict}


def count_firm(claims: Sequence[Claim], found: ByReading) -> str:
    """Return how many claims keep their verdict, in words."""
    kept = sum(firm(claim, found) for claim in claims)
    untested = sum(UNTESTED in verdicts_of(claim, found) for claim in claims)
    lacking = f" ({untested} not tested under some)" if untested else ""
    return (
        f"{kept} of {count(len(claims), 'claim')} keep the verdict of the published run under all "
        f"{count(len(found), 'reading')}{lacking}{_count_kept_by_main(claims, found)}"
    )


def _count_kept_by_main(claims: Sequence[Claim], found: ByReading) -> str:
    """Say what the sets and the short grid of the readings cost alone, without another reading."""
    if MAIN not in found:
        return ""
    verdicts = {claim.name: claim.verdict for claim in found[MAIN]}
    kept = sum(verdicts.get(claim.name) == claim.verdict != UNTESTED for claim in claims)
    return (
        f"; {kept} keep it under the published reading itself on the sets and the short grid of the readings"
    )


def claims_table(results: Results, claims: Sequence[Claim], found: ByReading) -> Table:
    """Return a row for each claim: its verdict in the published run, then under every reading."""
    columns = {IN_FULL: claims, **found}
    rows = [
        TableRow(
            claim.statement,
            tuple(Cell(text=others[place].verdict) for others in columns.values()),
            note=claim.by_reading,
        )
        for place, claim in enumerate(claims)
        if found
    ]
    sets = results.data_sets(READINGS)
    note = (
        "Every claim judged by its rule, first in the published run in full, as above: all sets, whole "
        "grids, means of repeats. Then as if each reading of what the paper leaves open were the published "
        f"one, and {MAIN} beside them, all on the same {count(len(sets), 'set')} "
        f"({', '.join(map(shown_name, sets))}), the moons and the short grid, the manifold weights alone, by "
        "single runs where a method draws no random numbers: so those columns differ in the reading alone, "
        "and are coarser than the first. Methods without an open choice have one figure for all readings, "
        f"the best over their own grid. {count_firm(claims, found)}."
    )
    return Table(
        "claims_by_reading",
        "Claims by reading",
        note,
        tuple(columns),
        tuple(rows),
        corner="claim",
        colored=False,
    )


def claims_csv(claims: Sequence[Claim], found: ByReading) -> str:
    """Return every verdict with its figures, one line for a claim and a reading."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("claim", "statement", "reading", "verdict", "figures"))
    for reading, judged in {IN_FULL: claims, **found}.items():
        writer.writerows((c.name, c.statement, reading, c.verdict, c.figures) for c in judged)
    return text.getvalue()
