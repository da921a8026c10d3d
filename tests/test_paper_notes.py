"""Every reference to a note on the paper resolves to its heading, and the notes have no other name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = next(folder for folder in Path(__file__).parents if (folder / "pyproject.toml").is_file())
NOTES = ROOT / "docs" / "paper_notes.md"
FOLDERS = ("src", "tests", "docs", "benchmarks", "examples")
SUFFIXES = {".py", ".md", ".toml", ".html", ".jinja"}
N_NOTES = 65

# A break between words may be a new line, of a comment, a list or a quotation.
GAP = r"[\s#>*`]+"
NUMBERS = rf"\d+(?:(?:,?{GAP}(?:and|or|to){GAP}|,{GAP}|\s?[-–]\s?)\d+)*"  # noqa: RUF001
REFERENCE = re.compile(rf"\bpaper{GAP}notes?{GAP}({NUMBERS})\b", re.IGNORECASE)
SHORT_REFERENCE = re.compile(rf"\bnotes?{GAP}\[?({NUMBERS})\b", re.IGNORECASE)
# A number with the letter E before it, unless it is part of a word, a decimal, a path or a formula.
OLD_NAME = re.compile(
    r"(?i:\berrat(?:a|um)\b)"
    r"|(?<![\w.+*/^=|-])(?<![+*/^=|-] )E(?:[1-9]|[1-5]\d|6[0-5])(?!\w)(?!\s*[=+*/^|@]|[\[(_])"
)


def texts() -> dict[Path, str]:
    """Return all files that people read or write, but for this one, which has to name what it forbids."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    found = [path for path in [*found, *ROOT.glob("*.md")] if path != Path(__file__)]
    return {path.relative_to(ROOT): path.read_text(encoding="utf8") for path in found}


def headings(text: str) -> list[tuple[int, str]]:
    """Return number and title of every note."""
    found = re.findall(r"^### (\d+)\. (.+)$", text, re.MULTILINE)
    return [(int(number), title) for number, title in found]


def note_numbers(text: str, pattern: re.Pattern[str] = REFERENCE) -> list[int]:
    """Return the notes that a text refers to, ranges written out."""
    found: list[int] = []
    for match in pattern.finditer(text):
        parts = re.split(r"(\d+)", match[1])
        last = 0
        for separator, number in zip(parts[0::2], map(int, parts[1::2]), strict=False):
            is_range = re.search(r"\bto\b|[-–]", separator) is not None  # noqa: RUF001
            found += range(last + 1, number + 1) if is_range else [number]
            last = number
    return found


def anchors(text: str) -> set[str]:
    """Return the names under which GitHub finds the headings of a document."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(text: str, folder: Path) -> list[str]:
    """Return the relative links of a document that lead to no file, or to no heading of one."""
    links = [link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    wrong = [path for path, _, _ in links if path and not (folder / path).exists()]
    for path, _, anchor in links:
        if anchor and path not in wrong:
            target = (folder / path).read_text(encoding="utf8") if path else text
            wrong += [] if anchor in anchors(target) else [f"{path}#{anchor}"]
    return wrong


def test_the_notes_are_numbered_from_1_in_order():
    assert [number for number, _ in headings(NOTES.read_text(encoding="utf8"))] == list(range(1, N_NOTES + 1))


def test_every_note_has_its_parts():
    parts = re.split(r"^### ", NOTES.read_text(encoding="utf8"), flags=re.MULTILINE)[1:]
    for part in parts:
        assert re.search(r"- \*Paper:\*.*- \*(Open|Wrong):\*.*- \*Here:\*", part, re.DOTALL), part


def test_every_reference_resolves():
    notes = dict(headings(NOTES.read_text(encoding="utf8")))
    referring = {path: note_numbers(text) for path, text in texts().items()}
    assert {path: missing for path, found in referring.items() if (missing := set(found) - set(notes))} == {}
    places = {path.parts[0] for path, found in referring.items() if found}
    assert {"src", "tests"} <= places  # the search does see them


def test_the_notes_refer_to_each_other_by_numbers_that_exist():
    text = NOTES.read_text(encoding="utf8")
    found = note_numbers(text, SHORT_REFERENCE)
    assert found
    assert set(found) <= {number for number, _ in headings(text)}


@pytest.mark.parametrize("name", ["docs/paper_notes.md", "docs/user_guide.md", "README.md"])
def test_links_lead_somewhere(name):
    path = ROOT / name
    text = path.read_text(encoding="utf8")
    assert "paper_notes.md" in text or path == NOTES
    assert broken_links(text, path.parent) == []


def test_the_notes_have_no_other_name():
    others = {path: [m[0] for m in OLD_NAME.finditer(text)] for path, text in texts().items()}
    assert {path: names for path, names in others.items() if names} == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(paper note 7)", [7]),
        ("Paper note 29: data", [29]),
        ("PAPER NOTES 9, 13 and 32", [9, 13, 32]),
        ("paper notes 9, 13, and 66", [9, 13, 66]),
        ("paper notes 19 to 22 settle", [19, 20, 21, 22]),
        ("paper notes 3-5, and 8", [3, 4, 5, 8]),
        ("# ends in paper\n    # note 12, and more", [12]),
        ("# of (paper notes\n# 8 and\n# 63).", [8, 63]),
        ("see `paper note 7`, twice: paper note 8", [7, 8]),
        ("a paper, a note and 7 points", []),
        ("note 7 of another text", []),
    ],
)
def test_references_are_read_as_people_write_them(text, expected):
    assert note_numbers(text) == expected


@pytest.mark.parametrize("text", ["see E7", "(E12)", "E34, E35", "by E9.", "the errata", "E8's"])
def test_another_name_is_seen(text):
    assert OLD_NAME.search(text)


@pytest.mark.parametrize(
    "text",
    ["1E5", "2.E5", "E66", "X - E1", "E1 = X", "E2[i]", "E_1", "RE7", "page7", "F1 + E2", "0xE1", "E7a"],
)
def test_letters_of_formulas_are_no_names(text):
    assert not OLD_NAME.search(text)
