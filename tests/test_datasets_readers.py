"""Every format of the data sets, on small made-up files."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import pickle
import re
import shutil
import subprocess
import tracemalloc
import zipfile
import zlib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from dataset_server import coil_archive, compress, news_archive, zip_of
from numpy.testing import assert_array_equal

from smrmf.datasets import DatasetError, _fetch, load
from smrmf.datasets import _readers as readers
from smrmf.datasets._catalogue import CATALOGUE
from smrmf.datasets._load import _read_verified
from smrmf.datasets._readers import read_news_archive, read_news_folder, weigh_words
from smrmf.datasets._unpack import check_lzw

# Long enough for all widths of the codes, and for a table that is full and is cleared.
PACKED = np.random.default_rng(0).integers(0, 50, 40000, np.uint8).tobytes()


@pytest.mark.parametrize("limit", [10, 12, 16])
@pytest.mark.parametrize("clear", [False, True])
def test_packed_files_are_unpacked(limit, clear, tmp_path):
    (tmp_path / "file.data.Z").write_bytes(compress(PACKED, limit, clear))
    assert readers.read_member(tmp_path / "file.data.Z", "file.data") == PACKED


@pytest.mark.skipif(shutil.which("gzip") is None, reason="gzip, which reads .Z files, is not installed")
@pytest.mark.parametrize("limit", [10, 12, 16])
@pytest.mark.parametrize("clear", [False, True])
def test_our_packed_files_are_those_of_the_real_program(limit, clear):
    packed = compress(PACKED, limit, clear)
    assert subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True).stdout == PACKED


DAMAGED = {
    "no header": b"\x1f\x9d",
    "no first byte": b"\x1f\x9d\x90\xff\xff\xff",
    "an unknown code": compress(b"1.5,2\n" * 9)[:-1] + b"\xff",
}


@pytest.mark.parametrize("packed", DAMAGED.values(), ids=DAMAGED)
def test_damaged_packed_files_are_refused(packed, tmp_path):
    (tmp_path / "file.data.Z").write_bytes(packed)
    with pytest.raises(ValueError, match="Invalid"):
        readers.read_member(tmp_path / "file.data.Z", "file.data")


def entry_of(name):
    return next(entry for entry in CATALOGUE if entry.name == name)


def route_of(name):
    return entry_of(name).routes[0]


def one_hot(digit):
    return " ".join("1" if digit == other else "0" for other in range(10))


TEXTS = {  # name: member of the archive, text, X, y
    "wave": ("waveform.data", "1.5,-2.25,2\n0,-0.5,0\n3,4,1\n", [[1.5, -2.25], [0, -0.5], [3, 4]], [2, 0, 1]),
    "ionosphere": ("ionosphere.data", "1,0,0.5,g\r\n0,0,-1,b\r\n", [[1, 0, 0.5], [0, 0, -1]], [1, 0]),
    "sonar": ("sonar.all-data", "; a remark\n0.02,0.03,R\n0.1,0.2,M\n\n", [[0.02, 0.03], [0.1, 0.2]], [1, 0]),
    "movement": (
        "movement_libras.data",
        "0.1,0.2,10\n0.3,0.4,2\n0.5,0.6,1\n",
        [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]],
        [2, 1, 0],
    ),
    "musk1": (
        "clean1.data",
        "MUSK-188,188_1+1,42,-198,1.\nNON-MUSK-j,j_2,5,7,0.\n",
        [[42, -198], [5, 7]],
        [1, 0],
    ),
    "semeion": (
        "semeion.data",
        f"1.0000 0.0000 {one_hot(7)} \n0.0000 1.0000 {one_hot(0)} \n",
        [[1, 0], [0, 1]],
        [7, 0],
    ),
    "mfeat-fac": ("mfeat-fac", " 98 236  531\n" * 201, [[98, 236, 531]] * 201, [0] * 200 + [1]),
    "mfeat-pix": ("mfeat-pix", "0 1 6\n" * 201, [[0, 1, 6]] * 201, [0] * 200 + [1]),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", TEXTS)
def test_text_in_an_archive(name, packed, tmp_path):
    member, text, X, y = TEXTS[name]
    other = {"Index": "nothing", f"{member}.names": "nothing"}
    content = {f"folder/{member}.Z": compress(text.encode())} if packed else {member: text}
    (tmp_path / "file").write_bytes(zip_of({**other, **content}))
    found, classes = route_of(name).read(tmp_path / "file")
    assert_array_equal(found, X)
    assert_array_equal(classes, y)
    assert found.dtype == np.float64
    assert classes.dtype == np.int64


def test_isolet_keeps_its_first_five_letters(tmp_path):
    text = "".join(f"0.{letter:04}, -0.5, {letter}.\n" for letter in [1, 1, 6, 5, 26, 2, 3, 4])
    (tmp_path / "plain.data").write_text(text)
    good = hashlib.sha256(text.encode()).hexdigest()
    X, y = readers.read_text(tmp_path / "plain.data", "isolet1+2+3+4.data", n_classes=5, sha256=good)
    assert_array_equal(y, [0, 0, 4, 1, 2, 3])
    assert_array_equal(X[:, 0], [0.0001, 0.0001, 0.0005, 0.0002, 0.0003, 0.0004])
    with pytest.raises(
        ValueError, match=r"SHA-256 of isolet1\+2\+3\+4.data does not start with aa935cc98ec2"
    ):
        route_of("isolet").read(tmp_path / "plain.data")


def test_an_archive_without_the_member(tmp_path):
    (tmp_path / "file").write_bytes(zip_of({"other.data": "1,2\n"}))
    with pytest.raises(ValueError, match=r"has no file waveform.data"):
        route_of("wave").read(tmp_path / "file")


def test_rows_of_unequal_length_are_refused(tmp_path):
    (tmp_path / "file").write_text("1,2,0\n1,0\n")
    with pytest.raises(ValueError, match="inhomogeneous"):
        route_of("wave").read(tmp_path / "file")


def test_matlab_files(tmp_path):
    fea = np.arange(24, dtype=np.uint8).reshape(8, 3)
    gnd = np.arange(1, 9, dtype=np.uint8)[:, None]
    scipy.io.savemat(tmp_path / "file.mat", {"fea": fea, "gnd": gnd})
    X, y = route_of("orl").read(tmp_path / "file.mat")
    assert_array_equal(X, fea)
    assert_array_equal(y, range(8))
    X, y = route_of("coil-5").read(tmp_path / "file.mat")
    assert_array_equal(X, fea[:5])
    assert_array_equal(y, range(5))


def test_coil_from_its_images(tmp_path):
    rng = np.random.default_rng(0)
    colours = [rng.integers(0, 256, (128, 128, 3), np.uint8) for _ in range(72)]
    images = {f"obj1__{5 * view}.png": pixels for view, pixels in enumerate(colours)}
    (tmp_path / "file").write_bytes(coil_archive({**images, "obj2__0.png": colours[0]}))
    X, y = readers.read_coil(tmp_path / "file", n_objects=1)
    assert X.shape == (72, 1024)
    assert_array_equal(y, np.zeros(72))
    red, green, blue = colours[3][3 + 4 * 7, 4 * 2].astype(float)  # row 7, column 2 of the small image
    assert X[3].reshape(32, 32).T[7, 2] == round(0.298936 * red + 0.587043 * green + 0.114021 * blue)


ARFF = """% a remark
@RELATION OVA_Colon

