"""Downloads from a host on this machine that behaves, misbehaves or is asked twice at once."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
from dataset_server import after, compress, serve, truncated, whole, zip_of
from numpy.testing import assert_array_equal
from patience import USUAL, patience, started

from smrmf import datasets
from smrmf.datasets import DatasetError, _fetch, _load
from smrmf.datasets._catalogue import CatalogueEntry
from smrmf.datasets._fetch import Route, fingerprint, read_table, write_table
from smrmf.datasets._readers import read_text

X = np.random.default_rng(0).integers(-9, 9, (40, 3)).astype(float)
Y = np.arange(40) % 2
TEXT = "".join(f"{a:g},{b:g},{c:g},{label}\n" for (a, b, c), label in zip(X, Y, strict=True))
ARCHIVE = zip_of({"toy.data.Z": compress(TEXT.encode())})
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()
READ = partial(read_text, member="toy.data")


def toy(*routes, **changes):
    settings = {"raw_shape": X.shape, "fingerprint": fingerprint(X, Y), **changes}
    return CatalogueEntry(
        "toy", None, settings["raw_shape"], None, 2, "nowhere", "none", settings["fingerprint"], routes
    )


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "new" / "cache"
    monkeypatch.setenv("SMRMF_CACHE", str(folder))
    monkeypatch.delenv("SMRMF_DATA", raising=False)
    # A host that answers is not silent, however busy this machine is.
    monkeypatch.setattr(_fetch, "TIMEOUT", patience(60))
    return folder


@pytest.fixture
def catalogue(monkeypatch):
    return lambda *entries: monkeypatch.setattr(_load, "CATALOGUE", entries)


def left_in(cache):
    return sorted(path.name for path in cache.rglob("*")) if cache.exists() else []


def refusal(**how):
    with pytest.raises(DatasetError) as caught:
        datasets.load("toy", **how)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert ". " not in sentence
    return sentence


def test_a_good_file_is_kept_and_found_again(cache, catalogue):
    with serve({"/toy.zip": whole(ARCHIVE)}) as host:
        catalogue(toy(Route(f"{host}/toy.zip", READ, SHA256)))
        assert not datasets.list_datasets()[0].present
        found, y = datasets.load("toy", cleaned=False)
    assert_array_equal(found, X)
    assert_array_equal(y, Y)
    assert left_in(cache) == ["toy.npz"]
    assert datasets.list_datasets()[0].present
    again = datasets.load("toy", download=False, cleaned=False)  # the host is gone
    assert_array_equal(again.X, X)
    assert_array_equal(again.y, Y)


def test_the_next_route_is_tried(cache, catalogue):
    with serve({"/copy": whole(ARCHIVE)}) as host:
        catalogue(toy(Route(f"{host}/gone", READ), Route(f"{host}/copy", READ)))
        assert_array_equal(datasets.load("toy", cleaned=False).X, X)
    assert left_in(cache) == ["toy.npz"]


FAILURES = {
    "missing": ({}, None, "refused with status 404"),
    "another file": ({"/toy.zip": whole(b"something else")}, SHA256, "SHA-256 does not start with"),
    "broken off": ({"/toy.zip": truncated(ARCHIVE)}, None, "broke off|connection failed"),
    "cut short": ({"/toy.zip": whole(ARCHIVE[:200])}, None, "cannot be read, as File is not a zip file"),
    "empty": ({"/toy.zip": whole(b"")}, None, "cannot be read, as |its X is 0"),
    "a page instead": (
        {"/toy.zip": whole(b"<html>,Sorry</html>")},
        None,
        "cannot be read, as could not convert",
    ),
    "other values": (
        {"/toy.zip": whole(zip_of({"toy.data": TEXT.replace("9", "8")}))},
        None,
        "its values are not those of toy",
    ),
    "fewer rows": (
        {"/toy.zip": whole(TEXT[: TEXT.index("\n") + 1].encode())},
        None,
        "its X is 1 x 3 with 1 lab",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failures_are_one_sentence_and_leave_nothing(case, cache, catalogue):
    answers, sha256, words = FAILURES[case]
    with serve(answers) as host:
        catalogue(toy(Route(f"{host}/toy.zip", READ, sha256)))
        sentence = refusal()
    assert any(word in sentence for word in words.split("|")), sentence
    assert f"{host}/toy.zip" in sentence
    assert f"put its file toy.zip or a file toy.npz with arrays X (40 x 3) and y into {cache}" in sentence
    assert left_in(cache) == []


def test_a_silent_host(cache, catalogue, monkeypatch):
    monkeypatch.setattr(_fetch, "TIMEOUT", 0.3)
    over = threading.Event()
    with serve({"/toy.zip": after(over, lambda request: None)}) as host:
        catalogue(toy(Route(f"{host}/toy.zip", READ)))
        assert "no answer within 0.3 s" in refusal()
        over.set()
    assert left_in(cache) == []


def test_a_host_that_falls_silent_half_way(cache, catalogue, monkeypatch):
    monkeypatch.setattr(_fetch, "TIMEOUT", patience(1))  # its first half must arrive in time
    over = threading.Event()

    def half(request):
        truncated(ARCHIVE)(request)
        request.wfile.flush()
        over.wait(patience(60))

    with serve({"/toy.zip": half}) as host:
        catalogue(toy(Route(f"{host}/toy.zip", READ)))
        assert "fell silent" in refusal()
        over.set()
    assert left_in(cache) == []


def test_no_host_at_all(cache, catalogue):
    with serve({}) as host:
        pass
    catalogue(toy(Route(f"{host}/toy.zip", READ)))
    assert "the connection failed" in refusal()
    assert left_in(cache) == []


def test_an_interruption_leaves_nothing(cache, catalogue):
    def interrupted(path):
        raise KeyboardInterrupt

    with serve({"/toy.zip": whole(ARCHIVE)}) as host:
        catalogue(toy(Route(f"{host}/toy.zip", interrupted)))
        with pytest.raises(KeyboardInterrupt):
            datasets.load("toy")
    assert left_in(cache) == []


def test_offline(cache, catalogue):
    catalogue(toy(Route("http://example.org/toy.zip", READ)))
    assert "download=False forbids http://example.org/toy.zip" in refusal(download=False)
    assert not cache.exists()


def test_without_a_route(cache, catalogue):
    catalogue(toy())
    assert "the file of its source, nowhere, is not read here: put toy.npz" in refusal()


def test_without_pooch(cache, catalogue, monkeypatch):
    monkeypatch.setattr(_fetch, "find_spec", lambda name: None)
    catalogue(toy(Route("http://example.org/toy.zip", READ)))
    assert "pip install 'smrmf[data]'" in refusal()
    assert not cache.exists()


def test_without_the_reader_of_a_format(cache, catalogue, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "unlzw3", None)
    (tmp_path / "toy.zip").write_bytes(ARCHIVE)
    with serve({"/toy.zip": whole(ARCHIVE)}) as host:
        catalogue(toy(Route(f"{host}/toy.zip", READ)))
        for how in ({}, {"data_home": tmp_path}):
            assert "cannot be read, as unlzw3 is not installed (pip install 'smrmf[data]')" in refusal(**how)
    assert left_in(cache) == []


def test_a_cache_that_cannot_be_written(cache, catalogue):
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where the folder should be")
    catalogue(toy(Route("http://example.org/toy.zip", READ)))
    sentence = refusal()
    assert f"the cache folder {cache} cannot be written" in sentence
    assert "SMRMF_CACHE names another" in sentence


def test_a_folder_comes_before_the_cache(cache, catalogue, tmp_path, monkeypatch):
    catalogue(toy())
    write_table(tmp_path / "toy.npz", X, Y)
    assert_array_equal(datasets.load("toy", data_home=tmp_path, cleaned=False).X, X)
    monkeypatch.setenv("SMRMF_DATA", str(tmp_path))
    assert_array_equal(datasets.load("toy", cleaned=False).X, X)
    assert datasets.list_datasets()[0].present
    assert not cache.exists()


def test_an_original_file_in_the_folder(cache, catalogue, tmp_path):
    catalogue(toy(Route("http://example.org/toy.zip?version=2", READ)))
    (tmp_path / "toy.zip").write_bytes(ARCHIVE)
    assert_array_equal(datasets.load("toy", data_home=tmp_path, cleaned=False).X, X)


def test_a_file_with_other_values_is_refused(cache, catalogue, tmp_path):
    catalogue(toy())
    write_table(tmp_path / "toy.npz", X + 1, Y)
    sentence = refusal(data_home=tmp_path)
    assert f"{tmp_path / 'toy.npz'} is refused, as its values are not those of toy" in sentence
    assert fingerprint(X, Y)[:12] in sentence
    assert "replace it by the original, or remove it" in sentence


def test_only_the_shape_where_no_fingerprint_is_known(cache, catalogue, tmp_path):
    catalogue(toy(fingerprint=None))
    write_table(tmp_path / "toy.npz", X + 1, Y)
    assert_array_equal(datasets.load("toy", data_home=tmp_path, cleaned=False).X, X + 1)
    write_table(tmp_path / "toy.npz", X[1:], Y[1:])
    assert "its X is 39 x 3 with 39 labels where toy is 40 x 3" in refusal(data_home=tmp_path)


def test_a_damaged_file(cache, catalogue, tmp_path):
    catalogue(toy())
    write_table(tmp_path / "toy.npz", X, Y)
    (tmp_path / "toy.npz").write_bytes((tmp_path / "toy.npz").read_bytes()[:300])
    assert f"{tmp_path / 'toy.npz'} cannot be read" in refusal(data_home=tmp_path)


def test_a_folder_that_is_none(cache, catalogue, tmp_path, monkeypatch):
    catalogue(toy())
    assert "data_home=" in refusal(data_home=tmp_path / "nowhere")
    monkeypatch.setenv("SMRMF_DATA", str(tmp_path / "nowhere"))
    assert "SMRMF_DATA=" in refusal()


CHILD = """
import sys
sys.path.insert(0, sys.argv[2])
import test_datasets_fetch as here
from smrmf import datasets
here._fetch.TIMEOUT = here.patience(here.USUAL)
here._load.CATALOGUE = (here.toy(here.Route(sys.argv[1] + "/toy.zip", here.READ, here.SHA256)),)
X, y = datasets.load("toy", cleaned=False)
assert (X == here.X).all() and (y == here.Y).all()
"""


def test_two_processes_at_once(cache):
    both_ask = threading.Barrier(2)
    with serve({"/toy.zip": after(both_ask, whole(ARCHIVE))}) as host:
        command = [sys.executable, "-c", CHILD, host, os.path.dirname(__file__)]
        pipe = {"stderr": subprocess.PIPE}
        with started(command, **pipe) as one, started(command, **pipe) as other:
            children = (one, other)
            errors = [child.communicate(timeout=patience(USUAL))[1].decode() for child in children]
    assert errors == ["", ""]
    assert [child.returncode for child in children] == [0, 0]
    assert left_in(cache) == ["toy.npz"]
    assert fingerprint(*read_table(cache / "toy.npz")) == fingerprint(X, Y)
