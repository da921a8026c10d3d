"""The report as Markdown, for a code host: the same words, tables and figures as the page."""

from __future__ import annotations

from collections.abc import Sequence

from smrmf_reproduce.report.figures import Picture
from smrmf_reproduce.report.outline import PROTOCOL, Report, Section
from smrmf_reproduce.report.table import to_markdown
from smrmf_reproduce.report.verdicts import Claim


def to_readme(report: Report) -> str:
    """Return the whole report; cells are "ours / paper", pictures are links into ``figures/``."""
    provenance = report.provenance
    parts = [
        "# SMRMF: our figures beside the paper's\n",
        "Mani, Domeniconi, Griva: *Unsupervised Selective Manifold Regularized Matrix Factorization* "
        f"(arXiv 2010.09936), measured again with `{provenance.command}`. The same as one page: "
        "[index.html](index.html).\n",
        *([_picture(report.opening)] if report.opening else []),
        "## Summary\n",
        _bullets(report.summary),
        *(f"> {note}\n" for note in provenance.notes),
        f"{' · '.join(provenance.facts())}\n",
        "## How to read this page\n",
        _bullets((*PROTOCOL, "In a table: ours ± over seeds / paper. Bold: our best of the row.")),
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
    parts = [f"## {section.title}\n"]
    parts += [_picture(picture) for picture in section.pictures]
    for table in section.tables:
        heading = "" if table.title == section.title else f"### {table.title}\n\n"
        parts.append(f"{heading}{table.note}\n\n{to_markdown(table)}")
        parts.append(f"[{table.name}.csv](tables/{table.name}.csv)\n")
    return "\n".join(parts)


def _picture(picture: Picture) -> str:
    title = picture.name.replace("_", " ")
    return f"![{title}](figures/{picture.name}.svg)\n\n*{picture.caption}*\n"


def _claims(claims: Sequence[Claim]) -> str:
    lines = ["| verdict | statement | figures | rule |", "|---|---|---|---|"]
    for c in claims:
        # A bar inside a cell would begin the next one.
        cells = (f"**{c.verdict}**", c.statement, c.figures, c.rule)
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
    return "\n".join(f"- {line}" for line in lines) + "\n"
