"""The runner: results survive whatever happens to it, and failures never pass for results."""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from joblib.externals.loky.process_executor import ProcessPoolExecutor, TerminatedWorkerError
from rich.console import Console

from smrmf_reproduce.run.command import present
from smrmf_reproduce.run.measure import failed, load_points, measure
from smrmf_reproduce.run.plan import Plan, PlanError
from smrmf_reproduce.run.progress import Display, Forecast
from smrmf_reproduce.run.runner import KILLED, batches, ended_by, execute
from smrmf_reproduce.run.store import Store, busy_seconds, sole_use, write_atomically

PLAN = """
[names]
quick = ["2d-moons"]
[readings]
main = { penalty = 0.1, fill = 0.0 }
[methods.RMNMF]
estimator = "RMNMF"
readings = ["penalty", "fill"]
[methods.RMNMF.grid]
manifold_weight = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]
tol = [1e-4, 2e-4, 5e-4]
[methods.KMeans]
estimator = "KMeans"
settings = "default"
seeds = 3
[methods.GNMF]
estimator = "GNMF"
grid = { manifold_weight = [-1.0] }
[[experiments]]
name = "moons"
data = ["2d-moons"]
methods = ["RMNMF", "KMeans", "GNMF"]
[quick]
grid_points = 2
seeds = 1
"""
GOOD = ["RMNMF", "KMeans"]
COMMAND = [sys.executable, "-c", "from smrmf.cli import main; main()", "reproduce"]
RESULTS = ("accuracy", "nmi_max", "nmi_arithmetic", "objective", "n_iter", "converged", "params", "seed")


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.fixture(scope="module")
def undisturbed(plan, tmp_path_factory):
    """Results of a run from beginning to end, in this process's own workers."""
    folder = tmp_path_factory.mktemp("undisturbed")
    runs = Plan.read(plan).runs(GOOD)
    execute(runs, Store(folder), jobs=2, data_home=None, display=nullcontext())
    assert len(results(folder)) == 33
    return results(folder)


def results(folder):
    records = [json.loads(path.read_text()) for path in (folder / "runs").glob("*.json")]
    return {r["key"]: {name: r[name] for name in RESULTS} for r in records if r["status"] == "done"}


