"""What the report says: sections of tables and figures, and a summary computed from the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smrmf_reproduce.report.claims import judge_claims
from smrmf_reproduce.report.failures import Failure, Missing, failed_runs, missing_cells
from smrmf_reproduce.report.figures import Picture, draw_figures
from smrmf_reproduce.report.provenance import Provenance
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.table import NEAR, Table, Tables, count, exceeds, mean_cell
from smrmf_reproduce.report.tables import build_tables
from smrmf_reproduce.report.verdicts import MET, UNTESTED, VERDICTS, Claim
from smrmf_reproduce.run.store import count_failed

# Wide and of second interest: on the page behind a line to open.
FOLDED = ("best_settings", "readings_nmi", "choice_of_reading", "no_labels_sets")


@dataclass(frozen=True)
class Section:
    """One heading with its figures and tables, those without any run left out."""

    name: str
    title: str
    pictures: tuple[Picture, ...]
    tables: tuple[Table, ...]


@dataclass(frozen=True)
class Report:
    """Everything the page shows, before it is written as HTML or Markdown."""

    provenance: Provenance
    summary: tuple[str, ...]
    targets: tuple[Claim, ...]
    claims: tuple[Claim, ...]
    sections: tuple[Section, ...]
    opening: Picture | None
    ours: tuple[str, ...]
    failures: tuple[Failure, ...]
    missing: tuple[Missing, ...]
    tables: Tables
    pictures: Mapping[str, Picture]


# The figure above everything else.
OPENING = "mean_accuracy"

# name, title, figures, tables
OUTLINE: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...]], ...] = (
    (
        "scores",
        "Accuracy and mutual information",
        ("accuracy_scatter",),
        ("acc", "nmi", "best_settings"),
    ),
    (
        "readings",
        "How firm these figures are",
        ("readings_range",),
        ("readings_acc", "readings_nmi", "choice_of_reading"),
    ),
    ("no-labels", "Without labels", (), ("no_labels", "no_labels_sets")),
    ("run-time", "Run time", (), ("run_time",)),
    ("neighbourhoods", "Neighbourhoods", (), ("violation", "label_mismatch")),
    ("moons", "Two moons", ("moons_manifold", "moons_clusterings"), ("two_moons",)),
    (
        "sensitivity",
        "Sensitivity",
        ("sensitivity_k", "sensitivity_exemplars"),
        ("sensitivity_k", "sensitivity_exemplars"),
    ),
    ("convergence", "Convergence", ("convergence",), ("convergence",)),
    ("data", "Data sets", (), ("datasets",)),
)

PROTOCOL = (
    "Best over the grid, chosen with the labels (the paper's protocol). Every method runs at every point of "
    "its grid, the paper's but for the exceptions listed below, a random method with several seeds, "
    "averaged at each point; the best point is reported. Nobody can choose like this without labels: see "
    "'Without labels' for what remains.",
    "ACC and NMI each take their own best point. ACC matches clusters to classes one to one; NMI is divided "
    "by the larger of the two entropies (max), which is what the paper's printed moons figures fit.",
    "Labels of a factorisation are read by argmax: a point belongs to the column with its largest entry. "
    "Methods that come with a rule of their own keep it.",
    "A difference is always ours - paper. The paper prints two digits, so differences below 0.005 are "
    "rounding. Its single runs leave open choices that move a cell by 0.05 to 0.25 ('How firm these figures "
    "are'): means and orderings can be reproduced, single cells cannot.",
    "Seconds: the paper's are MATLAB 2019b on a 2.3 GHz Intel Core i5 with 16 GB of memory; ours are of the "
    "machine below, one thread each with a run on every core, and what runs share counted in full for each. "
    "Compare methods with each other, not seconds across machines.",
    "Where OVA_Colon's file is not present, its row keeps the paper's figures only. gordon is a "
    "high-dimensional set the paper does not have, shown under its own name and in no average.",
)


def compose(results: Results, provenance: Provenance) -> Report:
    """Return the whole report for any set of runs, complete or not."""
    paper, tables = results.paper, build_tables(results)
    pictures = draw_figures(results, tables)
    targets, claims = judge_claims(paper.targets, tables, paper), judge_claims(paper.claims, tables, paper)
    failures, missing = tuple(failed_runs(results)), tuple(missing_cells(results))
    sections = tuple(
        Section(
            name,
            title,
            tuple(pictures[f] for f in figure_names if f in pictures),
            # Our columns first: at the far end of fourteen, a reader would have to look for them.
            tuple(tables[t].with_first(paper.ours) for t in table_names if not tables[t].is_empty),
        )
        for name, title, figure_names, table_names in OUTLINE
    )
    summary = summarize(results, tables, targets, claims)
    # A part of an evaluation gives a shorter page, not one of empty tables.
    kept = tuple(section for section in sections if section.tables or section.pictures)
    return Report(
        provenance,
        summary,
        targets,
        claims,
        kept,
        pictures.get(OPENING),
        paper.ours,
        failures,
        missing,
        tables,
        pictures,
    )


def summarize(
    results: Results,
    tables: Tables,
    targets: Sequence[Claim],
    claims: Sequence[Claim],
) -> tuple[str, ...]:
    """Return a few lines in plain words: what ran, how close, which targets, which claims."""
    n_failed = count_failed(results.records)
    sets = sorted({run["data"] for run in results.records})
    methods = results.methods("comparison")
    n_runs = len(results.records)
    ran = (
        f"{count(n_runs, 'run')} on {count(len(sets), 'data set')}, {count(len(methods), 'method')} in the "
        f"comparison; {n_failed or 'none'} failed."
    )
    if results.n_to_do:
        ran += f" Not complete: {results.n_to_do} planned runs have no result yet."
    return (
        ran,
        closeness(tables["acc"], "ACC", results.paper.ours),
        closeness(tables["nmi"], "NMI", results.paper.ours),
        *([_targets_line(targets)] if targets else []),
        *([_claims_line(claims)] if claims else []),
    )


def closeness(table: Table, label: str, ours: Sequence[str]) -> str:
    """Return how many cells lie within 0.03 of the paper, above and below, and means of its own methods."""
    gaps = [
        cell.difference
        for row in table.rows
        if row.kind == "data"
        for cell in row.cells
        if cell.difference is not None
    ]
    if not gaps:
        return f"{label}: no cell to compare with the paper yet."
    above = sum(exceeds(gap, NEAR) for gap in gaps)
    below = sum(exceeds(-gap, NEAR) for gap in gaps)
    higher = sum(gap >= 0 for gap in gaps)
    line = (
        f"{label}: {count(len(gaps), 'cell')} that both have, {len(gaps) - above - below} within {NEAR} of "
        f"the paper, {above} higher than that, {below} lower; {higher} at or above the paper's value."
    )
    # Recomputed over the sets in both: the printed averages are over other sets (paper note 59).
    means = {method: mean_cell(list(table.column(method).values())) for method in ours}
    texts = [
        f"{method} {cell.ours:.3f} (paper {cell.paper:.3f}, {cell.note})"
        for method, cell in means.items()
        if cell.ours is not None
    ]
    return f"{line} Mean over the sets in both: {'; '.join(texts)}." if texts else line


def _targets_line(targets: Sequence[Claim]) -> str:
    met = [target for target in targets if target.verdict == MET]
    untested = [target for target in targets if target.verdict == UNTESTED]
    # Not tested is not missed: an incomplete evaluation says nothing on a target.
    missed = [target for target in targets if target not in met and target not in untested]
    line = f"Targets of this reproduction: {len(met)} of {len(targets)} met"
    line += f", {len(missed)} not met" if missed else ""
    line += f", {len(untested)} not tested" if untested else ""
    names = "; ".join(target.statement.rstrip(".") for target in missed)
    return f"{line}. Not met: {names}." if missed else f"{line}."


def _claims_line(claims: Sequence[Claim]) -> str:
    tally = Counter(claim.verdict for claim in claims)
    words = dict(zip(VERDICTS, ("hold", "hold in part", "do not hold", "not tested"), strict=True))
    counts = ", ".join(f"{tally[verdict]} {words[verdict]}" for verdict in VERDICTS)
    return f"The paper's {len(claims)} claims, judged on our runs by fixed rules: {counts}."
