"""What the report says: sections of tables and figures, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from smrmf_reproduce.report.claims import judge_claims
from smrmf_reproduce.report.failures import Failure, Missing, failed_runs, missing_cells
from smrmf_reproduce.report.figures import Picture, draw_figures
from smrmf_reproduce.report.provenance import Provenance
from smrmf_reproduce.report.reading_claims import claims_csv, claims_table, judge_by_reading, with_readings
from smrmf_reproduce.report.reading_values import repeats_csv, values_csv
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.summary import summarize
from smrmf_reproduce.report.table import Table, Tables, to_csv
from smrmf_reproduce.report.tables import BUILDERS, build_tables
from smrmf_reproduce.report.verdicts import Claim

# Wide and of second interest: on the page behind a line to open.
FOLDED = ("best_settings", "readings_nmi", "no_labels_sets")
# Every file of figures that a report may have.
CSV_FILES = (*BUILDERS, "claims_by_reading", "readings_values", "repeats")


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
    csvs: Mapping[str, str]


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
        ("choice_of_reading", "claims_by_reading", "readings_acc", "readings_nmi"),
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
    "The best point of a grid, chosen with the labels (the paper's protocol). Every method runs at every "
    "point of its grid, the paper's but for the exceptions listed below, a random method with several seeds, "
    "averaged at each point; the best point is reported. Nobody can choose like this without labels: see "
    "'Without labels' for what remains.",
    "The methods named first in the summary draw no random numbers, but their algorithm amplifies rounding "
    "errors: another processor can give another figure. So the best point is repeated from starts that "
    "differ by far less than any data are known to, and the figure is the mean of these repeats. The run "
    "that won is not among them: it was chosen for being the highest. It stands beside the mean as 'best', "
    "which is what the paper's protocol reports. In a row of a data set, a figure without ± is a single run. "
    "Verdicts on scores are of the means; those on neighbourhoods, settings and convergence are of single "
    "runs.",
    "ACC and NMI each take their own best point. ACC matches clusters to classes one to one; NMI is divided "
    "by the larger of the two entropies (max), which is what the paper's printed moons figures fit.",
    "Labels of a factorisation are read by argmax: a point belongs to the column with its largest entry. "
    "Methods that come with a rule of their own keep it.",
    "A difference is always ours - paper. The paper prints two digits, so differences below 0.005 are "
    "rounding. What the paper leaves open moves a cell far more than that ('How firm these figures are'): "
    "means and orderings can be reproduced, single cells cannot. Where ours is a mean of repeats, the "
    "paper's is still its best run: ours is lower by that luck even where all else is equal.",
    "A reading is one way to settle what the paper leaves open. One reading is published for all methods and "
    "sets. The rule is the smallest distance from the paper's printed figures of the methods that it "
    "compares with; figures of the methods that it proposes have no say ('Choice of the reading'). Choices "
    "that only the proposed methods have follow the paper's words. Under other readings every claim is "
    "judged again ('Claims by reading').",
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
    targets = judge_claims(paper.targets, tables, paper)
    by_reading = judge_by_reading(results)
    claims = with_readings(judge_claims(paper.claims, tables, paper), by_reading)
    tables["claims_by_reading"] = claims_table(results, claims, by_reading)
    csvs = {name: to_csv(table) for name, table in tables.items() if not table.is_empty}
    # In a form of their own: what stands behind a verdict, and what is in no table.
    own = {"claims_by_reading": claims_csv(claims, by_reading) if by_reading else ""}
    own |= {"readings_values": values_csv(results), "repeats": repeats_csv(results)}
    csvs |= {name: text for name, text in own.items() if text}
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
    summary = summarize(results, tables, targets, claims, by_reading)
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
        csvs,
    )
