"""Fits that were interrupted, killed or ended go on from their checkpoint, as if nothing had happened."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import scipy.sparse as sp
from add_a_variant import AgreeingAffinity, AgreeingRMNMF
from callbacks import Recorder, Watcher
from many_points import overlapping
from patience import started, wait_until
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

import smrmf
from smrmf import AMRMF, APMF, ESC, GNMF, KDPP, RMNMF, SMRMF, Checkpoint, FastSMRMF, SelectiveRMNMF
from smrmf._records import read_tree
from smrmf.factorization import _checkpoint, _fit_key
from smrmf.factorization._fit_key import described
from smrmf.factorization._loop import LoopState, Status, to_go_on
from smrmf.factorization._slots import FixedPoints, GraphTerm, RankedExemplars, Slots

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*did not converge"),
    pytest.mark.filterwarnings("ignore:.*clusters came out empty"),
]

# Noise that no component parts, so that the start has to try all of its candidates.
X = make_blobs(400, 6, centers=4, cluster_std=4.0, random_state=0)[0]
MANY, _ = overlapping(2100)
COPIES = np.vstack([np.repeat(X[:10], 30, axis=0), X])
WORDS = sp.random_array((400, 700), density=0.03, rng=np.random.default_rng(0), format="csr")
SETTINGS = {"max_iter": 8, "tol": 0, "random_state": 0, "n_jobs": 2}
FITS = {
    "FastSMRMF": (FastSMRMF(4, **SETTINGS), X),
    "FastSMRMF-approximate": (FastSMRMF(5, neighbors="approximate", **SETTINGS), MANY),
    "FastSMRMF-copies": (FastSMRMF(4, **SETTINGS), COPIES),
    "FastSMRMF-float32": (FastSMRMF(4, freeze_tol=1e-3, **SETTINGS), X.astype(np.float32)),
    "FastSMRMF-words": (FastSMRMF(4, metric="cosine", **SETTINGS), WORDS),
    "FastSMRMF-kmeans": (FastSMRMF(4, init="kmeans", dissimilarity="kernel", **SETTINGS), X),
    "SMRMF": (SMRMF(4, **SETTINGS), X),
    "SMRMF-l2": (SMRMF(4, selection="l2", exemplars=0.6, **SETTINGS), X),
    "RMNMF": (RMNMF(4, **SETTINGS), X),
    "AMRMF": (AMRMF(4, **SETTINGS), X),
    "APMF": (APMF(4, **SETTINGS), X),
    "SelectiveRMNMF": (SelectiveRMNMF(4, selector=KDPP(20), **SETTINGS), X),
    "variant of the docs": (AgreeingRMNMF(4, **SETTINGS), X),
}
MOMENTS = [
    *(("fit/search/part", 1), ("fit/search", 1), ("fit/start/part", 6), ("fit/start", 1)),
    *(("fit/loop/iteration", 1), ("fit/loop/iteration", 5), ("fit/loop/iteration", 8), ("fit/loop", 1)),
]


@pytest.fixture(autouse=True)
def written_always(monkeypatch):
    """Let a checkpoint of 0 seconds write every state, however long it takes."""
    monkeypatch.setattr(_checkpoint, "WRITING_SHARE", 0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.ckpt"


def assert_same(one: Any, two: Any) -> None:
    """Check that two values are the same to the last bit, whatever they are."""
    assert type(one) is type(two)
    if sp.issparse(one):
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(one, part), getattr(two, part))
    elif isinstance(one, np.ndarray):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)
    elif hasattr(one, "get_params"):
        fitted = {name for name in vars(one) if name.endswith("_") or name.startswith("_fit")}
        assert fitted == {name for name in vars(two) if name.endswith("_") or name.startswith("_fit")}
        for name in sorted(fitted):
            assert_same(getattr(one, name), getattr(two, name))
    else:
        assert one == two


def interrupted(model, table, path, moment, seconds=0):
    """Interrupt a fit at the k-th end of a task."""
    model = clone(model).set_callbacks(Checkpoint(path, seconds=seconds), Watcher(moment))
    with pytest.raises(KeyboardInterrupt):
        model.fit(table)


def resumed(model, table, path, **parameters):
    """Fit with a checkpoint; return the model, and how often it told of what."""
    watcher = Watcher()
    model = clone(model).set_params(**parameters).set_callbacks(Checkpoint(path, seconds=0), watcher)
    return model.fit(table), watcher.counts()


# The same result, whatever the moment


@pytest.mark.parametrize("name", FITS)
def test_a_fit_goes_on_where_it_was_interrupted(name, path):
    model, table = FITS[name]
    before = table.copy()
    expected = clone(model).fit(table)
    for moment in MOMENTS:
        if name == "FastSMRMF-kmeans" and moment[0] == "fit/start/part":
            continue
        path.unlink(missing_ok=True)
        interrupted(model, table, path, moment)
        found, counts = resumed(model, table, path, n_jobs=1)
        assert_same(expected, found)
        # What had been found was not looked for again.
        stage, count = moment
        assert ("fit/search/part" in counts) == (stage == "fit/search/part")
        early = stage in ("fit/search/part", "fit/search", "fit/start/part")
        assert ("fit/start/part" in counts) == (early and name != "FastSMRMF-kmeans")
        done = {"fit/loop": 8, "fit/loop/iteration": count}.get(stage, 0)
        assert counts["fit/loop/iteration"] == 8 - done
    assert (table != before).sum() == 0


def test_a_fit_may_be_interrupted_again_and_again(path):
    model, table = FITS["FastSMRMF-approximate"]
    expected = clone(model).fit(table)
    for moment in MOMENTS[1:5] + [("fit/loop/iteration", 2)] * 2:
        interrupted(model, table, path, moment)
    found, counts = resumed(model, table, path)
    assert_same(expected, found)
    # One before the first interruption of the loop, and twice two.
    assert counts["fit/loop/iteration"] == 3


def test_an_undisturbed_fit_with_a_checkpoint_is_the_same_and_so_is_the_next(path):
    model, table = FITS["FastSMRMF"]
    expected = clone(model).fit(table)
    assert_same(expected, resumed(model, table, path)[0])
    written = path.read_bytes()
    found, counts = resumed(model, table, path)
    assert_same(expected, found)
    assert "fit/loop/iteration" not in counts
    assert path.read_bytes() == written


KILLED = """
import sys
import numpy as np
from test_checkpoint import FITS, Checkpoint, _checkpoint
_checkpoint.WRITING_SHARE = 0
model, table = FITS[sys.argv[1]]
class Slow:
    setup = teardown = on_fit_task_begin = lambda self, estimator, context: None
    def on_fit_task_end(self, estimator, context):
        if context.task_name == "iteration" and context.task_id == 4:
            print("now", flush=True)
            sys.stdin.read()
