"""Claims about neighbourhoods, settings and convergence: why the method works and how to set it."""

from __future__ import annotations

from statistics import fmean

from smrmf_reproduce.report.paper import Paper
from smrmf_reproduce.report.table import Cell, Tables
from smrmf_reproduce.report.verdicts import (
    MIN_SETS,
    UNTESTED,
    Judgement,
    all_or_some,
    best_counts,
    compare,
    describe_comparison,
    majority,
    majority_verdict,
    sentences,
)


def fewer_bad_neighbors(tables: Tables, paper: Paper) -> Judgement:
    """Judge: bad neighbours and bad neighbourhoods are reduced for the majority of the data sets."""
    rule = (
        "Holds: after selection both shares are strictly lower on more than half of the sets (at least "
        f"{MIN_SETS}); in part: one of the two is. Every set of the table counts, moons included."
    )
    table = tables["violation"]
    outcomes, texts = [], []
    for what in ("bad neighbours", "bad neighbourhoods"):
        before, after = table.column(f"before: {what}"), table.column(f"after: {what}")
        drops = _drops(before, after, "ours")
        # The paper's own table by the same rule: what its text counts is another number (paper note 62).
        printed = _drops(before, after, "paper")
        if len(drops) < MIN_SETS:
            texts.append(f"{what}: only {len(drops)} sets with both figures")
            continue
        fewer = sum(d > 0 for d in drops.values())
        # A set without a change counts in the total but not as a fall: the claim is that shares are reduced.
        outcomes.append(majority(fewer, len(drops)))
        rises = ", ".join(name for name, d in drops.items() if d < 0) or "none"
        texts.append(
            f"{what}: lower on {fewer} of {len(drops)} sets (in the paper's table "
            f"{sum(d > 0 for d in printed.values())} of {len(printed)}), higher on {rises}; "
            f"{describe_comparison('fall', compare(drops))}"
        )
    return Judgement(rule, all_or_some(outcomes, parts=2), sentences(texts))


def purer_neighborhoods(tables: Tables, paper: Paper) -> Judgement:
    """Judge: selected neighbourhoods have lower label mismatch than the others."""
    rule = (
        f"Holds: the gap (other - selected) is positive on more than half of the sets (at least {MIN_SETS}); "
        "in part: not on more than half, but positive on average."
    )
    column = tables["label_mismatch"].column("gap")
    gaps = {name: cell.ours for name, cell in column.items() if cell.ours is not None}
    if len(gaps) < MIN_SETS:
        return Judgement(rule, UNTESTED, f"Only {len(gaps)} sets with both figures.")
    wins = sum(gap > 0 for gap in gaps.values())
    printed = [cell.paper for cell in column.values() if cell.paper is not None]
    verdict = majority_verdict(majority(wins, len(gaps)), fmean(gaps.values()) > 0)
    figures = (
        f"Positive on {wins} of {len(gaps)} sets (in the paper's table {sum(g > 0 for g in printed)} of "
        f"{len(printed)}); {describe_comparison('gap', compare(gaps))}."
    )
    return Judgement(rule, verdict, figures)


def best_setting(tables: Tables, paper: Paper, table: str, column: str) -> Judgement:
    """Judge: one value of a setting gives the best accuracy for the majority of the data sets."""
    shown = tables[table]
    index = shown.columns.index(column)
    rule = (
        f"Holds: '{column}' is best or tied for best on more than half of the sets (at least {MIN_SETS}); in "
        "part: it is best on more sets than any other value."
    )
    rows = {
        row.name: [cell.ours for cell in row.cells if cell.ours is not None]
        for row in shown.rows
        # Only full rows: a setting that is missing could have been the best one.
        if row.kind == "data" and all(cell.ours is not None for cell in row.cells)
    }
    if len(rows) < MIN_SETS:
        return Judgement(rule, UNTESTED, f"Only {len(rows)} sets with every setting.")
    counts = best_counts(rows)
    rest = [n for i, n in enumerate(counts) if i != index]
    # Ties count for all their columns, so the counts may add up to more than the sets.
    verdict = majority_verdict(majority(counts[index], len(rows)), counts[index] > max(rest))
    spread = fmean(max(values) - min(values) for values in rows.values())
    tally = ", ".join(f"{name} on {n}" for name, n in zip(shown.columns, counts, strict=True))
    figures = (
        f"Best or tied, of {len(rows)} sets: {tally}. Between the best and the worst setting lie "
        f"{spread:.3f} on average."
    )
    return Judgement(rule, verdict, figures)


def converges(tables: Tables, paper: Paper) -> Judgement:
    """Judge: the objective converges within 1000 iterations on all sets, within 400 on most."""
    rule = (
        f"Two parts, over at least {MIN_SETS} sets: every best run of {paper.main} converged in fewer "
        "than 1000 iterations; more than half of them in fewer than 400. Holds: both; in part: one."
    )
    table = tables["convergence"]
    stopped = table.column("converged")
    found = {
        name: (cell.ours, stopped[name].text != "no")
        for name, cell in table.column("iterations").items()
        if cell.ours is not None
    }
    if len(found) < MIN_SETS:
        return Judgement(rule, UNTESTED, f"Only {len(found)} sets with a result.")
    # Both conditions: with a smaller max_iter a run can end before 1000 without having converged.
    late = [name for name, (n_iter, done) in found.items() if n_iter >= 1000 or not done]
    early = sum(n_iter < 400 and done for n_iter, done in found.values())
    verdict = all_or_some([not late, majority(early, len(found))], parts=2)
    iterations = sorted(n_iter for n_iter, _ in found.values())
    figures = (
        f"{len(found) - len(late)} of {len(found)} sets converged in fewer than 1000 iterations, {early} in "
        f"fewer than 400 (from {iterations[0]:.0f} to {iterations[-1]:.0f})."
    )
    figures += f" Not within 1000: {', '.join(late)}." if late else ""
    return Judgement(rule, verdict, figures)


def _drops(before: dict[str, Cell], after: dict[str, Cell], whose: str) -> dict[str, float]:
    pairs = {name: (getattr(before[name], whose), getattr(after[name], whose)) for name in before}
    return {name: b - a for name, (b, a) in pairs.items() if b is not None and a is not None}
