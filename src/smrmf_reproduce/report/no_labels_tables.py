"""Tables of scores without labels: each method at one setting, fixed for all data sets."""

from __future__ import annotations

from statistics import fmean

from smrmf_reproduce.report.paper import PAPER_NAMES, REAL_SETS
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.table import Cell, Table, TableRow, count, data_row, format_params


def no_labels_table(results: Results) -> Table:
    """Return mean scores over the data sets at one fixed setting per method."""
    methods = results.methods("no-labels")
    sets = common_no_label_sets(results)
    rows = []
    for method in methods:
        # Over the same sets as the columns beside it, so that their difference is what labels add.
        tuned = [results.best("comparison", data, method).value for data in sets]
        cells = (
            _mean_over(results, sets, method, "accuracy"),
            _mean_over(results, sets, method, "nmi_max"),
            Cell(fmean(v for v in tuned if v is not None)) if sets and None not in tuned else Cell(),
            _mean_over(results, sets, method, "seconds"),
        )
        rows.append(TableRow(method, cells, note=_settings_note(results, sets, method)))
    note = (
        "No labels anywhere but in the scores: each method at one setting, fixed for all data sets; the "
        f"library's defaults; three standard methods. Means over {count(len(sets), 'set')} that every method "
        f"here finished ({_named(sets)}). The third column, from the table of ACC, shows what the search "
        "with labels adds."
    )
    columns = ("mean ACC", "mean NMI", "mean ACC, best grid point", "seconds a run")
    return Table(
        "no_labels", "Means over the data sets", note, columns, tuple(rows), corner="method", colored=False
    )


def no_labels_sets_table(results: Results) -> Table:
    """Return accuracy on every data set at one fixed setting per method."""
    methods = tuple(results.methods("no-labels"))
    rows = []
    for data in results.data_sets("no-labels"):
        scores = [results.average("no-labels", data, method, "accuracy") for method in methods]
        cells = tuple(Cell(score.value, std=score.std, note=score.note) for score in scores)
        rows.append(data_row(data, cells, counted=PAPER_NAMES))
    note = "Accuracy at the fixed settings of the table above; ± over the seeds of random methods."
    return Table(
        "no_labels_sets", "Without labels, by data set", note, methods, tuple(rows), colored=False, best=True
    )


def common_no_label_sets(results: Results) -> list[str]:
    """Return the paper's real sets that every method of the comparison without labels finished."""
    methods = results.methods("no-labels")
    return [
        data
        for data in results.data_sets("no-labels")
        # Our own sets are in no average.
        if data in REAL_SETS
        and all(results.average("no-labels", data, m, "accuracy").value is not None for m in methods)
    ]


def _mean_over(results: Results, sets: list[str], method: str, measure: str) -> Cell:
    scores = [results.average("no-labels", data, method, measure) for data in sets]
    values = [score.value for score in scores if score.value is not None]
    failed = sum(score.n_failed for score in scores)
    note = f"{failed} runs failed" if failed else ""
    return Cell(fmean(values) if values else None, note=note)


def _settings_note(results: Results, sets: list[str], method: str) -> str:
    """Return the fixed setting; a number of settings shows that a method does not keep to one."""
    settings = {
        format_params(dict(run["params"])) for data in sets for run in results.runs("no-labels", data, method)
    }
    return ", ".join(settings) if len(settings) < 2 else f"{len(settings)} settings"


def _named(sets: list[str]) -> str:
    return ", ".join(PAPER_NAMES[data] for data in sets) or "none"
