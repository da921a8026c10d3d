"""Work that fits on the same points share: once, never another answer, never outside of its context."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from smrmf import SMRMF, FastSMRMF
from smrmf._parallel import thread_pool
from smrmf.sharing import SharedWork, remember, shared_work

PREPARATION = {"search", "nonnegative_svd"}
SHARED = {SMRMF: PREPARATION | {"a2dm2"}, FastSMRMF: PREPARATION}


@pytest.fixture
def counted():
    calls = []

    def double(values, factor=1.0, pool=None):
        calls.append(factor)
        return {"product": values * factor}

    return partial(remember, double), calls


def test_nothing_is_remembered_outside(counted):
    work, calls = counted
    for _ in range(2):
        work(np.arange(3.0))
    with shared_work():
        work(np.arange(3.0))
    work(np.arange(3.0))
    assert len(calls) == 4


def test_equal_arguments_share_and_others_do_not(counted):
    work, calls = counted
    with shared_work() as shared, thread_pool(1) as pool:
        work(np.arange(3.0), factor=2.0)
        assert shared.saved == 0
        assert work(np.arange(3.0), factor=2.0, pool=pool)["product"].tolist() == [0, 2, 4]
        assert (len(calls), shared.saved > 0) == (1, True)
        work(np.arange(3.0), factor=3.0)
        work(np.arange(4.0), factor=3.0)
        work(np.arange(4.0).astype(np.float32), factor=3.0)
    assert calls == [2.0, 3.0, 3.0, 3.0]


def test_what_a_caller_does_to_a_result_stays_with_the_caller(counted):
    work, _ = counted
    with shared_work():
        for _ in range(3):
            result = work(np.arange(3.0))
            assert result["product"].tolist() == [0, 1, 2]
            result["product"][:] = -1


def test_an_earlier_memory_can_be_taken_up_again(counted):
    work, calls = counted
    memory = SharedWork()
    for _ in range(2):
        with shared_work(memory):
            work(np.arange(3.0))
    assert len(calls) == 1


@pytest.mark.parametrize("kind", SHARED)
def test_a_grid_that_shares_gives_the_same_fits(kind):
    X, _ = make_blobs(80, 4, centers=3, random_state=0)
    X -= X.min()
    settings = kind.paper_settings() | {"max_iter": 30, "tol": 0.0}
    grid = [settings | {"manifold_weight": weight} for weight in (0.01, 0.1, 1.0)]
    alone = [kind(3, **point).fit(X) for point in grid]
    with shared_work() as shared:
        together = [kind(3, **point).fit(X) for point in grid]
    assert shared.saved > 0
    assert {place.rpartition(".")[2] for place in shared.results} == SHARED[kind]
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a.objective_history_, b.objective_history_)
        np.testing.assert_array_equal(a.labels_, b.labels_)
