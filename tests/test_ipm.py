"""IPM against its plain form, a dense eigensolver and projections by least squares, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from callbacks import Recorder
from numpy.testing import assert_allclose, assert_array_equal
from oracle.selection import plain_ipm
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs

from smrmf import _arrays
from smrmf._parallel import SERIAL, SERIAL_LIBRARIES
from smrmf.kernels.principal_axes import orthogonal_remainder, principal_axes
from smrmf.kernels.scaling import unit_rows
from smrmf.selection.ipm import IPM, _shorten, longest_direction

MATCHINGS = ["original", "residual"]


def data_of(name):
    rng = np.random.default_rng(7)
    match name:
        case "tall":
            return rng.normal(size=(60, 12))
        case "wide":
            return rng.normal(size=(15, 40))
        case "square":
            return rng.normal(size=(20, 20))
        case "far from the origin":
            return rng.normal(size=(50, 8)) + 20
        case "steep spectrum":
            return rng.normal(size=(80, 30)) * np.logspace(0, -4, 30)
        case "rows of many lengths":
            return rng.normal(size=(40, 10)) * np.logspace(-9, 0, 40)[:, None]
        case "wide rows of many lengths":
            return rng.normal(size=(12, 30)) * np.logspace(-6, 0, 12)[:, None]
        case "topics without common words":
            return np.kron(np.diag([1.0, 1.4, 2.0]), rng.random((15, 6)))
        case "sparse":
            return np.where(rng.random((70, 25)) < 0.2, rng.normal(size=(70, 25)), 0)
        case "blobs":
            return make_blobs(90, 6, centers=5, random_state=0)[0]
        case "wine":
            return load_wine().data
        case "digits":
            return load_digits().data[:80]
        case _:
            raise KeyError(name)


NAMES = [
    "tall",
    "wide",
    "square",
    "far from the origin",
    "steep spectrum",
    "rows of many lengths",
    "wide rows of many lengths",
    "topics without common words",
    "sparse",
    "blobs",
    "wine",
    "digits",
]


@pytest.mark.parametrize("matching", MATCHINGS)
@pytest.mark.parametrize("name", NAMES)
def test_picks_are_those_of_the_plain_form(name, matching):
    X = data_of(name)
    n_picks = np.linalg.matrix_rank(X) // 2 + 1
    model = IPM(n_picks, matching=matching).fit(X)
    assert_array_equal(model.exemplar_indices_, plain_ipm(X, n_picks, matching))
    assert model.n_restarts_ == 0


@pytest.mark.parametrize("matching", MATCHINGS)
@pytest.mark.parametrize("name", ["tall", "wide", "blobs", "sparse", "topics without common words"])
def test_beyond_the_rank_the_choice_starts_again_among_the_others(name, matching):
    X = data_of(name)
    rank = np.linalg.matrix_rank(X)
    n_picks = min(len(X), 2 * rank + 3)
    model = IPM(n_picks, matching=matching).fit(X)
    first = model.exemplar_indices_[:rank]
    assert_array_equal(model.exemplar_indices_, plain_ipm(X, n_picks, matching))
    assert model.n_restarts_ == (n_picks - 1) // rank
    if len(X) == rank:
        return
    others = np.delete(np.arange(len(X)), first)
    again = IPM(min(rank, len(others)), matching=matching).fit(X[others])
    assert_array_equal(model.exemplar_indices_[rank : 2 * rank], others[again.exemplar_indices_])
    assert_allclose(model.exemplar_scores_[rank : 2 * rank], again.exemplar_scores_, rtol=1e-9)


@pytest.mark.parametrize("matching", MATCHINGS)
def test_directions_of_rounding_size_are_not_chosen(matching):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 4)) * [1, 1, 1e-7, 1e-7]
    model = IPM(6, matching=matching).fit(X)
    assert model.n_restarts_ == 2
    assert_array_equal(model.exemplar_indices_, plain_ipm(X, 6, matching))


def captured(X, rows):
    """Return the share of the squared length of X in the span of some rows, by least squares."""
    mixture = np.linalg.lstsq(X[rows].T, X.T, rcond=None)[0]
    return 1 - ((X.T - X[rows].T @ mixture) ** 2).sum() / (X**2).sum()


@pytest.mark.parametrize("matching", MATCHINGS)
@pytest.mark.parametrize("name", ["tall", "wide", "wine", "steep spectrum"])
def test_scores_add_up_to_what_the_span_holds(name, matching):
    X = data_of(name)
    model = IPM(6, matching=matching).fit(X)
    for t in range(1, 7):
        share = captured(X, model.exemplar_indices_[:t])
        assert_allclose(model.exemplar_scores_[:t].sum(), share, rtol=1e-9)
    assert (model.exemplar_scores_ > 0).all()


@pytest.mark.parametrize("name", ["tall", "wide", "blobs"])
def test_a_pass_ends_with_everything(name):
    X = data_of(name)
    rank = np.linalg.matrix_rank(X)
    model = IPM(int(rank)).fit(X)
    assert_allclose(model.exemplar_scores_.sum(), 1)
    assert np.linalg.matrix_rank(X[model.exemplar_indices_]) == rank


def test_no_choice_of_one_direction_beats_the_longest_by_much():
    # The span of the picks can hold no more than as many principal axes do, and should come close.
    X = load_digits().data[:200]
    model = IPM(20).fit(X)
    energies = np.linalg.svd(X, compute_uv=False) ** 2
    best = energies[:20].sum() / energies.sum()
    random = np.mean([captured(X, np.random.default_rng(s).permutation(200)[:20]) for s in range(5)])
    held = model.exemplar_scores_.sum()
    assert held < best
    assert held - random > 0.25 * (best - random)


def test_fewer_picks_are_the_first_of_more():
    X = data_of("digits")
    more = IPM(40).fit(X)
    for count in (1, 7, 25):
        fewer = IPM(count).fit(X)
        assert_array_equal(fewer.exemplar_indices_, more.exemplar_indices_[:count])
        assert_allclose(fewer.exemplar_scores_, more.exemplar_scores_[:count])


@pytest.mark.parametrize("matching", MATCHINGS)
def test_signs_rotations_and_orders_do_not_matter(matching):
    rng = np.random.default_rng(0)
    X = data_of("tall")
    picks = IPM(9, matching=matching).fit(X).exemplar_indices_
    signs = rng.choice([-1, 1], size=(len(X), 1))
    rotation = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    order = rng.permutation(len(X))
    assert_array_equal(IPM(9, matching=matching).fit(X * signs).exemplar_indices_, picks)
    assert_array_equal(IPM(9, matching=matching).fit(X @ rotation).exemplar_indices_, picks)
    assert_array_equal(order[IPM(9, matching=matching).fit(X[order]).exemplar_indices_], picks)


def test_a_short_row_can_be_chosen_for_its_direction_without_a_say_in_it():
    X = data_of("tall")
    longest = np.linalg.svd(X)[2][0]
    for length in (1e-3, 1e-12, 1e-200):
        with_short = np.vstack([X, length * longest])
        assert IPM(1).fit(with_short).exemplar_indices_[0] == len(X)


def test_an_outlier_that_dwarfs_the_rest_leaves_the_rest_to_be_ranked():
    X = data_of("tall")
    model = IPM(10).fit(np.vstack([[1e30] + [0] * 11, X]))
    assert model.exemplar_indices_[0] == 0
    assert model.n_restarts_ == 1
    assert_array_equal(model.exemplar_indices_[1:] - 1, IPM(9).fit(X).exemplar_indices_)


@pytest.mark.parametrize("matching", MATCHINGS)
@pytest.mark.parametrize("name", ["sparse", "wide", "tall"])
def test_sparse_input_gives_the_dense_result(name, matching):
    X = data_of(name)
    dense = IPM(0.7, matching=matching).fit(X)
    for kind in (sp.csr_array, sp.csc_matrix):
        sparse = IPM(0.7, matching=matching).fit(kind(X))
        assert_array_equal(sparse.exemplar_indices_, dense.exemplar_indices_)
        assert_allclose(sparse.exemplar_scores_, dense.exemplar_scores_, rtol=1e-7)


def test_entries_stored_in_pieces_are_their_sum():
    X = data_of("tall")
    n, m = X.shape
    split = np.where(np.arange(n)[:, None] % 3, 0.5, 1.0)  # two of three rows in halves
    values = np.hstack([X * split, X * (1 - split)])
    columns = np.tile(np.arange(m), 2 * n)
    pieces = sp.csr_array((values.ravel(), columns, np.arange(n + 1) * 2 * m), shape=X.shape)
    assert_array_equal(IPM(10).fit(pieces).exemplar_indices_, IPM(10).fit(X).exemplar_indices_)


def test_duplicates_wait_for_a_restart_and_the_first_of_them_wins():
    X = np.repeat(np.random.default_rng(0).normal(size=(6, 9)), 3, axis=0)
    model = IPM(len(X)).fit(X)
    assert model.n_restarts_ == 2
    for turn in range(3):
        picks = model.exemplar_indices_[6 * turn : 6 * turn + 6]
        assert_array_equal(np.sort(picks), np.arange(6) * 3 + turn)


def test_rows_of_zeros_come_last():
    X = data_of("tall").copy()
    X[[3, 40, 17]] = 0
    model = IPM(len(X)).fit(X)
    assert_array_equal(model.exemplar_indices_[-3:], [3, 17, 40])
    assert_array_equal(model.exemplar_scores_[-3:], 0)
    assert (model.exemplar_scores_[:-3] > 0).all()


ODD = {
    "constant": np.ones((20, 3)),
    "all zero": np.zeros((20, 3)),
    "one point": np.ones((1, 4)),
    "one feature": np.linspace(-1, 1, 25)[:, None],
    "orthogonal": np.eye(12),
    "one-hot": np.eye(4)[np.arange(20) % 4],
    "boolean": np.arange(60).reshape(20, 3) % 7 > 2,
    "integers": np.arange(60).reshape(20, 3) % 7,
    "lengths beyond all measure": np.random.default_rng(0).normal(size=(12, 4))
    * 10.0 ** np.arange(-300, 300, 50)[:, None],
    "empty sparse": sp.csr_array((8, 3)),
    "wide and constant": np.ones((10, 60)),
}


@pytest.mark.parametrize("matching", MATCHINGS)
@pytest.mark.parametrize("name", ODD)
def test_odd_data_are_ranked_in_full(name, matching):
    X = ODD[name]
    model = IPM(1.0, matching=matching).fit(X)
    assert_array_equal(np.sort(model.exemplar_indices_), np.arange(X.shape[0]))
    assert np.isfinite(model.exemplar_scores_).all()
    assert (model.exemplar_scores_ >= 0).all()
    assert (model.exemplar_scores_ <= 1 + 1e-12).all()


def test_shares_and_counts():
    X = load_iris().data
    assert len(IPM().fit_select(X)) == 15
    assert len(IPM(0.001).fit_select(X)) == 1
    assert_array_equal(IPM(4).fit_select(X), IPM(4).fit(X).exemplar_indices_)


def test_a_callback_sees_every_pick_and_stops_with_those_made():
    X = data_of("tall")
    recorder = Recorder(stop_after=5)
    model = IPM(20).set_callbacks(recorder).fit(X)
    whole = IPM(20).fit(X)
    assert [step["n_exemplars"] for step in recorder.steps] == [1, 2, 3, 4, 5]
    assert_array_equal(model.exemplar_indices_, whole.exemplar_indices_[:5])
    assert_array_equal(model.exemplar_scores_, whole.exemplar_scores_[:5])
    assert_array_equal(recorder.models[2].exemplar_indices_, whole.exemplar_indices_[:3])
    assert recorder.models[2].n_features_in_ == 12


def random_span(rng, count, size):
    return np.linalg.qr(rng.normal(size=(size, count)))[0].T


@pytest.mark.parametrize("spectrum", ["flat", "steep", "equal", "close pair"])
@pytest.mark.parametrize(("size", "count"), [(400, 150), (40, 0), (40, 39), (40, 25)])
def test_longest_direction_is_that_of_a_dense_solver(spectrum, size, count):
    rng = np.random.default_rng(size + count)
    energies = {
        "flat": np.sort(1 + 0.2 * rng.random(size))[::-1],
        "steep": np.logspace(0, -9, size),
        "equal": np.ones(size),
        "close pair": np.concatenate([[1 + 1e-6, 1], np.linspace(0.9, 0.1, size - 2)]),
    }[spectrum]
    with SERIAL_LIBRARIES.limited():  # as in a fit
        span = random_span(rng, count, size)
        found = longest_direction(energies, span, rng.normal(size=size))
        P = np.eye(size) - span.T @ span
        values, vectors = np.linalg.eigh(P @ (energies[:, None] * P))
    assert_allclose(found @ found, 1)
    assert_allclose(span @ found, 0, atol=1e-12)
    assert_allclose(energies @ found**2, values[-1], rtol=1e-10)
    if size - count > 1 and values[-1] - values[-2] > 1e-9 * values[-1]:
        assert_allclose(abs(found @ vectors[:, -1]), 1, rtol=1e-8)


def test_more_steps_than_one_run_has_still_settle(monkeypatch):
    monkeypatch.setattr("smrmf.selection.ipm.LANCZOS_STEPS", 12)
    rng = np.random.default_rng(3)
    energies = np.linspace(1, 0.5, 60)
    span = random_span(rng, 10, 60)
    found = longest_direction(energies, span, rng.normal(size=60))
    P = np.eye(60) - span.T @ span
    assert_allclose(energies @ found**2, np.linalg.eigvalsh(P @ (energies[:, None] * P))[-1], rtol=1e-9)


def test_what_would_not_fit_in_memory_is_refused(monkeypatch):
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 5 * 8 * 12 * 12 - 1)
    with pytest.raises(MemoryError, match=r"5 arrays of 12 x 12.*TruncatedSVD"):
        IPM().fit(data_of("tall"))


def test_nothing_is_left_of_a_vector_inside_the_span():
    span = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    np.testing.assert_array_equal(orthogonal_remainder(span, np.array([3.0, -2.0, 0.0])), 0)
    np.testing.assert_allclose(orthogonal_remainder(span, np.array([3.0, -2.0, 5.0])), [0, 0, 1])


@pytest.mark.parametrize(("n", "stays"), [(20, False), (5000, True)])
def test_sparse_rows_become_dense_coordinates_only_where_these_are_few(n, stays):
    few = np.random.default_rng(0).random((4, 100)) * (np.arange(100) % 10 == 0)
    unit, lengths = unit_rows(sp.csr_array(few[np.arange(n) % 4]))
    axes = principal_axes(unit, lengths, SERIAL)
    short = _shorten(unit, axes, lengths, SERIAL)
    assert sp.issparse(short) == stays
    assert short.shape == (n, 100 if stays else 4)
