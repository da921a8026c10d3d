"""What callbacks are told of a fit: three stages, each with its parts, in the thread of the fit alone."""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from callbacks import Recorder, Watcher
from many_points import overlapping
from patience import patience
from sklearn.callback import ProgressBar
from sklearn.datasets import make_blobs
from sklearn.neighbors import kneighbors_graph

from smrmf import AMRMF, APMF, RMNMF, SMRMF, FastSMRMF, SelectiveRMNMF
from smrmf._estimator import StageProgress
from smrmf._parallel import SERIAL, thread_pool
from smrmf._progress import Progress
from smrmf.factorization._start import n_parts_of_start
from smrmf.sharing import shared_work
from smrmf.tasks._progress import FitTeller

pytestmark = pytest.mark.filterwarnings("ignore:.*did not converge")

# Noise that no component parts, so that the start has to try all of its candidates.
X = make_blobs(600, 6, centers=4, cluster_std=4.0, random_state=0)[0]
MANY, _ = overlapping(2200)
STAGES = ["fit/search", "fit/start", "fit/loop"]
SETTINGS = {"max_iter": 5, "tol": 0, "random_state": 0, "n_jobs": 2}
METHODS = [FastSMRMF, SMRMF, RMNMF, AMRMF, APMF, SelectiveRMNMF]


def watched(model, table, **options):
    watcher = Watcher(**options)
    model.set_callbacks(watcher).fit(table)
    return watcher


def equal(one, two):
    for name, value in vars(one).items():
        if name.endswith("_") and isinstance(value, np.ndarray | float):
            np.testing.assert_array_equal(value, getattr(two, name), err_msg=name)


# The stages


