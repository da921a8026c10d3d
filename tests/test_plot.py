"""Pictures: what is on them and where, settings left alone, and sentences for what cannot be drawn."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib import pyplot
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.exceptions import NotFittedError

from smrmf import GNMF, KDPP, SMRMF, FastSMRMF, NMFClustering, plot
from smrmf.inspection import neighborhoods
from smrmf.plot._neighborhoods import MOST_EDGES, heaviest_edges
from smrmf.plot._style import COLORS, MARKERS, color_of, marker_of
from smrmf.plot._thumbnails import clear_of_each_other

matplotlib.use("Agg")
SHAPES = (8, 8)


@pytest.fixture(scope="module")
def digits():
    return load_digits(n_class=3)


@pytest.fixture(scope="module")
def model(digits):
    return FastSMRMF(n_clusters=3, random_state=0).fit(digits.data)


@pytest.fixture(scope="module")
def places(model):
    return plot.layout(model)


@pytest.fixture(scope="module")
def others(digits):
    """Return models of other kinds, with a dense Z, and without any."""
    X = digits.data[:120]
    return [kind(n_clusters=3, random_state=0).fit(X) for kind in (SMRMF, GNMF, NMFClustering)]


@pytest.fixture(scope="module")
def texts():
    """Return rows of three vocabularies of ten words each, and a model of them."""
    rng = np.random.default_rng(0)
    topics = np.repeat(np.arange(3), 40)
    counts = rng.poisson(np.kron(np.eye(3), np.ones(10))[topics] * 3 + 0.05)
    X = sp.csr_array(counts.astype(float))
    return X, FastSMRMF(n_clusters=3, metric="cosine", random_state=0).fit(X)


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture
def ax():
    return Figure().subplots()


def suggestion_of(**columns):
    table = {name: np.linspace(0, 1, 5) for name in ("eigengap", "stability", "silhouette", "weakest")}
    table |= {"n_clusters": np.arange(2, 7), **columns}
    return SimpleNamespace(table=table, n_clusters=4, reason="Four it is, for " + "many good reasons " * 9)


def dots_by_label(ax):
    return {dots.get_label(): dots for dots in ax.collections}


# The map


def test_layout_keeps_clusters_together(model, places):
    assert places.shape == (len(model.labels_), 2)
    distances = np.linalg.norm(places[:, None] - places, axis=2)
    np.fill_diagonal(distances, np.inf)
    assert np.mean(model.labels_[distances.argmin(axis=1)] == model.labels_) > 0.98
    np.testing.assert_array_equal(plot.layout(model), places)


def test_layout_of_the_data_knows_nothing_of_the_clusters(digits):
    # Noise without any clusters: the model's graph parts them, that of the data does not.
    X = np.random.default_rng(0).standard_normal((300, 5))
    model = FastSMRMF(n_clusters=3, random_state=0).fit(X)

    def gap(graph):
        found = plot.layout(model, graph=graph)
        distances = np.linalg.norm(found[:, None] - found, axis=2)
        apart = model.labels_[:, None] != model.labels_
        np.fill_diagonal(distances, np.inf)
        return np.median(np.where(apart, distances, np.inf).min(axis=1) / distances.min(axis=1))

    assert gap("model") > 2 * gap("data")


def test_every_model_with_points_has_a_map(others, ax):
    for model in others:
        ax.clear()
        plot.map(model, ax=ax)
        drawn = [dots for label, dots in dots_by_label(ax).items() if not label.startswith("_")]
        assert sum(len(dots.get_offsets()) for dots in drawn) == len(model.labels_)


def test_map_has_every_point_at_its_place_in_the_colour_of_its_cluster(model, places, ax):
    assert plot.map(model, places, ax=ax) is ax
    dots = dots_by_label(ax)
    for cluster in range(3):
        members = places[model.labels_ == cluster]
        drawn = dots[f"{cluster} ({len(members)})"]
        np.testing.assert_allclose(drawn.get_offsets(), members)
        assert to_hex(drawn.get_facecolor()[0]) == COLORS[cluster]
    assert len(ax.get_legend().get_texts()) == 3
    rings = dots["_exemplars"].get_offsets()
    best = [model.exemplar_indices_[model.labels_[model.exemplar_indices_] == k][:5] for k in range(3)]
    np.testing.assert_allclose(rings, places[np.concatenate(best)])


def test_names_stand_on_a_point_of_their_cluster(model, places, ax):
    plot.map(model, places, names=["a", "b", "c"], exemplars=False, ax=ax)
    assert "_exemplars" not in dots_by_label(ax)
    assert [text.get_text() for text in ax.texts] == ["a", "b", "c"]
    for cluster, text in enumerate(ax.texts):
        at = np.linalg.norm(places - text.get_position(), axis=1).argmin()
        assert model.labels_[at] == cluster


@pytest.mark.parametrize("names", [None, ["a kind of its own", "b", "c"]])
def test_a_legend_is_not_cut_where_the_user_made_the_axes(names, model, places):
    both = Figure(figsize=(9, 4)).subplots(1, 2)
    for each in both:
        plot.map(model, places, names=names, exemplars=False, ax=each)
    first, last = (each.get_legend().get_window_extent() for each in both)
    assert both[0].get_window_extent().x1 <= first.x0 + 1
    assert first.x1 <= both[1].get_window_extent().x0
    assert last.x1 <= both[1].figure.bbox.x1


def test_map_by_confidence_by_numbers_and_by_words(model, places, digits, ax):
    plot.map(model, places, color="confidence", exemplars=2, ax=ax)
    dots = ax.collections[0]
    np.testing.assert_allclose(np.sort(dots.get_array()), np.sort(model.confidence_))
    assert dots.get_clim() == (0, 1)
    assert len(dots_by_label(ax)["_exemplars"].get_offsets()) == 6
    values = np.arange(len(places))
    dots = plot.map(model, places, color=values, ax=Figure().subplots()).collections[0]
    np.testing.assert_allclose(dots.get_offsets()[np.argsort(dots.get_array())], places)
    words = np.array(["nought", "one", "two"])[digits.target]
    labels = dots_by_label(plot.map(model, places, color=words, ax=Figure().subplots()))
    assert f"two ({np.sum(words == 'two')})" in labels


@pytest.mark.parametrize("colored", [False, True])
def test_thumbnails_do_not_overlap_and_every_cluster_has_its_name(model, places, digits, colored):
    images = digits.images[..., None].repeat(3, axis=3) if colored else digits.images
    figure = Figure(layout="constrained")
    ax = plot.map(model, places, images=images, ax=figure.subplots())
    frames = [artist for artist in ax.artists if isinstance(artist, AnnotationBbox)]
    assert len(frames) >= 3
    assert sorted(text.get_text() for text in ax.texts) == ["0", "1", "2"]
    figure.draw_without_rendering()
    boxes = [frame.patch.get_window_extent() for frame in frames]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    at = [np.linalg.norm(places - frame.xy, axis=1).argmin() for frame in frames]
    assert set(at) <= set(model.exemplar_indices_)


def test_squares_are_taken_in_order_so_many_of_each_label():
    centers = np.array([[0, 0], [0.5, 0], [1, 0], [2, 0], [3, 0]], float)
    labels = np.array([0, 0, 0, 1, 0])
    assert clear_of_each_other(np.arange(5), centers, 1, labels, 2) == [0, 2, 3]


def test_beyond_twelve_clusters_shapes_differ_and_there_is_no_legend(ax):
    X, _ = make_blobs(130, centers=13, random_state=0)
    plot.map(KMeans(13, n_init=1, random_state=0).fit(X), X, ax=ax)
    assert ax.get_legend() is None
    assert len(ax.texts) == 13
    paths = [dots.get_paths()[0].vertices.shape for dots in ax.collections]
    assert paths[12] != paths[0]
    looks = {(color_of(k), marker_of(k)) for k in range(len(COLORS) * len(MARKERS))}
    assert len(looks) == len(COLORS) * len(MARKERS)


# Panels


def test_exemplars_as_images_in_rows_of_clusters(model, digits):
    axes = plot.exemplars(model, digits.data, n=2, image_shape=SHAPES, figure=Figure())
    assert axes.shape == (3, 2)
    for cluster, row in enumerate(axes):
        best = model.exemplar_indices_[model.labels_[model.exemplar_indices_] == cluster]
        for ax, index in zip(row, best[:2], strict=True):
            np.testing.assert_array_equal(ax.images[0].get_array(), digits.images[index])
            assert ax.get_title() == str(index)
    assert len({ax.images[0].get_clim() for ax in axes.ravel()}) == 1


@pytest.mark.filterwarnings("ignore::smrmf.inspection.ColumnsWarning")  # other units are what is tested
def test_exemplars_as_bars_are_standardised_and_panels_without_one_are_empty():
    X = load_iris().data * [1, 10, 100, 1000]
    model = FastSMRMF(n_clusters=3, exemplars=4, random_state=0).fit(X)
    axes = plot.exemplars(model, X, n=3, feature_names=list("abcd"), figure=Figure())
    assert sum(ax.axison for ax in axes.ravel()) == 4
    first = model.exemplar_indices_[model.labels_[model.exemplar_indices_] == 0][0]
    heights = [bar.get_height() for bar in axes[0, 0].patches]
    np.testing.assert_allclose(heights, (X[first] - X.mean(axis=0)) / X.std(axis=0))
    assert [tick.get_text() for tick in axes[-1, 0].get_xticklabels()] == list("abcd")


def test_many_features_are_a_line_also_sparse_ones(model, digits):
    dense, sparse = (
        plot.exemplars(model, X, n=1, figure=Figure())[0, 0].lines[-1].get_ydata()
        for X in (digits.data, sp.csr_array(digits.data))
    )
    np.testing.assert_allclose(sparse, dense, atol=1e-9)
    assert len(dense) == 64


def test_texts_are_shown_by_their_largest_words(texts):
    X, model = texts
    words = np.array([f"topic{word // 10}_{word % 10}$" for word in range(30)])
    for axes in (
        plot.exemplars(model, X, n=1, feature_names=words, figure=Figure())[:, 0],
        plot.exemplars(model, X, n=1, feature_names=list(words), figure=Figure())[:, 0],
    ):
        said = [ax.texts[0].get_text().split("\n") for ax in axes]
        assert all(len({word[:6] for word in lines[:3]}) == 1 for lines in said)
        assert len({lines[0][:6] for lines in said}) == 3


def test_components_are_images_words_bars_and_lines(model, digits, texts):
    axes = plot.components(model, n=2, image_shape=SHAPES, figure=Figure())
    for ax, row in zip(axes, model.components_, strict=False):
        np.testing.assert_allclose(ax.images[0].get_array(), row.reshape(SHAPES))
    assert len(axes) == 2
    assert len(plot.components(model, figure=Figure())[0].lines[-1].get_ydata()) == 64
    assert len(plot.components(texts[1], figure=Figure())[2].patches) == 30
    words = [f"pixel{place}" for place in range(64)]
    said = plot.components(model, feature_names=words, figure=Figure())[1].texts[0].get_text()
    assert said.split("\n")[0] == words[model.components_[1].argmax()]


def test_both_signs_share_a_scale_symmetric_about_zero(digits):
    X = digits.data - digits.data.mean(axis=0)
    model = FastSMRMF(n_clusters=3, random_state=0).fit(X)
    axes = plot.components(model, image_shape=SHAPES, figure=Figure())
    limits = {ax.images[0].get_clim() for ax in axes}
    largest = np.abs(model.components_).max()
    assert limits == {(-largest, largest)}


# Firmness, neighbourhoods, convergence, suggestions


def test_confidence_has_a_curve_for_every_cluster_and_the_mean(model, ax):
    assert plot.confidence(model, ax) is ax
    assert [to_hex(curve.get_facecolor()[0]) for curve in ax.collections] == COLORS[:3]
    for cluster, curve in enumerate(ax.collections):
        x, y = curve.get_paths()[0].vertices.T
        own = model.confidence_[model.labels_ == cluster]
        assert x.max() == pytest.approx(own.max())
        assert np.ptp(y) == pytest.approx(len(own))
    assert ax.lines[0].get_xdata()[0] == pytest.approx(model.confidence_.mean())


def test_neighborhoods_show_the_limit_the_edges_and_who_is_kept(model, places):
    table = neighborhoods(model)
    left, right = plot.neighborhoods(model, places, figure=Figure())
    assert left.lines[0].get_xdata()[0] == table["mass"][table["kept"]].min()
    counts = [sum(bar.get_height() for bar in bars) for bars in left.containers]
    assert counts == [np.sum(~table["kept"]), np.sum(table["kept"])]
    inside, across = (artist for artist in right.collections if isinstance(artist, LineCollection))
    edges = sp.coo_array(sp.triu(model.affinity_, 1))
    differ = model.labels_[edges.row] != model.labels_[edges.col]
    assert (len(inside.get_segments()), len(across.get_segments())) == (np.sum(~differ), np.sum(differ))
    np.testing.assert_allclose(dots_by_label(right)["_exemplars"].get_offsets(), places[table["kept"]])
    assert right.get_title().startswith(f"{differ.sum()} of {len(differ)} edges")


def test_of_too_many_edges_the_heaviest_are_drawn():
    n = 250
    W = np.random.default_rng(0).random((n, n))
    W = np.triu(W, 1) + np.triu(W, 1).T
    heads, tails = heaviest_edges(sp.csr_array(W))
    assert len(heads) == MOST_EDGES < n * (n - 1) // 2
    assert W[heads, tails].min() >= np.sort(W[np.triu_indices(n, 1)])[-MOST_EDGES]


def test_convergence_shows_the_history_on_the_scale_that_it_needs(model, ax):
    plot.convergence(model, ax)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.objective_history_)
    assert ax.get_yscale() == "linear"
    assert f"converged after {model.n_iter_}" in ax.get_title()
    other = FastSMRMF(n_clusters=2).fit(load_iris().data)
    other.objective_history_, other.converged_ = np.array([1e4, 10.0, 1.0]), False
    ax = plot.convergence(other, Figure().subplots())
    assert ax.get_yscale() == "log"
    assert "did not converge" in ax.get_title()


def test_suggestion_marks_the_number_in_every_panel_and_says_why():
    found = suggestion_of(silhouette=np.array([0.1, np.nan, 0.3, 0.2, 0.1]), weakest=np.full(5, np.nan))
    figure = Figure()
    axes = plot.suggestion(found, figure)
    assert len(axes) == 4
    for ax in axes:
        left, right = ax.patches[0].get_x(), ax.patches[0].get_x() + ax.patches[0].get_width()
        assert left < 4 < right
    assert [len(ax.lines) for ax in axes] == [2, 2, 2, 0]
    assert figure.get_suptitle().replace("\n", " ") == found.reason.strip()
    assert max(map(len, figure.get_suptitle().split("\n"))) <= 75
    found.n_clusters = None
    assert not any(ax.patches for ax in plot.suggestion(found, Figure()))


# Settings, colours, refusals


def draw_all(model, places, digits):
    plot.map(model, places, images=digits.images)
    plot.confidence(model)
    plot.convergence(model)
    plot.exemplars(model, digits.data, image_shape=SHAPES)
    plot.components(model)
    plot.neighborhoods(model, places)
    plot.suggestion(suggestion_of())


def test_settings_of_the_user_stay_as_they_are(model, places, digits):
    pyplot.gcf()  # the backend is chosen here, not by a picture
    with matplotlib.rc_context():
        # From what matplotlib has by itself: an earlier picture may have left its settings.
        matplotlib.rcdefaults()
        before = dict(matplotlib.rcParams)
        draw_all(model, places, digits)
        assert dict(matplotlib.rcParams) == before


def test_pyplot_has_what_is_drawn_without_axes(model, places):
    ax = plot.confidence(model)
    assert ax is pyplot.gca()
    assert plot.map(model, places) is ax
    assert plot.components(model)[0].figure is pyplot.gcf()


def test_importing_pictures_imports_no_matplotlib():
    code = "import sys, smrmf.plot; print('matplotlib' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"


def test_without_matplotlib_one_sentence_says_what_to_install(model, places, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'smrmf\[plot\]'"):
        plot.map(model, places)


def linear(colors):
    """Return colours as amounts of light."""
    rgb = np.array([to_rgb(color) for color in colors])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(light):
    """Return amounts of light in CIELAB."""
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.clip(light, 0, 1) @ np.array(to_xyz).T / [0.9505, 1, 1.089]
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.column_stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])])


# What people without one kind of cone see (Machado, Oliveira, Fernandes 2009), of amounts of light.
VISION = {
    "usual": np.eye(3),
    "protanopia": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "deuteranopia": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "tritanopia": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}


OKABE_ITO = ["#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"]


def least_distance(colors, others=None):
    """Return the smallest distance that any eye sees between colours, or to those of others."""
    least = np.inf
    for matrix in VISION.values():
        seen, beside = (lab(linear(c) @ np.array(matrix).T) for c in (colors, others or colors))
        distances = np.linalg.norm(seen[:, None] - beside, axis=2)
        least = min(least, distances[distances > 0].min())
    return least


def test_all_eyes_can_tell_the_colours_apart():
    # Twelve, as far apart as the seven that are known to be safe.
    assert len(set(COLORS)) == 12
    assert least_distance(COLORS) >= least_distance(OKABE_ITO)


def test_colours_show_on_white_and_on_black():
    assert least_distance(COLORS, ["white", "black"]) > 15


def refused(call, *words):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert "\n" not in text
    assert text.endswith(".")


def test_what_cannot_be_drawn_is_refused_in_one_sentence(model, places, digits, texts):
    X = digits.data
    refused(lambda: plot.map("model"), "'model'", "estimator")
    refused(lambda: plot.map(FastSMRMF), "fit")
    refused(lambda: plot.map(KDPP(exemplars=3, random_state=0).fit(X)), "KDPP has no labels_")
    refused(lambda: plot.confidence(KMeans(2, n_init=1).fit(X)), "KMeans has no confidence_", "FastSMRMF")
    refused(lambda: plot.map(KMeans(2, n_init=1).fit(X)), "KMeans", "coordinates")
    refused(lambda: plot.layout(model, graph="both"), "'both'", "'model' or 'data'")
    refused(lambda: plot.map(model, places[:-1]), f"({len(X) - 1}, 2)", f"({len(X)}, 2)")
    refused(lambda: plot.map(model, places * np.nan), "finite")
    refused(lambda: plot.map(model, places, color="size"), "'size'", "'confidence'")
    refused(lambda: plot.map(model, places, color=[1, 2]), "(2,)", str(len(X)))
    refused(lambda: plot.map(model, places, exemplars=-1), "-1", "at least 0")
    refused(lambda: plot.map(model, places, names=["a"]), "1 entries", "3 clusters")
    refused(lambda: plot.map(model, places, images=X), "images", str(X.shape))
    refused(lambda: plot.exemplars(model, X[1:]), str(len(X) - 1), str(len(X)))
    refused(lambda: plot.exemplars(model, X, n=0), "n=0")
    refused(lambda: plot.exemplars(model, X, image_shape=(8, 9)), "(8, 9)", "64")
    refused(lambda: plot.components(model, image_shape=8), "image_shape=8", "64")
    refused(lambda: plot.components(model, feature_names=["a"]), "1 entries", "64")
    refused(lambda: plot.suggestion(None), "None", "eigengap")


@pytest.mark.parametrize("draw", [plot.map, plot.layout, plot.confidence, plot.convergence, plot.components])
def test_a_model_that_is_not_fitted_is_refused(draw):
    with pytest.raises(NotFittedError, match="FastSMRMF is not fitted yet"):
        draw(FastSMRMF())
