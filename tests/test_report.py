"""The page about a model: what it says is true, what it is given is escaped, and what it refuses."""

from __future__ import annotations

import re
import sys
import warnings
from copy import copy
from html.parser import HTMLParser
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from add_a_variant import AgreeingRMNMF
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from smrmf import (
    AMRMF,
    APMF,
    ESC,
    GNMF,
    KDPP,
    RMNMF,
    SMRMF,
    DeepSemiNMF,
    FastSMRMF,
    NMFClustering,
    SelectiveRMNMF,
)
from smrmf.graph.membership import unfavored
from smrmf.inspection import cluster_profiles, neighborhoods
from smrmf.report import write_report
from smrmf.report._certainty import certainty_of
from smrmf.report._code import code_of
from smrmf.report._exemplars import shown_exemplars
from smrmf.report._findings import firm_word, told, worth_a_headline
from smrmf.report._images import recognised_shape
from smrmf.report._profiles import OWN, Contrast, Profiles, in_words
from smrmf.report._subject import subject_of
from smrmf.report._table import ReadableTable, number
from smrmf.report._words import percent, score

NASTY = "</script><img src=x onerror=alert(1)>'\"&\u2028{{ 7*7 }}"
FACTORISATIONS = [
    *(FastSMRMF, SMRMF, AMRMF, APMF, RMNMF, SelectiveRMNMF, AgreeingRMNMF, GNMF, NMFClustering, DeepSemiNMF)
]
VOID = {"meta", "link", "img", "br", "wbr", "input", "hr"}


class Page(HTMLParser):
    """Collects what a browser would see: elements with their attributes, text, headings and data."""

    def __init__(self, path):
        super().__init__()
        self.elements, self.open, self.text, self.headings, self.data = [], [], [], [], ""
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag in ("h1", "h2", "h3"):
            self.headings.append([tag, ""])

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] == "script":
            self.data = self.data or text
        elif self.open and self.open[-1] != "style":
            self.text.append(text)
            if self.headings and self.headings[-1][0] in self.open:
                self.headings[-1][1] += text

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def iris():
    return load_iris()


@pytest.fixture(scope="module")
def model(iris):
    return FastSMRMF(n_clusters=3, random_state=0).fit(iris.data)


@pytest.fixture(scope="module")
def digits():
    X = load_digits(n_class=4).data[:240]
    return X, FastSMRMF(n_clusters=4, random_state=0).fit(X)


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    topics = np.repeat(np.arange(3), 40)
    counts = rng.poisson(np.kron(np.eye(3), np.ones(10))[topics] * 3 + 0.05)
    X = sp.csr_array(counts.astype(float))
    return X, FastSMRMF(n_clusters=3, metric="cosine", random_state=0).fit(X)


@pytest.fixture
def page(tmp_path):
    def write(*arguments, **options):
        return Page(
            write_report(arguments[0], tmp_path / "page.html", *arguments[1:], overwrite=True, **options)
        )

    return write


def with_moved_rows(model):
    """Return a model of which some rows have the label of another cluster, so that clusters are mixed."""
    moved = copy(model)
    moved.labels_ = np.where(np.arange(150) < 9, (model.labels_ + 1) % 3, model.labels_)
    return moved


# What it says


def test_the_first_sentences_tell_the_truth(model, iris, page):
    said = page(model, feature_names=iris.feature_names).words
    sizes = np.bincount(model.labels_)
    assert f"The 150 rows fall into {len(sizes)} clusters" in said
    assert f"The largest is cluster {sizes.argmax()}, with {sizes.max()} rows" in said
    assert f"the smallest is cluster {sizes.argmin()}, with {sizes.min()} rows" in said
    assert f"agree with them to {model.stability_:.2f}" in said
    assert f"{np.mean(model.confidence_ >= 0.9):.0%} belong clearly" in said
    below = int((model.confidence_ < 0.6).sum())
    assert (f"while {below} lie" if below else "none lies") in said


def test_typical_values_are_those_of_the_profiles(model, iris, page):
    said = page(model, feature_names=iris.feature_names).words
    profiles = cluster_profiles(model, iris.data, n_features=1, feature_names=iris.feature_names)
    smallest = int(np.bincount(model.labels_).argmin())
    typical, elsewhere = profiles["typical"][smallest], profiles["elsewhere"][smallest]
    clause = (
        f"where {profiles['feature'][smallest]} is typically {typical:.1f}, against {elsewhere:.1f} elsewhere"
    )
    assert clause in said


