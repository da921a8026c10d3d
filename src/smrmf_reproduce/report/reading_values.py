"""Every figure under every reading, and every repeat, as lists: tables show no more than their spread."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from statistics import fmean

from smrmf_reproduce.report.paper import shown_name
from smrmf_reproduce.report.reading_choice import EXPERIMENT as CHOICE
from smrmf_reproduce.report.results import ALSO_READ, STANDS_FOR, Results
from smrmf_reproduce.report.score import Score, best_over_grid
from smrmf_reproduce.report.table import format_params
from smrmf_reproduce.run.best import finished, point_key
from smrmf_reproduce.run.repeats import REPEATS
from smrmf_reproduce.run.store import Record

MEASURES = {"ACC": "accuracy", "NMI": "nmi_max"}
# What claims rest on beside scores, of the best run by accuracy: where it stands in a record, and in words.
OF_NEIGHBORHOODS = {
    "selected": "bad neighbours, selected",
    "other": "bad neighbours, not selected",
    "bad_nbh": "bad neighbourhoods",
}
HEADINGS = ("experiment", "data set", "method", "measure", "reading", "value", "setting", "note")


def values_csv(results: Results) -> str:
    """Return one line for each experiment, data set, method, measure and reading; empty with one reading."""
    named = (*STANDS_FOR, CHOICE, *ALSO_READ)
    read = [name for name in named if len(results.readings(experiment=name)) > 1]
    lines = [line for experiment in read for line in _lines(results, experiment)]
    lines += [line for experiment in STANDS_FOR if experiment in read for line in _facts(results, experiment)]
    return _written(HEADINGS, lines)


def repeats_csv(results: Results) -> str:
    """Return one line for each repeat of a best point and each measure; empty without repeats."""
    repeats = [run for run in results.records if REPEATS in run["experiments"]]
    lines = [
        (
            shown_name(run["data"]),
            run["method"],
            label,
            format_params(run["params"]),
            run["seed"],
            run[measure],
        )
        for label, measure in MEASURES.items()
        for run in finished(repeats, measure)
    ]
    return _written(("data set", "method", "measure", "setting", "repeat", "value"), lines)


def _written(headings: tuple[str, ...], lines: Sequence[tuple[object, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([headings, *lines] if lines else [])
    return text.getvalue()


def _lines(results: Results, experiment: str) -> Iterator[tuple[object, ...]]:
    cells = product(results.data_sets(experiment), results.methods(experiment), MEASURES.items())
    for data, method, (label, measure) in cells:
        for reading in results.readings(method, experiment):
            for score in _scores(results, experiment, data, method, measure, reading):
                value = None if score.value is None else round(score.value, 4)
                names = (experiment, shown_name(data), method, label, reading)
                yield (*names, value, format_params(score.params), score.note)


def _scores(
    results: Results, experiment: str, data: str, method: str, measure: str, reading: str
) -> list[Score]:
    """Return the best over the grid of a cell; where the grid is what a table shows, each of its points."""
    if not experiment.startswith("sensitivity"):
        score = results.best(experiment, data, method, measure, reading)
        return [score] if score.n_runs else []
    points: dict[str, list[Record]] = defaultdict(list)
    for run in results.runs(experiment, data, method, reading):
        points[point_key(run["params"])].append(run)
    return [best_over_grid(points[point], measure) for point in sorted(points)]


def _facts(results: Results, experiment: str) -> Iterator[tuple[object, ...]]:
    """List what claims on speed, convergence and neighbourhoods rest on under every reading."""
    for data, method in product(results.data_sets(experiment), results.methods(experiment)):
        for reading in results.readings(method, experiment):
            score = results.best(experiment, data, method, reading=reading)
            if score.run is None:
                continue
            seconds = finished(results.runs(experiment, data, method, reading), "seconds")
            kept = score.run["neighborhoods"] or {}
            found: dict[str, float | None] = {
                "mean seconds of a run": fmean(run["seconds"] for run in seconds),
                "iterations": score.run["n_iter"],
                **{words: kept.get(name) for name, words in OF_NEIGHBORHOODS.items()},
            }
            for label, value in found.items():
                if value is not None:
                    names = (experiment, shown_name(data), method, label, reading)
                    yield (*names, round(value, 4), format_params(score.params), score.lacks)
