"""FastSMRMF on Dask arrays: the result of the class in memory, from workers that are processes."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster
from many_points import overlapping, sheets
from numpy.testing import assert_allclose, assert_array_equal
from patience import wait_until
from sklearn.metrics import adjusted_rand_score

import smrmf
from smrmf.dask import FastSMRMF

pytestmark = pytest.mark.filterwarnings("ignore:.*did not converge")


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 3, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def rows_in_chunks(X, chunks):
    return da.from_array(X, chunks=(chunks, -1))


def fit(X, n_clusters=5, **parameters):
    return FastSMRMF(n_clusters, random_state=0, **parameters).fit(X)


@pytest.mark.parametrize("table", [sheets, overlapping])
def test_the_result_is_that_in_memory(client, table):
    X, truth = table(20_000, dtype=np.float32)
    there, here = fit(rows_in_chunks(X, 4000)), smrmf.FastSMRMF(5, random_state=0).fit(X)
    labels = there.labels_.compute()
    assert adjusted_rand_score(labels, here.labels_) >= 0.99
    assert adjusted_rand_score(labels, truth) > adjusted_rand_score(here.labels_, truth) - 0.01
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-3)
    assert there.neighbor_recall_ >= 0.95
    assert there.stability_ == pytest.approx(here.stability_, abs=0.05)
    # Clusters may be numbered otherwise: in memory by size, too, but ties and neighbours differ.
    matched = smrmf_order(labels, here.labels_)
    assert_allclose(there.components_, here.components_[matched], atol=0.02 * np.abs(X).max())
    assert there.embedding_.dtype == there.components_.dtype == np.float32
    assert there.embedding_.chunks == ((4000,) * 5, (5,))


def smrmf_order(labels, others):
    """Return for every cluster the one of the others that has most of its points."""
    return [np.bincount(others[labels == label]).argmax() for label in range(labels.max() + 1)]


@pytest.mark.parametrize(
    "chunks", [(1500, 700, 3800), (6000,), (1, 2999, 3000)], ids=["unequal", "one", "tiny"]
)
def test_chunks_of_any_size(client, chunks):
    X, _ = overlapping(6000)
    one, other = fit(rows_in_chunks(X, 2000)), fit(rows_in_chunks(X, chunks))
    assert adjusted_rand_score(one.labels_.compute(), other.labels_.compute()) > 0.97
    assert other.labels_.chunks == (chunks,)


def test_chunks_of_columns_are_joined(client):
    X, truth = sheets(3000)
    found = fit(da.from_array(X, chunks=(1000, 5)))
    assert adjusted_rand_score(found.labels_.compute(), truth) > 0.97


def test_rows_stay_in_their_order(client):
    X, truth = sheets(4000)
    model = fit(rows_in_chunks(X, 1000))
    labels = model.labels_.compute()
    assert adjusted_rand_score(labels, truth) > 0.97
    for label in range(5):
        mean = X[labels == label].mean(axis=0)
        assert np.linalg.norm(model.components_[label] - mean) < 0.1 * np.linalg.norm(mean)
    assert_array_equal(labels[model.exemplar_indices_], model.exemplar_labels_)
    again = model.predict(rows_in_chunks(X, 1300))
    assert_array_equal(again.compute(), labels)
    assert_allclose(model.transform(rows_in_chunks(X, 1300)).compute(), model.embedding_.compute(), atol=1e-9)
    membership = model.membership_.compute()
    assert_allclose(membership.sum(axis=1), 1)
    assert_array_equal(membership.argmax(axis=1), labels)
    proba = model.predict_proba(rows_in_chunks(X, 1300)).compute()
    assert_allclose(proba, membership, atol=1e-9)
    scores = model.outlier_scores(rows_in_chunks(X[:50] + 100, 50)).compute()
    assert scores.min() > 0.5 > np.median(model.outlier_scores_.compute())


def test_chunks_may_be_sparse_or_of_unknown_size(client):
    X, truth = sheets(3000)
    dense = rows_in_chunks(X, 1000)
    blocks = dense.map_blocks(sp.csr_array, dtype=X.dtype)
    unknown = dense[da.from_array(np.ones(3000, dtype=bool), chunks=1000)]
    expected = fit(dense).labels_.compute()
    assert adjusted_rand_score(expected, truth) > 0.97
    for table in (blocks, unknown):
        assert_array_equal(fit(table).labels_.compute(), expected)


@pytest.mark.parametrize(
    "parameters", [{"metric": "cosine"}, {"init": "kmeans"}, {"exemplars": 0.1, "exemplar_rule": "norm"}]
)
def test_other_parameters(client, parameters):
    X, _ = sheets(3000)
    there, here = (
        fit(rows_in_chunks(X, 1000), **parameters),
        smrmf.FastSMRMF(5, random_state=0, **parameters).fit(X),
    )
    assert adjusted_rand_score(there.labels_.compute(), here.labels_) > 0.97
    assert len(there.exemplar_indices_) == len(here.exemplar_indices_)


@pytest.mark.parametrize(
    ("table", "parameters", "sentence"),
    [
        (np.ones((5, 2)), {}, "X is a ndarray, but smrmf.dask takes Dask arrays"),
        (da.ones(5), {}, "X has 1 dimensions"),
        (da.from_array(np.full((5, 2), "a")), {}, "X has entries of type <U1"),
        (da.full((50, 2), np.nan), {}, "X contains NaN or infinity in chunk 0"),
        (
            da.ones((50, 2)),
            {"dissimilarity": "kernel"},
            "dissimilarity='kernel' needs all points in one memory",
        ),
        (da.ones((50, 2)), {"init": np.ones((50, 5))}, "init needs all points in one memory"),
        (da.ones((50, 2)), {"freeze_tol": 1e-3}, "freeze_tol=0.001 needs all points in one memory"),
        (da.ones((50, 2)), {"n_clusters": 60}, "n_clusters=60"),
    ],
)
def test_what_cannot_be_done_is_refused(table, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        FastSMRMF(**{"n_clusters": 5} | parameters).fit(table)


def test_the_cluster_holds_nothing_that_nobody_asks_for(client):
    X, _ = sheets(2000)
    model = fit(rows_in_chunks(X, 500))
    with pytest.raises(ValueError, match="NaN"):
        fit(rows_in_chunks(np.where(X > 0, X, np.nan), 500))
    del model
    gc.collect()
    wait_until(lambda: client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) == 0)


def test_a_worker_that_is_killed_does_not_change_the_result(client):
    X, _ = overlapping(20_000)
    expected = fit(rows_in_chunks(X, 4000))
    labels = expected.labels_.compute()
    pid = next(iter(client.run(os.getpid).values()))
    killer = threading.Timer(1.0, os.kill, (pid, signal.SIGKILL))
    killer.start()
    found = fit(rows_in_chunks(X, 4000))
    assert killer.finished.is_set()
    assert_array_equal(found.labels_.compute(), labels)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    # A model that was there before has lost parts, too, and finds them again.
    assert_array_equal(expected.predict(rows_in_chunks(X[:500], 250)).compute(), labels[:500])


CLUSTER = """
    import time
    from distributed import LocalCluster

    if __name__ == "__main__":
        cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", memory_limit=0)
        print(cluster.scheduler_address, flush=True)
        time.sleep(600)
"""


def test_a_scheduler_that_goes_away_is_told_of_in_one_sentence():
    X, _ = overlapping(20_000)
    command = [sys.executable, "-c", textwrap.dedent(CLUSTER)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as cluster:
        with Client(cluster.stdout.readline().strip(), set_as_default=True):
            model = FastSMRMF(5, random_state=0)
            threading.Timer(3.0, os.killpg, (cluster.pid, signal.SIGKILL)).start()
            with pytest.raises(ConnectionError, match="The Dask scheduler is gone"):
                model.fit(rows_in_chunks(X, 4000))
        assert not hasattr(model, "labels_")
