"""Every table of the report, from the runs of all experiments and the paper's printed values."""

from __future__ import annotations

from collections.abc import Callable

from smrmf_reproduce.report import analysis_tables as analysis
from smrmf_reproduce.report import neighborhood_tables as neighborhoods
from smrmf_reproduce.report import no_labels_tables as no_labels
from smrmf_reproduce.report import reading_tables as readings
from smrmf_reproduce.report import score_tables as scores
from smrmf_reproduce.report.reading_choice import choice_of_reading_table
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.table import Table

BUILDERS: dict[str, Callable[[Results], Table]] = {
    "acc": scores.acc_table,
    "nmi": scores.nmi_table,
    "run_time": scores.run_time_table,
    "best_settings": scores.best_settings_table,
    "violation": neighborhoods.violation_table,
    "label_mismatch": neighborhoods.label_mismatch_table,
    "two_moons": neighborhoods.moons_table,
    "choice_of_reading": choice_of_reading_table,
    "readings_acc": readings.readings_acc_table,
    "readings_nmi": readings.readings_nmi_table,
    "no_labels": no_labels.no_labels_table,
    "no_labels_sets": no_labels.no_labels_sets_table,
    "sensitivity_k": analysis.sensitivity_k_table,
    "sensitivity_exemplars": analysis.sensitivity_exemplars_table,
    "convergence": analysis.convergence_table,
    "datasets": neighborhoods.datasets_table,
}


def build_tables(results: Results) -> dict[str, Table]:
    """Return the tables by name, also those that are still empty."""
    return {name: build(results) for name, build in BUILDERS.items()}
