"""Write the report: one self-contained page, its Markdown twin, the tables and the figures."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path

from smrmf_reproduce.report import drawing
from smrmf_reproduce.report.figures import FIGURES
from smrmf_reproduce.report.markdown import to_readme
from smrmf_reproduce.report.outline import CSV_FILES, FOLDED, PROTOCOL, Report, compose
from smrmf_reproduce.report.provenance import Provenance
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.table import (
    HIGHER,
    LOWER,
    NEAR,
    Cell,
    Table,
    best_columns,
    exceeds,
    in_words,
    number,
    printed_number,
)
from smrmf_reproduce.report.verdicts import VERDICTS
from smrmf_reproduce.run.store import write_atomically

# A difference is coloured beyond these sizes.
STEPS = (NEAR, 0.08, 0.15)
# Beside the colour, for who cannot see it.
MARKS = {"better": "\N{CHECK MARK}", "worse": "\N{BALLOT X}"}


def write_report(results: Results, provenance: Provenance, folder: str | os.PathLike[str]) -> Path:
    """Write ``index.html``, ``README.md``, ``tables/`` and ``figures/`` for any set of runs.

    Parameters
    ----------
    results : Results
        The runs, complete or not; failed ones included. A figure whose runs are not all there is left out,
        and said to be.
    provenance : Provenance
        Where they come from.
    folder : path
        Where to write; made if needed. Files of an earlier report are replaced one by one, each in a
        single step and the page last, so an interrupted report leaves the old page readable.

    Returns
    -------
    Path
        The HTML page.
    """
    report = compose(results, provenance)
    # All is composed before the first file is written: an error in a table leaves the old report whole.
    files: dict[str, bytes] = {}
    for name, text in report.csvs.items():
        files[f"tables/{name}.csv"] = text.encode()
    for name, picture in report.pictures.items():
        files[f"figures/{name}.svg"] = picture.svg.encode()
        files[f"figures/{name}.png"] = picture.png
    files["README.md"] = to_readme(report).encode()
    # Last in the dict and so last on disk: a kill on the way leaves the old page with some new tables.
    files["index.html"] = to_html(report).encode()
    target = Path(folder)
    for path, content in files.items():
        write_atomically(target / path, content)
    # After the page: the old page may refer to files that the new one does not have.
    _remove_stale(target, set(files))
    return target / "index.html"


def to_html(report: Report) -> str:
    """Return the page: styles and pictures inside, nothing loaded from anywhere."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    here = Path(__file__).parent / "templates"
    # Error messages of runs stand on the page, so everything is escaped. StrictUndefined raises for a wrong
    # name in the template, which would otherwise print nothing.
    environment = Environment(
        loader=FileSystemLoader(here), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.filters |= {"number": number, "printed": printed_number}
    environment.globals |= {"cell_classes": cell_classes, "verdict": verdict, "has_paper": has_paper}
    environment.globals |= {
        "best_columns": best_columns,
        "in_words": in_words,
        "HIGHER": HIGHER,
        "LOWER": LOWER,
    }
    pictures = {
        name: Markup(drawing.inline(picture.svg, name, escape(picture.caption)))
        for name, picture in report.pictures.items()
    }
    return environment.get_template("page.html.jinja").render(
        report=report,
        css=Markup((here / "page.css").read_text(encoding="utf-8")),
        pictures=pictures,
        protocol=PROTOCOL,
        steps=STEPS,
        marks=MARKS,
        folded=FOLDED,
        verdicts=VERDICTS,
    )


def verdict(table: Table, column: str, cell: Cell) -> tuple[str, int]:
    """Return "better" or "worse" than the paper's figure, and by how many steps; ("", 0) where it is near.

    Above is not better where less is good, and where neither way is good nothing is better or worse.
    """
    if not table.colored or cell.difference is None:
        return "", 0
    gain = table.goal(column) * cell.difference
    size = sum(exceeds(abs(gain), step) for step in STEPS)
    return ("better" if gain > 0 else "worse", size) if size else ("", 0)


def has_paper(table: Table) -> bool:
    """Tell whether any figure of a table stands beside one of the paper."""
    return any(cell.difference is not None for row in table.rows for cell in row.cells)


def cell_classes(table: Table, column: str, cell: Cell) -> str:
    """Return the classes of a cell: its verdict, how much better or worse than the paper's, lost runs."""
    if cell.text in VERDICTS:
        return cell.text.replace(" ", "-")
    classes = ["lost"] if "failed" in cell.note or "to do" in cell.note or cell.note == "missing" else []
    word, size = verdict(table, column, cell)
    return " ".join([*classes, f"{word}{size}"] if size else classes)


def _remove_stale(folder: Path, written: set[str]) -> None:
    """Remove tables and figures of an earlier report that this one does not have; only names we write."""
    names = [f"tables/{name}.csv" for name in CSV_FILES]
    names += [f"figures/{name}.{kind}" for name in FIGURES for kind in ("svg", "png")]
    for name in names:
        if name not in written:
            (folder / name).unlink(missing_ok=True)
