"""A fit of rows that take three times the memory of a worker, and more than all workers have together."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")

import dask.array as da  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

from smrmf.dask import FastSMRMF  # noqa: E402

LIMIT = 750_000_000  # a worker needs 300 MB before it has a row
N_SHEETS, N_ROWS, N_FEATURES, CHUNK = 4, 21_000, 26_800, 150


@pytest.fixture
def small_workers(tmp_path):
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": LIMIT}
    # Beside the tests of other processes a worker may need long to start.
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        LocalCluster(local_directory=str(tmp_path), **options) as cluster,
        Client(cluster) as client,
    ):
        yield client


def made_where_it_is_needed():
    """Return curved sheets of two dimensions in very many, whose rows no process has at once."""
    draw = np.random.default_rng(0)
    labels = draw.integers(N_SHEETS, size=N_ROWS)
    places = np.column_stack([np.ones(N_ROWS), draw.uniform(-1, 1, (N_ROWS, 2))])
    on_sheets = np.zeros((N_ROWS, N_SHEETS, 3), np.float32)
    on_sheets[np.arange(N_ROWS), labels] = places
    tilts = draw.normal(size=(N_SHEETS * 3, N_FEATURES)).astype(np.float32)
    rows = da.from_array(on_sheets.reshape(N_ROWS, -1), chunks=(CHUNK, -1))
    return (rows @ da.from_array(tilts, chunks=-1)) ** 2, labels


# The loop is about few coordinates of the rows: a few of its iterations are enough.
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_rows_of_three_times_the_memory_of_a_worker(small_workers):
    X, truth = made_where_it_is_needed()
    assert X.nbytes >= 3 * LIMIT
    model = FastSMRMF(N_SHEETS, max_iter=5, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.labels_.compute()) > 0.99
    assert model.neighbor_recall_ > 0.95


def test_a_chunk_that_no_worker_can_hold_is_told_in_a_sentence(small_workers):
    small_workers.cluster.scheduler.allowed_failures = 0
    X = da.ones((20_000, 20_000), chunks=-1)
    assert X.nbytes > 4 * LIMIT
    model = FastSMRMF(3)
    with pytest.raises(MemoryError, match="chunks of fewer rows"):
        model.fit(X)
    assert not hasattr(model, "labels_")
