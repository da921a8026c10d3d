"""Model files: the same model to the last bit, and no harm from any file."""

from __future__ import annotations

import inspect
import io
import json
import os
import pickle
import sys
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import numpy as np
import pytest
import scipy.sparse as sp
from many_points import overlapping
from sklearn import decomposition, impute, preprocessing
from sklearn.base import BaseEstimator
from sklearn.callback import ProgressBar
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline

import smrmf
from smrmf.persistence import ModelFileError, _checks

POINTS, _ = make_blobs(60, 5, centers=3, cluster_std=0.8, random_state=3)
NEW = POINTS[:20] + 0.3
PUBLIC = {name: getattr(smrmf, name) for name in smrmf.__all__}
ESTIMATORS = {
    name: kind for name, kind in PUBLIC.items() if inspect.isclass(kind) and issubclass(kind, BaseEstimator)
}


def suited(model, X):
    return abs(X) if isinstance(model, smrmf.GNMF | smrmf.NMFClustering) else X


def quick(name, **parameters):
    """Return an estimator that is soon done, and whose results need not be good."""
    model = ESTIMATORS[name]()
    own = model.get_params(deep=False)
    soon = {"max_iter": 3, "tol": 0, "random_state": 0} if name != "DS3" else {}
    if own.get("init") == "spectral":
        soon["init"] = "kmeans"
    wanted = {"n_clusters": 3} | soon | parameters
    return model.set_params(**{key: value for key, value in wanted.items() if key in own})


def fitted(**parameters):
    return quick("RMNMF", **parameters).fit(POINTS)


def again(model, tmp_path):
    return smrmf.load(smrmf.save(model, tmp_path / "model.smrmf"))


