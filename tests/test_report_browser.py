"""The page in a real browser: it runs, asks for nothing, and does what it says, on any screen."""

from __future__ import annotations

import os
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris

from smrmf import FastSMRMF
from smrmf.report import write_report

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

NASTY = "</script><img src=x onerror=window.harmed=1><b onclick=window.harmed=1>"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--disable-sync", "--no-first-run", "--force-device-scale-factor=1"]
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
# Text by text: its contrast with whatever is behind it, by the rule of WCAG.
CONTRASTS = """() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const color = numbers(getComputedStyle(node).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || parent.closest("script, svg")) continue;
    if (!parent.checkVisibility()) continue;
    const ink = light(numbers(getComputedStyle(parent).color));
    const pair = [ink, light(behind(parent))].sort((a, b) => b - a);
    found.push([(pair[0] + 0.05) / (pair[1] + 0.05), walker.currentNode.data.trim().slice(0, 40)]);
  }
  return found;
}"""


def chromium():
    """Return the path of a browser, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return os.environ.get("SMRMF_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="module")
def browser():
    path = chromium()
    if path is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=path, args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def model():
    return FastSMRMF(n_clusters=3, random_state=0).fit(load_iris().data)


@pytest.fixture(scope="module")
def files(model, tmp_path_factory):
    """Return pages: of flowers with names, of images, and of names that would do harm."""
    folder, iris = tmp_path_factory.mktemp("pages"), load_iris()
    frame = pd.DataFrame(iris.data, columns=iris.feature_names).assign(kind=iris.target_names[iris.target])
    names = [f"flower {row}" for row in range(150)]
    pixels = load_digits(n_class=3).data[:150]
    images = FastSMRMF(n_clusters=3, random_state=0).fit(pixels)
    harmful = pd.DataFrame(iris.data, columns=[f"{NASTY}{k}" for k in range(4)]).assign(word=NASTY)
    options = {"title": NASTY, "notes": [NASTY], "command": NASTY, "ids": [f"{NASTY}{k}" for k in range(150)]}
    table = {"n_clusters": np.array([2, 3]), "stability": np.array([0.9, 0.8]), "weakest": np.ones(2)}
    table |= {"eigengap": np.array([-0.25, -1]), "silhouette": np.array([0.5, -0.25])}
    suggestion = SimpleNamespace(table=table, n_clusters=3, reason="Three. " * 30)
    return {
        "iris": write_report(
            model,
            folder / "i.html",
            frame,
            ids=names,
            suggestion=suggestion,
            classes=iris.target,
            command="x " * 90,
        ),
        "images": write_report(images, folder / "p.html"),
        "harmful": write_report(model, folder / "h.html", harmful, classes=[NASTY] * 150, **options),
    }


@pytest.fixture
def show(browser, files):
    """Return what opens a page; afterwards nothing may have gone wrong in it, or been asked for."""
    opened, wrong = [], []

    def open_page(name="iris", viewport=WIDE, **options):
        context = browser.new_context(viewport=viewport, **options)
        opened.append(context)
        page = context.new_page()
        address = files[name].as_uri()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request", lambda request: request.url.startswith(("data:", address)) or wrong.append(request.url)
        )
        page.goto(address)
        return page

    yield open_page
    for context in opened:
        context.close()
    assert wrong == []


def place(page, row):
    page.locator("#stage").scroll_into_view_if_needed()
    found = page.evaluate("row => document.getElementById('canvas').placeOf(row)", int(row))
    return found["x"], found["y"]


def test_a_click_on_an_exemplar_opens_its_panel(show, model):
    page = show()
    row = int(model.exemplar_indices_[model.exemplar_labels_ == 1][0])
    page.mouse.click(*place(page, row))
    panel = page.locator("#panel")
    assert panel.locator("h3").inner_text() == f"Exemplar flower {row}"
    assert "Cluster 1, confidence" in panel.inner_text()
    Z = model.representation_.toarray()[row]
    count = np.count_nonzero(Z >= 0.01) - (Z[row] >= 0.01)
    assert f"It stands for {count} rows" in panel.inner_text()
    assert panel.locator(".strip").count() == 4
    assert load_iris().target_names[0] in panel.locator("dd").first.inner_text()
    assert page.locator(".legend .chip[aria-current=true]").inner_text() == f"flower {row}"
    # Beside all points: the choice is gone.
    page.keyboard.press("Escape")
    assert panel.locator("h3").count() == 0


def test_values_lie_where_they_should(show, model):
    page = show()
    row = int(model.exemplar_indices_[0])
    page.locator(".legend .chip", has_text=f"flower {row}").first.click()
    X = load_iris().data
    shown = dict(zip(load_iris().feature_names, X[row], strict=True))
    ends = dict(zip(load_iris().feature_names, zip(X.min(axis=0), X.max(axis=0), strict=True), strict=True))
    for strip in page.locator("#panel .strip").all():
        name, value = strip.locator("span").inner_text(), float(strip.locator("b").inner_text())
        assert value == pytest.approx(shown[name], abs=0.05)
        low, high = ends[name]
        at = float(strip.locator("circle").get_attribute("cx").rstrip("%")) / 100
        assert at == pytest.approx((shown[name] - low) / (high - low), abs=0.01)


def test_hover_names_the_row_under_the_mouse(show, model):
    page = show()
    tip = page.locator("#tip")
    assert not tip.is_visible()
    place(page, 0)
    asked = "() => Array.from({ length: 150 }, (_, row) => document.getElementById('canvas').placeOf(row))"
    places = np.array([[found["x"], found["y"]] for found in page.evaluate(asked)])
    # A row that no other is near to.
    gaps = np.linalg.norm(places[:, None] - places[None], axis=2) + 1e9 * np.eye(150)
    row = int(gaps.min(axis=1).argmax())
    page.mouse.move(*places[row])
    assert tip.inner_text().split("\n")[0] == f"flower {row}"
    assert f"Cluster {model.labels_[row]}, confidence {model.confidence_[row]:.2f}" in tip.inner_text()
    page.mouse.move(5, 5)
    assert not tip.is_visible()


def test_the_keyboard_reaches_exemplars(show):
    page = show()
    page.locator("#stage").focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.exemplar !== undefined"):
            break
    page.keyboard.press("ArrowRight")
    name = page.evaluate("document.activeElement.textContent")
    assert page.evaluate("document.activeElement.dataset.exemplar") == "1"
    page.keyboard.press("Enter")
    assert page.locator("#panel h3").inner_text() == f"Exemplar {name}"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_legend_entries_are_toggles_that_change_the_map(show):
    page = show()
    toggle, drawn = page.locator("[data-cluster='2']"), "document.getElementById('canvas').toDataURL()"
    before = page.evaluate(drawn)
    toggle.click()
    assert toggle.get_attribute("aria-pressed") == "true"
    page.wait_for_timeout(80)
    assert page.evaluate(drawn) != before
    toggle.click()
    assert toggle.get_attribute("aria-pressed") == "false"


def test_wheel_drag_buttons_and_keys_move_the_map(show):
    page = show()
    first, second = place(page, 0), place(page, 100)
    far = np.hypot(first[0] - second[0], first[1] - second[1])

    def spread():
        one, other = place(page, 0), place(page, 100)
        return np.hypot(one[0] - other[0], one[1] - other[1]) / far

    page.mouse.move(*first)
    page.mouse.wheel(0, -300)
    page.wait_for_function("document.getElementById('canvas').classList.contains('moved')")
    assert spread() > 1.5
    assert place(page, 0) == pytest.approx(first, abs=2)  # what is under the mouse stays there
    page.mouse.down()
    page.mouse.move(first[0] + 40, first[1] + 30, steps=4)
    page.mouse.up()
    assert place(page, 0) == pytest.approx((first[0] + 40, first[1] + 30), abs=6)
    page.locator("#whole").click()
    assert spread() == pytest.approx(1)
    page.locator("#closer").click()
    assert spread() == pytest.approx(1.6)
    page.locator("#stage").focus()
    page.keyboard.press("0")
    assert spread() == pytest.approx(1)


def test_rows_at_the_boundary_are_found_on_the_map(show, model):
    page = show()
    button = page.locator("[data-point]").first
    row = int(button.get_attribute("data-point"))
    assert row == model.confidence_.argmin()
    button.click()
    assert page.locator("#tip b").inner_text() == f"flower {row}"


def test_images_are_drawn_and_enlarged(show):
    page = show("images")
    assert page.evaluate("[...document.images].every((image) => image.naturalWidth === 8)")
    page.locator(".legend .chip").first.click()
    assert page.locator("#panel img").get_attribute("src").startswith("data:image/png")


@pytest.mark.parametrize("name", ["iris", "images", "harmful"])
def test_a_phone_does_not_scroll_sideways(show, name):
    page = show(name, PHONE, has_touch=True, is_mobile=True)
    for part in page.locator("summary").all():
        part.click()
    page.locator(".legend .chip").first.tap()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("window.visualViewport.width") == 360
    if name != "harmful":  # whose names no table could hold
        cut = page.evaluate(
            "[...document.querySelectorAll('.scroll')].filter((part) => part.scrollWidth > part.clientWidth)"
            ".map((part) => part.getAttribute('aria-label'))"
        )
        assert set(cut) <= {"Exemplars and their values"}


def test_text_is_readable_in_light_and_in_dark(show):
    backgrounds = []
    for scheme in ("light", "dark"):
        page = show(color_scheme=scheme)
        page.locator(".legend .chip").first.click()
        page.locator("[data-cluster='0']").hover()
        contrasts = page.evaluate(CONTRASTS)
        assert len(contrasts) > 100
        assert [pair for pair in contrasts if pair[0] < 4.5] == []
        backgrounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert backgrounds[0] != backgrounds[1]


def test_the_map_follows_the_light(show):
    page = show(color_scheme="light")
    # What is drawn, and not what is behind it.
    drawn = "document.getElementById('canvas').toDataURL()"
    before = page.evaluate(drawn)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"before => {drawn} !== before", arg=before, timeout=5000)


def test_print_has_the_still_map_and_no_controls(show):
    page = show(color_scheme="dark")
    assert not page.locator(".still").is_visible()
    page.emulate_media(media="print")
    assert page.locator(".still").is_visible()
    for control in ("#stage", ".tools", ".copy", "nav", ".panel"):
        assert not page.locator(control).first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for kind in ("table", ".card", "figure"):
        assert page.evaluate(f"getComputedStyle(document.querySelector('{kind}')).breakInside") == "avoid"
    for kind in ("h2", "h3", "summary", "thead"):
        assert page.evaluate(f"getComputedStyle(document.querySelector('{kind}')).breakAfter") == "avoid"
    assert all(pair[0] >= 4.5 for pair in page.evaluate(CONTRASTS))


def test_without_scripts_the_page_still_tells(browser, files):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(files["iris"].as_uri())
    assert page.locator(".still").is_visible()
    assert not page.locator("#stage").is_visible()
    assert page.locator(".card table").first.is_visible()
    context.close()


def test_harmful_names_do_no_harm(show):
    page = show("harmful")
    for chip in page.locator(".legend .chip").all()[:2]:
        chip.click()
    page.locator("[data-point]").first.click()
    assert page.locator("#tip b").inner_text().startswith("</script><img")
    assert page.evaluate("window.harmed") is None
    assert page.locator("img").count() == 0
    assert page.locator("#panel h3").count() == 0 or "<b onclick" in page.locator("#panel h3").inner_text()


def test_code_is_copied(show):
    page = show(permissions=["clipboard-read", "clipboard-write"])
    page.locator("[data-copy=code]").click()
    page.locator("text=Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("#code").inner_text()
