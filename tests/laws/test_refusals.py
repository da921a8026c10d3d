"""What cannot be is refused in one sentence, before any work, and leaves no trace on the estimator."""

from __future__ import annotations

import inspect
import tracemalloc
from datetime import date

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cases import POINTS
from estimators import CASES, each, each_of, marks
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from smrmf import SelectiveRMNMF, _arrays

EITHER_FORM = pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])


def refused(model, X, error, *words):
    """Fit, expect one sentence with these words, and no trace on the estimator; return the sentence."""
    before = dict(vars(model))
    with pytest.raises(error) as raised:
        model.fit(X)
    message = str(raised.value)
    assert "\n" not in message
    assert message.endswith(".")
    for word in words:
        assert word in message, message
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)
    return message


# Parameters

# No parameter of any estimator can be any of these.
NONSENSE = {
    "object": object(),
    "word": "no such word",
    "nan": float("nan"),
    "infinity": float("inf"),
    "negative": -0.5,
    "flag": True,
    "empty": (),
}
PARAMETERS = [
    pytest.param(
        case, name, kind, id=f"{case}-{name}-{kind}", marks=marks(case, f"nonsense for {name}: {kind}")
    )
    for case in {type(case.estimator): case for case in reversed(CASES)}.values()
    for name in case.estimator.get_params(deep=False)
    for kind in NONSENSE
]


@pytest.mark.parametrize(("case", "name", "kind"), PARAMETERS)
def test_every_parameter_refuses_nonsense(case, name, kind):
    value, owner = NONSENSE[kind], type(case.estimator).__name__
    model = case.make(**{name: value})
    message = refused(model, case.usual(), ValueError, f"{name}={value!r}", owner)
    assert "must be" in message
    default = inspect.signature(type(case.estimator)).parameters[name].default
    if kind == "word" and isinstance(default, str):  # one that would do
        assert repr(default) in message


@pytest.mark.parametrize("case", {type(case.estimator): case for case in reversed(CASES)}.values(), ids=str)
def test_a_value_of_many_lines_is_refused_in_one(case):
    long = np.arange(3.0 * len(POINTS)).reshape(-1, 3)
    for name in {"n_clusters", "tol", "labels", "exemplars"} & case.estimator.get_params(deep=False).keys():
        message = refused(
            case.make(**{name: long}), case.usual(), ValueError, f"{name}=array([[ 0., 1.,", "..."
        )
        assert len(message) < 300


def test_a_selector_of_many_lines_is_refused_in_one():
    selector = make_pipeline(*(StandardScaler(with_mean=False) for _ in range(9)))
    assert "\n" in repr(selector)
    refused(SelectiveRMNMF(3, selector=selector), POINTS, ValueError, "selector=Pipeline(", "...")


# Numbers just beyond what a parameter may be, whoever has it.
BEYOND = {
    "n_clusters": (0, 2.5),
    "n_neighbors": (0, 2.0),
    "n_init": (0,),
    "n_components": (0, 0.0, 1.5),
    "exemplars": (0, 0.0, 1.5),
    "manifold_weight": (-1e-9,),
    "selection_weight": (0, 0.0),
    "projection_weight": (0, 0.0),
    "smoothness": (0, 0.0),
    "regularization": (-1e-9,),
    "fidelity": (1.0, 1e6),
    "penalty": (0, 0.0),
    "penalty_growth": (0.999,),
    "freeze_tol": (-1e-9,),
    "max_iter": (0, 1.5, 10**400),
    "tol": (-1e-9,),
    "random_state": (-1, 2**32),
    "n_jobs": (0, 1.5),
}


@each_of("name", BEYOND)
def test_numbers_beyond_their_limits_are_refused(case, name):
    for value in BEYOND[name]:
        words = (f"{name}={value!r}"[:60], type(case.estimator).__name__, "must be")
        refused(case.make(**{name: value}), case.usual(), ValueError, *words)


@each_of("name", ["n_clusters", "n_neighbors", "exemplars"])
@pytest.mark.parametrize("value", [61, 10**6])
def test_more_than_there_are_points_is_refused(case, name, value):
    words = (f"{name}={value}", f"n_samples={len(POINTS)}")
    refused(case.make(**{name: value}), case.usual(), ValueError, *words)


@each("n_clusters", law="one point is no clustering")
def test_one_point_is_no_clustering(case):
    settings = {"exemplars": 1} if case.has("exemplars") else {}
    refused(case.make(n_clusters=1, **settings), case.data(POINTS[:1]), ValueError, "n_clusters=1")


# Data


@each()
@EITHER_FORM
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_what_is_not_finite_is_found(case, form, value, name):
    X = case.usual().copy()
    X[17, 2] = X[40, 1] = value
    refused(case.make(), form(X), ValueError, name, "row 17, column 2", "2 such values")


