"""The page of a reproduction: figures and files, whole or not at all."""

from __future__ import annotations

import re

import numpy as np
import pytest
from synthetic_runs import PAPER, PLAN, every_experiment, record, results

from smrmf_reproduce.report import drawing, page
from smrmf_reproduce.report.drawing import inline, shorten
from smrmf_reproduce.report.moons_figures import matched
from smrmf_reproduce.report.page import write_report
from smrmf_reproduce.report.provenance import Provenance
from smrmf_reproduce.report.tables import BUILDERS

PROVENANCE = Provenance(
    versions={"smrmf": "0.1.0"},
    machine={"cpu": "a <fast> one", "memory_gb": 8},
    total_seconds=4000.0,
    started="2025-01-01T00:00:00",
    n_runs=10,
    notes=["A note."],
)


@pytest.fixture(autouse=True, scope="module")
def _coarse_pictures():
    """Draw PNG files with few dots: their content is not looked at here."""
    fine, drawing.DPI = drawing.DPI, 40
    yield
    drawing.DPI = fine


def test_labels_are_matched_to_classes_as_the_accuracy_does():
    classes, labels = np.array([0, 0, 1, 1, 1]), np.array([7, 7, 3, 3, 9])
    assert matched(classes, labels).tolist() == [0, 0, 1, 1, 2]


def test_svg_is_shortened_and_renamed_without_touching_text():
    svg = (
        '<?xml?><!DOCTYPE svg "http://x"><svg width="3pt" height="2pt" xmlns="http://w"><g id="a"><!-- hi -->'
    )
    svg += '<use href="#a" x="1.23456"/><path clip-path="url(#a)"/><text>0.12345</text></g></svg>'
    short = shorten(svg)
    assert short.startswith("<svg ")
    assert 'x="1.23"' in short
    assert ">0.12345<" in short
    inside = inline(short, "f", "what")
    assert 'id="f-a"' in inside
    assert 'href="#f-a"' in inside
    assert "url(#f-a)" in inside
    assert "http" not in inside


@pytest.fixture(scope="module")
def full_report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    runs = every_experiment()
    runs.append(record("musk1", "APMF", params={"w": 9}, status="failed", error="MemoryError: <no> room"))
    write_report(results(runs), PROVENANCE, folder)
    return folder


def test_full_report_has_every_file(full_report):
    names = {path.relative_to(full_report).as_posix() for path in full_report.rglob("*") if path.is_file()}
    assert {f"tables/{name}.csv" for name in BUILDERS} <= names
    assert {f"figures/{name}.{kind}" for name in page.FIGURES for kind in ("svg", "png")} <= names
    assert {"index.html", "README.md"} <= names
    assert not [name for name in names if name.endswith(".tmp")]
    assert sum(path.stat().st_size for path in full_report.glob("figures/*.svg")) < 2e6


def test_page_loads_nothing_from_outside(full_report):
    text = (full_report / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert all(link.startswith(("#", "tables/")) for link in links)
    assert "http" not in text
    assert "@import" not in text
    assert text.count("<svg ") == len(page.FIGURES)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    anchors = {link[1:] for link in re.findall(r'<a href="(#[^"]+)"', text)}
    assert anchors <= set(ids)


def test_page_says_what_failed_and_escapes_it(full_report):
    text = (full_report / "index.html").read_text(encoding="utf-8")
    assert "failed: MemoryError: &lt;no&gt; room" in text
    assert "1 of 7 runs failed" in text
    assert "a &lt;fast&gt; one" in text
    assert "A note." in text
    assert "chosen with the labels (the paper&#39;s protocol)" in text


def test_readme_links_pictures_that_exist(full_report):
    text = (full_report / "README.md").read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (full_report / link).is_file()
    assert "/ 0.85" in text


def test_every_remark_of_the_plan_stands_under_a_table(full_report):
    text = (full_report / "README.md").read_text(encoding="utf-8")
    assert PAPER.remarks
    for remark in PAPER.remarks.values():
        assert remark in text


def test_files_do_not_depend_on_the_order_of_the_runs(tmp_path):
    kept = ("NMF", "RMNMF", "SMRMF", "neighborhoods")
    runs = [r for r in every_experiment() if r["data"] in ("wave", "2d-moons") and r["method"] in kept]
    shuffled = [runs[i] for i in np.random.default_rng(0).permutation(len(runs))]
    for name, given in (("a", runs), ("b", shuffled)):
        write_report(results(given), PROVENANCE, tmp_path / name)
    files = [p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file()]
    assert files
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file


def test_report_without_any_run(tmp_path):
    text = write_report(results([]), Provenance(), tmp_path).read_text(encoding="utf-8")
    assert "no cell to compare with the paper yet" in text
    assert "11 not tested" in text
    assert not (tmp_path / "figures").exists()


def test_report_says_what_is_still_to_come(tmp_path):
    planned = PLAN.select(methods=["NMF"], data=["wave"])
    text = write_report(results([], planned=planned), Provenance(), tmp_path).read_text(encoding="utf-8")
    assert "30 planned runs have no result yet" in text


def test_report_replaces_the_old_one_and_removes_what_it_no_longer_has(tmp_path):
    write_report(results([record("wave", "SMRMF")]), PROVENANCE, tmp_path)
    (tmp_path / "tables" / "mine.csv").write_text("kept")
    assert (tmp_path / "tables" / "acc.csv").exists()
    write_report(results([]), PROVENANCE, tmp_path)
    assert [path.name for path in (tmp_path / "tables").iterdir()] == ["mine.csv"]


def test_killed_report_leaves_the_old_page(tmp_path, monkeypatch):
    write_report(results([]), PROVENANCE, tmp_path)
    old = (tmp_path / "index.html").read_bytes()

    def interrupted(report):
        raise KeyboardInterrupt

    monkeypatch.setattr(page, "to_html", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_report(results([record("wave", "SMRMF")]), PROVENANCE, tmp_path)
    assert (tmp_path / "index.html").read_bytes() == old
    assert not (tmp_path / "tables").exists()


def test_only_the_exemplars_of_the_papers_own_method_are_ringed(tmp_path):
    """The baseline ranks its points as well, but selects none."""
    runs = [run for run in every_experiment() if run["data"] == "2d-moons"]
    for run in runs:
        if run["picture"]:
            run["picture"]["exemplars"] = [0, 1, 2]
    write_report(results(runs), PROVENANCE, tmp_path)
    text = (tmp_path / "figures" / "moons_manifold.svg").read_text(encoding="utf-8")
    assert re.findall(r">(\w+): \d+ edges, 3 exemplars ringed<", text) == ["SMRMF"]
    assert re.findall(r">(\w+): \d+ edges<", text) == ["RMNMF"]
