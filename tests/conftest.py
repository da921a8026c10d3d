"""Settings of all tests."""

from __future__ import annotations

import os
from pathlib import Path

import moons_plan
import pytest
from hypothesis import settings

from smrmf import datasets

# Programs, not tests: `make soak`, and one that a test starts.
collect_ignore = ["soak", "laws/forked_fits.py"]

# The same examples in every run, and no limit on the first one, which compiles the kernels.
settings.register_profile("smrmf", deadline=None, derandomize=True, max_examples=60, database=None)
settings.load_profile("smrmf")


def pytest_collection_modifyitems(config, items):
    """Skip pages whose data are not at hand, and put the tests in order."""
    texts = Path(os.environ.get("SMRMF_DATA", "nowhere")) / "20-news" / "vocab.txt"
    for item in items:
        if item.path.name == "questions_text.md" and not texts.exists():
            item.add_marker(pytest.mark.skip(reason="20-news with its vocabulary is not at hand"))
    put_in_order(config, items)


def put_in_order(config, items):
    """Let every worker begin with long tests, file by file: what is left for the end is short.

    With ``--dist worksteal`` each worker is given a consecutive part, and takes from the others when it is
    done: a long test at the end of a part would keep one worker busy while all others wait.
    """
    n_workers = getattr(config, "workerinput", {}).get("workercount", 1)
    long, short = (
        [item for item in items if bool(item.get_closest_marker("slow")) == slow] for slow in (True, False)
    )
    files = list(dict.fromkeys(item.path for item in long))
    ordered = []
    for worker in range(n_workers):
        mine = files[worker::n_workers]
        ordered += [item for item in long if item.path in mine]
        ordered += short[worker * len(short) // n_workers : (worker + 1) * len(short) // n_workers]
    items[:] = ordered


@pytest.fixture
def real_data():
    """Return a function that loads a data set of the paper, or skips the test where it is not at hand."""

    def load(name, cleaned=True):
        present = next(info.present for info in datasets.list_datasets() if info.name == name)
        if not present:
            pytest.skip(f"{name} is neither in the folder $SMRMF_DATA nor in the cache")
        return datasets.load(name, download=False, cleaned=cleaned)

    return load


@pytest.fixture(scope="session")
def plan(tmp_path_factory):
    """Return the file of a small reproduction."""
    path = tmp_path_factory.mktemp("plan") / "plan.toml"
    path.write_text(moons_plan.PLAN)
    return path