@ATTRIBUTE 1007_s_at REAL
@attribute 'AFFX-b c' numeric
@ATTRIBUTE ID_REF\tREAL
@ATTRIBUTE Tissue {Colon,Other}
@DATA
1.5,2,3e2,Other
% another

-4,5.25,6,'Colon'
"""


def test_arff(tmp_path):
    (tmp_path / "file.arff").write_text(ARFF)
    X, y = route_of("ova-colon").read(tmp_path / "file.arff")
    assert_array_equal(X, [[1.5, 2], [-4, 5.25]])
    assert_array_equal(y, [1, 0])


def test_arff_without_names_of_rows(tmp_path):
    text = ARFF.replace("@ATTRIBUTE ID_REF\tREAL\n", "").replace("3e2,", "").replace(",6,", ",")
    (tmp_path / "file.arff").write_text(text)
    assert_array_equal(route_of("ova-colon").read(tmp_path / "file.arff")[0], [[1.5, 2], [-4, 5.25]])


@pytest.mark.parametrize(("old", "new"), [("Tissue", "Organ"), ("-4,", "?,"), ("@DATA", "@ATTRIBUTE a REAL")])
def test_damaged_arff(old, new, tmp_path):
    (tmp_path / "file.arff").write_text(ARFF.replace(old, new))
    entry = dataclasses.replace(entry_of("ova-colon"), raw_shape=(2, 2))
    with pytest.raises(DatasetError):
        _read_verified(entry, tmp_path / "file.arff", entry.routes[0].read)


def test_another_number_of_classes_is_refused(tmp_path):
    entry = dataclasses.replace(entry_of("ova-colon"), raw_shape=(4, 2))
    np.savez(tmp_path / "ova-colon.npz", X=np.ones((4, 2)), y=[0, 1, 2, 1])
    with pytest.raises(DatasetError, match="labels are of 3 classes where ova-colon has 2"):
        _read_verified(entry, tmp_path / "ova-colon.npz", _fetch.read_table)


def documents():
    """Return small documents of two groups, in no order; their numbers sort otherwise than their names."""
    rng = np.random.default_rng(0)
    words = np.array(["apple", "pear", "the", "x25", "caf\xe9", "plum", "fig", "quince"])
    texts = {}
    for group in ("sci.space", "alt.atheism"):
        for number in (2000, 9, 100, 11, 10):
            chosen = rng.choice(words, 4)
            texts[f"20news-bydate-test/{group}/{number}"] = f"Subject: {' '.join(chosen)}\n"
            texts[f"20news-bydate-train/{group}/{number}"] = "training only\n"
    return texts


def test_news_from_texts_and_from_counts_agree(tmp_path, monkeypatch):
    from sklearn.feature_extraction.text import CountVectorizer

    monkeypatch.setattr("smrmf.datasets._readers.DOCUMENTS_PER_CLASS", 3)
    texts = documents()
    (tmp_path / "news.tar.gz").write_bytes(news_archive(texts))
    X, y = read_news_archive(tmp_path / "news.tar.gz")

    def place(name):
        split, group, number = name.split("/")
        return split.endswith("test"), group, int(number)

    ordered = sorted(texts, key=place)
    vectorizer = CountVectorizer()
    counts = vectorizer.fit_transform([texts[name] for name in ordered]).astype(np.uint16)
    folder = tmp_path / "20-news"
    folder.mkdir()
    sp.save_npz(folder / "counts.npz", counts)
    np.save(folder / "labels.npy", [int(place(name)[1] == "sci.space") for name in ordered])
    np.save(folder / "split.npy", np.array([place(name)[0] for name in ordered], dtype=np.uint8))
    (folder / "vocab.txt").write_text("\n".join(vectorizer.get_feature_names_out()) + "\n", encoding="utf8")
    from_counts, classes = read_news_folder(folder)
    assert_array_equal(from_counts.toarray(), X.toarray())
    assert_array_equal(classes, y)
    assert_array_equal(y, [0, 0, 0, 1, 1, 1])
    assert _fetch.fingerprint(X, y) == _fetch.fingerprint(from_counts, classes)
    assert (X.toarray().astype(bool).mean(axis=0) <= 0.5).all()
    assert sp.issparse(weigh_words(X))


def test_news_are_those_of_scikit_learn(tmp_path, monkeypatch):
    """Its fetcher reads the same documents from a cache of its own, in another order."""
    from sklearn.datasets import fetch_20newsgroups, load_files
    from sklearn.feature_extraction.text import CountVectorizer

    monkeypatch.setattr("smrmf.datasets._readers.DOCUMENTS_PER_CLASS", 3)
    texts = documents()
    (tmp_path / "news.tar.gz").write_bytes(news_archive(texts))
    X, y = readers.read_news_archive(tmp_path / "news.tar.gz")

    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="latin-1")
    cache = {
        part: load_files(tmp_path / f"20news-bydate-{part}", encoding="latin1") for part in ("train", "test")
    }
    name_of_cache = "20news-bydate_py3.pkz"
    (tmp_path / name_of_cache).write_bytes(zlib.compress(pickle.dumps(cache)))
    news = fetch_20newsgroups(data_home=tmp_path, subset="test", shuffle=False, download_if_missing=False)
    numbers = [int(Path(name).name) for name in news.filenames]
    order = np.lexsort((numbers, news.target))
    rows = [row for label in (0, 1) for row in order[news.target[order] == label][:3]]
    vectorizer = CountVectorizer()
    counts = sp.csr_array(vectorizer.fit_transform([news.data[row] for row in rows]))
    expected = readers.choose_words(counts, vectorizer.get_feature_names_out())
    assert expected.shape[1] > 1
    assert_array_equal(X.toarray(), expected.toarray())
    assert_array_equal(y, news.target[rows])


def test_fingerprints_depend_on_values_only():
    X, y = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([0, 1])
    same = _fetch.fingerprint(X, y)
    assert _fetch.fingerprint(np.asfortranarray(X.astype(np.uint8)), y.astype(np.int8)) == same
    assert _fetch.fingerprint(np.array([[-0.0, 1.0], [2.0, 3.0]], dtype=">f8"), y) == same
    others = [(X.reshape(1, 4), y), (X + 1e-12, y), (X, y[::-1]), (X[::-1], y), (sp.csr_array(X), y)]
    assert len({same, *(_fetch.fingerprint(*other) for other in others)}) == 6


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_tables_survive_a_file(kind, tmp_path):
    X, y = kind(np.array([[0.0, 1.5], [2.0, 0.0]])), np.array([1, 0])
    _fetch.write_table(tmp_path / "table.npz", X, y)
    found, classes = _fetch.read_table(tmp_path / "table.npz")
    assert type(found) is type(X)
    assert _fetch.fingerprint(found, classes) == _fetch.fingerprint(X, y)


def test_files_that_would_run_code_are_not_opened(tmp_path):
    buffer = io.BytesIO()
    np.savez(buffer, X=np.array([{}], dtype=object), y=np.array([0]))
    (tmp_path / "table.npz").write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match="allow_pickle"):
        _fetch.read_table(tmp_path / "table.npz")


# Small files that would fill the memory; with a lower limit the tests need little of it themselves.

LIMIT = 2**18
HUGE = 2**20


def npz_of(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def npz_with_a_header_that_lies():
    """Return a table whose X is said to have far more entries than follow."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10)}
    )
    return zip_of({"X.npy": header.getvalue(), "y.npy": header.getvalue()})