def heed_interrupts():
    """Undo what a shell does to commands in its background, where these tests may run."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(plan, folder, *more, preexec_fn=heed_interrupts, **options):
    command = [*COMMAND, "--plan", plan, "--output", folder, "--jobs", "2", "--only", ",".join(GOOD), *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, start_new_session=True, preexec_fn=preexec_fn, **pipes, **options)


def wait_for_records(folder, count, process):
    deadline = time.monotonic() + 120
    while len(list((folder / "runs").glob("*.json"))) < count:
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_until_quiet(folder):
    """Wait until no run is under way any more, nor one begins."""
    deadline = time.monotonic() + 60
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 1:
        assert time.monotonic() < deadline
        if list((folder / "running").iterdir()):
            quiet_since = time.monotonic()
        time.sleep(0.02)


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_a_stopped_evaluation_goes_on_and_ends_with_the_same_results(plan, undisturbed, tmp_path, end, jobs):
    process = start(plan, tmp_path, "--jobs", jobs)
    wait_for_records(tmp_path, 3, process)
    os.killpg(process.pid, end)
    said = process.communicate(timeout=60)[0]
    kept = {path: path.read_bytes() for path in (tmp_path / "runs").glob("*.json")}
    assert len(kept) >= 3
    assert len(kept) < len(undisturbed)
    if end == signal.SIGINT:
        assert "goes on from here" in said
        assert "Traceback" not in said
        assert "Process" not in said
    again = start(plan, tmp_path)
    assert f"{len(kept)} of them done before" in again.communicate(timeout=120)[0]
    assert again.returncode == 0
    assert {path: path.read_bytes() for path in kept} == kept
    assert results(tmp_path) == undisturbed
    assert not list((tmp_path / "running").iterdir())
    assert (tmp_path / "index.html").is_file()


def test_a_main_process_killed_alone_leaves_nothing_that_harms_the_next(plan, undisturbed, tmp_path):
    process = start(plan, tmp_path)
    wait_for_records(tmp_path, 3, process)
    process.kill()  # its workers end the run they are at
    process.wait(timeout=60)
    at_the_end = len(results(tmp_path))
    wait_until_quiet(tmp_path)
    assert len(results(tmp_path)) <= at_the_end + 2
    again = start(plan, tmp_path)
    again.communicate(timeout=120)
    os.killpg(process.pid, signal.SIGKILL)
    process.stdout.close()
    assert again.returncode == 0
    assert results(tmp_path) == undisturbed


def test_a_second_command_in_the_same_folder_is_refused_and_does_no_harm(plan, tmp_path):
    store = Store(tmp_path)
    store.begin(Plan.read(plan).runs(GOOD)[0])
    with sole_use(tmp_path):
        said = start(plan, tmp_path).communicate(timeout=60)[0]
    assert f"Another command is at work in {tmp_path}" in " ".join(said.split())
    assert "Traceback" not in said
    assert len(store.under_way()) == 1
    assert not store.recorded()


def test_a_drive_without_locks_is_no_obstacle(plan, tmp_path, monkeypatch):
    def no_locks(handle, operation):
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    runs = Plan.read(plan).runs(["KMeans"])
    execute(runs, Store(tmp_path), jobs=1, data_home=None, display=nullcontext())
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


@pytest.mark.parametrize(("times", "jobs"), [(1, 2), (2, 2), (2, 1)])
def test_a_killed_worker_costs_at_most_its_own_run(plan, undisturbed, tmp_path, times, jobs):
    runs, store = Plan.read(plan).runs(GOOD), Store(tmp_path)
    victim = next(run for run in runs if run.params.get("manifold_weight") == 0.01)
    killer = Killer(store, victim.key, times)
    killer.start()
    execute(runs, store, jobs=jobs, data_home=None, display=nullcontext())
    killer.finished.set()
    killer.join()
    assert len(killer.killed) == times
    record = store.read(victim.key)
    if times == 2:  # also when it had the machine to itself
        assert (record["status"], record["error"]) == ("failed", KILLED)
        assert record["accuracy"] is None
        assert results(tmp_path) == {k: v for k, v in undisturbed.items() if k != victim.key}
        execute(runs, store, jobs=jobs, data_home=None, display=nullcontext())
    assert results(tmp_path) == undisturbed


def test_a_full_disk_ends_it_with_one_sentence_and_loses_nothing(plan, undisturbed, tmp_path):
    def no_room():  # files may not grow beyond some hundred bytes: writing a record fails as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (400, resource.RLIM_INFINITY))

    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    process = start(plan, tmp_path, preexec_fn=no_room, env=environment)
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 2
    assert "smrmf reproduce: " in said
    assert "Traceback" not in said
    assert not list((tmp_path / "runs").iterdir())
    again = start(plan, tmp_path)
    again.communicate(timeout=120)
    assert results(tmp_path) == undisturbed


def test_a_run_that_raises_is_recorded_as_failed_and_tried_again(plan, tmp_path):
    runs, store = Plan.read(plan).runs(["GNMF", "KMeans"]), Store(tmp_path)
    for _ in range(2):
        assert [run.method for run in store.pending(runs)][-1] == "GNMF"
        execute(runs, store, jobs=1, data_home=None, display=nullcontext())
        assert [record["status"] for record in store.records(runs)].count("done") == 3
    (record,) = (r for r in store.records(runs) if r["status"] == "failed")
    assert "manifold_weight=-1.0" in record["error"]
    assert all(record[name] is None for name in ("accuracy", "nmi_max", "seconds", "objective"))


def test_a_record_says_all_that_is_needed_to_judge_it(plan):
    run = Plan.read(plan).runs(["RMNMF"])[0]
    record = measure(run)
    assert record["status"] == "done"
    assert record.keys() == failed(run, "").keys()
    assert (record["n_samples"], record["n_features"], record["n_classes"]) == (500, 2, 2)
    assert record["seconds"] >= record["spent"] > 0
    assert record["peak_memory"] > 50
    assert len(record["history"]) == record["n_iter"]
    assert record["objective"] == pytest.approx(record["history"][-1], rel=1e-5)
    assert record["nmi_max"] <= record["nmi_arithmetic"] + 1e-12
    assert {"python", "smrmf", "numpy", "scipy", "scikit-learn"} <= record["versions"].keys()
    assert len(record["picture"]["points"]) == len(record["picture"]["labels"]) == 500
    json.dumps(record)


def test_shared_work_is_counted_in_full_and_changes_nothing(plan):
    first, second = Plan.read(plan).runs(["RMNMF"])[:2]
    load_points.cache_clear()  # and with the points what was shared on them
    alone = measure(second)
    assert alone["seconds"] == alone["spent"]
    measure(first)
    sharing = measure(second)
    assert sharing["seconds"] > sharing["spent"]
    for name in RESULTS:
        assert sharing[name] == alone[name]


def test_batches_hold_one_method_on_one_data_set_and_every_run_once(plan):
    runs = Plan.read().runs(data=["sonar", "2d-moons"])
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
    def record(start, length):
        return {"started": f"2026-01-01T00:00:{start:02d}+00:00", "spent": length}

    assert busy_seconds([record(0, 10), record(5, 10), record(30, 5)]) == pytest.approx(20)
    assert busy_seconds([record(0, 10), record(2, 3)]) == pytest.approx(10)
    assert busy_seconds([record(0, None)]) == 0
    assert busy_seconds([]) == 0


@pytest.mark.parametrize("arguments", [["--list"], []])
def test_the_command_line_refuses_unknown_names_in_one_line(arguments, tmp_path):
    command = [*COMMAND, *arguments, "--only", "SMURF", "--output", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "'SMURF'" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["data", "reproduce"])
def test_a_folder_that_is_none_is_refused_in_one_line(command, tmp_path):
    words = [*COMMAND[:-1], command, "--data-home", tmp_path / "[data]"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "[data]" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_set_runs_when_its_file_is_present_and_is_left_out_when_not(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((1545, 10_935), dtype=np.float32)
    np.savez(tmp_path / "ova-colon.npz", X=X, y=np.arange(len(X)) % 2)
    runs = Plan.read().runs(data=["ova-colon", "gordon", "2d-moons"])  # gordon has no download
    kept, absent = present(runs, str(tmp_path))
    assert {run.data for run in kept} == {"ova-colon", "2d-moons"}
    assert list(absent) == ["gordon"]
    assert "gordon" in absent["gordon"]
    assert "\n" not in absent["gordon"]


def test_a_plan_with_a_set_that_does_not_exist_is_refused(plan, tmp_path):
    other = tmp_path / "plan.toml"
    other.write_text(plan.read_text().replace('data = ["2d-moons"]', 'data = ["iris"]'))
    with pytest.raises(PlanError, match=r"'iris'.*sonar"):
        present(Plan.read(other).runs(), None)


def test_what_failed_before_counts_as_to_do_until_it_is_tried_again(plan, tmp_path):
    (run,), store = Plan.read(plan).runs(["GNMF"]), Store(tmp_path)
    store.save(failed(run, "memory ran out"))
    display = Display([run], store, 1, Console(file=io.StringIO()))
    with display:
        display._learn()
        assert "0 of 1 runs" in display._line()
        store.save(failed(run, "again") | {"started": "later"})
        display._learn()
        assert "1 of 1 runs" in display._line()


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "memory ran out"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "ended with SIGSEGV"),
        (lambda: os._exit(3), "ended with EXIT(3)"),
    ],
    ids=["kill", "segfault", "exit"],
)
def test_the_end_of_a_process_is_told_in_words(end, words):
    with ProcessPoolExecutor(1) as workers, pytest.raises(TerminatedWorkerError) as caught:
        workers.submit(end).result()
    assert words in ended_by(caught.value)


def test_the_forecast_learns_from_the_same_set_first_and_scales_from_others():
    run = Plan.read().runs(methods=["RMNMF"], data=["sonar"])[0]
    forecast = Forecast([{"method": "RMNMF", "data": "2d-moons", "spent": 5.0}], None)
    assert forecast(run) == pytest.approx(5.0 * (208 / 500) ** 1.5)
    forecast.learn({"method": "RMNMF", "data": "wave", "spent": 9.0})
    assert forecast(run) == pytest.approx(14.0 / (500**1.5 + 600**1.5) * 208**1.5)
    forecast.learn({"method": "RMNMF", "data": "sonar", "spent": 2.0})
    forecast.learn({"method": "RMNMF", "data": "sonar", "spent": None})
    forecast.learn({"method": "RMNMF", "data": "sonar", "spent": 3.0})
    assert forecast(run) == pytest.approx(2.5)


def test_the_screen_shows_what_runs_and_how_much_is_left(plan, tmp_path):
    runs, store = Plan.read(plan).runs(GOOD), Store(tmp_path)
    execute(runs[-3:], store, jobs=1, data_home=None, display=nullcontext())
    store.begin(runs[0])
    text = io.StringIO()
    console = Console(file=text, width=100)
    with Display(runs, store, 2, console) as display:
        console.print(display._screen())
    assert "3 of 33 runs" in text.getvalue()
    assert "RMNMF on 2d-moons (manifold_weight=0.001, tol=0.0001)" in text.getvalue()


def test_the_list_shows_what_is_done(plan, tmp_path):
    store = Store(tmp_path)
    runs = Plan.read(plan).runs(["KMeans"])
    execute(runs[:2], store, jobs=1, data_home=None, display=nullcontext())
    command = [*COMMAND, "--list", "--plan", plan, "--output", tmp_path]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    (line,) = (line.split() for line in said.splitlines() if "KMeans" in line)
    assert line[:4] == ["2d-moons", "KMeans", "3", "2"]
    assert np.isfinite(float(line[4]))


def test_the_page_alone_can_be_written_from_what_is_done(plan, tmp_path):
    execute(
        Plan.read(plan).runs(["KMeans"])[:2], Store(tmp_path), jobs=1, data_home=None, display=nullcontext()
    )
    command = [*COMMAND, "--page-only", "--plan", plan, "--only", ",".join(GOOD), "--output", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "2 of 33 runs have a record, 0 failed" in done.stdout
    assert len(list((tmp_path / "runs").iterdir())) == 2
    assert (tmp_path / "index.html").is_file()


def shared_data():
    folder = os.environ.get("SMRMF_DATA") or Path(__file__).parents[2] / "shared" / "data"
    return Path(folder)


@pytest.mark.slow
def test_quick_runs_from_beginning_to_end(tmp_path):
    """With the data sets if they are at hand, else on the moons alone."""
    environment = os.environ | {"SMRMF_DATA": str(shared_data())} if shared_data().is_dir() else None
    sets = "sonar,2d-moons" if environment else "2d-moons"
    command = [*COMMAND, "--quick", "--data", sets, "--output", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    records = [json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*.json")]
    assert {record["status"] for record in records} == {"done"}
    page = (tmp_path / "index.html").read_text()
    assert "SMRMF" in page
    assert (tmp_path / "README.md").is_file()
    assert list((tmp_path / "tables").glob("*.csv"))
    assert list((tmp_path / "figures").glob("*.svg"))