def test_clusters_between_others_have_a_range_and_no_side():
    assert in_words(0.1, 1.0) == "a range of its own"
    assert in_words(-0.95, 1.0) == "nearly always lower"
    assert in_words(0.7, 0.2) == "mostly higher"
    assert in_words(0.25, 0.0) == "somewhat higher"


def test_the_first_sentences_say_what_differs_most_and_nothing_of_what_hardly_differs(model, page):
    draws = np.random.default_rng(0)
    noise = pd.DataFrame({"noise": draws.normal(size=150)})
    assert not re.search("where (noise|weak|kind) is", page(model, noise).words)
    weak = noise.assign(weak=model.labels_ + draws.normal(size=150))
    assert ", where weak is typically" in page(model, weak).words
    words = weak.assign(kind=np.array(["red", "green", "blue"])[model.labels_])
    said = "where kind is (red|green|blue) in 100% of the rows, against 0% elsewhere"
    assert len(re.findall(said, page(model, words).words)) == 2


@pytest.mark.parametrize(
    ("here", "degree", "span", "strength", "worth"),
    [
        ("2.0", "often higher", "", 0.4, True),
        ("2.0", "somewhat higher", "", 0.3, False),
        ("1.0", "often higher", "", 0.4, False),
        ("1.0", OWN, "0.9 to 1.1", 0.6, True),
    ],
)
def test_a_headline_is_large_and_reads_as_a_difference(here, degree, span, strength, worth):
    contrast = Contrast("x", here, span, "1.0", degree, 0.3, strength, True)
    assert worth_a_headline(contrast) == worth
    assert ("mostly 0.9 to 1.1, as it seldom is elsewhere" in told(contrast)) == (degree == OWN)


def test_low_stability_and_unclear_numbers_are_doubts(model, page):
    table = {"n_clusters": np.arange(2, 5), "stability": np.array([0.5, 0.4, 0.3])}
    table["weakest"] = np.array([0.9, 0.1, 0.2])
    unclear = SimpleNamespace(table=table, n_clusters=None, reason="No clear answer: <b>none</b>.")
    said = page(model, suggestion=unclear)
    assert "cuts through a continuum" in said.words
    assert "No clear answer: <b>none</b>." in said.words
    assert "3 (here)" in said.words
    # The weaker of what speaks for the clusters decides, and neither goes by the name of the other.
    assert "The clusters are not firm" in said.words
    assert f"agree with them to {model.stability_:.2f}, and 3 clusters of a random half" in said.words
    assert "found again in the other half to 0.40" in said.words
    assert "Of the weakest cluster there, 10% is found again" in said.words
    assert "continuum" not in page(model).words
    other = SimpleNamespace(table=table, n_clusters=2, reason="Two.")
    said = page(model, suggestion=other).words
    assert "2 has the best support, and not 3" in said
    assert "cuts through a continuum" in said
    table["stability"] = table["weakest"] = np.array([1.0, 1.0, 1.0])
    firm = page(model, suggestion=SimpleNamespace(table=table, n_clusters=3, reason="Three.")).words
    assert f"The clusters are {firm_word(model.stability_)}: " in firm
    assert "continuum" not in firm
    elsewhere = {name: column[2:] for name, column in table.items()}
    beside = SimpleNamespace(table=elsewhere, n_clusters=None, reason="Only four.")
    assert "random half" not in page(model, suggestion=beside).words


def test_words_for_how_firm_clusters_are_change_at_these_agreements():
    agreements = [1.0, 0.9, 0.89, 0.8, 0.79, 0.6, 0.59, -0.5]
    words = ["very firm", "very firm", "firm", "firm", "fairly firm", "fairly firm", "not firm", "not firm"]
    assert list(map(firm_word, agreements)) == words


def test_boundary_rows_are_the_least_confident(model, page):
    elements = page(model).elements
    rows = [int(given["data-point"]) for _, given in elements if "data-point" in given]
    outliers = int((model.outlier_scores_ > 0.5).sum())
    least = np.argsort(model.confidence_, kind="stable")[:10]
    assert rows[: len(rows) - min(outliers, 10)] == [row for row in least if model.confidence_[row] < 0.9]


