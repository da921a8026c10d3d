"""How all figures look, and how they are saved: small files that are the same every time."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which readers with any colour vision can tell apart.
BLUE, ORANGE, VERMILION, GREY = "#0072B2", "#E69F00", "#D55E00", "#7A7A7A"
INK = "#333333"
WIDTH = 9.2  # inches, the page's width at 100 dots an inch
NARROW = 4.9  # inches, for figures that fit a phone with readable letters
DPI = 160

STYLE: dict[str, Any] = {
    # Laid out with the wide DejaVu Sans: any font a browser puts in its place is narrower and fits.
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Helvetica", "Arial"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8A8A8A",
    "axes.linewidth": 0.7,
    "axes.labelcolor": INK,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    # Text stays text: smaller files, and readers can search and copy it.
    "svg.fonttype": "none",
    # A name with two dollar signs is a name, not a formula, and need not be a valid one.
    "text.parse_math": False,
}


@contextmanager
def house_style(name: str) -> Iterator[None]:
    """Draw with the house style; names inside the SVG depend on ``name`` only, not on the clock."""
    import matplotlib

    # Without a salt matplotlib draws random ids, and every report would differ from the last.
    settings: Any = STYLE | {"svg.hashsalt": name}
    with matplotlib.rc_context(settings):
        yield


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """Return an empty figure, its parts placed without overlap."""
    from matplotlib.figure import Figure

    # Not by pyplot, which keeps every figure alive and may look for a screen.
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def panels(n: int, columns: int, panel_height: float) -> tuple[Figure, list[Axes]]:
    """Return a grid with exactly ``n`` panels, one for each data set or method."""
    rows = -(-n // columns)
    figure = new_figure(panel_height * rows + 0.45)
    grid = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axes in grid[n:]:
        axes.set_visible(False)
    return figure, grid[:n]


def save(figure: Figure) -> tuple[str, bytes]:
    """Return the figure as SVG text and PNG bytes, both free of dates and versions."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # placed once, for both files
    svg, png = io.BytesIO(), io.BytesIO()
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    figure.savefig(png, format="png", dpi=DPI, metadata={"Software": None})
    return shorten(svg.getvalue().decode()), png.getvalue()


def shorten(svg: str) -> str:
    """Return the SVG with coordinates to a hundredth of a point and without its prologue."""
    svg = re.sub(r"^.*?(?=<svg )", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*<!--.*?-->", "", svg, flags=re.DOTALL)
    # Inside tags only: numbers between them are text that a reader sees.
    return re.sub(r"<[^>]*>", lambda tag: re.sub(r"-?\d+\.\d{3,}", _hundredths, tag[0]), svg)


def _hundredths(match: re.Match[str]) -> str:
    # + 0.0 turns -0 into 0. Six digits of g are enough for coordinates below 10 000.
    return f"{round(float(match[0]), 2) + 0.0:g}"


def inline(svg: str, name: str, title: str) -> str:
    """Return the SVG for use inside a page: its own names, scaled to the text's width, with a title."""
    # Ids are unique in a file but not in a page of several figures: each gets the figure's name.
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    svg = re.sub(r'(?:xlink:)?href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    svg = re.sub(r'\s+xmlns(?::xlink)?="[^"]*"', "", svg)
    svg = re.sub(r'^(<svg [^>]*?)\bwidth="[^"]*"', r"\1", svg)
    svg = re.sub(r'^(<svg [^>]*?)\bheight="[^"]*"', r"\1", svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)
