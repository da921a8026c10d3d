"""Every figure under every reading, as a list: tables show no more than the lowest and the highest."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator
from itertools import product

from smrmf_reproduce.report.paper import shown_name
from smrmf_reproduce.report.reading_choice import EXPERIMENT as CHOICE
from smrmf_reproduce.report.results import ALSO_READ, READINGS, Results
from smrmf_reproduce.report.score import Score, best_over_grid
from smrmf_reproduce.report.table import format_params
from smrmf_reproduce.run.best import point_key
from smrmf_reproduce.run.store import Record

MEASURES = {"ACC": "accuracy", "NMI": "nmi_max"}
HEADINGS = ("experiment", "data set", "method", "measure", "reading", "value", "setting", "note")


def values_csv(results: Results) -> str:
    """Return one line for each experiment, data set, method, measure and reading; empty with one reading."""
    read = [name for name in (READINGS, CHOICE, *ALSO_READ) if len(results.readings(experiment=name)) > 1]
    lines = [line for experiment in read for line in _lines(results, experiment)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([HEADINGS, *lines] if lines else [])
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
        points[point_key(run)].append(run)
    return [best_over_grid(points[point], measure) for point in sorted(points)]