model.set_callbacks(Checkpoint(sys.argv[2], seconds=0), Slow()).fit(table)
"""


@pytest.mark.parametrize("name", ["FastSMRMF-approximate", "SMRMF", "APMF"])
def test_a_fit_that_is_killed_in_the_loop_goes_on_in_another_process(name, path):
    command = [sys.executable, "-c", KILLED, name, str(path)]
    folders = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "docs")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with started(command, env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)}, **pipes) as process:
        assert process.stdout.readline() == "now\n"
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    model, table = FITS[name]
    found, counts = resumed(model, table, path)
    assert_same(clone(model).fit(table), found)
    assert counts["fit/loop/iteration"] == 3


ENDLESS = """
import sys
from test_checkpoint import FITS, Checkpoint, _checkpoint
_checkpoint.WRITING_SHARE = 0
model, table = FITS["SMRMF"]
model.set_params(max_iter=10**6).set_callbacks(Checkpoint(sys.argv[1], seconds=0)).fit(table)
"""


def test_a_fit_that_is_killed_while_it_writes_leaves_a_whole_file(path):
    # It does little else.
    folders = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "docs")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    for pause in (0.03, 0.11):
        with started([sys.executable, "-c", ENDLESS, str(path)], env=environment) as process:
            wait_until(path.exists)
            seen = path.stat().st_mtime_ns
            wait_until(lambda seen=seen: path.stat().st_mtime_ns != seen)
            time.sleep(pause)
            process.kill()
            process.wait()
    model, table = FITS["SMRMF"]
    reached = read_state(path).n_iter
    assert reached > 0
    found, _ = resumed(model, table, path, max_iter=reached + 2)
    assert_same(clone(model).set_params(max_iter=reached + 2).fit(table), found)


def read_state(path):
    """Return the state of the loop that a file of SMRMF has."""
    from smrmf._records import put_together, record_types
    from smrmf.factorization._row_sparse import RowSparseAffinity

    tree, arrays = read_tree(path, "loop")
    return put_together(tree, record_types([LoopState, RowSparseAffinity]), arrays, {"points": X})[1]


def test_the_files_of_killed_writers_are_removed_once_they_are_old(path):
    old, new, other = (
        path.with_name(f".{name}") for name in ("fit.ckpt.0123abcd", "fit.ckpt.0123abce", "fit.ckpt")
    )
    for each in (old, new, other):
        each.write_bytes(b"half")
    os.utime(old, (0, 0))
    os.utime(other, (0, 0))
    resumed(*FITS["RMNMF"], path)
    assert sorted(each.name for each in path.parent.iterdir()) == [other.name, new.name, path.name]


def test_states_are_written_at_most_every_so_many_seconds(path, monkeypatch):
    times = []
    write = _checkpoint.write_trees

    def counted(path, about, trees):
        times.append(list(trees))
        return write(path, about, trees)

    monkeypatch.setattr(_checkpoint, "write_trees", counted)
    model, table = FITS["FastSMRMF"]
    clone(model).set_callbacks(Checkpoint(path, seconds=3600)).fit(table)
    stages = ["search", "start", "loop"]
    assert times == [stages[:1], stages[:2], stages]
    path.unlink()
    del times[:]
    # Writing takes a tenth of the time at most.
    now = [0.0]
    monkeypatch.setattr(_checkpoint, "WRITING_SHARE", 10)
    monkeypatch.setattr(_checkpoint.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        _checkpoint, "write_trees", lambda *given: (now.__setitem__(0, now[0] + 1), counted(*given))
    )

    class Clock(Recorder):
        def on_fit_task_end(self, estimator, context):
            now[0] += 4 * (context.task_name == "iteration")

    clone(model).set_params(max_iter=12).set_callbacks(Checkpoint(path, seconds=3), Clock()).fit(table)
    # After 4 seconds and then after 10 more each, and at the end.
    assert times == [stages[:1], stages[:2]] + [stages] * 5


def test_an_interrupted_fit_leaves_the_model_as_it_was(path):
    model, table = FITS["FastSMRMF"]
    model = clone(model).fit(table)
    for moment in MOMENTS:
        path.unlink(missing_ok=True)
        model.set_callbacks(Checkpoint(path, seconds=0), Watcher(moment))
        before = dict(vars(model))
        with pytest.raises(KeyboardInterrupt):
            model.fit(table + 1)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())


# The limits of the loop


def test_a_finished_loop_goes_on_with_more_iterations(path):
    for name in ("FastSMRMF", "APMF"):
        model, table = FITS[name]
        path.unlink(missing_ok=True)
        resumed(model, table, path)
        found, counts = resumed(model, table, path, max_iter=13)
        assert counts["fit/loop/iteration"] == 5
        assert_same(clone(model).set_params(max_iter=13).fit(table), found)


def test_a_converged_loop_goes_on_with_a_smaller_tolerance(path):
    model, table = clone(FITS["FastSMRMF"][0]).set_params(max_iter=300, tol=1e-3), X
    first, _ = resumed(model, table, path)
    assert first.converged_
    found, counts = resumed(model, table, path, tol=1e-5)
    assert found.n_iter_ - first.n_iter_ == counts["fit/loop/iteration"] > 0
    expected = clone(model).set_params(tol=1e-5).fit(table)
    assert_same(expected, found)
    # And back: a run with the larger one would have ended before.
    found, counts = resumed(model, table, path, tol=1e-3)
    assert counts["fit/loop/iteration"] == first.n_iter_
    assert "fit/start/part" not in counts
    assert_same(first, found)


def test_a_loop_that_would_have_ended_before_begins_again_after_the_start(path):
    model, table = FITS["FastSMRMF"]
    resumed(model, table, path)
    found, counts = resumed(model, table, path, max_iter=5)
    assert counts["fit/loop/iteration"] == 5
    assert "fit/start/part" not in counts
    assert_same(clone(model).set_params(max_iter=5).fit(table), found)


def state_of(history, status):
    parts = dict.fromkeys(LoopState.__dataclass_fields__)
    return LoopState(**parts | {"history": history, "status": status, "n_iter": len(history)})


def test_which_states_another_loop_comes_by():
    falling = state_of([10.0, 9.0, 8.9, 7.0, 6.99], Status.OBJECTIVE)
    assert to_go_on(falling, 1e-4, 5, 1e-4) is not None
    assert to_go_on(falling, 1e-4, 4, 1e-4) is None
    # With 0.05 the third might have been the last, with 0.005 none is before the fifth.
    assert to_go_on(falling, 1e-4, 9, 0.05) is None
    assert to_go_on(falling, 1e-4, 9, 0.005).status is Status.CONVERGED
    assert to_go_on(falling, 0.05, 9, 0.05).status is Status.CONVERGED
    assert to_go_on(state_of(falling.history, Status.CONVERGED), 0.05, 9, 1e-5).status is Status.OBJECTIVE
    # That the constraints fail does not depend on the tolerance.
    for status in (Status.SPLIT, Status.RESIDUAL):
        assert to_go_on(state_of(falling.history, status), 1e-4, 9, 0.005).status is status


def test_a_stopped_loop_goes_on(path):
    model, table = FITS["FastSMRMF"]
    stopped = clone(model).set_callbacks(Checkpoint(path), Recorder(stop_after=3)).fit(table)
    assert stopped.n_iter_ == 3
    found, counts = resumed(model, table, path)
    assert counts["fit/loop/iteration"] == 5
    assert_same(clone(model).fit(table), found)


# Random numbers


def test_a_generator_goes_on_with_the_numbers_of_the_file(path):
    table = X
    generator = np.random.RandomState(3)
    expected = SelectiveRMNMF(4, selector=KDPP(20), **SETTINGS | {"random_state": generator}).fit(table)
    after = generator.randint(1000, size=5)
    for moment in MOMENTS:
        path.unlink(missing_ok=True)
        used = np.random.RandomState(3)
        model = SelectiveRMNMF(4, selector=KDPP(20), **SETTINGS | {"random_state": used})
        model.set_callbacks(Checkpoint(path, seconds=0), Watcher(moment))
        with pytest.raises(KeyboardInterrupt):
            model.fit(table)
        # In the same process, with what is left of the generator.
        model.set_callbacks(Checkpoint(path))
        if path.exists():
            assert_same(expected, model.fit(table))
            np.testing.assert_array_equal(used.randint(1000, size=5), after)


def test_without_a_seed_the_numbers_are_those_of_the_file_and_no_others_are_touched(path):
    settings = SETTINGS | {"random_state": None}
    np.random.seed(5)  # noqa: NPY002
    expected = FastSMRMF(12, **settings).fit(X)
    np.random.seed(5)  # noqa: NPY002
    interrupted(FastSMRMF(12, **settings), X, path, ("fit/start/part", 4))
    np.random.seed(6)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    found, _ = resumed(FastSMRMF(12, **settings), X, path)
    assert_same(expected, found)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


# Files of something else


def refused(model, table, path, match):
    before = path.read_bytes()
    with pytest.raises(ValueError, match=match) as error:
        clone(model).set_callbacks(Checkpoint(path)).fit(table)
    message = str(error.value)
    assert str(path) in message
    assert "\n" not in message
    assert path.read_bytes() == before


MODEL, TABLE = FITS["FastSMRMF"]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"n_clusters": 5}, "n_clusters=4, where this one has n_clusters=5"),
        ({"n_neighbors": 7}, "n_neighbors='auto', where"),
        ({"random_state": 1}, "random_state=0"),
        ({"random_state": np.random.RandomState(0)}, "random_state=0, where .*RandomState of MT19937"),
        ({"init": "kmeans"}, "init='spectral'"),
        ({"init": np.eye(4)[np.arange(len(X)) % 4]}, "init='spectral', where .*array 400x4"),
        ({"penalty_growth": 1.1}, "penalty_growth=1.05"),
        ({"neighbors": kneighbors_graph(X, 25, mode="distance")}, "neighbors='auto', where .*array 400x400"),
    ],
    ids=["clusters", "neighbours", "seed", "generator", "start", "array", "growth", "graph"],
)
def test_a_fit_with_other_parameters_is_refused(change, match, path):
    resumed(MODEL, TABLE, path)
    refused(clone(MODEL).set_params(**change), TABLE, path, f"another fit, with {match}.*remove the file")


def test_another_table_method_or_version_is_refused(path, monkeypatch):
    resumed(MODEL, TABLE, path)
    moved, rounded = TABLE.copy(), TABLE.astype(np.float32)
    moved[-1, -1] += 1e-12
    for other in (moved, rounded, TABLE[::-1], TABLE[:-1], 1e200 * TABLE, sp.csr_array(abs(TABLE))):
        refused(MODEL, other, path, "another fit, of another table: give another path, or remove the file")
    refused(RMNMF(4, **SETTINGS), TABLE, path, "another fit, of FastSMRMF: give another path")
    monkeypatch.setattr(smrmf, "__version__", "99.0")
    refused(MODEL, TABLE, path, r"another fit, by smrmf 0\.1\.0: give another path")


@pytest.mark.parametrize("piece", [1, 100, 10**6])
def test_every_entry_of_a_table_counts_in_whatever_pieces_it_is_read(piece, monkeypatch):
    whole = described("init", X)
    monkeypatch.setattr(_fit_key, "PIECE", piece)
    assert described("init", X) == described("init", np.asfortranarray(X)) == whole
    seen = {whole, described("init", X.reshape(-1, 3)), described("init", X.astype(np.float32))}
    for place in (0, 1, 1000, X.size - 1):
        changed = X.copy()
        changed.flat[place] += 1e-9
        seen.add(described("init", changed))
    assert len(seen) == 7
    words = described("init", WORDS)
    changed = WORDS.copy()
    changed.indices[-1] = (changed.indices[-1] + 1) % 700
    assert described("init", changed) != words


def test_what_is_inside_of_parameters_counts_but_not_the_number_of_threads(path):
    def fitted(selector):
        return SelectiveRMNMF(4, selector=selector, **SETTINGS).set_callbacks(Checkpoint(path)).fit(X)

    fitted(ESC(4, exemplars=20, random_state=0, n_jobs=1))
    fitted(ESC(4, exemplars=20, random_state=0, n_jobs=2))
    for other in (ESC(4, exemplars=21, random_state=0), ESC(4, exemplars=20, random_state=1), KDPP(20)):
        with pytest.raises(ValueError, match="another fit, with another selector: give"):
            fitted(other)
    path.unlink()
    fitted(KDPP(20, random_state=np.random.RandomState(0)))
    fitted(KDPP(20, random_state=np.random.RandomState(0)))
    with pytest.raises(ValueError, match="another fit, with another selector: give"):
        fitted(KDPP(20, random_state=np.random.RandomState(1)))


def test_neighbors_of_a_transformer_are_those_it_has_learned(path):
    def fitted(transformer):
        model = FastSMRMF(4, neighbors=transformer, **SETTINGS)
        return model.set_callbacks(Checkpoint(path)).fit(X)

    kind = KNeighborsTransformer(n_neighbors=25, mode="distance")
    fitted(clone(kind).fit(X))
    fitted(clone(kind).fit(X))
    with pytest.raises(ValueError, match="another fit, with another neighbors: give"):
        fitted(clone(kind).fit(X + np.eye(6)[0] * np.arange(len(X))[:, None]))


def test_a_table_with_the_same_numbers_in_another_form_is_the_same(path):
    import pandas as pd

    resumed(MODEL, TABLE, path)
    for other in (np.asfortranarray(TABLE), TABLE.tolist(), pd.DataFrame(TABLE), np.repeat(TABLE, 2, 0)[::2]):
        assert "fit/loop/iteration" not in resumed(MODEL, other, path)[1]


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.999])
def test_a_file_that_was_cut_off_is_refused(share, path):
    resumed(MODEL, TABLE, path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    refused(MODEL, TABLE, path, "is damaged, or no checkpoint: give another path, or remove the file")


def test_a_file_with_a_changed_byte_is_refused_or_the_same(path):
    expected, _ = resumed(MODEL, TABLE, path)
    content = path.read_bytes()
    said = []
    for place in np.random.default_rng(0).integers(len(content), size=40):
        path.write_bytes(content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :])
        try:
            # On a date in the archive, which nobody reads, nothing depends.
            assert_same(expected, clone(MODEL).set_callbacks(Checkpoint(path)).fit(TABLE))
        except ValueError as error:
            said.append(str(error))
    assert len(said) > 30
    assert all(str(path) in text and "is damaged" in text for text in said)


def test_files_of_others_are_refused_and_stay(path):
    np.savez(path.with_suffix(".npz"), a=X)
    path.with_suffix(".npz").rename(path)
    refused(MODEL, TABLE, path, "is damaged, or no checkpoint")
    path.write_text("n_clusters,4\n")
    refused(MODEL, TABLE, path, "is damaged, or no checkpoint")
    smrmf.save(clone(MODEL).fit(TABLE), path, overwrite=True)
    refused(MODEL, TABLE, path, "is damaged, or no checkpoint")


def test_a_file_that_names_other_classes_makes_nothing(path):
    # As somebody would write it who wants code to be run.
    resumed(MODEL, TABLE, path)
    with ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for stage, old, new in [
        ("start", "_start.FirstIndicator", "_loop.LoopState"),
        ("search", "smrmf.factorization._points.Searched", "subprocess.Popen"),
        ("loop", "smrmf.factorization._closed_form.ClosedFormState", "subprocess.Popen"),
    ]:
        changed = parts[f"{stage}.json"].decode().replace(old, new).encode()
        assert changed != parts[f"{stage}.json"]
        with ZipFile(path, "w") as archive:
            for name, content in (parts | {f"{stage}.json": changed}).items():
                archive.writestr(name, content)
        refused(MODEL, TABLE, path, "is damaged, or no checkpoint")


# Places


def test_a_place_where_nothing_can_be_written_is_refused_before_the_work(tmp_path):
    watcher = Watcher()
    for place in (tmp_path, tmp_path / "none" / "fit.ckpt", Path("/dev/null")):
        with pytest.raises(OSError, match=r"give the name of a file|make it first"):
            clone(MODEL).set_callbacks(Checkpoint(place), watcher).fit(TABLE)
    assert "fit/search" not in watcher.begun


def test_a_disk_that_is_full_costs_the_checkpoint_and_not_the_fit(path, monkeypatch):
    expected = clone(MODEL).fit(TABLE)
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)

    class Fills(Watcher):
        def on_fit_task_end(self, estimator, context):
            if context.task_name == "iteration" and context.task_id == 2:
                resource.setrlimit(resource.RLIMIT_FSIZE, (5000, usual[1]))

    model = clone(MODEL).set_callbacks(Checkpoint(path, seconds=0), Fills())
    try:
        with pytest.warns(RuntimeWarning, match="could not be written .*File too large") as said:
            model.fit(TABLE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert_same(expected, model)
    assert len([w for w in said if "could not be written" in str(w.message)]) == 1
    assert said[0].filename == __file__
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    # What was written before is still there, and good.
    found, counts = resumed(MODEL, TABLE, path)
    assert_same(expected, found)
    assert counts["fit/loop/iteration"] == 5


def test_a_folder_that_is_removed_costs_no_fit(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()

    class Removes(Watcher):
        def on_fit_task_end(self, estimator, context):
            if context.task_name == "search":
                (folder / "fit.ckpt").unlink()
                folder.rmdir()

    model = clone(MODEL).set_callbacks(Checkpoint(folder / "fit.ckpt"), Removes())
    with pytest.warns(RuntimeWarning, match="could not be written"):
        model.fit(TABLE)
    assert_same(clone(MODEL).fit(TABLE), model)


def test_only_methods_of_the_loop_write_checkpoints(path):
    with pytest.raises(ValueError, match=r"^GNMF writes no checkpoints.*leave the callback out\.$"):
        GNMF(3).set_callbacks(Checkpoint(path)).fit(abs(X))
    with pytest.raises(ValueError, match="one checkpoint"):
        clone(MODEL).set_callbacks(Checkpoint(path), Checkpoint(path)).fit(X)
    with pytest.raises(ValueError, match="seconds=-1 is not valid for Checkpoint"):
        Checkpoint(path, seconds=-1)
    assert not path.exists()


# States of other people


class Graph:
    """No record: a class with code of its own."""

    def __init__(self, weights):
        self.weights = weights


@dataclass(frozen=True)
class Weights:
    """A record in the module of the slot."""

    matrix: Any
    round: int


class KindAffinity(AgreeingAffinity):
    """The affinity of the documentation with a state of another kind."""

    def __init__(self, heat, make, take):
        super().__init__(heat)
        self.make, self.take = make, take

    def init(self, X):
        state, term = super().init(X)
        return self.make(state), term

    def update(self, state, X, G, H, lam, mu):
        state, term = super().update(self.take(state), X, G, H, lam, mu)
        return self.make(state), GraphTerm(*term)

    def representation(self, state):
        return super().representation(self.take(state))


class KindRMNMF(AgreeingRMNMF):
    kind = (lambda weights: Weights(weights, 3), lambda state: state.matrix)

    def _slots(self, problem, start):
        slots = super()._slots(problem, start)
        affinity = KindAffinity(slots.affinity.heat, *self.kind)
        return Slots(affinity, FixedPoints(), RankedExemplars("mass", problem.sizes.n_reported))


class NoRecordRMNMF(KindRMNMF):
    kind = (Graph, lambda state: state.weights)


def test_the_record_of_any_slot_can_be_written(path):
    expected = KindRMNMF(4, **SETTINGS).fit(X)
    interrupted(KindRMNMF(4, **SETTINGS), X, path, ("fit/loop/iteration", 5))
    found, counts = resumed(KindRMNMF(4, **SETTINGS), X, path)
    assert counts["fit/loop/iteration"] == 3
    assert_same(expected, found)


def test_a_state_that_is_no_record_is_refused_at_the_first_iteration(path):
    watcher = Watcher()
    model = NoRecordRMNMF(4, **SETTINGS).set_callbacks(watcher, Checkpoint(path, seconds=3600))
    with pytest.raises(
        ValueError, match=r"^The state of a slot .*test_checkpoint\.Graph.*without a checkpoint\.$"
    ):
        model.fit(X)
    assert "fit/loop/iteration" not in watcher.counts()
    NoRecordRMNMF(4, **SETTINGS).fit(X)


# Memory


def test_writing_and_reading_copy_no_large_arrays(path):
    import tracemalloc

    n = 900
    model, table = SMRMF(4, **SETTINGS | {"max_iter": 2}), make_blobs(n, 6, centers=4, random_state=0)[0]
    square = n * n * 8

    def peak(fit):
        tracemalloc.start()
        try:
            fit()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    resumed(model, table[:300], path)
    path.unlink()
    plain = peak(lambda: clone(model).fit(table))
    # A piece of an array at a time, and none of the old state beside the new one.
    assert peak(lambda: resumed(model, table, path)) < plain + square
    assert peak(lambda: resumed(model, table, path, max_iter=4)) < plain + square


def test_models_with_checkpoints_are_saved_without_them(path):
    model = clone(MODEL).set_callbacks(Checkpoint(path)).fit(TABLE)
    again = smrmf.load(smrmf.save(model, path.with_name("model")))
    assert_same(model.labels_, again.labels_)
