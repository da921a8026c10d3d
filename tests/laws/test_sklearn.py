"""scikit-learn's own checks on every case."""

from __future__ import annotations

import pytest
from estimators import ALONE, CASES
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

# The checks are about the interface, and need not wait for the last digits. Of configurations that take the
# same input the first is enough: the laws are for all.
LOOSE = {"tol": 1e-2}
FIRST = {(type(case.estimator), case.data): case for case in reversed(CASES)}
MODELS = {case.make(**LOOSE if case.has("tol") else {}, n_jobs=None): case for case in FIRST.values()}


# Who tells shares on sparse rows is taken for a classifier there: the check wants a column for every class of
# its y, and has no other way to be asked. Sparse rows have laws of their own.
SHARES = "predict_proba has a column for every cluster, and not for every class"
TAKEN_FOR_CLASSIFIERS = dict.fromkeys(
    ("check_estimator_sparse_array", "check_estimator_sparse_matrix"), SHARES
)


def expected_to_fail(model):
    return dict(MODELS[model].failed_checks) | (
        TAKEN_FOR_CLASSIFIERS if hasattr(model, "predict_proba") else {}
    )


# The checks turn any warning into a failure; these are expected on their few random points, which can be
# rebuilt exactly (an error on its way to zero never settles) or are alike.
@pytest.mark.filterwarnings(f"ignore:{ALONE}")
@pytest.mark.filterwarnings("ignore:DeepSemiNMF did not converge")
@pytest.mark.filterwarnings("ignore:Maximum number of iterations")
@parametrize_with_checks(
    list(MODELS),
    expected_failed_checks=expected_to_fail,
    xfail_strict=True,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", [model for model in MODELS if expected_to_fail(model)], ids=str)
def test_what_cannot_be_passed_is_a_check(model):
    names = {check.func.__name__ for _, check in estimator_checks_generator(model)}
    assert expected_to_fail(model).keys() <= names