def mat_of(**arrays):
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, arrays, do_compression=True)
    return buffer.getvalue()


BOMBS = {
    "a zip": ("ionosphere", "ionosphere.zip", zip_of({"ionosphere.data": b"0" * HUGE})),
    "a .Z file": ("ionosphere", "ionosphere.zip", zip_of({"ionosphere.data.Z": compress(b"0" * HUGE)})),
    "a .Z file with clearings": (
        "ionosphere",
        "ionosphere.zip",
        zip_of({"ionosphere.data.Z": compress(PACKED * 8, 10, True)}),
    ),
    "a plain file": ("ionosphere", "ionosphere.zip", b"0" * HUGE),
    "a table": ("wave", "wave.npz", npz_of(X=np.zeros(HUGE // 8), y=[0])),
    "a table that lies": ("wave", "wave.npz", npz_with_a_header_that_lies()),
    "a MATLAB file": ("orl", "ORL_64x64.mat", mat_of(fea=np.zeros((HUGE // 8, 1)), gnd=[1])),
    "images": ("coil-5", "coil-100.zip", zip_of({"obj1__0.png": b"0" * HUGE})),
    "texts": (
        "20-news",
        "20news-bydate.tar.gz",
        news_archive({"20news-bydate-test/a/1": "0" * HUGE}),
    ),
    "texts that are not read": (
        "20-news",
        "20news-bydate.tar.gz",
        news_archive({"20news-bydate-train/a/1": "0" * HUGE}),
    ),
}


@pytest.mark.parametrize(("name", "file", "content"), BOMBS.values(), ids=BOMBS)
def test_what_would_be_too_large_unpacked_is_refused(name, file, content, tmp_path, monkeypatch):
    monkeypatch.setattr("smrmf.datasets._unpack.LARGEST_UNPACKED", LIMIT)
    monkeypatch.setenv("SMRMF_CACHE", str(tmp_path / "cache"))
    (tmp_path / file).write_bytes(content)
    for module in ("PIL.Image", "sklearn.feature_extraction.text", "unlzw3"):
        import_module(module)  # what readers import is not what is measured
    tracemalloc.start()
    with pytest.raises(DatasetError) as raised:
        load(name, data_home=tmp_path, download=False)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    sentence = str(raised.value)
    assert sentence.startswith(str(tmp_path / file))
    assert re.search(r"[\d,]+ MiB or more unpacked, above the limit of 0 MiB", sentence)
    assert sentence.endswith("remove it.")
    assert peak < len(content) + 3 * HUGE


def test_a_folder_of_counts_that_is_too_large_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "20-news"
    folder.mkdir()
    (folder / "counts.npz").write_bytes(npz_of(data=np.zeros(HUGE // 8)))
    monkeypatch.setattr("smrmf.datasets._unpack.LARGEST_UNPACKED", LIMIT)
    with pytest.raises(ValueError, match=r"counts.npz has 1 MiB or more unpacked"):
        read_news_folder(folder)
    sp.save_npz(folder / "counts.npz", sp.csr_array((2, 2)))
    np.save(folder / "labels.npy", np.zeros(HUGE))
    with pytest.raises(ValueError, match=r"labels.npy has 8 MiB or more unpacked"):
        read_news_folder(folder)


def test_no_more_is_unpacked_than_a_header_of_an_archive_says(tmp_path):
    packed = bytearray(zip_of({"ionosphere.data": b"0" * HUGE}))
    place = packed.index(b"PK\x01\x02") + 24  # the unpacked size in the directory of the archive
    packed[place : place + 4] = (10).to_bytes(4, "little")
    (tmp_path / "file").write_bytes(packed)
    with pytest.raises(zipfile.BadZipFile, match="CRC"):
        readers.read_member(tmp_path / "file", "ionosphere.data")


@pytest.mark.parametrize("limit", [10, 12, 16])
@pytest.mark.parametrize("clear", [False, True])
def test_sizes_of_packed_files_are_counted_exactly(limit, clear, monkeypatch):
    for content in (PACKED, b"ab" * 30000, b"x"):
        packed = compress(content, limit, clear)
        monkeypatch.setattr("smrmf.datasets._unpack.LARGEST_UNPACKED", len(content))
        check_lzw(packed, "it")
        monkeypatch.setattr("smrmf.datasets._unpack.LARGEST_UNPACKED", len(content) - 1)
        with pytest.raises(ValueError, match="it has"):
            check_lzw(packed, "it")