def assert_equal(one, two):
    """Check that two values are the same to the last bit, whatever they are."""
    assert type(one) is type(two)
    if isinstance(one, BaseEstimator):
        assert_equal(vars(one), vars(two))
    elif isinstance(one, np.random.RandomState):
        assert_equal(one.get_state(legacy=False), two.get_state(legacy=False))
    elif isinstance(one, dict):
        assert one.keys() == two.keys()
        for key, value in one.items():
            assert_equal(value, two[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(two)
        for parts in zip(one, two, strict=True):
            assert_equal(*parts)
    elif sp.issparse(one):
        assert one.shape == two.shape
        for part in ("data", "indices", "indptr"):
            assert_equal(getattr(one, part), getattr(two, part))
    elif isinstance(one, np.ndarray | np.generic):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)
    else:
        assert one == two


# The same model


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_every_estimator_comes_back_as_it_was(name, form, dtype, tmp_path):
    model = quick(name)
    X, new = (form(suited(model, points).astype(dtype)) for points in (POINTS, NEW))
    model.fit(X)
    same = again(model, tmp_path)
    assert_equal(model, same)
    for method in ("predict", "transform"):
        if hasattr(model, method):
            assert_equal(getattr(model, method)(new), getattr(same, method)(new))


def test_wide_sparse_points_stay_sparse(tmp_path):
    X = sp.random_array((40, 400), density=0.05, rng=np.random.default_rng(0), format="csr")
    model = quick("FastSMRMF", metric="cosine").fit(X)
    same = again(model, tmp_path)
    assert sp.issparse(same._fit_data)
    assert_equal(model, same)
    assert_equal(model.predict(X[:9]), same.predict(X[:9]))


def test_parameters_survive(tmp_path):
    model = quick("SelectiveRMNMF", selector=smrmf.KDPP(0.5), random_state=np.random.RandomState(4))
    model.set_params(init=np.eye(3)[np.arange(60) % 3]).fit(POINTS)
    same = again(model, tmp_path)
    assert_equal(model, same)
    assert isinstance(same.get_params()["selector"], smrmf.KDPP)
    # The generator goes on where it was: the next fits draw the same numbers.
    assert_equal(model.fit(POINTS).exemplar_indices_, same.fit(POINTS).exemplar_indices_)


def test_names_of_columns_survive(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(POINTS, columns=list("abcde"))
    model = quick("RMNMF").fit(frame)
    same = again(model, tmp_path)
    assert_equal(model, same)
    with pytest.raises(ValueError, match="feature names"):
        same.predict(frame.rename(columns={"a": "z"}))


def test_callbacks_are_not_saved(tmp_path):
    model = make_pipeline(preprocessing.StandardScaler(), quick("RMNMF").set_callbacks(ProgressBar()))
    model[-1].fit(POINTS)
    model[0].fit(POINTS)
    same = again(model, tmp_path)
    assert not hasattr(same[-1], "_skl_callbacks")
    assert hasattr(model[-1], "_skl_callbacks")


@pytest.mark.parametrize(
    "before",
    [
        preprocessing.StandardScaler(),
        preprocessing.MinMaxScaler(),
        preprocessing.MaxAbsScaler(),
        preprocessing.RobustScaler(),
        preprocessing.Normalizer(),
        preprocessing.PowerTransformer(),
        preprocessing.QuantileTransformer(n_quantiles=9),
        impute.SimpleImputer(),
        decomposition.PCA(3),
        decomposition.TruncatedSVD(3),
        TfidfTransformer(),
    ],
    ids=lambda step: type(step).__name__,
)
def test_a_pipeline_comes_back_as_it_was(before, tmp_path):
    model = make_pipeline(before, quick("RMNMF")).fit(abs(POINTS))
    same = again(model, tmp_path)
    assert_equal(model.predict(abs(NEW)), same.predict(abs(NEW)))
    assert_equal(model.transform(abs(NEW)), same.transform(abs(NEW)))


def test_a_file_is_hardly_larger_than_its_arrays(tmp_path):
    model = quick("NMFClustering", n_clusters=4).fit(np.random.default_rng(0).random((2000, 30)))
    arrays = sum(value.nbytes for value in vars(model).values() if isinstance(value, np.ndarray))
    assert arrays < os.path.getsize(smrmf.save(model, tmp_path / "m")) < 1.05 * arrays


def test_the_list_of_types_has_every_estimator():
    assert set(_checks.ESTIMATORS) == {f"{cls.__module__}.{cls.__name__}" for cls in ESTIMATORS.values()}


# Places


def test_an_existing_file_is_replaced_only_if_asked(tmp_path):
    path = tmp_path / "model.smrmf"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=r"model\.smrmf exists already: .*overwrite=True"):
        smrmf.save(fitted(), path)
    assert path.read_text() == "mine"
    smrmf.save(fitted(), path, overwrite=True)
    assert isinstance(smrmf.load(path), smrmf.RMNMF)


def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = smrmf.save(fitted(), tmp_path / "model.smrmf")
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        smrmf.save(fitted(), path, overwrite=True)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_who_may_read_a_saved_file_is_for_the_umask_to_say(mask, mode, tmp_path):
    before = os.umask(mask)
    try:
        assert smrmf.save(fitted(), tmp_path / "m").stat().st_mode & 0o777 == mode
    finally:
        os.umask(before)


def test_pipes_are_never_replaced_and_links_stay(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.symlink(tmp_path / "pipe", tmp_path / "to pipe")
    for name in ("pipe", "to pipe"):
        with pytest.raises(FileExistsError, match="is no usual file, but a device or a pipe: give the name"):
            smrmf.save(fitted(), tmp_path / name, overwrite=True)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "model").write_text("old")
    os.symlink(tmp_path / "folder" / "model", tmp_path / "link")
    smrmf.load(smrmf.save(fitted(), tmp_path / "link", overwrite=True))
    assert (tmp_path / "link").is_symlink()
    smrmf.load(tmp_path / "folder" / "model")
    assert (tmp_path / "pipe").is_fifo()
    assert {path.name for path in tmp_path.rglob("*")} == {"pipe", "to pipe", "folder", "model", "link"}


def test_what_cannot_be_saved_is_refused(tmp_path):
    with pytest.raises(NotFittedError, match=r"This RMNMF is not fitted, .*: fit it first"):
        smrmf.save(smrmf.RMNMF(), tmp_path / "m")
    with pytest.raises(ModelFileError, match="ndarray is no estimator: give a fitted model"):
        smrmf.save(POINTS, tmp_path / "m")
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere to write m in: make it first"):
        smrmf.save(fitted(), tmp_path / "nowhere" / "m")
    model = smrmf.DS3(metric=manhattan, n_clusters=3).fit(POINTS)
    with pytest.raises(ModelFileError, match=r"This DS3 cannot be saved: it asks for '.*\.manhattan'"):
        smrmf.save(model, tmp_path / "m")
    model = fitted()
    model.own = object()
    with pytest.raises(ModelFileError, match="This RMNMF cannot be saved: "):
        smrmf.save(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_without_skops_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"Model files need skops: pip install 'smrmf\[app\]'"):
        smrmf.save(fitted(), tmp_path / "m")


def manhattan(one, two):
    return abs(one - two).sum()


# Files that are no models, or were made to do harm


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Return the parts of a saved model by name."""
    path = smrmf.save(fitted(), tmp_path_factory.mktemp("saved") / "model.smrmf")
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path, parts, compression=ZIP_STORED):
    with ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def refused(path, match):
    with pytest.raises(ModelFileError, match=match) as caught:
        smrmf.load(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    assert "\n" not in sentence
    assert sentence.endswith(".")


def with_node(parts, attribute="extra_", **node):
    """Return parts whose model has one more attribute, described by this node."""
    tree = json.loads(parts["schema.json"])
    tree["content"]["content"][attribute] = node
    text = json.loads(json.dumps(tree["content"]["key_types"]["content"][0]))
    tree["content"]["key_types"]["content"].append(text)
    return parts | {"schema.json": json.dumps(tree)}


def test_the_crafted_files_differ_from_a_good_one_in_the_harm_alone(parts, tmp_path):
    assert isinstance(smrmf.load(written(tmp_path / "m", parts)), smrmf.RMNMF)
    good = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": '"kept"'}
    assert smrmf.load(written(tmp_path / "m", with_node(parts, **good))).extra_ == "kept"


def test_no_file_and_a_folder(tmp_path):
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(FileNotFoundError, match=r"There is no file .*: give the path of one"):
            smrmf.load(path)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", pickle.dumps({"a": 1})])
def test_other_files_are_no_models(content, tmp_path):
    path = tmp_path / "m"
    path.write_bytes(content)
    refused(path, "it is no model file; give one that smrmf.save wrote")


def test_other_zip_files_are_no_models(parts, tmp_path):
    refused(written(tmp_path / "m", {"word.xml": b"<a/>"}), "it is a zip file, but no model")
    without = {name: content for name, content in parts.items() if name != "smrmf.json"}
    refused(written(tmp_path / "m", without), "it is a zip file, but no model")


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9, 0.999])
def test_a_file_without_its_end_is_refused(share, tmp_path):
    path = smrmf.save(fitted(), tmp_path / "m")
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    refused(path, "its end is missing; copy it again")


def test_a_changed_byte_is_found_or_changes_nothing(tmp_path):
    path = smrmf.save(fitted(), tmp_path / "m")
    content, good = path.read_bytes(), smrmf.load(path)
    n_found = 0
    for place in np.linspace(0, len(content) - 1, 80).astype(int):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            found = smrmf.load(path)
        except ModelFileError:
            n_found += 1
        else:
            assert_equal(found, good)
    assert n_found > 60


def test_another_schema_is_refused(parts, tmp_path):
    changed = parts | {"smrmf.json": json.dumps({"schema": 99, "smrmf": "7.0"})}
    refused(written(tmp_path / "m", changed), r"it has schema 99, .* reads schema 1; use smrmf 7\.0")


@pytest.mark.parametrize(
    "node",
    [
        {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"},
        {"__class__": "system", "__module__": "posix", "__loader__": "TypeNode"},
        {"__class__": "eval", "__module__": "builtins", "__loader__": "FunctionNode"},
        {"__class__": "Popen", "__module__": "subprocess", "__loader__": "ObjectNode", "content": None},
        {
            "__class__": "eval",
            "__module__": "builtins",
            "__loader__": "ConstructorFromReduceNode",
            "content": {
                "__class__": "tuple",
                "__module__": "builtins",
                "__loader__": "TupleNode",
                "content": [
                    {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": '"1"'}
                ],
            },
        },
        # Types that skops itself would let pass.
        {"__class__": "KMeans", "__module__": "sklearn.cluster._kmeans", "__loader__": "ObjectNode"},
        {"__class__": "exp", "__module__": "numpy", "__loader__": "FunctionNode"},
        # A type on the list, but made in another way.
        {"__class__": "str", "__module__": "builtins", "__loader__": "MethodNode", "content": {}},
    ],
    ids=lambda node: f"{node['__module__']}.{node['__class__']}-{node['__loader__']}",
)
def test_other_types_are_refused_by_name(node, parts, tmp_path, monkeypatch):
    import skops.io

    def never(*given, **options):
        raise AssertionError("the file has reached skops")

    monkeypatch.setattr(skops.io, "load", never)
    name = f"{node['__module__']}.{node['__class__']}"
    path = written(tmp_path / "m", with_node(parts, **node))
    refused(path, f"it asks for '{name}', a type that no model of smrmf needs")


@pytest.mark.parametrize("name", ["../../evil.npy", "/etc/passwd", "a/1.npy", "1.py"])
def test_strange_names_of_parts_are_refused(name, parts, tmp_path):
    refused(written(tmp_path / "m", parts | {name: b""}), "it has a part .*, which no model has")
    assert list(tmp_path.iterdir()) == [tmp_path / "m"]


def test_a_file_that_fills_the_memory_is_refused(parts, tmp_path):
    zeros = bytes(2**26 + 1)
    refused(written(tmp_path / "m", parts | {"1.npy": zeros}, ZIP_DEFLATED), "is compressed, which parts of")
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as inner:
        inner.writestr("data.npy", zeros)
    # Also under the name of an array that is not packed: NumPy looks at the content.
    for name in ("1.npz", "1.npy"):
        refused(written(tmp_path / "m", parts | {name: packed.getvalue()}), "it would unpack to .* times its")


def test_a_file_that_claims_a_huge_array_is_refused(parts, tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    name = next(name for name in parts if name.endswith(".npy"))
    refused(written(tmp_path / "m", parts | {name: header.getvalue()}), "is damaged")


def test_contents_that_would_lead_out_of_arrays_are_refused(tmp_path):
    model = fitted()
    for labels in (model.labels_[:-1], model.labels_ + 60, model.labels_ - 1, model.labels_.astype(float)):
        model.labels_ = labels
        refused(smrmf.save(model, tmp_path / "m", overwrite=True), "its labels are no")
    for points in (model._fit_data * np.nan, model._fit_data[0], model._fit_data.astype(int)):
        model = fitted()
        model._fit_data = points
        refused(smrmf.save(model, tmp_path / "m", overwrite=True), "its points are no finite numbers")
    model = fitted()
    model.affinity_.indices[0] = 10**6
    refused(smrmf.save(model, tmp_path / "m", overwrite=True), "is damaged .*indices")


@pytest.mark.parametrize(
    ("name", "wrong", "sentence"),
    [
        ("_fit_centers", lambda centers: centers[:, 1:], "the centres of its cells are no points"),
        ("_fit_centers", lambda centers: centers * np.nan, "the centres of its cells are no points"),
        ("_fit_cell_of", lambda of_point: of_point[1:], "its cells are not those of its points"),
        ("_fit_cell_of", lambda of_point: of_point.astype(float), "its cells are not those of its points"),
        ("_fit_cell_of", lambda of_point: of_point - 1, "its points lie in cells that it does not have"),
        ("_fit_cell_of", lambda of_point: of_point + 40, "its points lie in cells that it does not have"),
        ("_fit_asked", lambda n_asked: n_asked + 50, "it asks .* of 47 cells"),
    ],
)
def test_cells_that_are_not_those_of_the_points_are_refused(name, wrong, sentence, tmp_path):
    model = smrmf.FastSMRMF(3, neighbors="approximate", random_state=0).fit(overlapping(2200)[0])
    setattr(model, name, wrong(getattr(model, name)))
    refused(smrmf.save(model, tmp_path / "m"), sentence)


def test_caches_of_pickles_are_neither_saved_nor_loaded(parts, tmp_path):
    model = make_pipeline(preprocessing.StandardScaler(), quick("RMNMF")).fit(POINTS)
    model.memory = str(tmp_path / "cache")
    with pytest.raises(ModelFileError, match="This Pipeline cannot be saved: its memory is a cache"):
        smrmf.save(model, tmp_path / "m")
    word = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": '"cache"'}
    refused(written(tmp_path / "m", with_node(parts, "memory", **word)), "its memory is a cache of pickles")


def test_what_is_no_model_is_refused(parts, tmp_path):
    number = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": "1"}
    tree = json.dumps(number | {"protocol": 2})
    refused(written(tmp_path / "m", parts | {"schema.json": tree}), "it holds a int and no model")
    refused(written(tmp_path / "m", parts | {"schema.json": "[" * 10**5}), "is damaged")
