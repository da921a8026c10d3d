"""The page of a reproduction: figures and files, whole or not at all."""

from __future__ import annotations

import csv
import re
from dataclasses import replace

import numpy as np
import pytest
from synthetic_runs import PAPER, PLAN, every_experiment, record, results

from smrmf_reproduce.report import drawing, page
from smrmf_reproduce.report.drawing import inline, shorten
from smrmf_reproduce.report.figures import draw_figures
from smrmf_reproduce.report.moons_figures import matched
from smrmf_reproduce.report.overview_figures import Mean, draw_means, spread_of_mean
from smrmf_reproduce.report.page import write_report
from smrmf_reproduce.report.provenance import Provenance
from smrmf_reproduce.report.results import Results
from smrmf_reproduce.report.tables import BUILDERS, build_tables

pytestmark = pytest.mark.slow

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
    assert {f"tables/{name}.csv" for name in page.CSV_FILES} <= names
    assert set(BUILDERS) < set(page.CSV_FILES)
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


def test_page_and_readme_open_with_the_picture_of_all_methods(full_report):
    text = (full_report / "index.html").read_text(encoding="utf-8")
    opening = text[: text.index("<h2>Summary</h2>")]
    assert opening.count("<svg ") == 1
    assert all(f">{method}</text>" in opening for method in PAPER.methods)
    readme = (full_report / "README.md").read_text(encoding="utf-8")
    assert readme.index("(figures/mean_accuracy.svg)") < readme.index("## Summary")
    assert readme.count("(figures/mean_accuracy.svg)") == 1


def test_our_methods_are_the_first_columns_of_a_table_and_the_others_keep_their_order(full_report):
    text = (full_report / "index.html").read_text(encoding="utf-8")
    readme = (full_report / "README.md").read_text(encoding="utf-8")
    others = [method for method in PAPER.columns if method not in PAPER.ours]
    for name in ("acc", "nmi", "run_time", "best_settings"):
        table = text.split(f'id="table-{name}"')[1].split("</thead>")[0]
        assert re.findall(r"<th[^>]*>([^<]+)</th>", table) == ["data set", *PAPER.ours, *others]
        rows = csv.DictReader(
            (full_report / "tables" / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        )
        assert tuple(dict.fromkeys(row["column"] for row in rows)) == PAPER.columns
    assert f"| data set | {' | '.join([*PAPER.ours, *others])} |" in readme


def test_a_coloured_cell_says_in_words_and_by_a_sign_what_its_colour_says(full_report):
    text = (full_report / "index.html").read_text(encoding="utf-8")
    body = text[text.index("<main>") :]
    cells = re.findall(r'<td class="[^"]*\b(better|worse)\d[^"]*"(.*?)</td>', body, flags=re.DOTALL)
    assert {word for word, _ in cells} == {"better", "worse"}
    for word, rest in cells:
        assert f'title="{word} than the paper by ' in rest
        assert f'<span class="mark {word}">{page.MARKS[word]}</span>' in rest
    assert not re.search(r'class="[^"]*\b(above|below)', text)
    assert not set(re.findall(r"\.((?:better|worse)\d)", text)) ^ {
        f"{w}{i}" for w in page.MARKS for i in (1, 2, 3)
    }


def table_of(folder, name):
    """The part of the page with one table, and the lines of its file."""
    text = (folder / "index.html").read_text(encoding="utf-8")
    lines = (folder / "tables" / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    return text.split(f'id="table-{name}"')[1].split("</table>")[0], list(csv.DictReader(lines))


def test_a_cell_shows_the_mean_of_repeats_and_below_it_the_best_draw(full_report):
    for name in ("acc", "nmi"):
        shown, lines = table_of(full_report, name)
        below = re.findall(
            r'<span class="ours[^"]*">(0\.\d+)</span><span class="std"> ±\.\d{3}</span>'
            r'<span class="line">best (0\.\d+)</span>',
            shown,
        )
        # Averages have no spread; the others do.
        repeated = [line for line in lines if line["best_over_grid"] and line["kind"] != "average"]
        values = np.array([(line["ours"], line["best_over_grid"]) for line in repeated], dtype=float)
        assert len(below) == len(values) > 80
        # The page has three digits, and the order of its columns is another.
        assert np.sort(np.array(below, dtype=float), axis=0) == pytest.approx(
            np.sort(values, axis=0), abs=6e-4
        )


def test_verdicts_by_reading_are_words_with_the_colour_of_a_verdict(full_report):
    shown, lines = table_of(full_report, "claims_by_reading")
    cells = re.findall(r'<td class="([^"]*)"><span class="verdict">([^<]*)</span></td>', shown)
    assert len(cells) == len(lines) == len(PAPER.claims) * 4
    assert all(name == words.replace(" ", "-") for name, words in cells)
    assert len(set(cells)) > 1
    assert all(line["figures"] for line in lines)
    text = (full_report / "index.html").read_text(encoding="utf-8")
    claims = text.split('<section id="claims">')[1].split("</section>")[0]
    assert claims.count('<a href="#table-claims_by_reading">By reading</a>') == len(PAPER.claims)
    assert "By reading: the same under all 3 readings" in (full_report / "README.md").read_text(
        encoding="utf-8"
    )


def test_tables_and_figures_scroll_in_boxes_of_their_own(full_report):
    """A phone is narrower than a table of fourteen methods: the box moves, not the page."""
    text = (full_report / "index.html").read_text(encoding="utf-8")
    body = text[text.index("<body>") :]
    for tag in ("<table", "<svg "):
        assert body.count(tag) == len(re.findall(rf'<div class="scroll">\s*{tag}', body)) > 0
    assert '<figure class="wide">' in body
    assert re.search(r"figure\.wide svg\{min-width:\d+rem\}", text)


def test_a_mean_has_a_spread_only_if_all_of_its_parts_have_one():
    assert spread_of_mean([0.3, 0.4]) == pytest.approx(0.25)
    assert spread_of_mean([0.3, None]) is None
    assert spread_of_mean([None]) is spread_of_mean([]) is None


def test_a_bar_is_drawn_for_every_spread_that_is_passed_and_for_no_other():
    means = [
        Mean("A", 0.6, 0.5, spread=0.02, stands_out=True),
        Mean("B", 0.7, 0.8, spread=0.01, paper_spread=0.03),
        Mean("C", 0.4, 0.3),
    ]
    axes = draw_means(means, "mean").axes[0]
    spans = {tuple(np.round(line[:, 0], 9)) for bars in axes.collections for line in bars.get_segments()}
    assert spans == {(0.58, 0.62), (0.69, 0.71), (0.77, 0.83)}
    labels = axes.get_yticklabels()
    assert [label.get_text() for label in labels] == ["C", "A", "B"]  # from below
    assert [label.get_fontweight() for label in labels] == ["normal", "bold", "normal"]


def test_methods_that_ran_once_have_no_bar_in_the_opening_picture():
    once = [record(data, method) for data in ("wave", "sonar") for method in ("NMF", "SMRMF")]
    twice = [*once, *(record(data, "NMF", 0.6, seed=1) for data in ("wave", "sonar"))]
    words = "standard deviation"
    paper = replace(PAPER, cells={key: replace(cell, std=None) for key, cell in PAPER.cells.items()})
    for runs, has_bar in ((once, False), (twice, True)):
        found = Results(runs, paper)
        assert (words in draw_figures(found, build_tables(found))["mean_accuracy"].svg) == has_bar


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
