"""Write the report: one self-contained page, its Markdown twin, the tables and the figures."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path

from smrmf_reproduce.report import drawing
from smrmf_reproduce.report.figures import FIGURES
from smrmf_reproduce.report.markdown import to_readme
from smrmf_reproduce.report.outline import FOLDED, PROTOCOL, Report, compose
from smrmf_reproduce.report.provenance import Provenance
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.table import (
    NEAR,
    Cell,
    Table,
    best_column,
    exceeds,
    in_words,
    number,
    printed_number,
    to_csv,
)
from smrmf_reproduce.report.tables import BUILDERS
from smrmf_reproduce.run.store import write_atomically

# A difference is coloured beyond these sizes.
STEPS = (NEAR, 0.08, 0.15)


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
    for name, table in report.tables.items():
        if not table.is_empty:
            files[f"tables/{name}.csv"] = to_csv(table).encode()
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
    environment.globals |= {"cell_classes": cell_classes, "best_column": best_column, "in_words": in_words}
    pictures = {
        name: Markup(drawing.inline(picture.svg, name, escape(picture.caption)))
        for name, picture in report.pictures.items()
    }
    return environment.get_template("page.html.jinja").render(
        report=report,
        css=Markup((here / "page.css").read_text(encoding="utf-8")),
        pictures=pictures,
        protocol=PROTOCOL,
        folded=FOLDED,
    )


def cell_classes(table: Table, cell: Cell) -> str:
    """Return the classes of a cell: how far it is from the paper, and whether it lost runs."""
    classes = ["lost"] if "failed" in cell.note or "to do" in cell.note or cell.note == "missing" else []
    if table.colored and cell.difference is not None:
        size = sum(exceeds(abs(cell.difference), step) for step in STEPS)
        if size:
            classes.append(f"{'above' if cell.difference > 0 else 'below'}{size}")
    return " ".join(classes)


def _remove_stale(folder: Path, written: set[str]) -> None:
    """Remove tables and figures of an earlier report that this one does not have; only names we write."""
    names = [f"tables/{name}.csv" for name in BUILDERS]
    names += [f"figures/{name}.{kind}" for name in FIGURES for kind in ("svg", "png")]
    for name in names:
        if name not in written:
            (folder / name).unlink(missing_ok=True)
