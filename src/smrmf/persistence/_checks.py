"""What a model file may be: the types that it may ask for, and how much it may unpack to.

A pickle runs whatever its author wrote into it. A file of skops only names types and has their contents, and
which types are made is decided here: :data:`LOADABLE` is the whole list, and nothing in a file can add to it.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import smrmf
from smrmf._arrays import all_finite

# Grows when files of before can no longer be read as they are.
SCHEMA = 1
# What a file says of itself, beside what skops writes.
ABOUT, TREE = "smrmf.json", "schema.json"
END_BYTES = 22  # of a zip file without a comment, as ours are
ARRAY_NAME = re.compile(r"\d+\.(npy|npz)")
# Arrays are stored as they are, but SciPy packs sparse ones. A file that unpacks to more than a hundred times
# its size, and to more than 64 MiB, is taken for one that was made to fill the memory; save writes none.
MOST_UNPACKED, HARMLESS_BYTES = 100, 2**26

ESTIMATORS = (
    "smrmf.factorization.amrmf.AMRMF",
    "smrmf.factorization.apmf.APMF",
    "smrmf.factorization.deep_semi_nmf.DeepSemiNMF",
    "smrmf.factorization.fast_smrmf.FastSMRMF",
    "smrmf.factorization.gnmf.GNMF",
    "smrmf.factorization.nmf.NMFClustering",
    "smrmf.factorization.rmnmf.RMNMF",
    "smrmf.factorization.selective_rmnmf.SelectiveRMNMF",
    "smrmf.factorization.smrmf.SMRMF",
    "smrmf.selection.ds3.DS3",
    "smrmf.selection.esc.ESC",
    "smrmf.selection.ipm.IPM",
    "smrmf.selection.kdpp.KDPP",
)
# What may stand before them in a pipeline.
PREPARATIONS = (
    "smrmf.tables._preparation.TablePreparation",
    "sklearn.decomposition._pca.PCA",
    "sklearn.decomposition._truncated_svd.TruncatedSVD",
    "sklearn.feature_extraction.text.TfidfTransformer",
    "sklearn.impute._base.SimpleImputer",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.MaxAbsScaler",
    "sklearn.preprocessing._data.MinMaxScaler",
    "sklearn.preprocessing._data.Normalizer",
    "sklearn.preprocessing._data.PowerTransformer",
    "sklearn.preprocessing._data.QuantileTransformer",
    "sklearn.preprocessing._data.RobustScaler",
    "sklearn.preprocessing._data.StandardScaler",
)
NUMBERS = tuple(f"numpy.{name}" for name in ("bool", "int32", "int64", "float32", "float64"))
# How skops makes a thing, and of which types it may do so. All ways that call a function are absent.
LOADABLE: dict[str, tuple[str, ...]] = {
    "ObjectNode": (*ESTIMATORS, *PREPARATIONS),
    "NdArrayNode": ("numpy.ndarray", *NUMBERS),
    "DTypeNode": ("numpy.dtype",),
    "SparseMatrixNode": (
        *("scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix"),
        *("scipy.sparse._csc.csc_array", "scipy.sparse._csc.csc_matrix"),
        *("scipy.sparse._dia.dia_array", "scipy.sparse._dia.dia_matrix"),
    ),
    "RandomStateNode": ("numpy.random.mtrand.RandomState",),
    "DictNode": ("builtins.dict",),
    "ListNode": ("builtins.list",),
    "TupleNode": ("builtins.tuple",),
    "JsonNode": ("builtins.str",),
    "TypeNode": (*(f"builtins.{name}" for name in ("str", "int", "float", "bool")), *NUMBERS),
}


class ModelFileError(ValueError):
    """A model cannot be saved, or a file is no model that can be loaded."""


def check_archive(file: Any) -> int:
    """Refuse a file, before anything is made of it, that is no model or asks for more than a model needs.

    Returns the bytes that its parts take in memory.
    """
    _check_ends(file)
    with ZipFile(file) as archive:
        if not {ABOUT, TREE} <= set(archive.namelist()):
            raise ModelFileError("it is a zip file, but no model; give one that smrmf.save wrote")
        needed = _check_members(archive)
        _check_schema(json.loads(archive.read(ABOUT)))
        for kind, loader in _asked_for(json.loads(archive.read(TREE))):
            if kind not in LOADABLE.get(loader, ()):
                raise ModelFileError(f"it asks for {kind!r:.200}, a type that no model of smrmf needs")
    return needed


def _check_ends(file: Any) -> None:
    """Refuse what is no zip file, or only the beginning of one."""
    file.seek(0)
    if file.read(2) != b"PK":
        raise ModelFileError("it is no model file; give one that smrmf.save wrote (pickles are never read)")
    # Not by zipfile, which takes the end of a packed array, somewhere in the middle, for that of the file.
    file.seek(max(file.seek(0, io.SEEK_END) - END_BYTES, 0))
    if file.read(4) != b"PK\x05\x06":
        raise ModelFileError("its end is missing; copy it again, or save the model again")


def _check_members(archive: ZipFile) -> int:
    """Refuse parts that no model has, and those that unpack to more than a model does."""
    names, parts = archive.namelist(), archive.infolist()
    for part in parts:
        if part.filename not in (ABOUT, TREE) and not ARRAY_NAME.fullmatch(part.filename):
            raise ModelFileError(f"it has a part {part.filename!r:.200}, which no model has")
        if part.compress_type != ZIP_STORED:
            raise ModelFileError(f"its part {part.filename!r} is compressed, which parts of a model are not")
    if len(set(names)) < len(names):
        raise ModelFileError("it has two parts of one name, which no model has")
    size = sum(part.compress_size for part in parts)
    total = sum(max(part.file_size, _unpacked_bytes(archive, part.filename)) for part in parts)
    if total > max(MOST_UNPACKED * size, HARMLESS_BYTES):
        raise ModelFileError(
            f"it would unpack to {total / max(size, 1):.0f} times its {size} bytes, and a model to at most "
            f"{MOST_UNPACKED} times as many"
        )
    return total


def _unpacked_bytes(archive: ZipFile, name: str) -> int:
    """Return how large a packed sparse array says it is; 0 for a part that is not packed."""
    with archive.open(name) as part:
        # By its content, as NumPy does, not by its name.
        if part.read(2) != b"PK":
            return 0
    with ZipFile(io.BytesIO(archive.read(name))) as inner:
        return sum(member.file_size for member in inner.infolist())


def _check_schema(about: dict[str, Any]) -> None:
    if about["schema"] != SCHEMA:
        raise ModelFileError(
            f"it has schema {about['schema']!s:.20}, and this version of smrmf ({smrmf.__version__}) reads "
            f"schema {SCHEMA}; use smrmf {about['smrmf']!s:.20}, which wrote it, or fit again"
        )


def _asked_for(tree: Any) -> Iterator[tuple[str, str]]:
    """Yield all types that a tree of skops names, each with how it is to be made."""
    if isinstance(tree, dict):
        if {"__class__", "__module__", "__loader__"} & tree.keys():
            yield f"{tree.get('__module__')}.{tree.get('__class__')}", str(tree.get("__loader__"))
        tree = list(tree.values())
    if isinstance(tree, list):
        for branch in tree:
            yield from _asked_for(branch)


def check_contents(model: Any) -> None:
    """Refuse contents with which compiled code, which checks no bounds, could leave its arrays."""
    if not isinstance(model, BaseEstimator):
        raise ModelFileError(f"it holds a {type(model).__name__} and no model")
    check_is_fitted(model)
    check_caches(model)
    for part in _parts(model):
        if sp.issparse(part) and part.format in ("csr", "csc"):
            part.check_format(full_check=True)
        if hasattr(part, "_fit_data"):
            _check_points(part._fit_data, part.labels_, part.embedding_)
            _check_cells(part)


def check_caches(model: BaseEstimator) -> None:
    """Refuse a pipeline that caches its steps: the cache has pickles, which the next fit would read."""
    if any(getattr(part, "memory", None) is not None for part in _parts(model)):
        raise ModelFileError("its memory is a cache of pickles, which are never read; use memory=None")


def _check_points(points: Any, labels: np.ndarray, embedding: np.ndarray) -> None:
    n = points.shape[0]
    values = points.data if sp.issparse(points) else points
    if points.ndim != 2 or points.dtype not in (np.float32, np.float64) or not all_finite(values):
        raise ModelFileError("its points are no finite numbers; save the model again")
    if labels.shape != (n,) or labels.dtype.kind != "i" or len(embedding) != n:
        raise ModelFileError("its labels are not those of its points; save the model again")
    if labels.min() < 0 or labels.max() >= n:
        raise ModelFileError("its labels are no clusters of its points; save the model again")


def _check_cells(model: Any) -> None:
    centers, of_point, data = model._fit_centers, model._fit_cell_of, model._fit_data
    if centers is None or of_point is None:
        return
    fitting = centers.ndim == 2 and centers.shape[1] == data.shape[1] and centers.dtype == data.dtype
    if not fitting or not all_finite(centers):
        raise ModelFileError("the centres of its cells are no points; save the model again")
    if of_point.shape != (len(data),) or of_point.dtype.kind != "i":
        raise ModelFileError("its cells are not those of its points; save the model again")
    if of_point.min() < 0 or of_point.max() >= len(centers):
        raise ModelFileError("its points lie in cells that it does not have; save the model again")
    if model._fit_asked not in range(len(centers) + 1):
        raise ModelFileError(
            f"it asks {model._fit_asked!s:.20} of {len(centers)} cells; save the model again"
        )


def _parts(value: Any) -> Iterator[Any]:
    """Yield a value and all that it is made of."""
    yield value
    if isinstance(value, BaseEstimator | dict):
        value = list((value if isinstance(value, dict) else vars(value)).values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _parts(part)
