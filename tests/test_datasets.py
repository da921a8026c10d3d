"""The catalogue, the moons, and the real files where there are any."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from dataset_server import compress, serve, whole, zip_of
from numpy.testing import assert_allclose, assert_array_equal
from patience import run_command
from scipy.spatial.distance import cdist

from smrmf import datasets
from smrmf.datasets import _load
from smrmf.datasets._catalogue import CATALOGUE
from smrmf.datasets._fetch import write_table

CLASS_COUNTS = {
    "wave": [200, 200, 200],
    "ionosphere": [125, 225],
    "sonar": [111, 97],
    "musk1": [269, 207],
    "semeion": [161, 162, 159, 159, 161, 159, 161, 158, 155, 158],
    "isolet": [240] * 5,
    "coil-5": [72] * 5,
    "orl": [10] * 40,
    "gordon": [150, 31],
}


def names():
    return [entry.name for entry in CATALOGUE]


def entry_of(name):
    return next(entry for entry in CATALOGUE if entry.name == name)


def test_the_catalogue_is_the_paper_and_one_more():
    infos = datasets.list_datasets()
    assert len(infos) == len(set(names())) == 14
    assert [info.name for info in infos if info.paper_name is None] == ["gordon"]
    assert "name='wave', paper_name='Wave', n=600, m=21, classes=3, raw_n=5000, raw_m=21" in str(infos)
    assert [entry.name for entry in CATALOGUE if entry.fingerprint is None] == ["ova-colon"]
    assert [entry.name for entry in CATALOGUE if not entry.routes] == ["gordon"]
    assert all(len(entry.fingerprint) == 64 for entry in CATALOGUE if entry.fingerprint)


def test_an_unknown_name():
    with pytest.raises(ValueError, match="name='iris' is not a data set: choose one of wave, ionosphere"):
        datasets.load("iris")


def test_importing_costs_little():
    code = (
        "import sys; from smrmf import datasets; "
        "print(*{'pandas', 'pooch', 'numba', 'sklearn', 'requests', 'PIL', 'unlzw3'} & set(sys.modules))"
    )
    done = run_command([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_loading_from_a_folder_needs_no_pooch(real_data, tmp_path):
    write_table(tmp_path / "sonar.npz", *real_data("sonar", cleaned=False))
    code = (
        "import sys; sys.modules['pooch'] = None; from smrmf import datasets; "
        f"print(datasets.load('sonar', data_home={str(tmp_path)!r}).X.shape)"
    )
    done = run_command([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(208, 60)"


@pytest.mark.parametrize("name", names())
def test_real_files(name, real_data):
    data = real_data(name)
    entry = entry_of(name)
    X, y = data
    assert X is data.X
    if entry.shape is not None:
        assert X.shape == entry.shape
    assert sp.issparse(X) == (name == "20-news")
    assert X.dtype == np.float64
    assert y.dtype == np.int64
    assert_array_equal(np.unique(y), range(entry.n_classes))
    assert_allclose((X * X).sum(axis=1), 1, rtol=1e-12)
    assert X.min() >= 0
    if name in CLASS_COUNTS:
        assert_array_equal(np.bincount(y), CLASS_COUNTS[name])


@pytest.mark.parametrize(("name", "n"), [("wave", 600), ("ionosphere", 351), ("20-news", 5020)])
def test_raw_values(name, n, real_data):
    X, y = real_data(name, cleaned=False)
    assert X.shape == (n, entry_of(name).raw_shape[1])
    assert y.shape == (n,)
    assert X.dtype == np.float64


def test_wave_takes_the_first_of_every_class(real_data):
    X, y = real_data("wave", cleaned=False)
    whole_X, whole_y = _load._raw_table(entry_of("wave"), None, download=False)
    assert_array_equal(X[-1], whole_X[636])
    for label in range(3):
        assert_array_equal(X[y == label], whole_X[whole_y == label][:200])


def neighbourhoods(X, y):
    """Return bad neighbours, bad neighbourhoods, similarity to good and to bad neighbours."""
    k = int(np.sqrt(len(X)))
    distances = cdist(X, X)
    widths = np.sort(distances, axis=1)[:, [k]]
    kernel = np.exp(-(distances**2) / (2 * widths**2))
    kernel = (kernel + kernel.T) / 2
    np.fill_diagonal(kernel, -1)
    near = np.argsort(-kernel, axis=1)[:, :k]
    bad = y[near] != y[:, None]
    similarity = np.take_along_axis(kernel, near, axis=1)
    return bad.mean(), (bad.mean(axis=1) > 0.5).mean(), similarity[~bad].mean(), similarity[bad].mean()


@pytest.mark.parametrize(
    ("dim", "published", "tolerance"),
    [(2, (0.01, 0.00, 0.78), 0.005), (10, (0.21, 0.09, 0.67), 0.015), (10, (0.21, 0.09, 0.67, 0.68), 0.045)],
)
def test_moons_have_neighbourhoods_like_the_paper(dim, published, tolerance):
    found = neighbourhoods(*datasets.make_moons_paper(dim))
    assert_allclose(found[: len(published)], published, atol=tolerance)


@pytest.mark.parametrize("dim", [2, 10])
def test_moons(dim):
    X, y = datasets.make_moons_paper(dim, seed=3)
    assert X.shape == (500, dim)
    assert_array_equal(np.bincount(y), [250, 250])
    assert_array_equal(X.min(axis=0), np.zeros(dim))
    assert_array_equal(X.max(axis=0), np.ones(dim))
    again = datasets.make_moons_paper(dim, seed=3)
    assert_array_equal(again.X, X)
    assert not np.array_equal(datasets.make_moons_paper(dim, seed=4).X, X)
    # The first two features show the moons: there, neighbours are of the same moon nine times in ten.
    assert neighbourhoods(X[:, :2], y)[0] < 0.1


def test_moons_of_another_dimension():
    with pytest.raises(ValueError, match=r"dim=3 is not one of the paper's two: choose 2 or 10"):
        datasets.make_moons_paper(3)


def as_text(X, labels, before=""):
    rows = (",".join(f"{value:g}" for value in row) for row in X)
    return "".join(f"{before}{row},{label}\n" for row, label in zip(rows, labels, strict=True))


TEXTS = {
    "ionosphere": ("ionosphere.data", lambda X, y: as_text(X, np.array(["b", "g"])[y])),
    "sonar": ("sonar.all-data", lambda X, y: as_text(X, np.array(["M", "R"])[y])),
    "musk1": (
        "clean1.data.Z",
        lambda X, y: compress(as_text(X, [f"{k}." for k in y], "name,name,").encode()),
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_real_values_in_their_published_format_are_accepted(name, real_data, tmp_path, monkeypatch):
    raw, cleaned = real_data(name, cleaned=False), real_data(name)
    member, write = TEXTS[name]
    entry = entry_of(name)
    monkeypatch.setenv("SMRMF_CACHE", str(tmp_path))
    monkeypatch.delenv("SMRMF_DATA", raising=False)
    with serve({"/file.zip": whole(zip_of({member: write(*raw)}))}) as host:
        route = dataclasses.replace(entry.routes[0], url=f"{host}/file.zip")
        monkeypatch.setattr(_load, "CATALOGUE", (dataclasses.replace(entry, routes=(route,)),))
        assert_array_equal(datasets.load(name).X, cleaned.X)