def test_shares_of_the_next_cluster_are_those_of_the_surroundings(iris):
    # More clusters than there are kinds: some rows have a label against their surroundings.
    model = FastSMRMF(n_clusters=8, random_state=0).fit(iris.data)
    shown = certainty_of(subject_of(model, None, None, None, None, None)).boundary
    shares = {entry["row"]: model.membership_[entry["row"]] for entry in shown}
    asked = {
        row: unfavored(s.copy(), model.labels_[row], model.confidence_[row]) for row, s in shares.items()
    }
    for entry in shown:
        assert entry["share"] == score(asked[entry["row"]][entry["next"]])
    assert any(entry["share"] != score(shares[entry["row"]][entry["next"]]) for entry in shown)


def test_exemplars_are_joined_to_what_they_represent(model):
    moved = with_moved_rows(model)
    weights = np.asarray(model.representation_.toarray())
    slight = 0
    for found in shown_exemplars(subject_of(moved, None, None, None, None, None)):
        mine = weights[found.row].copy()
        mine[found.row] = 0
        others = np.flatnonzero(mine >= 0.01)
        assert set(found.joined) == set(others)
        assert found.count == len(others)
        assert found.inside == np.count_nonzero(moved.labels_[others] == found.cluster)
        slight += np.count_nonzero(mine > 0) - len(others)
    assert slight > 0


def test_flags_are_told_by_their_averages_and_words_only_where_they_tell(model):
    flag = np.where(model.labels_ == 0, np.arange(150) % 5 < 2, 0)
    frame = pd.DataFrame({"flag": flag, "kind": np.array(["a", "b"])[np.arange(150) % 2]})
    profiles = Profiles(subject_of(model, frame, None, None, None, None))
    (contrast,) = profiles.contrasts(0)
    assert (contrast.here, contrast.elsewhere, contrast.on_average) == (
        f"{flag[model.labels_ == 0].mean():.1f}",
        "0.0",
        True,
    )
    assert profiles.kinds(0) == []


def test_neighbourhoods_are_counted(model, page):
    table = neighborhoods(model)
    said = page(model).words
    kept, agreement = table["kept"], table["agreement"]
    assert f"those of {kept.sum()} of the 150 rows" in said
    inside, outside = (percent(agreement[rows].mean()) for rows in (kept, ~kept))
    assert inside != outside
    assert f"{inside} lies in their own cluster, and of what the others stand for, {outside}." in said
    assert "Rows are tied to rows of their own cluster alone" in said
    moved = with_moved_rows(model)
    table, said = neighborhoods(moved), page(moved).words
    across = percent(np.average(table["across"], weights=table["edges"]))
    assert across != percent(table["across"].mean())
    assert f"On average {across} of the ties of a row lead to another cluster" in said


def test_known_classes_are_only_compared(model, iris, page):
    from sklearn.metrics import adjusted_rand_score

    names = iris.target_names[iris.target].astype(object)
    said = page(model, classes=names).words
    assert f"adjusted Rand index {adjusted_rand_score(iris.target, model.labels_):.2f}" in said
    assert "played no part in the fit" in said
    names[:4], names[4:7] = None, pd.NA
    for given in (names, iter(names), pd.Series(names)):
        assert "Of 7 rows the class is not known" in page(model, classes=given).words


def test_rows_of_words_are_shown_and_numbers_profiled(model, iris, page):
    frame = pl.DataFrame(iris.data, schema=["a_b", "c", "d", "e"])
    frame = frame.with_columns(kind=pl.Series(iris.target_names[iris.target]), none=pl.lit(None, pl.Float64))
    frame = frame.with_columns(c=pl.when(pl.col("c") > 4).then(None).otherwise(pl.col("c")))
    shown = page(model, frame)
    assert "kind is setosa in 100% of its rows, 0% elsewhere" in shown.words
    assert '["kind","' in shown.data
    assert "none" not in re.findall(r'"features":\[(.*?)\]', shown.data)[0]


