"""The runner: results survive whatever happens to it, and failures never pass for results."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import threading
from dataclasses import replace

import pytest
from loky.process_executor import ProcessPoolExecutor, TerminatedWorkerError
from moons_plan import GOOD, carry_out, results, start, told, wait_for_records

from smrmf_reproduce.run.plan import Plan
from smrmf_reproduce.run.runner import KILLED, batches, ended_by
from smrmf_reproduce.run.store import Store, busy_seconds, sole_use, write_atomically

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def undisturbed(plan, tmp_path_factory):
    """Results of a run from beginning to end, in this process's own workers."""
    folder = tmp_path_factory.mktemp("undisturbed")
    runs = Plan.read(plan).select(GOOD)
    _, finished = carry_out(runs, folder, jobs=2)
    assert sorted(finished) == sorted(run.key for run in runs)  # each is told of once
    assert len(results(folder)) == 21
    return results(folder)


@pytest.mark.parametrize(
    ("end", "jobs"),
    [(signal.SIGKILL, "1"), (signal.SIGINT, "2")],
    ids=["kill -9, one job", "Ctrl-C, two jobs"],
)
def test_a_stopped_evaluation_goes_on_and_ends_with_the_same_results(plan, undisturbed, tmp_path, end, jobs):
    with start(plan, tmp_path, "--jobs", jobs) as process:
        wait_for_records(tmp_path, 3, process)
        os.killpg(process.pid, end)
        said = told(process)
    kept = {path: path.read_bytes() for path in (tmp_path / "runs").glob("*.json")}
    assert len(kept) >= 3
    assert len(kept) < len(undisturbed)
    if end == signal.SIGINT:
        assert "goes on from here" in said
        assert "Traceback" not in said
        assert "Process" not in said
    with start(plan, tmp_path, "--jobs", "1") as again:
        assert f"{len(kept)} of them done before" in told(again)
    assert again.returncode == 0
    assert {path: path.read_bytes() for path in kept} == kept
    assert results(tmp_path) == undisturbed
    assert not list((tmp_path / "running").iterdir())
    assert (tmp_path / "index.html").is_file()


def test_a_main_process_killed_alone_leaves_nothing_that_harms_the_next(plan, undisturbed, tmp_path):
    with start(plan, tmp_path) as process:
        wait_for_records(tmp_path, 3, process)
        process.kill()
        with start(plan, tmp_path) as again:  # at once, while the workers of the first may still be there
            told(again)
    assert again.returncode == 0
    assert results(tmp_path) == undisturbed


def test_a_second_command_in_the_same_folder_is_refused_and_does_no_harm(plan, tmp_path):
    store = Store(tmp_path)
    store.begin(Plan.read(plan).select(GOOD)[0])
    with sole_use(tmp_path), start(plan, tmp_path) as process:
        said = told(process)
    assert f"Another command is at work in {tmp_path}" in " ".join(said.split())
    assert "Traceback" not in said
    assert len(store.under_way()) == 1
    assert not list(store.results.iterdir())


def test_a_drive_without_locks_is_no_obstacle(plan, tmp_path, monkeypatch):
    def no_locks(handle, operation):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    carry_out(Plan.read(plan).select(["KMeans"]), tmp_path)
    assert len(results(tmp_path)) == 3


class Killer(threading.Thread):
    """Kill the process of a run, as the system does when memory runs out, up to ``times`` times."""

    def __init__(self, store, key, times):
        super().__init__(daemon=True)
        self.store, self.key, self.times, self.killed = store, key, times, []
        self.finished = threading.Event()

    def run(self):
        while len(self.killed) < self.times and not self.finished.wait(0.005):
            mark = self.store.under_way().get(self.key)
            if mark and mark.process not in self.killed:
                os.kill(mark.process, signal.SIGKILL)
                self.killed.append(mark.process)


