"""The k-DPP against its law by enumeration, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from callbacks import Recorder
from numpy.testing import assert_allclose, assert_array_equal
from oracle.selection import kdpp_law, plain_elementary
from scipy.special import gammaln
from scipy.stats import chi2
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.metrics.pairwise import cosine_similarity, euclidean_distances, linear_kernel, rbf_kernel

from smrmf import _arrays, _parallel, _validation
from smrmf._parallel import SERIAL, SERIAL_LIBRARIES
from smrmf.kernels.principal_axes import gram, principal_axes
from smrmf.kernels.scaling import unit_rows
from smrmf.selection._determinantal import draw_rows, draw_values, log_elementary, random_complement
from smrmf.selection.kdpp import KDPP, _basis, _similarities

rng = np.random.default_rng(5)
TALL = rng.normal(size=(7, 4)) * rng.uniform(0.3, 2, size=(7, 1))
WIDE = rng.normal(size=(6, 9)) * rng.uniform(0.5, 1.5, size=(6, 1))


def median_rbf(X):
    squared = euclidean_distances(X, squared=True)
    return np.exp(-squared / np.median(squared[np.triu_indices(len(X), 1)]))


KERNELS = {"linear": linear_kernel, "cosine": cosine_similarity, "rbf": median_rbf}


def samples(model, X, n_draws, seed):
    """Draw many sets for one decomposition, by the steps of a fit."""
    random_state = np.random.RandomState(seed)
    with SERIAL_LIBRARIES.limited():
        kernel = model._regularized(*_similarities(X, model.kernel, SERIAL), model.exemplars)
        log_values = kernel.log_values()
        table = log_elementary(log_values, model.exemplars)
        for _ in range(n_draws):
            drawn = draw_values(log_values, table, random_state)
            basis = _basis(kernel, drawn, random_state, SERIAL)
            yield tuple(sorted(draw_rows(basis, random_state, SERIAL)))


def assert_follows(sets, sets_of_law, probability):
    """Compare frequencies with a law by a chi-square test at one in a thousand."""
    place = {items: i for i, items in enumerate(sets_of_law)}
    seen = np.bincount([place[items] for items in sets], minlength=len(place))
    expected = probability * len(sets)
    common = expected >= 5
    seen = np.append(seen[common], seen[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    used = expected > 0
    assert seen[~used].sum() == 0
    statistic = ((seen - expected)[used] ** 2 / expected[used]).sum()
    assert statistic < chi2.ppf(0.999, used.sum() - 1)


@pytest.mark.parametrize("kernel", ["linear", "cosine"])
@pytest.mark.parametrize(("X", "k"), [(TALL, 3), (TALL, 2), (WIDE, 3)], ids=["tall-3", "tall-2", "wide-3"])
def test_sets_have_the_probability_of_their_volume(X, k, kernel):
    law = kdpp_law(KERNELS[kernel](X), k)
    assert_follows(list(samples(KDPP(k, kernel=kernel), X, 2500, seed=0)), *law)


def test_gaussian_similarities_follow_their_law():
    law = kdpp_law(median_rbf(TALL), 3)
    assert_follows(list(samples(KDPP(3, kernel="rbf"), TALL, 2500, seed=1)), *law)


@pytest.mark.parametrize("added", [0.02, 0.5])
def test_beyond_the_rank_the_law_is_that_of_the_regularised_kernel(added):
    X = TALL[:6, :2]
    L = linear_kernel(X)
    law = kdpp_law(L + added * np.trace(L) / 6 * np.eye(6), 4)
    model = KDPP(4, kernel="linear", regularization=added)
    assert_follows(list(samples(model, X, 2500, seed=2)), *law)


def test_fits_follow_the_law_too():
    X, random_state = TALL[:4, :3], np.random.RandomState(0)
    model = KDPP(2, random_state=random_state, n_jobs=1)
    sets = [tuple(int(row) for row in np.sort(model.fit_select(X))) for _ in range(200)]
    assert_follows(sets, *kdpp_law(cosine_similarity(X), 2))


@pytest.mark.parametrize("kernel", ["linear", "cosine", "rbf", "precomputed"])
@pytest.mark.parametrize(
    ("X", "k", "added"), [(TALL, 3, 0.0), (WIDE, 4, 0.0), (TALL, 6, 0.1), (WIDE, 1, 0.0)], ids=str
)
def test_the_likelihood_is_the_probability_of_the_set(X, k, added, kernel):
    L = KERNELS.get(kernel, linear_kernel)(X)
    sets, probability = kdpp_law(L + added * np.trace(L) / len(L) * np.eye(len(L)), k)
    law = dict(zip(sets, probability, strict=True))
    data = L if kernel == "precomputed" else X
    for seed in range(4):
        model = KDPP(k, kernel=kernel, regularization=added, random_state=seed).fit(data)
        items = tuple(np.sort(model.exemplar_indices_))
        assert_allclose(np.exp(model.log_likelihood_), law[items], rtol=1e-8)


@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_polynomials_against_all_subsets(k):
    values = np.random.default_rng(k).exponential(size=8) * 10.0 ** np.arange(-4, 4)
    table = log_elementary(np.log(values), k)
    for j in range(9):
        for size in range(k + 1):
            exact = plain_elementary(values[:j], size)
            assert_allclose(np.exp(table[j, size]), exact, rtol=1e-12)


def test_polynomials_beyond_floating_point():
    # Of n equal values v, e_k is v^k times a binomial coefficient.
    n, k, log_value = 1200, 500, np.log(50.0)
    table = log_elementary(np.full(n, log_value), k)
    binomial = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    assert table[-1, -1] > 709
    assert_allclose(table[-1, -1], k * log_value + binomial, rtol=1e-11)
    drawn = draw_values(np.full(n, log_value), table, np.random.RandomState(0))
    assert len(np.unique(drawn)) == k


def test_overwhelming_values_are_always_drawn():
    # In linear space, where e_500 is infinite, these were the ones left out.
    log_values = np.concatenate([np.full(100, 400.0), np.full(900, 3.0)])
    table = log_elementary(log_values, 300)
    for seed in range(3):
        drawn = draw_values(log_values, table, np.random.RandomState(seed))
        assert_array_equal(drawn[:100], np.arange(100))
        assert len(drawn) == 300


def test_values_are_drawn_by_their_product():
    values = np.array([0.2, 1.0, 3.0, 0.7, 2.0])
    table = log_elementary(np.log(values), 2)
    random_state = np.random.RandomState(0)
    sets = [tuple(draw_values(np.log(values), table, random_state).tolist()) for _ in range(20000)]
    assert_follows(sets, *kdpp_law(np.diag(values), 2))


def test_random_complement_completes_a_basis():
    V = np.linalg.qr(np.random.default_rng(0).normal(size=(200, 100)))[0]
    beyond = random_complement(V, 100, np.random.RandomState(0))
    assert_allclose(beyond.T @ beyond, np.eye(100), atol=1e-13)
    assert_allclose(V.T @ beyond, 0, atol=2e-15)


@pytest.mark.parametrize("shape", [(60, 12), (12, 60)], ids=["tall", "wide"])
def test_vectors_of_small_eigenvalues_are_orthonormal(shape):
    U, _, Vt = np.linalg.svd(np.random.default_rng(0).normal(size=shape), full_matrices=False)
    X = U * np.logspace(0, -6, 12) @ Vt
    kernel = KDPP(12)._regularized(*_similarities(X, "linear", SERIAL), 12)
    basis = _basis(kernel, np.arange(12), np.random.RandomState(0), SERIAL)
    assert_allclose(basis.T @ basis, np.eye(12), atol=1e-13)
    assert_allclose(basis @ basis.T, U @ U.T, atol=1e-8)


class Lowest:
    """A source of randomness that always draws the first row with any probability."""

    def uniform(self):
        return 0.0


def test_rounding_leaves_nothing_of_a_duplicate():
    rows = np.random.default_rng(0).normal(size=(5, 5))
    X = np.repeat(rows, 20, axis=0) * np.random.default_rng(1).choice([-1, 1], size=(100, 1))
    V = np.linalg.qr(X)[0]
    assert_array_equal(list(draw_rows(V, Lowest(), SERIAL)), [0, 20, 40, 60, 80])


def test_products_of_all_pairs_by_blocks(monkeypatch):
    monkeypatch.setattr(_parallel, "BLOCK_ENTRIES", 8)
    assert_allclose(gram(TALL, SERIAL), TALL @ TALL.T)
    assert_allclose(gram(TALL.T, SERIAL), TALL.T @ TALL)


@pytest.mark.parametrize("X", [TALL, WIDE, WIDE[:, :6]], ids=["tall", "wide", "square"])
def test_axes_keep_all_lengths_and_products(X):
    for data in (X, sp.csr_array(X)):
        unit, lengths = unit_rows(data)
        axes = principal_axes(unit, lengths, SERIAL)
        C = lengths[:, None] * (axes.points @ axes.basis) * np.abs(X).max()
        assert_allclose(C @ C.T, X @ X.T, atol=1e-12)
        assert_allclose(C.T @ C, np.diag(axes.energies) * np.abs(X).max() ** 2, atol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "cosine", "rbf"])
def test_all_points_or_as_many_as_the_rank_span(kernel):
    everything = KDPP(7, kernel=kernel, random_state=0).fit(TALL)
    assert_array_equal(everything.exemplar_indices_, np.arange(7))
    assert_allclose(everything.exemplar_scores_, 1)
    assert_allclose(everything.log_likelihood_, 0, atol=1e-9)
    assert everything.regularization_ == (0.001 if kernel != "rbf" else 0.0)


def test_one_point_is_drawn_by_its_squared_length():
    X = np.array([[3.0, 0], [0, 1], [1, 1], [0, 0]])
    sets = list(samples(KDPP(1, kernel="linear"), X, 3000, seed=0))
    assert_follows(sets, [(0,), (1,), (2,), (3,)], np.array([9, 1, 2, 0]) / 12)


def test_scores_are_leverages():
    # As many points as the rank: all of the row space is sampled, and leverages are known.
    X = np.random.default_rng(0).normal(size=(40, 6))
    model = KDPP(6, kernel="linear", random_state=0).fit(X)
    hat = X @ np.linalg.pinv(X)
    assert_allclose(model.exemplar_scores_, hat.diagonal()[model.exemplar_indices_])
    assert (np.diff(model.exemplar_scores_) <= 1e-9).all()
    assert model.regularization_ == 0.0


def test_what_was_added_is_reported():
    assert KDPP(4, random_state=0).fit(TALL).regularization_ == 0.0
    assert KDPP(5, random_state=0).fit(TALL).regularization_ == 0.001
    assert KDPP(2, regularization=0.25, random_state=0).fit(TALL).regularization_ == 0.25


def test_more_than_the_rank_without_anything_added_is_refused():
    with pytest.raises(ValueError, match=r"exemplars=5 .* rank of the kernel, 4.*at most 4.*'auto'"):
        KDPP(5, regularization=0.0).fit(TALL)


def test_a_large_addition_makes_the_choice_uniform():
    X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 2, axis=0)
    sets, _ = kdpp_law(np.eye(4), 2)
    drawn = list(samples(KDPP(2, regularization=1e9), X, 1500, seed=0))
    assert_follows(drawn, sets, np.full(6, 1 / 6))


@pytest.mark.parametrize("shape", [(8, 30), (8, 8)], ids=["wide", "tall"])
@pytest.mark.parametrize("kernel", ["linear", "cosine", "rbf"])
def test_duplicates_are_never_chosen_together(shape, kernel):
    distinct = np.random.default_rng(1).normal(size=shape) * np.logspace(0, -4, shape[1])
    X = np.repeat(distinct, 4, axis=0)
    for seed in range(10):
        model = KDPP(8, kernel=kernel, random_state=seed).fit(X)
        assert model.regularization_ == 0.0
        assert_array_equal(np.sort(model.exemplar_indices_ // 4), np.arange(8))


def test_rows_of_zeros_are_not_chosen_before_all_others():
    X = TALL.copy()
    X[2] = 0
    for seed in range(20):
        for kernel in ("linear", "cosine"):
            model = KDPP(4, kernel=kernel, random_state=seed).fit(X)
            assert 2 not in model.exemplar_indices_


def test_samples_are_more_varied_than_uniform_ones():
    X, y = make_blobs(160, 6, centers=4, cluster_std=0.3, random_state=0)
    drawn = [KDPP(4, kernel="rbf", random_state=seed).fit_select(X) for seed in range(10)]
    uniform = [np.random.default_rng(seed).permutation(len(X))[:4] for seed in range(100)]
    covered, by_chance = (np.mean([len(np.unique(y[s])) for s in sets]) for sets in (drawn, uniform))
    assert covered > 3.8
    assert by_chance < 3


@pytest.mark.parametrize("kernel", ["linear", "cosine", "rbf"])
def test_same_seed_same_result_on_any_number_of_threads(kernel, monkeypatch):
    monkeypatch.setattr(_parallel, "BLOCK_ENTRIES", 256)
    X = load_digits().data[:120]
    one, two, again = (KDPP(20, kernel=kernel, random_state=3, n_jobs=jobs).fit(X) for jobs in (1, 2, 1))
    other = KDPP(20, kernel=kernel, random_state=4).fit(X)
    for model in (two, again):
        assert_array_equal(one.exemplar_indices_, model.exemplar_indices_)
        assert_array_equal(one.exemplar_scores_, model.exemplar_scores_)
        assert one.log_likelihood_ == model.log_likelihood_
    assert set(one.exemplar_indices_) != set(other.exemplar_indices_)


def test_cosines_do_not_see_lengths():
    lengths = 10.0 ** np.arange(-300, 300, 90)[:, None]
    plain, scaled = (KDPP(3, random_state=1).fit(X) for X in (TALL, TALL * lengths))
    assert_array_equal(plain.exemplar_indices_, scaled.exemplar_indices_)


def test_gaussian_similarities_do_not_see_the_origin():
    plain, moved = (KDPP(3, kernel="rbf", random_state=1).fit(X) for X in (TALL, TALL + 1e8))
    assert_array_equal(plain.exemplar_indices_, moved.exemplar_indices_)
    assert_allclose(plain.log_likelihood_, moved.log_likelihood_, rtol=1e-5)


ODD = {
    "constant": np.ones((20, 3)),
    "all zero": np.zeros((20, 3)),
    "one point": np.ones((1, 4)),
    "one feature": np.linspace(-1, 1, 25)[:, None],
    "orthogonal": np.eye(12),
    "two groups of duplicates": np.repeat([[0.0, 1.0], [4.0, 5.0]], 9, axis=0),
    "boolean": np.arange(60).reshape(20, 3) % 7 > 2,
    "integers": np.arange(60).reshape(20, 3) % 7,
    "one huge outlier": np.vstack([TALL, [[1e12, 0, 0, 0]]]),
    "lengths beyond all measure": TALL * 10.0 ** np.arange(-300, 300, 90)[:, None],
    "empty sparse": sp.csr_array((8, 3)),
    "wide and constant": np.ones((10, 60)),
}


@pytest.mark.parametrize("kernel", ["linear", "cosine", "rbf"])
@pytest.mark.parametrize("exemplars", [0.5, 1.0])
@pytest.mark.parametrize("name", ODD)
def test_odd_data_work(name, exemplars, kernel):
    X = ODD[name]
    model = KDPP(exemplars, kernel=kernel, random_state=0).fit(X)
    assert len(model.exemplar_indices_) == _validation.count_exemplars(exemplars, X.shape[0])
    assert len(np.unique(model.exemplar_indices_)) == len(model.exemplar_indices_)
    assert (model.exemplar_scores_ >= 0).all()
    assert (model.exemplar_scores_ <= 1).all()
    assert np.isfinite(model.log_likelihood_)
    assert model.log_likelihood_ < 1e-6


def test_a_callback_sees_every_draw_and_stops_with_those_made():
    X = load_iris().data
    watching = Recorder()
    whole = KDPP(4, random_state=0).set_callbacks(watching).fit(X)
    model = KDPP(4, random_state=0).set_callbacks(Recorder(stop_after=2)).fit(X)
    assert [step["n_exemplars"] for step in watching.steps] == [1, 2, 3, 4]
    assert set(model.exemplar_indices_) < set(whole.exemplar_indices_)
    assert_array_equal(model.exemplar_indices_, watching.models[1].exemplar_indices_)
    assert model.log_likelihood_ == watching.models[1].log_likelihood_
    assert_array_equal(whole.exemplar_indices_, watching.models[3].exemplar_indices_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_given_kernel_is_used(make, dtype):
    X = load_digits().data[:60]
    L = rbf_kernel(X, gamma=1e-3).astype(dtype)
    model = KDPP(10, kernel="precomputed", random_state=0).fit(make(L))
    sign, volume = np.linalg.slogdet(
        L[np.ix_(model.exemplar_indices_, model.exemplar_indices_)].astype(float)
    )
    e_k = log_elementary(np.log(np.maximum(np.linalg.eigvalsh(L.astype(float)), 1e-300)), 10)[-1, -1]
    assert sign == 1
    assert_allclose(model.log_likelihood_, volume - e_k, rtol=1e-4)


def refused(model, X, error, *words):
    before = set(vars(model))
    with pytest.raises(error) as raised:
        model.fit(X)
    assert "\n" not in str(raised.value)
    for word in words:
        assert word in str(raised.value), str(raised.value)
    assert set(vars(model)) == before


@pytest.mark.parametrize(
    ("L", "words"),
    [
        (TALL, ["(7, 4)", "square", "another kernel"]),
        (np.triu(np.ones((5, 5))), ["transpose", "symmetric", "(X + X.T) / 2"]),
        (sp.csr_array(np.triu(np.ones((5, 5)))), ["transpose", "symmetric"]),
        (euclidean_distances(TALL), ["negative eigenvalue", "positive semi-definite", "not distances"]),
        (-np.eye(4), ["negative eigenvalue", "-1 of the largest"]),
    ],
    ids=["not square", "not symmetric", "sparse not symmetric", "distances", "negative"],
)
def test_what_is_no_kernel_is_refused(L, words):
    refused(KDPP(2, kernel="precomputed"), L, ValueError, "kernel='precomputed'", *words)


def test_rounding_in_a_given_kernel_is_no_fault():
    L = linear_kernel(TALL)
    errors = np.random.default_rng(0).normal(size=(7, 7)) * 1e-9
    L += errors
    model = KDPP(4, kernel="precomputed", random_state=0).fit(L)
    assert model.regularization_ == 0.0
    assert KDPP(5, kernel="precomputed", random_state=0).fit(L).regularization_ == 0.001


@pytest.mark.parametrize(("kernel", "side"), [("linear", 4), ("rbf", 7)])
def test_what_would_not_fit_in_memory_is_refused(kernel, side, monkeypatch):
    needed = 8 * (5 * side * side + 4 * 7 * 2)
    monkeypatch.setattr(_arrays, "available_bytes", lambda: needed - 1)
    refused(KDPP(2, kernel=kernel), TALL, MemoryError, f"5 arrays of {side} x {side}", "fewer exemplars")


def test_unit_rows_do_not_change_sparse_data():
    X = sp.csr_array(np.array([[3.0, 4.0], [0.0, 2.0]]))
    kept = X.copy()
    unit_rows(X)
    assert_array_equal(X.toarray(), kept.toarray())