@each("predict", "transform")
def test_new_points_that_are_not_finite_are_found(case):
    model = case.make().fit(case.usual())
    new = case.usual().copy()
    new[3, 1] = np.nan
    for method in (model.predict, model.transform):
        with pytest.raises(ValueError, match="NaN at row 3, column 1"):
            method(new)


@pytest.mark.parametrize(
    "X", [np.ones(5), np.ones((2, 2, 2)), [["a", "b"], ["c", "d"]], np.ones((0, 3))], ids=str
)
@each()
def test_what_is_no_table_of_numbers_is_refused(case, X):
    model = case.make()
    before = dict(vars(model))
    with pytest.raises(ValueError, match=r"array|convert|sample"):
        model.fit(X)
    assert vars(model) == before


def with_entry(X, value):
    X = X.astype(object)
    X[3, 1] = value
    return X


NO_NUMBERS = {"word": "big", "date": date(2020, 1, 2), "complex number": 1j, "dict": {"a": 1}}


@each()
@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_an_entry_that_is_no_number_is_found(case, value):
    message = refused(
        case.make(), with_entry(case.usual(), value), ValueError, repr(value), "row 3, column 1"
    )
    assert "drop" in message


@pytest.mark.parametrize("case", CASES[:1], ids=str)  # one door for all
@pytest.mark.parametrize("digits", [400, 5000])  # Python prints no number of more than 4300
def test_an_integer_beyond_all_floats_is_found(case, digits):
    for form in (np.asarray, np.ndarray.tolist):
        X = form(with_entry(case.usual(), 10**digits))
        refused(case.make(), X, ValueError, "row 3, column 1", "1.8e+308", "divide")


@pytest.mark.parametrize("case", CASES[:1], ids=str)
def test_pictures_are_refused_before_they_take_memory(case):
    pictures = np.ones((200, 28, 28))
    tracemalloc.start()
    try:
        refused(case.make(), pictures, ValueError, "dim 3")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < pictures.nbytes


@each()
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame], ids=["dense", "sparse", "frame"])
def test_complex_data_are_refused(case, form):
    refused(case.make(), form(case.usual() + 0j), ValueError, "Complex data not supported", "complex128")


@pytest.mark.parametrize("case", CASES[:1], ids=str)  # one door for all
def test_columns_of_a_frame_are_called_by_their_names(case):
    names = [f"feature {place}" for place in range(POINTS.shape[1])]
    frame = pd.DataFrame(POINTS, columns=names)
    frame.iloc[17, 2] = np.nan
    refused(case.make(), frame, ValueError, "NaN at row 17, column 'feature 2'")
    model = case.make().fit(frame.dropna())
    with pytest.raises(ValueError, match="NaN at row 17, column 'feature 2'"):
        model.predict(frame)
    words = pd.DataFrame(POINTS, columns=names).assign(**{"feature 1": "big"})
    dates = words.assign(**{"feature 1": pd.Timestamp("2020-01-02")})
    refused(case.make(), words, ValueError, "'big' at row 0, column 'feature 1'")
    refused(case.make(), dates, ValueError, "2020-01-02", "row 0, column 'feature 1'")
    refused(case.make(), words.astype("category"), ValueError, "'big' at row 0, column 'feature 1'")


@each("init", "affinity_", "exemplar_scores_")
def test_a_complex_start_is_refused(case):
    start = np.ones((60, case.estimator.n_clusters)) + 0j
    refused(case.make(init=start), case.usual(), ValueError, "init", "complex128", "spectral")


# Memory


@each(law="memory for dense data")
def test_what_would_not_fit_in_memory_is_refused(case, monkeypatch):
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 100)
    refused(case.make(), case.usual(), MemoryError, type(case.estimator).__name__, "GiB", ";")


@each(law="memory for sparse data")
def test_sparse_data_that_would_not_fit_in_memory_are_refused(case, monkeypatch):
    monkeypatch.setattr(_arrays, "available_bytes", lambda: 100)
    refused(case.make(), sp.csr_array(case.usual()), MemoryError, type(case.estimator).__name__, "GiB", ";")


def test_the_memory_of_this_machine_is_known():
    assert _arrays.available_bytes() > 2**26


# An earlier fit


@each()
def test_a_refused_fit_keeps_the_earlier_one(case, monkeypatch):
    model = case.make().fit(case.usual())
    wrong = case.usual()[:40].copy()
    wrong[0, 0] = np.nan
    refused(model, wrong, ValueError, "row 0, column 0")
    refused(model.set_params(n_jobs=0), case.usual()[:40], ValueError, "n_jobs=0")
    count = "exemplars" if case.has("exemplars") else "n_clusters"
    refused(model.set_params(n_jobs=1, **{count: 999}), case.usual(), ValueError, f"{count}=999")