@pytest.mark.parametrize("owner", METHODS)
def test_every_method_tells_of_all_parts_of_its_three_stages(owner):
    watcher = watched(owner(4, **SETTINGS), X)
    assert [path for path in watcher.begun if path.count("/") == 1] == STAGES
    assert [path for path in watcher.ended if path.count("/") == 1] == STAGES
    assert watcher.begun[0] == watcher.ended[-1] == "fit"
    assert watcher.most["fit"] == 3
    # Of 600 points in parts of at most 256; eigenvectors and four candidates of two graphs, and three more.
    parts = {"fit/search/part": 3, "fit/start/part": 13, "fit/loop/iteration": 5}
    assert watcher.counts() == Counter({"fit": 1, **dict.fromkeys(STAGES, 1), **parts})
    for path, count in parts.items():
        assert watcher.most[path.rpartition("/")[0]] == count


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("table", "settings"),
    [(MANY, {"neighbors": "approximate"}), (MANY, {"neighbors": "exact"}), (sp.csr_array(abs(X)), {})],
    ids=["approximate", "exact", "sparse"],
)
def test_callbacks_are_called_by_the_thread_of_the_fit(table, settings, n_jobs):
    watcher = watched(FastSMRMF(4, **SETTINGS | settings | {"n_jobs": n_jobs}), table)
    assert watcher.threads == {threading.get_ident()}
    assert watcher.counts()["fit/search/part"] == -(-table.shape[0] // 256)


def test_parts_are_told_while_a_search_goes_on(monkeypatch):
    # With every part about as many queries more have been answered.
    from smrmf.graph.approximate import CellSearch

    asked, seen = [], []
    ask = CellSearch._ask

    def counted(self, block, *rest):
        asked.append(len(block.own))
        return ask(self, block, *rest)

    class Counts(Watcher):
        def on_fit_task_end(self, estimator, context):
            if context.task_name == "part" and context.parent.task_name == "search":
                seen.append(sum(asked))
            return False

    monkeypatch.setattr(CellSearch, "_ask", counted)
    settings = SETTINGS | {"neighbors": "approximate", "n_jobs": 1}
    FastSMRMF(4, **settings).set_callbacks(Counts()).fit(MANY)
    steps = np.diff([seen[0], *seen])[1:]
    assert len(seen) == 9
    assert steps.min() > 50
    assert steps.max() < 500


@pytest.mark.parametrize("init", ["kmeans", "nndsvd", "array"])
def test_a_start_without_candidates_has_no_parts(init):
    first = np.eye(4)[np.arange(len(X)) % 4] if init == "array" else init
    watcher = watched(FastSMRMF(4, init=first, **SETTINGS), abs(X))
    assert watcher.most["fit/start"] == 0
    assert "fit/start/part" not in watcher.counts()


def test_neighbors_that_are_given_are_not_searched():
    given = kneighbors_graph(X, 25, mode="distance")
    watcher = watched(FastSMRMF(4, neighbors=given, **SETTINGS), X)
    assert watcher.most["fit/search"] == 0
    assert watcher.counts()["fit/start/part"] == n_parts_of_start("spectral")


def test_a_search_that_is_recalled_ends_without_parts():
    with shared_work():
        watched(FastSMRMF(4, **SETTINGS), X)
        again = watched(FastSMRMF(4, **SETTINGS), X)
    assert [path for path in again.ended if path.count("/") == 1] == STAGES
    assert "fit/search/part" not in again.counts()


def test_a_stop_is_heeded_at_iterations_only():
    model, plain = FastSMRMF(4, **SETTINGS), FastSMRMF(4, **SETTINGS).fit(X)
    watcher = watched(model, X, asks_to_stop=True)
    assert watcher.counts()["fit/loop/iteration"] == 5
    equal(model, plain)
    stopped = FastSMRMF(4, **SETTINGS).set_callbacks(Recorder(stop_after=2)).fit(X)
    assert stopped.n_iter_ == 2


# Interruptions


@pytest.mark.parametrize("how", ["exact", "approximate"])
@pytest.mark.parametrize(
    "moment",
    [
        *(("fit/search/part", 1), ("fit/search/part", 4), ("fit/search", 1)),
        *(("fit/start/part", 1), ("fit/start/part", 7), ("fit/start/part", 13), ("fit/start", 1)),
        *(("fit/loop/iteration", 1), ("fit/loop/iteration", 5), ("fit/loop", 1)),
    ],
    ids=lambda moment: f"{moment[0]}-{moment[1]}",
)
def test_an_interruption_in_any_stage_leaves_the_earlier_fit(how, moment):
    model = FastSMRMF(4, neighbors=how, **SETTINGS).fit(MANY)
    watcher = Watcher(moment)
    before = dict(vars(model.set_callbacks(watcher)))
    with pytest.raises(KeyboardInterrupt):
        model.fit(MANY + 1)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
    # It is the last of its kind, and nothing that comes later has begun.
    assert watcher.counts()[moment[0]] == moment[1]
    assert watcher.ended[-1] == moment[0]
    model.set_callbacks()
    equal(model.fit(MANY + 1), FastSMRMF(4, neighbors=how, **SETTINGS).fit(MANY + 1))


class Raises(Progress):
    """Somebody who counts steps, and interrupts after some."""

    def __init__(self, after=None):
        self.after, self.done, self.total, self.threads = after, 0, None, set()

    def steps(self, total):
        self.total = total
        return self.step

    def step(self):
        self.done += 1
        self.threads.add(threading.get_ident())
        if self.done == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_pool_tells_of_every_block_in_order(n_jobs):
    told = Raises()
    with thread_pool(n_jobs) as pool:
        assert pool.map(lambda block: block**2, range(7), told) == [b**2 for b in range(7)]
        assert (told.done, told.total) == (7, 7)
        assert pool.map(lambda block: block, [3], told) == [3]
    assert (told.done, told.total, told.threads) == (8, 1, {threading.get_ident()})


def test_blocks_that_nobody_has_begun_are_not_run_after_an_interruption():
    told, begun, go_on = Raises(after=1), [], threading.Event()

    def work(block):
        begun.append(block)
        if block > 0:  # at least one of these runs while the first is told of
            go_on.wait(patience(30))
        return block

    with thread_pool(2) as pool:
        try:
            # Kept, and with it the frames in which it was raised.
            with pytest.raises(KeyboardInterrupt) as kept:
                pool.map(work, range(50), told)
        finally:
            go_on.set()
        # The threads are at work or idle, and take no further block.
        assert pool.map(lambda block: block, range(2)) == [0, 1]
    assert kept.type is KeyboardInterrupt
    assert len(begun) <= 3
    with pytest.raises(KeyboardInterrupt):
        SERIAL.map(begun.append, range(50), Raises(after=2))
    assert len(begun) <= 5


def test_parts_and_steps_need_not_be_equally_many():
    class Context:
        max_subtasks = 4

    class Stage:
        context, ended = Context(), 0

        def stage(self, name, n_tasks):
            from contextlib import contextmanager

            @contextmanager
            def part():
                yield
                self.ended += 1

            return part()

    for total, expected in [(4, [1, 2, 3, 4]), (2, [2, 4]), (8, [0, 1, 1, 2, 2, 3, 3, 4]), (1, [4])]:
        stage, found = Stage(), []
        step = StageProgress(stage).steps(total)
        for _ in range(total):
            step()
            found.append(stage.ended)
        assert found == expected


# Those who look


def test_the_progress_bar_of_scikit_learn_has_a_bar_for_every_stage(capsys):
    FastSMRMF(4, **SETTINGS).set_callbacks(ProgressBar()).fit(X)
    lines = [line for line in capsys.readouterr().out.splitlines() if "FastSMRMF" in line]
    names = [
        "FastSMRMF - fit",
        *(f"FastSMRMF - {name} #{i}" for i, name in enumerate(("search", "start", "loop"))),
    ]
    assert [line.partition(" ━")[0].strip() for line in lines] == names
    assert all("100%" in line for line in lines)


def test_a_command_tells_of_the_stages():
    said = []
    FastSMRMF(4, **SETTINGS).set_callbacks(FitTeller(said.append)).fit(X)
    searching, starting = "searching neighbours", "looking for a start"
    assert said[:5] == [searching, *(f"{searching} {share} %" for share in (33, 67, 100)), starting]
    assert said[5:18] == [f"{starting} {100 * part / 13:.0f} %" for part in range(1, 14)]
    assert said[18:] == [f"iteration {number}" for number in range(1, 6)]