def test_columns_of_pandas_have_any_names_and_cells(model, iris, page):
    frame = pd.DataFrame(iris.data)
    frame[4] = [np.zeros(row % 3) for row in range(150)]
    frame[5] = [pd.NA, "known"] * 75
    assert '"features":["0","1","2","3"]' in page(model, frame).data
    pairs = pd.MultiIndex.from_product([["sepal", "petal"], ["length", "width"]])
    assert '"petal width"' in page(model, pd.DataFrame(iris.data, columns=pairs)).data


def test_numbers_near_the_largest_and_columns_without_any_warn_of_nothing(model, digits, iris, page):
    values = np.column_stack([iris.data, np.full(150, np.nan)])
    values[::2, 0], values[1::7, 0] = 1e308, -1e308
    pixels = digits[0].copy()
    pixels[:, 3], pixels[::2, 4] = 1e308, -1e308
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert '"low":["-1e+308",' in page(model, values).data
        assert any(tag == "img" for tag, _ in page(digits[1], pixels, image_shape=(8, 8)).elements)


def test_a_single_cluster_is_said_to_be_one(iris, page):
    alone = FastSMRMF(n_clusters=1, random_state=0).fit(iris.data[:30])
    shown = page(alone)
    assert "All 30 rows are in one cluster: one was asked for" in shown.words
    alone.n_clusters = 2
    assert "All 30 rows are in one cluster: the fit has found no other" in page(alone).words
    assert "What sets every cluster apart" not in shown.words


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (3.14159, 2, "3.14"),
        (-0.001, 1, "0.0"),
        (12345.0, -1, "12,345"),
        (2.5, -1, "2.5"),
        (np.nan, 1, "\N{EN DASH}"),
        (1e9, 0, "1e+09"),
    ],
)
def test_numbers_are_written_as_people_read_them(value, decimals, text):
    assert number(value, decimals) == text


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        (np.exp(np.linspace(-5, 3, 99)), 0.0134, "0.01"),  # few large ones make no others nothing
        (np.r_[np.zeros(80), np.linspace(0.1, 0.9, 20)], 0.25, "0.25"),  # nor do many zeros
        (np.r_[np.linspace(0, 12, 98) + 0.5, 1e4], 3.94, "3.9"),
        (np.linspace(36, 37, 50) * 1000, 36_123.456, "36,123"),
        (np.full(9, 0.25), 0.25, "0.25"),
    ],
)
def test_decimals_tell_the_middle_half_apart(column, value, text):
    assert readable(column[:, None]).written(value, 0) == text


# What it is made of


@pytest.mark.parametrize("kind", FACTORISATIONS, ids=lambda kind: kind.__name__)
def test_every_factorisation_gets_a_page(kind, iris, page):
    fitted = kind(n_clusters=3, random_state=0).fit(iris.data[::3])
    shown = page(fitted)
    titles = [text for level, text in shown.headings if level == "h2"]
    assert titles[:2] == ["The result", "The map"]
    assert ("Whose neighbours counted" in titles) == hasattr(fitted, "kept_indices_")
    assert ("The clusters are" in shown.words) == hasattr(fitted, "stability_")
    assert ("Exemplars" in shown.words) == hasattr(fitted, "exemplar_indices_")
    assert sum("data-exemplar" in given for _, given in shown.elements) >= 3
    assert f"model = {kind.__name__}(n_clusters=3, random_state=0)" in shown.words


def test_headings_are_in_order_tables_have_captions_and_ids_are_unique(model, page):
    shown = page(model)
    levels = [int(level[1]) for level, _ in shown.headings]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    tags = [tag for tag, _ in shown.elements]
    assert tags.count("table") == tags.count("caption") > 3
    assert all("scope" in given for tag, given in shown.elements if tag == "th")
    ids = [given["id"] for _, given in shown.elements if "id" in given]
    assert len(ids) == len(set(ids))
    targets = [given["href"][1:] for tag, given in shown.elements if tag == "a"]
    assert set(targets) <= set(ids)


def test_nothing_is_loaded_and_only_the_own_script_runs(model, page):
    shown = page(model)
    addresses = [given[key] for _, given in shown.elements for key in ("src", "href") if key in given]
    assert all(address.startswith(("data:", "#")) for address in addresses)
    assert not any(key.startswith("on") or key == "style" for _, given in shown.elements for key in given)
    policy = next(given["content"] for _, given in shown.elements if "http-equiv" in given)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "innerHTML" not in shown.source
    assert "eval(" not in shown.source


