"""The report as Markdown, for a code host: the same words, tables and figures as the page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from smrmf_reproduce.report.figures import Picture
from smrmf_reproduce.report.outline import PROTOCOL, Report, Section
from smrmf_reproduce.report.table import Cell, Table, TableRow, to_markdown
from smrmf_reproduce.report.verdicts import Claim

# What Markdown acts on anywhere, an underscore only at the edge of a word; and what begins a heading, a list
# or a line when it comes first.
SIGNS = re.compile(r"[\\`*\[\]~]|(?<![^\W_])_|_(?![^\W_])")
FIRST = re.compile(r"^(\d+(?=[.)]( |$))|(?=[-+#]))")
KEY = (
    "In a table: ours ± over seeds or repeats, best single run over the grid / paper. Bold: our best of the "
    "row."
)


def escape(text: str) -> str:
    """Return Markdown that shows a text as it is, on one line; bars are left to the table they stand in."""
    # The same texts stand on the page, where they are escaped as well: no markup in them is ours. A name in
    # them may be anybody's.
    text = SIGNS.sub(r"\\\g<0>", " ".join(text.split()))
    # Not by a backslash: some readers of Markdown let \<script> through.
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"#+$", lambda end: end[0].replace("#", "\\#"), text)  # would close a heading
    return FIRST.sub(r"\1\\", text)


def code(text: str) -> str:
    """Return a text as code, between more backticks than it has itself."""
    text = " ".join(text.split())
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    # A space is taken away again; it parts a backtick at the edge from the fence.
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def to_readme(report: Report) -> str:
    """Return the whole report; cells are "ours / paper", pictures are links into ``figures/``."""
    provenance = report.provenance
    parts = [
        "# SMRMF: our figures beside the paper's\n",
        "Mani, Domeniconi, Griva: *Unsupervised Selective Manifold Regularized Matrix Factorization* "
        f"(arXiv 2010.09936), measured again with {code(provenance.command)}. The same as one page: "
        "[index.html](index.html).\n",
        *([_picture(report.opening)] if report.opening else []),
        "## Summary\n",
        _bullets(report.summary),
        *(f"> {escape(note)}\n" for note in provenance.notes),
        f"{escape(' · '.join(provenance.facts()))}\n",
        "## How to read this page\n",
        _bullets((*PROTOCOL, KEY)),
        *(["Exceptions:\n", _bullets(provenance.exceptions)] if provenance.exceptions else []),
        *(["## Targets\n", _claims(report.targets)] if report.targets else []),
        *(["## The paper's claims\n", _claims(report.claims)] if report.claims else []),
        *(_section(section) for section in report.sections),
        "## Failed and missing runs\n",
        _failed(report),
        "## Machine and versions\n",
        _bullets([f"{name}: {value}" for name, value in provenance.details()]),
    ]
    return "\n".join(parts)


def _section(section: Section) -> str:
    parts = [f"## {escape(section.title)}\n"]
    parts += [_picture(picture) for picture in section.pictures]
    for table in section.tables:
        heading = "" if table.title == section.title else f"### {escape(table.title)}\n\n"
        parts.append(f"{heading}{escape(table.note)}\n\n{to_markdown(_escaped(table))}")
        files = (table.name, *table.files)
        parts.append(" · ".join(f"[{name}.csv](tables/{name}.csv)" for name in files) + "\n")
    return "\n".join(parts)


def _escaped(table: Table) -> Table:
    """Return the table with its names and words escaped."""

    def cell(cell: Cell) -> Cell:
        return replace(cell, text=escape(cell.text), note=escape(cell.note))

    def row(row: TableRow) -> TableRow:
        cells = tuple(map(cell, row.cells))
        return replace(row, name=escape(row.name), note=escape(row.note), cells=cells)

    columns = tuple(map(escape, table.columns))
    return replace(table, corner=escape(table.corner), columns=columns, rows=tuple(map(row, table.rows)))


def _picture(picture: Picture) -> str:
    title = picture.name.replace("_", " ")
    return f"![{title}](figures/{picture.name}.svg)\n\n*{escape(picture.caption)}*\n"


def _claims(claims: Sequence[Claim]) -> str:
    lines = ["| verdict | statement | figures | rule |", "|---|---|---|---|"]
    for c in claims:
        # A bar inside a cell would begin the next one.
        figures = f"{c.figures} By reading: {c.by_reading}." if c.by_reading else c.figures
        cells = (f"**{c.verdict}**", *map(escape, (c.statement, figures, c.rule)))
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _failed(report: Report) -> str:
    lines = [
        f"{f.data}, {f.method}: {f.n_failed} of {f.n_runs} runs failed ({f.experiments}; for example "
        f"{f.example}). failed: {f.error}"
        for f in report.failures
    ] or ["No run failed."]
    lines += [f"{m.data}: {m.methods}: {m.reason}" for m in report.missing]
    return _bullets(lines)


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {escape(line)}" for line in lines) + "\n"
