"""Cluster handwritten digits, and see which images stand for the rest.

Loads the 1797 digits that come with scikit-learn, clusters them without their labels, prints the
clusters with their best exemplars, and draws all images on a map, the exemplars as what they are.
Run it from the root of the repository with ``make demo``, or with the ``plot`` extra installed:

    python examples/demo_digits.py [picture.png]
"""

import argparse
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.callback import ProgressBar
from sklearn.datasets import load_digits

import smrmf.plot
from smrmf import FastSMRMF
from smrmf.metrics import clustering_accuracy
from smrmf.plot._style import COLORS

N_CLUSTERS = 10
SHOWN = 5  # largest number of exemplars per cluster
TITLE = "1797 handwritten digits in 10 clusters, with their exemplars"
SUBTITLE = (
    "Every dot is an image, near its look-alikes, in the colour of the cluster found for it without labels.\n"
    "Framed: some of the exemplars, the images that stand for their cluster."
)

console = Console(highlight=False)


def table_of_clusters(model, digits):
    """Return one row per cluster: its size, its best exemplars, and the digit it shows most often."""
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("cluster", "images", "best exemplars (index)", "they show", "commonest digit"):
        table.add_column(heading, justify="right", no_wrap=True)
    for cluster, color in enumerate(COLORS[:N_CLUSTERS]):
        counts = np.bincount(digits[model.labels_ == cluster], minlength=10)
        best = [i for i in model.exemplar_indices_ if model.labels_[i] == cluster][:SHOWN]
        table.add_row(
            f"[bold {color}]{cluster}[/]",
            f"{counts.sum()}",
            " ".join(f"{i:4d}" for i in best),
            " ".join(f"{digit}" for digit in digits[best]),
            f"{counts.argmax()} in {counts.max() / counts.sum():4.0%}",
        )
    return table


def draw(model, data, path):
    """Write the map of all images; what is near on it looks alike to the model."""
    figure = Figure(figsize=(8, 6), dpi=200, facecolor="white", layout="constrained")
    figure.suptitle(TITLE, size=15, weight="bold", x=0.01, ha="left")
    ax = figure.subplots()
    ax.set_title(SUBTITLE, size=9.5, linespacing=1.35, loc="left")
    # Not by numbers alone: these are digits already.
    names = [f"c{cluster}" for cluster in range(N_CLUSTERS)]
    smrmf.plot.map(model, images=data.images, names=names, ax=ax)
    figure.savefig(path, format="png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("picture", nargs="?", type=Path, default="demo.png", help="file to write (PNG)")
    picture = parser.parse_args().picture
    picture.parent.mkdir(parents=True, exist_ok=True)

    console.print("Loading the digits that come with scikit-learn ...")
    data = load_digits()
    console.print(f"Clustering {len(data.data)} images of 8 x 8 pixels (the first run also compiles) ...")
    model = FastSMRMF(n_clusters=N_CLUSTERS, random_state=0).set_callbacks(ProgressBar())
    start = time.perf_counter()
    model.fit(data.data)
    seconds = time.perf_counter() - start

    console.print(table_of_clusters(model, data.target))
    accuracy = clustering_accuracy(data.target, model.labels_)
    console.print(f"Clustering accuracy [bold]{accuracy:.1%}[/]; the labels were used for this score only.")
    console.print(f"The fit took [bold]{seconds:.1f} s[/], compiling or loading compiled code included.")

    console.print("Drawing the map ...")
    draw(model, data, picture)
    console.print(f"Wrote {picture}", style="bold", markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
