"""Fits to sparse tables: the dense result where both are exact, words in and words out, and directions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from smrmf import AMRMF, APMF, RMNMF, SMRMF, FastSMRMF, SelectiveRMNMF
from smrmf.factorization import _points
from smrmf.kernels import truncated_svd

KINDS = [FastSMRMF, RMNMF, AMRMF, SMRMF, APMF, SelectiveRMNMF]
EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
EITHER_FORM = pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])


def topics(n=90, m=400, n_topics=3, seed=0, length=25):
    """Return weights of words, most of them from the part of the words that a topic prefers, and the topics.

    Weights are not whole numbers: no two points are equally far, and rounding decides nothing.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_topics
    part = m // n_topics
    words = np.where(
        rng.random((n, length)) < 0.8,
        y[:, None] * part + np.minimum(rng.geometric(0.08, (n, length)), part) - 1,
        rng.integers(m, size=(n, length)),
    )
    X = np.zeros((n, m))
    np.add.at(X, (np.repeat(np.arange(n), length), words.ravel()), rng.uniform(0.5, 1.5, words.size))
    return X, y


@pytest.fixture
def few_coordinates(monkeypatch):
    """Give small tables the coordinates of large ones."""
    monkeypatch.setattr(truncated_svd, "FEW_ROWS", 0)
    monkeypatch.setattr(_points, "COORDINATES", 12)