def test_whatever_is_given_is_escaped_everywhere(model, iris, page):
    frame = pd.DataFrame(iris.data, columns=[f"{NASTY}{k}" for k in range(4)])
    frame[f"word {NASTY}"] = np.where(iris.target == 0, NASTY, "other")
    options = {"title": NASTY, "command": NASTY, "notes": [NASTY], "ids": [f"{NASTY}{k}" for k in range(150)]}
    suggestion = SimpleNamespace(table={"n_clusters": np.array([3])}, n_clusters=3, reason=NASTY)
    shown = page(model, frame, classes=[NASTY] * 150, suggestion=suggestion, **options)
    assert "<img src=x" not in shown.source
    assert shown.source.count("</script>") == 2
    assert not any(tag == "img" or "onerror" in given for tag, given in shown.elements)
    assert shown.words.count("onerror=alert(1)") > 20  # it is all there, as text
    assert "49" not in re.findall(r"<title>(.*?)</title>", shown.source)[0]
    assert "\u2028" not in shown.data


def test_images_are_for_pixels_alone(digits, model, texts, page):
    X, fitted = digits
    shown = page(fitted, X)
    assert sum(tag == "img" for tag, _ in shown.elements) > 10
    assert not any(tag == "img" for tag, _ in page(fitted, X, image_shape=None).elements)
    assert any(tag == "img" for tag, _ in page(fitted, X, image_shape=(4, 16)).elements)
    frame = pd.DataFrame(X, columns=[f"gene {k}" for k in range(64)])
    assert not any(tag == "img" for tag, _ in page(fitted, frame).elements)
    for other in (model, texts[1]):
        assert not any(tag == "img" for tag, _ in page(other).elements)


def readable(values, name="x"):
    return ReadableTable(
        np.asarray(values, float), np.array([f"{name}{k}" for k in range(np.shape(values)[1])]), {}
    )


def test_only_squares_of_pixels_are_recognised():
    pixels, rng = load_digits().data[:300], np.random.default_rng(0)
    assert recognised_shape(readable(pixels)) == (8, 8)
    assert recognised_shape(readable(pixels, "pixel_")) == (8, 8)
    assert recognised_shape(readable(pixels, "gene")) is None
    assert recognised_shape(readable(pixels[:, :63])) is None
    assert recognised_shape(readable(pixels[:, rng.permutation(64)])) is None
    curves = np.cumsum(rng.normal(size=(300, 64)), axis=1)
    assert recognised_shape(readable(curves - curves.min())) is None
    assert recognised_shape(readable(rng.uniform(size=(300, 1)) + rng.uniform(size=(300, 64)) / 9)) is None
    assert recognised_shape(readable(pixels * np.where(np.arange(64) == 20, 100, 1))) is None


def test_words_of_texts_are_counted(texts, page):
    X, fitted = texts
    names = [f"word{k}" for k in range(30)]
    shown = page(fitted, X, feature_names=names)
    cluster = fitted.labels_[0]
    share = np.mean(X[fitted.labels_ == cluster].toarray()[:, :10] > 0, axis=0)
    assert any(f"word{k} {part:.0%}" in shown.words for k, part in enumerate(share))
    assert '"entries":[[["word' in shown.data


def test_a_pipeline_is_repeated_by_its_code(iris, page):
    fitted = make_pipeline(StandardScaler(with_std=True), FastSMRMF(3, n_neighbors=8, random_state=0))
    fitted.fit(iris.data)
    code = code_of(subject_of(fitted, None, None, None, None, None), 4)
    known = {"X": iris.data}
    exec(code, known)
    assert (known["labels"] == fitted[-1].labels_).all()
    assert "n_neighbors=8" in code
    assert "with_std" not in code
    assert "Prepared by StandardScaler" in page(fitted, iris.data).words


def test_code_says_what_it_cannot_write(iris):
    fitted = FastSMRMF(2, init=np.eye(2)[np.arange(40) % 2], random_state=None).fit(iris.data[:40])
    code = code_of(subject_of(fitted, None, None, None, None, None), 4)
    assert "# FastSMRMF also had init=an array of shape (40, 2), which cannot be written here" in code
    assert "# random_state is not set" in code


