"""Tables that show how far the figures move at other settings, and until convergence."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.table import Cell, Table, count, data_row, insert_average
from smrmf_reproduce.run.store import DONE, Record


def sensitivity_k_table(results: Results) -> Table:
    """Return the main method's accuracy at each number of neighbours."""
    return _tabulate_sensitivity(
        results,
        "sensitivity-k",
        "n_neighbors",
        "k = {}",
        "Sensitivity to the number of neighbours k",
    )


def sensitivity_exemplars_table(results: Results) -> Table:
    """Return the main method's accuracy at each share of exemplars."""
    return _tabulate_sensitivity(
        results,
        "sensitivity-exemplars",
        "exemplars",
        "{:.0%}",
        "Sensitivity to the share of exemplars",
    )


def _tabulate_sensitivity(results: Results, experiment: str, name: str, heading: str, title: str) -> Table:
    grid = results.paper.grids.get(experiment, {})
    values, weights = grid.get(name, []), grid.get("manifold_weight", [])
    rows = []
    for data in results.data_sets(experiment):
        runs = results.runs(experiment, data, results.paper.main)
        rows.append(data_row(data, (_at(runs, name, value) for value in values)))
    # Sets with every setting, so that columns are averaged over the same sets.
    full = [row for row in rows if row.kind == "data" and all(c.ours is not None for c in row.cells)]
    if full:
        means = tuple(Cell(fmean(row.cells[i].ours or 0.0 for row in full)) for i in range(len(values)))
        insert_average(rows, f"average, {count(len(full), 'set')}", means)
    columns = tuple("k = ⌊√n⌋" if value == "sqrt" else heading.format(value) for value in values)
    note = (
        f"{results.paper.main}'s accuracy at λ = β = {', '.join(map(str, weights))}, everything else as in "
        "the comparison, one run each. The paper shows these as curves that are not in its available text, "
        "so there is no number to compare with."
    )
    return Table(experiment.replace("-", "_"), title, note, columns, tuple(rows), colored=False, best=True)


def _at(runs: list[Record], name: str, value: Any) -> Cell:
    here = [run for run in runs if run["params"].get(name) == value]
    # Nothing is chosen here: at a fixed setting all seeds are averaged.
    done = [run["accuracy"] for run in here if run["status"] == DONE]
    failed = len(here) - len(done)
    note = f"{failed} of {len(here)} runs failed" if failed else ("" if here else "missing")
    return Cell(fmean(done) if done else None, note=note)


def convergence_table(results: Results) -> Table:
    """Return iterations and the stopping state of the main method's best run on every set."""
    rows = []
    for data in results.data_sets("comparison"):
        score = results.best("comparison", data, results.paper.main)
        run = score.run
        if not score.n_runs:
            continue
        found: Record = run or {}
        stopped = found.get("converged")
        cells = (
            Cell(found.get("n_iter"), note=score.lacks),
            Cell(text="" if stopped is None else "yes" if stopped else "no"),
            Cell(text="" if found.get("objective") is None else f"{found['objective']:.4g}"),
        )
        rows.append(data_row(data, cells))
    note = f"{results.paper.main}'s best run by accuracy.{results.paper.remark('convergence')}"
    columns = ("iterations", "converged", "objective at the end")
    return Table("convergence", "Convergence", note, columns, tuple(rows), digits=0, colored=False)
