"""Questions to a fitted model: profiles, explanations, neighbourhoods; and how answers look."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from smrmf import GNMF, RMNMF, SMRMF, FastSMRMF
from smrmf.inspection import PlainTable, cluster_profiles, explain, neighborhoods
from smrmf.inspection._explanation import next_best
from smrmf.inspection._profiles import cliffs_delta, outside_quartiles

NAMES = ["width", "height", "noise"]


@pytest.fixture(scope="module")
def three():
    X, _ = make_blobs([60, 50, 40], centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    X = np.column_stack([X, np.random.default_rng(0).normal(size=len(X))])
    return X, FastSMRMF(3, random_state=0).fit(X)


class Labelled:
    """What a profile needs of a model."""

    def __init__(self, labels):
        self.labels_ = np.asarray(labels)


# Profiles


@settings(max_examples=20)
@given(st.integers(2, 4), st.integers(0, 10**6))
def test_effects_count_pairs(c, seed):
    draws = np.random.default_rng(seed)
    labels = np.append(np.arange(c), draws.integers(c, size=12 - c))
    values = draws.integers(-2, 3, (12, 3)).astype(float)
    expected = np.array(
        [
            [np.mean(np.sign(v[labels == k][:, None] - v[labels != k][None, :])) for v in values.T]
            for k in range(c)
        ]
    )
    for form in (values, sp.csc_array(values)):
        np.testing.assert_allclose(cliffs_delta(form, labels), expected, atol=1e-12)


def test_points_between_the_quartiles_are_counted():
    mine = [[1.0, 0], [1.5, 0], [2, 0], [2.5, 0], [3, 0]]
    values = np.array([*mine, [2.2, 0], [9, 0], [-9, 0], [8, np.nan]])
    found = outside_quartiles(values, np.array([0, 0, 0, 0, 0, 1, 1, -1, 1]))
    np.testing.assert_allclose(found, [[1 - 2 * 1 / 4, 0], [0, 0]])  # of three points nothing is said
    missing = np.full((10, 1), np.nan)
    missing[:5] = 1
    np.testing.assert_array_equal(outside_quartiles(missing, np.repeat([0, 1], 5)), [[0], [0]])


def test_a_lonely_row_is_told_by_what_is_strange_about_it():
    values = np.random.default_rng(0).normal(size=(61, 6))
    values[0] = 0.1
    values[0, [4, 2]] = 30, -50
    found = cluster_profiles(SimpleNamespace(labels_=(np.arange(61) > 0).astype(int)), values)
    assert found["feature"][found["cluster"] == 0][:2].tolist() == ["x2", "x4"]


def test_effects_do_not_see_missing_values():
    values = np.array([[1.0], [2.0], [np.nan], [5.0], [6.0], [np.nan]])
    np.testing.assert_allclose(cliffs_delta(values, np.array([0, 0, 0, 1, 1, 1])), [[-1], [1]])
    np.testing.assert_allclose(cliffs_delta(values[[0, 2]], np.array([0, 1])), [[0], [0]])


def test_profiles_have_the_units_of_the_table(three):
    X, model = three
    table = pd.DataFrame(X * [1, 1000, 1], columns=NAMES)
    profile = cluster_profiles(model, table, n_features=None)
    assert isinstance(profile, pd.DataFrame)
    assert len(profile) == 9
    for row in profile.itertuples():
        inside = model.labels_ == row.cluster
        column = table[row.feature]
        assert row.size == inside.sum()
        assert row.typical == pytest.approx(column[inside].median())
        assert row.elsewhere == pytest.approx(column[~inside].median())
        assert [row.low, row.high] == pytest.approx(list(column[inside].quantile([0.25, 0.75])))
    apart = profile[["effect", "apart"]].abs().max(axis=1)
    assert all(part.is_monotonic_decreasing for _, part in apart.groupby(profile["cluster"]))
    assert list(profile.groupby("cluster")["feature"].last()) == ["noise"] * 3


def test_profiles_of_texts_are_their_words():
    words = ["tea", "milk", "goal", "team"]
    counts = sp.csr_array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 1], [0, 1, 1, 1]])
    found = cluster_profiles(Labelled([0, 0, 1, 1, 1]), counts, n_features=2, feature_names=words)
    assert isinstance(found, PlainTable)
    np.testing.assert_array_equal(found["size"], [2, 2, 3, 3])
    milk = cluster_profiles(Labelled([0, 0, 1, 1, 1]), counts, n_features=None, feature_names=words)
    milk = milk.where(milk["feature"] == "milk")
    np.testing.assert_allclose(milk["typical"], [3 / 2, 1 / 3])
    np.testing.assert_allclose(milk["elsewhere"], [1 / 3, 3 / 2])
    tea = list(found["feature"]).index("tea")
    assert found["typical"][tea] == 1.5
    assert found["elsewhere"][tea] == 0


def test_a_cluster_between_two_others_is_set_apart_too():
    draws = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    noise, decisive = draws.normal(size=(2, 120))
    table = np.column_stack([noise, decisive + 20 * (labels - 1)])
    found = cluster_profiles(Labelled(labels), table, n_features=1, feature_names=["noise", "decisive"])
    np.testing.assert_array_equal(found["feature"], ["decisive"] * 3)
    assert found["apart"][1] > 0.5
    assert abs(found["effect"][1]) < 0.1


def test_noise_words_dates_and_lists_do_not_stop_a_profile():
    table = pd.DataFrame(
        {"value": [1.0, 2, 3, 9], "name": list("abcd"), "day": pd.date_range("2020", periods=4)}
    )
    noisy = cluster_profiles(Labelled([0, 0, 1, -1]), table)
    assert list(noisy["feature"]) == ["value", "value"]
    assert list(noisy["effect"]) == pytest.approx([-1, 1 / 3])
    assert list(noisy["elsewhere"]) == [6, 2]
    listed = cluster_profiles(Labelled([0, 0, 1, 1]), [[1.0], [2], [3], [9]])
    np.testing.assert_array_equal(listed["typical"], [1.5, 6])
    with pytest.raises(ValueError, match="no column of numbers"):
        cluster_profiles(Labelled([0, 0, 1, 1]), table[["name"]])
    with pytest.raises(ValueError, match="no point into a cluster"):
        cluster_profiles(Labelled([-1] * 4), table)
    with pytest.raises(ValueError, match="n_features=-1"):
        cluster_profiles(Labelled([0, 0, 1, 1]), table, n_features=-1)


def test_polars_comes_back_as_polars(three):
    polars = pytest.importorskip("polars")
    X, model = three
    found = cluster_profiles(model, polars.DataFrame(X, schema=NAMES), n_features=1)
    assert isinstance(found, polars.DataFrame)
    assert found["feature"].to_list()[0] in NAMES


def test_profiles_refuse_other_rows_and_names(three):
    X, model = three
    with pytest.raises(ValueError, match="X has 10 rows, but the model was fitted to 150"):
        cluster_profiles(model, X[:10])
    with pytest.raises(ValueError, match="feature_names has 2 names, but X has 3 columns"):
        cluster_profiles(model, X, feature_names=["a", "b"])
    with pytest.raises(NotFittedError):
        cluster_profiles(FastSMRMF(), X)


# Explanations


def test_a_point_is_explained_by_its_own_cluster(three):
    X, model = three
    i = int(model.exemplars_of(0, n=1)[0])
    found = explain(model, i, feature_names=NAMES)
    assert found.cluster == 0
    assert found.confidence == pytest.approx(model.confidence_[i])
    assert found.outlier_score == pytest.approx(model.outlier_scores_[i])
    assert found.exemplar == i
    assert model.labels_[found.next_exemplar] == found.next_cluster
    weights = found.representatives["weight"]
    assert (np.diff(weights) <= 0).all()
    assert weights[0] == pytest.approx(model.representation_[:, [i]].max())
    j = found.representatives["point"][0]
    assert found.representatives["distance"][0] == pytest.approx(np.linalg.norm(X[i] - X[j]))
    # The two exemplars differ along one axis, and that decides.
    axis = np.abs(X[found.exemplar] - X[found.next_exemplar]).argmax()
    assert found.features["feature"][0] == NAMES[axis]
    assert found.features["share"][0] > 0.5
    assert "cluster 0" in str(found)


def test_shares_speak_for_the_nearer_exemplar(three):
    X, model = three
    for i in range(0, len(X), 10):
        found = explain(model, i, n=3)
        nearer = np.linalg.norm(X[i] - X[found.exemplar]) <= np.linalg.norm(X[i] - X[found.next_exemplar])
        assert (found.features["share"].sum() >= 0) == nearer
        assert np.abs(found.features["share"]).sum() == pytest.approx(1)


def test_explanations_say_what_confidence_says():
    X = np.random.default_rng(1).normal(size=(12, 3))
    model = FastSMRMF(4, random_state=0).fit(X)
    found = [explain(model, row) for row in range(12)]
    np.testing.assert_allclose([each.confidence for each in found], model.confidence_, rtol=1e-6)
    assert [each.cluster for each in found] == model.labels_.tolist()
    against = [each for each in found if each.next_confidence > each.confidence]
    assert against  # few rows of noise: some are labelled against their surroundings
    assert all("rather for the next cluster" in str(each) for each in against)
    assert sum("rather for the next cluster" in str(each) for each in found) == len(against)


def test_new_points_are_explained_and_far_ones_named(three):
    X, model = three
    found = explain(model, X[3] + 1e-9)
    assert found.cluster == model.labels_[3]
    assert found.representatives["point"][0] == 3
    far = explain(model, np.full(3, 1e6))
    assert far.outlier_score > 0.99
    assert "farther from its neighbours" in str(far)


def test_distances_and_values_are_in_the_unit_of_the_data(three):
    X, _ = three
    model = FastSMRMF(3, random_state=0).fit(X * 1e200)
    found = explain(model, 8, n=3)
    j = found.representatives["point"][0]
    assert found.representatives["distance"][0] == pytest.approx(1e200 * np.linalg.norm(X[8] - X[j]))
    row = dict(zip(found.features["feature"], found.features["value"], strict=True))
    assert row["x0"] == pytest.approx(1e200 * X[8, 0])
    assert explain(model, X[8] * 1e200).features["value"] == pytest.approx(found.features["value"])


def test_the_next_cluster_is_the_nearer_where_membership_says_nothing():
    assert next_best(np.array([1.0, 0, 0]), 0, np.array([0.0, 5, 4])) == 2
    assert next_best(np.array([0.8, 0.2, 0]), 0, np.array([0.0, 5, 4])) == 1
    assert next_best(np.array([1.0]), 0, np.array([0.0])) is None


def test_tables_are_matched_by_name_and_others_refused(three):
    X, _ = three
    table = pd.DataFrame(X, columns=NAMES)
    model = FastSMRMF(3, random_state=0).fit(table)
    found = explain(model, 9, table)
    turned = explain(model, 9, table[NAMES[::-1]].assign(other=1.0))
    for name in found.features:
        np.testing.assert_array_equal(found.features[name], turned.features[name])
    turned = explain(model, table.iloc[9][::-1])
    assert (turned.cluster, turned.confidence) == (found.cluster, pytest.approx(found.confidence, abs=1e-9))
    for wrong, said in (
        (table[["width", "noise"]], "no column 'height'"),
        (X[:, :2], r"\(150, 2\).*\(150, 3\)"),
        (X[:4], r"\(4, 3\)"),
    ):
        with pytest.raises(ValueError, match=said):
            explain(model, 9, wrong)
    with pytest.raises(ValueError, match="in which a new point is not known"):
        explain(model, X[9], table)
    with pytest.raises(ValueError, match="2 rows, but one is explained"):
        explain(model, table.iloc[:2])


def test_pipelines_are_asked_as_their_last_step(three):
    X, _ = three
    table = pd.DataFrame(X * [1, 1, 50], columns=NAMES)
    pipeline = make_pipeline(StandardScaler(), FastSMRMF(3, random_state=0)).fit(table)
    found, new = explain(pipeline, 3), explain(pipeline, table.iloc[[3]])
    assert (found.cluster, found.exemplar) == (new.cluster, new.exemplar)
    assert new.representatives["point"][0] == 3
    assert len(cluster_profiles(pipeline, table, n_features=1)) == 3
    assert neighborhoods(pipeline)["kept"].any()
    with pytest.raises(ValueError, match="not KMeans"):
        explain(KMeans(2, n_init=1).fit(X), 0)


def test_directions_are_explained_as_directions(three):
    X = np.abs(three[0]) + 0.1
    model = FastSMRMF(3, metric="cosine", random_state=0).fit(X)
    for found in (explain(model, 5, n=3), explain(model, X[5], n=3)):
        assert np.linalg.norm(found.features["value"]) == pytest.approx(1)
        assert np.linalg.norm(found.features["exemplar"]) == pytest.approx(1)


def test_evidence_against_the_label_is_said():
    X, _ = make_moons(300, noise=0.05, random_state=0)
    model = FastSMRMF(2, random_state=0).fit(X)
    found = [explain(model, i) for i in range(0, 300, 5)]
    against = [e for e in found if e.features["share"].sum() < 0]
    assert against
    assert all(("its neighbours put it here" in str(e)) == (e.features["share"].sum() < 0) for e in found)


def test_models_of_named_features_explain_rows_of_all_forms(three):
    X, _ = three
    table = pd.DataFrame(X, columns=NAMES)
    model = FastSMRMF(3, random_state=0).fit(table)
    found = [explain(model, point) for point in (4, X[4], table.iloc[[4]], table.iloc[4], list(X[4]))]
    assert len({(e.cluster, e.confidence, e.exemplar) for e in found}) == 1
    assert set(found[0].features["feature"]) <= set(NAMES)


def test_explanations_may_be_in_other_units(three):
    X, model = three
    found = explain(model, 5, pd.DataFrame(X * 1000, columns=NAMES))
    row = dict(zip(found.features["feature"], found.features["value"], strict=True))
    assert row["width"] == pytest.approx(1000 * X[5, 0])


@pytest.mark.parametrize("make", [SMRMF, RMNMF, GNMF])
def test_every_factorisation_is_explained(three, make):
    X, _ = three
    model = make(3, random_state=0).fit(X - X.min())
    found = explain(model, 7)
    assert found.cluster == model.labels_[7]
    assert model.labels_[found.exemplar] == found.cluster
    assert set(found.representatives["cluster"]) <= {0, 1, 2}


def test_sparse_points_are_explained():
    counts = sp.random_array((60, 400), density=0.05, rng=np.random.default_rng(0), format="csr")
    model = FastSMRMF(2, random_state=0, max_iter=5, tol=0).fit(counts)
    found = explain(model, 4, feature_names=[f"word{i}" for i in range(400)])
    j = found.representatives["point"][0]
    expected = np.linalg.norm(counts[[4]].toarray() - counts[[int(j)]].toarray())
    assert found.representatives["distance"][0] == pytest.approx(expected)
    assert all(name.startswith("word") for name in found.features["feature"])


def test_rows_that_are_not_there_are_refused(three):
    with pytest.raises(ValueError, match="point=150 is no row of the training data: give 0 to 149"):
        explain(three[1], 150)
    for point in ("Citigroup", [1, "a", 2]):
        with pytest.raises(
            ValueError, match=r"is no row of numbers: give the number of a training row, 0 to 149"
        ):
            explain(three[1], point)


# Neighbourhoods


@pytest.mark.parametrize("rule", ["mass", "norm"])
def test_the_kept_neighbourhoods_represent_the_most(three, rule):
    X, _ = three
    model = FastSMRMF(3, exemplar_rule=rule, exemplars=12, random_state=0).fit(X)
    table = neighborhoods(model)
    kept = table["kept"]
    assert kept.sum() == 12
    assert table["mass"][kept].min() >= table["mass"][~kept].max() - 1e-9
    W = model.affinity_
    np.testing.assert_array_equal(table["edges"], np.diff(W.indptr))
    assert table["edges"][kept].min() >= 1
    assert ((table["agreement"] >= 0) & (table["agreement"] <= 1)).all()
    Z = model.representation_.toarray() * (1 - np.eye(len(X)))
    inside = (Z * (model.labels_[:, None] == model.labels_)).sum(axis=1)
    np.testing.assert_allclose(table["agreement"] * Z.sum(axis=1), inside, atol=1e-9)
    across = (W.toarray() * (model.labels_[:, None] != model.labels_)).sum(axis=1)
    np.testing.assert_allclose(table["across"] * W.toarray().sum(axis=1), across, atol=1e-12)


def test_graphs_of_all_neighbourhoods_keep_all(three):
    X, _ = three
    assert neighborhoods(RMNMF(3, random_state=0).fit(X))["kept"].all()
    with pytest.raises(ValueError, match="GNMF learns no neighbourhoods"):
        neighborhoods(GNMF(3, random_state=0).fit(X - X.min()))


# Tables


def test_a_table_prints_its_columns_and_becomes_a_frame():
    table = PlainTable({"name": ["a", "<b>"], "value": [1.0, 123456.789]})
    assert repr(table).splitlines() == ["name      value", "a             1", "<b>   1.235e+05"]
    assert "&lt;b&gt;" in table._repr_html_()
    pd.testing.assert_frame_equal(
        pd.DataFrame(table), pd.DataFrame({"name": ["a", "<b>"], "value": [1.0, 123456.789]})
    )
    assert PlainTable({})._repr_html_()
    assert "... and 40 more rows" in repr(PlainTable({"x": np.arange(100)}))
    with pytest.raises(ValueError, match="same length"):
        PlainTable({"a": [1], "b": [1, 2]})