def test_the_same_model_gives_the_same_bytes(model, tmp_path):
    first, second = (write_report(model, tmp_path / f"{k}.html").read_bytes() for k in range(2))
    assert first == second


def test_a_page_of_twenty_thousand_rows_is_small(tmp_path, monkeypatch):
    n, rng = 20_000, np.random.default_rng(0)
    labels = np.sort(rng.integers(0, 8, n))
    X = rng.normal(size=(n, 50)) + labels[:, None]
    shares = rng.dirichlet(np.full(8, 0.1), n)
    fitted = GNMF(8)
    found = {
        "labels_": labels,
        "_fit_data": X,
        "_magnitude": 1.0,
        "membership_": shares,
        "n_features_in_": 50,
    }
    found |= {"confidence_": shares.max(axis=1), "outlier_scores_": np.zeros(n)}
    vars(fitted).update(found)
    monkeypatch.setattr("smrmf.report._write.layout", lambda model: rng.normal(size=(n, 2)))
    ids = [f"customer-{k:06d}" for k in range(n)]
    assert write_report(fitted, tmp_path / "large.html", ids=ids).stat().st_size < 1_500_000


# What it refuses


REFUSED = [
    ({"X": np.zeros((7, 4))}, "X has 7 rows, but the model was fitted to 150"),
    ({"X": np.full((150, 4), np.inf)}, "in column 'x0' that is not finite"),
    ({"X": [["a", "b"]] * 150}, "X has entries that are no numbers"),
    ({"X": np.zeros(150)}, r"X has shape \(150,\)"),
    ({"X": pd.DataFrame(np.zeros((150, 2)), columns=[1, "1"])}, "X has 2 columns called '1': give each"),
    ({"ids": ["a"]}, "ids has 1 entries, but the model was fitted to 150 rows"),
    ({"ids": 3}, "ids=3 is not valid"),
    ({"classes": [1, 2]}, "classes has 2 entries"),
    ({"feature_names": ["a"]}, "feature_names has 1 names, but there are 4 columns"),
    ({"image_shape": (3, 3)}, r"image_shape=\(3, 3\) does not fit n_features=4"),
    ({"image_shape": "square"}, "image_shape='square' is not valid"),
    ({"title": 3}, "title=3 is not valid"),
    ({"command": b"x"}, "command=b'x' is not valid"),
    ({"notes": [3]}, "notes has 3, but must have sentences"),
    ({"suggestion": 3}, "suggestion=3 is not valid"),
]


@pytest.mark.parametrize(("options", "sentence"), REFUSED, ids=lambda value: str(value)[:30])
def test_what_cannot_be_shown_is_refused_in_a_sentence(options, sentence, model, tmp_path):
    with pytest.raises(ValueError, match=sentence) as error:
        write_report(model, tmp_path / "page.html", **options)
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_other_models_are_refused(iris, tmp_path):
    X, path = iris.data[:40], tmp_path / "page.html"
    for other in (KMeans(2, n_init=1, random_state=0), ESC(2, random_state=0)):
        with pytest.raises(ValueError, match="keeps no points to show: give a fitted factorisation"):
            write_report(other.fit(X), path)
    with pytest.raises(ValueError, match="KDPP has no labels_"):
        write_report(KDPP(3, random_state=0).fit(X), path)
    with pytest.raises(ValueError, match="is not a fitted model"):
        write_report(FastSMRMF, path)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        write_report(FastSMRMF(2), path)
    assert list(tmp_path.iterdir()) == []


def test_no_file_is_lost_or_left_half_written(model, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="exists already"):
        write_report(model, path)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        write_report(model, tmp_path / "none" / "page.html")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_report(model, tmp_path, overwrite=True)
    monkeypatch.setattr("os.replace", lambda *paths: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(model, path, overwrite=True)
    assert [found.name for found in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text() == "mine"


def test_without_jinja2_it_says_what_to_install(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'smrmf\[app\]'"):
        write_report(model, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_no_library_of_pictures_is_needed(model, tmp_path, monkeypatch):
    for name in ("matplotlib", "matplotlib.pyplot", "PIL"):
        monkeypatch.setitem(sys.modules, name, None)
    assert write_report(model, tmp_path / "page.html").exists()