@EACH
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_words_give_the_dense_result(kind, dtype):
    X = topics()[0].astype(dtype)
    dense, sparse = (kind(3, random_state=0).fit(form(X)) for form in (np.asarray, sp.csr_array))
    assert sp.issparse(sparse._fit_data)
    assert_array_equal(sparse.labels_, dense.labels_)
    assert sparse.components_.dtype == sparse.embedding_.dtype == dtype
    # APMF reduces dense points to 99.9 % before it searches neighbours; sparse ones keep their distances.
    tolerance = 1e-2 if dtype == np.float32 or kind is APMF else 1e-6
    assert_allclose(sparse.embedding_, dense.embedding_, atol=tolerance)
    assert_allclose(sparse.components_, dense.components_, atol=tolerance * abs(dense.components_).max())
    assert sparse.neglected_share_ == pytest.approx(dense.neglected_share_, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_topics_in_doubt_are_the_same_in_sparse_and_dense_words(seed):
    X, _ = topics(n=500, n_topics=8, length=3, seed=seed)
    dense, sparse = (FastSMRMF(8, random_state=0).fit(form(X)) for form in (np.asarray, sp.csr_array))
    assert sparse.stability_ < 0.9  # the votes differ, and there are many grains
    assert adjusted_rand_score(dense.labels_, sparse.labels_) > 0.99


# From the rough start of the paper SMRMF and APMF come to labels that rounding decides.
@pytest.mark.parametrize("kind", [FastSMRMF, RMNMF, AMRMF, SelectiveRMNMF], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("init", ["nndsvd", "kmeans"])
def test_other_starts_take_sparse_words(kind, init):
    X, _ = topics()
    dense, sparse = (kind(3, init=init, random_state=0).fit(form(X)) for form in (np.asarray, sp.csr_array))
    assert_array_equal(sparse.labels_, dense.labels_)


@EACH
@pytest.mark.usefixtures("few_coordinates")
def test_few_coordinates_find_the_topics_and_say_what_they_neglect(kind):
    X, y = topics()
    model = kind(3, random_state=0).fit(sp.csr_array(X))
    assert adjusted_rand_score(y, model.labels_) == 1
    values = np.linalg.svd(X, compute_uv=False)
    neglected = 1 - np.sum(values[:12] ** 2) / np.sum(values**2)
    assert 0.1 < neglected < 0.9
    assert model.neglected_share_ == pytest.approx(neglected, abs=1e-3 if kind is APMF else 1e-9)
    assert_array_equal(model.predict(sp.csr_array(X)), model.labels_)
    assert_array_equal(model.predict(X), model.labels_)
    assert_allclose(model.transform(sp.csr_array(X)), model.embedding_)


@pytest.mark.usefixtures("few_coordinates")
@pytest.mark.parametrize("kind", [FastSMRMF, APMF], ids=lambda kind: kind.__name__)
def test_components_are_words_in_the_span_of_the_coordinates(kind):
    X, _ = topics()
    model = kind(3, random_state=0).fit(sp.csr_array(X))
    assert model.components_.shape == (3, 400)
    _, _, axes = np.linalg.svd(X, full_matrices=False)
    inside = model.components_ @ axes[:12].T @ axes[:12]
    assert_allclose(inside, model.components_, atol=1e-8 * abs(model.components_).max())
    # G F is near what the coordinates hold of the points, of which it has rank 3.
    projected = X @ axes[:12].T @ axes[:12]
    best = np.linalg.svd(projected, compute_uv=False)[3:]
    error = np.linalg.norm(projected - model.inverse_transform(model.embedding_))
    assert np.linalg.norm(best) <= error < 1.3 * np.linalg.norm(best)


def test_the_projection_of_words_is_orthonormal():
    X, _ = topics()
    projection = APMF(3, random_state=0).fit(sp.csr_array(X)).projection_
    assert projection.shape[0] == 400
    assert_allclose(projection.T @ projection, np.eye(projection.shape[1]), atol=1e-8)


def padded(X):
    """Return a table with columns of zeros beside it, too wide to be taken as dense."""
    return np.hstack([X, np.zeros((len(X), 400 - X.shape[1]))])


SOME = np.random.default_rng(0).normal(size=(30, 4))
ODD = {
    "zeros": np.zeros((20, 3)),
    "constant": np.ones((20, 3)),
    "rows of zeros": np.vstack([np.zeros((5, 4)), SOME]),
    "one entry": np.eye(20, 5) * np.eye(20, 1),
    "one column": np.linspace(-1, 1, 25)[:, None],
    "duplicates": np.repeat(SOME[:8], 5, axis=0),
    "orthogonal": np.eye(12),
    "far from the origin": SOME + 1e6,
    "one huge outlier": np.vstack([SOME, [[1e9, 0, 0, 0]]]),
    "tiny": SOME * 1e-300,
    "huge": SOME * 1e300,
    "two points": SOME[:2],
    "three points": SOME[:3],
}


# Directions are taken before any method sees them: two tell enough.
@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(
    ("kind", "metric"),
    [*((kind, "euclidean") for kind in KINDS), (FastSMRMF, "cosine"), (AMRMF, "cosine")],
)
def test_odd_sparse_rows_give_the_dense_result(kind, name, metric):
    X = padded(ODD[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dense, sparse = (
            kind(2, metric=metric, random_state=0, max_iter=20).fit(form(X))
            for form in (np.asarray, sp.csr_array)
        )
    assert sp.issparse(sparse._fit_data)
    # Where points are equally far, as a row of zeros is from all directions, rounding may decide; and beside
    # an outlier APMF has no axis left for the distances of dense points.
    tied = name in ("constant", "orthogonal") or (metric == "cosine" and not X.any(axis=1).all())
    if not tied and (name, kind) != ("one huge outlier", APMF):
        assert adjusted_rand_score(sparse.labels_, dense.labels_) == 1
    assert_array_equal(sparse.predict(sp.csr_array(X)), sparse.labels_)
    assert np.isfinite(sparse.components_).all()


@EITHER_FORM
@pytest.mark.parametrize("m", [40, 400], ids=["few columns", "many columns"])
@pytest.mark.parametrize("unit", [1e-150, 1000.0, 1e150])
def test_the_unit_of_sparse_words_changes_nothing(form, m, unit):
    X, _ = topics(m=m)
    model, scaled = (FastSMRMF(3, random_state=0).fit(form(X * size)) for size in (1, unit))
    assert_array_equal(scaled.labels_, model.labels_)
    assert_allclose(scaled.embedding_, model.embedding_, atol=1e-6)
    assert_allclose(scaled.components_ / unit, model.components_, atol=1e-5)


# Directions


@EACH
@EITHER_FORM
@pytest.mark.parametrize("m", [40, 400], ids=["few columns", "many columns"])
def test_cosine_is_the_fit_of_rows_of_length_one(kind, form, m):
    X, _ = topics(m=m)
    X *= np.random.default_rng(1).uniform(0.1, 10, len(X))[:, None]
    model = kind(3, metric="cosine", random_state=0).fit(form(X))
    expected = kind(3, random_state=0).fit(form(normalize(X)))
    assert_array_equal(model.labels_, expected.labels_)
    assert_allclose(model.embedding_, expected.embedding_, atol=1e-8)
    assert_allclose(model.components_, expected.components_, atol=1e-8)
    new = X[:10] + X[40:50]
    assert_array_equal(model.predict(form(new)), expected.predict(form(normalize(new))))
    assert_allclose(model.transform(form(new)), expected.transform(form(normalize(new))), atol=1e-8)


@pytest.mark.filterwarnings("ignore::smrmf.inspection.ColumnsWarning")
@EITHER_FORM
def test_cosine_does_not_see_the_lengths_of_rows(form):
    X, _ = topics()
    model = FastSMRMF(3, metric="cosine", random_state=0).fit(form(X))
    lengths = 10.0 ** np.random.default_rng(0).integers(-200, 200, len(X))
    other = FastSMRMF(3, metric="cosine", random_state=0).fit(form(X * lengths[:, None]))
    assert_array_equal(other.labels_, model.labels_)
    assert_array_equal(model.predict(form(X * lengths[:, None])), model.labels_)
    # By distance the long rows are nothing like the others.
    assert len(set(FastSMRMF(3, random_state=0).fit(form(X * lengths[:, None])).predict(form(X)))) < 3


@EITHER_FORM
def test_a_model_compares_as_it_was_fitted(form):
    X, _ = topics()
    model = FastSMRMF(3, metric="cosine", random_state=0).fit(form(X))
    model.set_params(metric="euclidean")
    assert_array_equal(model.predict(form(100 * X)), model.labels_)


@EITHER_FORM
@pytest.mark.parametrize("m", [40, 400], ids=["few columns", "many columns"])
def test_a_row_of_zeros_is_far_from_all_directions(form, m):
    X, y = topics(m=m)
    without = FastSMRMF(3, metric="cosine", random_state=0).fit(form(X))
    X[5] = 0
    model = FastSMRMF(3, metric="cosine", random_state=0)
    with pytest.warns(UserWarning, match=r"1 row of X is zeros and has no direction.*drop them"):
        model.fit(form(X))
    others = np.arange(len(X)) != 5
    # As zeros it would be the nearest of nearly all points, and join their clusters.
    assert adjusted_rand_score(without.labels_[others], model.labels_[others]) > 0.95
    assert adjusted_rand_score(y[others], model.labels_[others]) > 0.9
    assert_array_equal(model.predict(form(X)), model.labels_)
    assert model.components_.shape == (3, m)
    assert model.inverse_transform(model.embedding_).shape == X.shape


@EACH
@pytest.mark.filterwarnings("ignore:2 rows of X are zeros")
def test_every_method_takes_rows_of_zeros_apart(kind):
    X, _ = topics(m=400)
    X[[5, 7]] = 0
    model = kind(3, metric="cosine", random_state=0).fit(sp.csr_array(X))
    assert model.components_.shape == (3, 400)
    assert model.labels_[5] == model.labels_[7]


@EITHER_FORM
def test_new_rows_of_zeros_get_some_label(form):
    X, _ = topics()
    model = FastSMRMF(3, metric="cosine", random_state=0).fit(form(X))
    assert model.predict(form(np.zeros_like(X[:2])))[0] in range(3)


def test_how_a_table_is_stored_changes_nothing():
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random_array((300, 400), density=0.3, rng=rng))
    wide = sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    zeros = sp.csr_array(sp.coo_array(np.ones((300, 400))) * 0 + X)
    first, *others = (FastSMRMF(3, random_state=0).fit(form) for form in (X, wide, zeros))
    for other in others:
        assert sp.issparse(other._fit_data) == sp.issparse(first._fit_data)
        assert_array_equal(other.labels_, first.labels_)


# Selectors


class FirstRows(BaseEstimator):
    """A selector of dense points that chooses the first ten."""

    def fit(self, X, y=None):
        assert isinstance(X, np.ndarray)
        self.exemplar_indices_ = np.arange(10)
        return self


def test_a_selector_of_dense_points_gets_them():
    X, _ = topics()
    model = SelectiveRMNMF(3, selector=FirstRows(), random_state=0).fit(sp.csr_array(X))
    assert_array_equal(model.exemplar_indices_, np.arange(10))