@pytest.mark.parametrize(("times", "jobs"), [(1, 1), (2, 2)])
def test_a_killed_worker_costs_at_most_its_own_run(plan, undisturbed, tmp_path, times, jobs):
    runs, store = Plan.read(plan).select(GOOD), Store(tmp_path)
    short = next(run for run in runs if run.params.get("manifold_weight") == 0.01)
    # So long that the killer finds it under way, however busy the machine is.
    victim = replace(short, settings=short.settings | {"tol": 0.0, "max_iter": 2000})
    runs[runs.index(short)] = victim
    others = {key: result for key, result in undisturbed.items() if key != short.key}
    killer = Killer(store, victim.key, times)
    killer.start()
    session, finished = carry_out(runs, tmp_path, jobs)
    killer.finished.set()
    killer.join()
    assert sorted(finished) == sorted(run.key for run in runs)
    assert len(killer.killed) == times
    record = session.known[victim.key]
    assert record == store.read(victim.key)
    if times == 2:  # also when it had the machine to itself
        assert (record["status"], record["error"]) == ("failed", KILLED)
        assert record["accuracy"] is None
        assert results(tmp_path) == others
        assert carry_out(runs, tmp_path, jobs)[1] == [victim.key]
    found = results(tmp_path)
    assert found.pop(victim.key)["n_iter"] == 2000
    assert found == others


def test_a_worker_that_dies_alone_after_saving_has_done_its_run(plan, tmp_path):
    run = replace(
        Plan.read(plan).select(["KMeans"])[0],
        estimator="odd_estimators:DiesAfterSaving",
        settings={"settings": "default", "note": str(tmp_path / "has_died")},
    )
    session, finished = carry_out([run], tmp_path)
    assert finished == [run.key]
    assert (tmp_path / "has_died").exists()
    record = session.known[run.key]
    assert (record["status"], record["error"]) == ("done", None)
    assert Store(tmp_path).read(run.key) == record
    assert not list((tmp_path / "running").iterdir())


def test_a_full_disk_ends_it_with_one_sentence_and_loses_nothing(plan, undisturbed, tmp_path):
    def no_room():  # files may not grow beyond some hundred bytes: writing a record fails as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (400, resource.RLIM_INFINITY))

    # Kernels are cached, by the undisturbed run; for what a full disk does to them see test_numba.
    with start(plan, tmp_path, preexec_fn=no_room) as process:
        said = told(process)
    assert process.returncode == 2
    assert "smrmf reproduce: " in said
    assert "Traceback" not in said
    assert not list((tmp_path / "runs").iterdir())
    with start(plan, tmp_path, "--jobs", "1") as again:
        told(again)
    assert results(tmp_path) == undisturbed


def test_a_run_that_raises_is_recorded_as_failed_and_tried_again(plan, tmp_path):
    runs = Plan.read(plan).select(["GNMF", "KMeans"])
    started = set()
    for expected in (4, 1):
        session, finished = carry_out(runs, tmp_path)
        assert len(finished) == expected
        (pending,) = session.pending()
        assert pending.method == "GNMF"
        (record,) = (r for r in session.records() if r["status"] == "failed")
        assert "manifold_weight=-1.0" in record["error"]
        assert all(record[name] is None for name in ("accuracy", "nmi_max", "seconds", "objective"))
        started.add(record["started"])
    assert len(started) == 2


def test_batches_hold_one_method_on_one_data_set_and_every_run_once():
    runs = Plan.read().select(data=["sonar", "2d-moons"])
    cut = list(batches(runs))
    assert [run for batch in cut for run in batch] == runs
    assert all(len({(run.data, run.method) for run in batch}) == 1 for batch in cut)
    assert max(map(len, cut)) <= 8


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "record.json"
    write_atomically(path, b"old")

    with pytest.raises(TypeError):
        write_atomically(path, object())  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


def test_the_total_time_counts_every_moment_once():
    def record(start, length, **more):
        return {"started": f"2026-01-01T00:00:{start:02d}+00:00", "spent": length} | more

    assert busy_seconds([record(0, 10), record(5, 10), record(30, 5)]) == pytest.approx(20)
    assert busy_seconds([record(0, 10), record(2, 3)]) == pytest.approx(10)
    assert busy_seconds([record(0, None)]) == 0
    assert busy_seconds([record(0, 10, took=12), record(11, 3)]) == pytest.approx(14)  # loading counts too
    assert busy_seconds([]) == 0


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), KILLED),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "the process ended with SIGSEGV(-11)"),
        (lambda: os._exit(3), "the process ended with EXIT(3)"),
    ],
    ids=["kill", "segfault", "exit"],
)
def test_the_end_of_a_process_is_told_in_words(end, words):
    with ProcessPoolExecutor(1) as workers, pytest.raises(TerminatedWorkerError) as caught:
        workers.submit(end).result()
    assert ended_by(caught.value) == words
