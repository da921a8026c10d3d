"""Names in a plan may be anything: a log gets what it can print, and the page shows them as they are."""

from __future__ import annotations

import io
import os
from html import escape as escape_html
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from moons_plan import COMMAND, PLAN
from patience import run_command
from rich.console import Console

from smrmf_reproduce.command import Request, reproduce
from smrmf_reproduce.report.drawing import house_style, new_figure, save
from smrmf_reproduce.report.markdown import code, escape
from smrmf_reproduce.run.measure import failed
from smrmf_reproduce.run.plan import Plan
from smrmf_reproduce.run.store import Store

pytestmark = pytest.mark.slow

# A locale that knows ASCII alone, as many servers and cron have it.
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
FOREIGN = "Méthode-β"
HOSTILE = "<script>alert(1)</script>|`*a*` [x](javascript:y) \\| &lt;b> <!-- $\\frac$ _u_\n# h"


def named(path, name):
    """Write a plan in which K-means has another name; return its file."""
    quoted = '"' + name.replace("\\", "\\\\").replace("\n", "\\n") + '"'
    text = PLAN.replace("[methods.KMeans]", f"[methods.{quoted}]").replace('"KMeans",', f"{quoted},")
    text = text.replace('name = "moons"', 'name = "comparison"')
    path.write_text(text, encoding="utf-8")
    return path


def test_a_name_that_is_not_ascii_is_no_obstacle_in_any_locale(tmp_path):
    output = tmp_path / "où"
    plan = named(tmp_path / "pläne.toml", FOREIGN)
    chosen = ["--plan", plan, "--only", FOREIGN, "--output", output, "--jobs", "1"]
    ran = run_command([*COMMAND, *chosen], env=os.environ | ASCII)
    listed = run_command([*COMMAND, *chosen, "--list"], env=os.environ | ASCII)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "3 of 3 runs have a record, 0 failed" in ran.stdout
    assert listed.returncode == 0, listed.stderr
    assert "M?thode-?" in listed.stdout
    for name in ("index.html", "README.md", "tables/acc.csv"):
        assert FOREIGN in (output / name).read_text(encoding="utf-8")
    assert "pläne.toml" in (output / "index.html").read_text(encoding="utf-8")


class Elements(HTMLParser):
    """The elements of a page, with their attributes, and the texts of its cells."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.links, self.cells = set(), set(), set()
        self._cell = None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links |= {value for name, value in attributes if name in ("href", "src")}
        if tag in ("th", "td"):
            self._cell = ""

    def handle_data(self, data):
        if self._cell is not None:
            self._cell += data

    def handle_endtag(self, tag):
        if tag in ("th", "td"):
            self.cells.add(" ".join(self._cell.split()))
            self._cell = None


def report_on(name, folder):
    """Write the page of an evaluation whose method has this name."""
    folder.mkdir()
    plan = named(folder / "plan.toml", name)
    store = Store(folder / "out")
    for number, run in enumerate(Plan.read(plan).runs):
        done = {"status": "done", "error": None, "seconds": 1.0, "spent": 1.0, "accuracy": 0.5}
        store.save(failed(run, f"{name} failed") | (done if number % 7 else {}))
    reproduce(Request(output=folder / "out", plan=plan), Console(file=io.StringIO()), page_only=True)
    readme = (folder / "out" / "README.md").read_text(encoding="utf-8")
    page = (folder / "out" / "index.html").read_text(encoding="utf-8")
    return MarkdownIt().enable("table").render(readme), page


def test_a_hostile_name_stands_on_both_pages_as_it_is(tmp_path):
    pages = report_on(HOSTILE, tmp_path / "a"), report_on("K", tmp_path / "b")
    for hostile, harmless in zip(*pages, strict=True):
        assert " ".join(HOSTILE.split()) in Elements(hostile).cells
        assert Elements(hostile).tags == Elements(harmless).tags
        assert Elements(hostile).links == Elements(harmless).links


def test_a_name_in_a_figure_is_no_formula():
    with house_style("figure"):
        figure = new_figure(2.0)
        figure.subplots().set_title(HOSTILE)
        svg, _ = save(figure)
    assert "$\\frac$" in svg
    assert Elements(svg).tags.isdisjoint({"script", "b"})


@given(st.text("ab1. _*`[]()<>|\\&#;~-+=!:/$\"'^{}@é\n", max_size=20))
@example("1. a")
@example("- a")
@example("a_b_c")
@example("&lt;")
def test_escaped_text_is_shown_as_it_is(text):
    plain = escape_html(" ".join(text.split()), quote=False).replace('"', "&quot;")
    assert MarkdownIt().render(f"- {escape(text)}\n") == f"<ul>\n<li>{plain}</li>\n</ul>\n"
    assert MarkdownIt().render(f"### {escape(text)}\n") == f"<h3>{plain}</h3>\n"


@given(st.text("ab `\n<", max_size=12).filter(str.strip))
def test_a_command_is_shown_as_it_is(text):
    plain = escape_html(" ".join(text.split()), quote=False)
    assert MarkdownIt().render(f"x {code(text)}\n") == f"<p>x <code>{plain}</code></p>\n"
