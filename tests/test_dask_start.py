"""The start in parts: the plane of the means, and the choice among clusterings."""

from __future__ import annotations

import dask
import dask.array as da
import numpy as np
import pytest
from many_points import overlapping, sheets
from numpy.testing import assert_allclose
from parts import cut, joined
from scipy.spatial.distance import pdist
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from smrmf.dask import FastSMRMF, _fit, _start
from smrmf.dask._halo import Halo
from smrmf.dask._start import Points, in_plane_of_means


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def fit(X, n_clusters=5, random_state=0):
    return FastSMRMF(n_clusters, random_state=random_state).fit(da.from_array(X, chunks=(1000, -1)))


# The plane of the means


def means_of(X, labels):
    return np.stack([X[labels == label].mean(axis=0) for label in range(labels.max() + 1)])


@pytest.fixture(params=[sheets, overlapping])
def in_plane(request):
    """Points, means of their clusters, places in the plane of these, and what leads back."""
    X, labels = request.param(2200)
    means, starts = means_of(X, labels), np.array([0, 1200, 1201, 2200])
    places, back = in_plane_of_means(cut(X, starts), cut(labels, starts), means)
    return X, labels, means, joined(places), back


def test_distances_to_all_of_the_plane_are_kept(in_plane):
    X, _, means, places, back = in_plane
    assert places.shape == (len(X), len(means) + 1)
    mixed = np.random.default_rng(0).normal(size=(7, 5)) @ means
    expected = np.linalg.norm(X[:, None] - mixed, axis=2)
    at = mixed @ back.T  # its rows are orthonormal, and the last one is zero
    assert_allclose(np.linalg.norm(places[:, None] - at, axis=2), expected, rtol=1e-9)


def test_means_of_clusters_stay_in_the_plane(in_plane):
    _, labels, means, places, back = in_plane
    at = means_of(places, labels)
    # Points lie on both sides in turn: else the last coordinate of a mean were the mean distance.
    assert np.abs(at[:, -1]).max() < 0.02 * np.abs(places[:, -1]).mean()
    assert_allclose(at @ back, means, atol=1e-9)


@pytest.mark.parametrize("table", [sheets, overlapping])
def test_the_loop_in_the_plane_is_that_on_all_coordinates(table, monkeypatch):
    X, _ = table(3000)
    on_all = fit(X)
    monkeypatch.setattr(_fit, "MOST_EXACT", 2000)
    in_plane = fit(X)
    # Where means leave the plane, residuals are too short by what all points of a cluster have in common.
    assert in_plane.objective_ == pytest.approx(on_all.objective_, rel=0.01)
    assert adjusted_rand_score(in_plane.labels_.compute(), on_all.labels_.compute()) > 0.99
    assert_allclose(in_plane.embedding_.compute(), on_all.embedding_.compute(), atol=0.03)
    assert_allclose(in_plane.components_, on_all.components_, atol=0.03 * np.abs(X).max())


# The choice among clusterings

# Most points in few clusters, found only where the small ones among their cells are not merged by force.
UNEVEN = {
    "five": {
        "n_samples": [700, 300, 100, 60, 40],
        "n_features": 3,
        "cluster_std": 1.3,
        "center_box": (-6, 6),
        "random_state": 34,
    },
    "eight": {
        "n_samples": [600, 300, 200, 100, 80, 50, 50, 40],
        "n_features": 4,
        "cluster_std": 1.5,
        "center_box": (-8, 8),
        "random_state": 35,
    },
}


@pytest.mark.parametrize("random_state", range(2))
@pytest.mark.parametrize("name", UNEVEN)
def test_clusters_of_very_unequal_size_are_found(name, random_state, monkeypatch):
    monkeypatch.setattr(_fit, "FEWEST_ROWS", 400)
    X, truth = make_blobs(**UNEVEN[name])
    labels = fit(X, len(UNEVEN[name]["n_samples"]), random_state).labels_.compute()
    assert adjusted_rand_score(labels, truth) > 0.92


# Rows that come into one process


def test_points_of_very_many_features_are_compared_in_fewer_directions(monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 3000)) * np.linspace(1, 5, 300)[:, None]
    starts, numbers = np.array([0, 120, 300]), np.arange(0, 300, 7)
    ring = np.roll(np.arange(300), -1)[:, None]
    points = Points(cut(X, starts), Halo.of(cut(ring, starts), starts), ring, ring, 1, 1, X[0])
    exact = points.comparable_rows(numbers)
    assert_allclose(exact, X[numbers])
    monkeypatch.setattr(_start, "MOST_BYTES", 0)
    sketch = points.comparable_rows(numbers)
    assert sketch.shape[1] < X.shape[1] / 10
    ratios = pdist(sketch) / pdist(exact)
    assert 0.8 < ratios.min() < ratios.max() < 1.2
