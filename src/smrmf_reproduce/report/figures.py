"""Every figure of the report, from the runs and the tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smrmf_reproduce.report import curve_figures as curves
from smrmf_reproduce.report import moons_figures as moons
from smrmf_reproduce.report import overview_figures as overview
from smrmf_reproduce.report.drawing import NARROW, house_style, save
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.table import Tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Builder = Callable[[Results, Tables], "Figure | None"]


@dataclass(frozen=True)
class Picture:
    """A drawn figure, ready to be written to a file or into a page; a narrow one fits a phone."""

    name: str
    caption: str
    svg: str
    png: bytes
    narrow: bool


# Every figure by name, with its caption; {main} stands for the method that the plan puts first among ours.
FIGURES: dict[str, tuple[Builder, str]] = {
    "mean_accuracy": (
        overview.mean_accuracy,
        "Mean accuracy of each method over the sets that all have, at the best point of the grid (mean over "
        "seeds or repeats), highest of ours on top; the methods that the paper proposes are bold on a band. "
        "A bar is one standard deviation to either side, of the mean over the sets when each is run once "
        "with another seed or from another start: from the standard deviations on each set. No bar: a single "
        "run on some of the sets, so no spread is known.",
    ),
    "readings_range": (
        overview.readings_range,
        "Mean accuracy over the sets measured under all readings of what the paper leaves open, on the short "
        "grid of the readings: the paper's and ours; the bar runs from the lowest to the highest mean that a "
        "reading gives. Best of the short grid, by single runs where a method draws no random numbers.",
    ),
    "accuracy_scatter": (
        overview.accuracy_scatter,
        "Our accuracy, mean over seeds or repeats, against the paper's, one point a data set. On the line "
        "they are equal, in the grey band they differ by at most 0.03; the number in the title is the mean "
        "of ours - paper.",
    ),
    "moons_manifold": (
        moons.manifold,
        "The graph each method uses on 2DMoons: points coloured by class, edges wider and darker with "
        "weight (below 2 % of the largest not drawn, a dense graph lighter), {main}'s exemplars ringed.",
    ),
    "moons_clusterings": (
        moons.clusterings,
        "Clusters found on both moons sets (10DMoons by its first two coordinates): colour is the cluster, "
        "matched to the classes as the accuracy does; crosses are points in the wrong cluster.",
    ),
    "sensitivity_k": (
        curves.sensitivity_k,
        "{main}'s accuracy against the number of neighbours; the best setting is filled. Every panel spans "
        "the same range of accuracy.",
    ),
    "sensitivity_exemplars": (
        curves.sensitivity_exemplars,
        "{main}'s accuracy against the share of exemplars; the best setting is filled. Every panel spans the "
        "same range of accuracy.",
    ),
    "convergence": (
        curves.convergence,
        "The objective of {main}'s best run on each data set, with its number of iterations. The dashed line "
        "marks 400 iterations.",
    ),
}


def draw_figures(results: Results, tables: Tables) -> dict[str, Picture]:
    """Return the figures for which there are runs, by name."""
    pictures = {}
    for name, (build, caption) in FIGURES.items():
        # Around drawing and saving: some settings act when the figure is made, others when it is written.
        with house_style(f"smrmf {name}"):
            figure = build(results, tables)
            if figure is not None:
                narrow = figure.get_figwidth() <= NARROW
                words = caption.format(main=results.paper.main)
                pictures[name] = Picture(name, words, *save(figure), narrow)
    return pictures
