"""Records that are damaged or foreign count as absent: they are named, and their runs are done again."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moons_plan import GOOD, results
from rich.console import Console

from smrmf_reproduce.command import Request, describe, reproduce
from smrmf_reproduce.run.measure import Worker, failed
from smrmf_reproduce.run.plan import Plan
from smrmf_reproduce.run.progress import Forecast, clock
from smrmf_reproduce.run.session import Session
from smrmf_reproduce.run.store import FIELDS, Store, busy_seconds

pytestmark = pytest.mark.slow

# An accuracy that no run has.
MADE_UP = 0.123


@pytest.fixture(scope="module")
def whole(plan, tmp_path_factory):
    """A folder with a record of every run."""
    folder = tmp_path_factory.mktemp("whole")
    done = {"status": "done", "error": None, "seconds": 1.0, "spent": 1.0, "accuracy": MADE_UP}
    for run in Plan.read(plan).select(GOOD):
        Store(folder).save(failed(run, "") | done)
    return folder


def without(record, name):
    return {field: value for field, value in record.items() if field != name}


# Every way to spoil a record, as a function of it that returns what is on disk.
DAMAGE = {
    "empty": lambda record: "",
    "blank": lambda record: "\n",
    "truncated": lambda record: json.dumps(record)[:-40],
    "doubled": lambda record: json.dumps(record) * 2,
    "zeros": lambda record: "\0" * 900,
    "not text": lambda record: b"\x80\xff\xfe\x00garbage",
    "too deep": lambda record: "[" * 200_000,
    "too long a number": lambda record: json.dumps(record).replace('"seed": ', '"seed": ' + "1" * 5000),
    "list": lambda record: json.dumps([record]),
    "null": lambda record: "null",
    "number": lambda record: "7",
    "no fields": lambda record: "{}",
    "another key": lambda record: json.dumps(record | {"key": "0" * 20}),
    "status 7": lambda record: json.dumps(record | {"status": 7}),
    "status unknown": lambda record: json.dumps(record | {"status": "finished"}),
    "done in no time": lambda record: json.dumps(record | {"spent": None}),
    "endless": lambda record: json.dumps(record | {"spent": float("inf")}),
    "no date": lambda record: json.dumps(record | {"started": "yesterday"}),
    "words for a history": lambda record: json.dumps(record | {"history": ["low", "lower"]}),
    "words for neighborhoods": lambda record: json.dumps(record | {"neighborhoods": {"selected": "few"}}),
    "half a picture": lambda record: json.dumps(record | {"picture": {"points": [[0.0, 0.0]]}}),
}


def spoil(folder, copy, damages):
    """Copy the records with one damage each, as many as there are; return the damaged files."""
    store = Store(copy)
    paths = sorted((folder / "runs").iterdir())
    assert len(paths) >= len(damages)
    for number, path in enumerate(paths):
        content = path.read_bytes()
        if number < len(damages):
            content = damages[number](json.loads(content))
        (store.results / path.name).write_bytes(content.encode() if isinstance(content, str) else content)
    return [store.results / path.name for path in paths[: len(damages)]]


def assert_each_is_named_in_one_line(said, damaged):
    for path in damaged:
        assert len([line for line in said.splitlines() if str(path) in line]) == 1, path


def test_the_list_and_the_page_leave_out_what_is_damaged_and_a_new_start_does_it_again(plan, whole, tmp_path):
    damaged = spoil(whole, tmp_path, list(DAMAGE.values())[3:])
    left = len(results(whole)) - len(damaged)
    assert left > 0
    request = Request(methods=GOOD, output=tmp_path, plan=plan)
    text = io.StringIO()
    rows = describe(request, Console(file=text, width=400))
    assert sum(done for *_, done, _ in rows) == left
    assert_each_is_named_in_one_line(text.getvalue(), damaged)

    text = io.StringIO()
    assert reproduce(request, Console(file=text, width=400), page_only=True)
    assert f"{left} of {len(results(whole))} runs have a record, 0 failed" in text.getvalue()
    assert_each_is_named_in_one_line(text.getvalue(), damaged)

    text = io.StringIO()
    assert reproduce(request, Console(file=text, width=400))
    assert_each_is_named_in_one_line(text.getvalue(), damaged)
    store = Store(tmp_path)
    known = Session.open(Plan.read(plan).select(GOOD), store).known
    assert known.keys() == results(whole).keys()
    assert not store.damaged
    done_again = {key for key, record in known.items() if record["accuracy"] != MADE_UP}
    assert done_again == {path.stem for path in damaged}


@pytest.mark.parametrize("name", [*DAMAGE])
def test_every_damage_is_found(name, whole, tmp_path):
    (path,) = spoil(whole, tmp_path, [DAMAGE[name]])
    store = Store(tmp_path)
    assert store.read(path.stem) is None
    assert list(store.damaged) == [path]
    assert "\n" not in store.damaged[path]


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_that_is_missing_or_of_a_wrong_type_is_found(name, whole, tmp_path):
    store = Store(tmp_path)
    (path,) = spoil(whole, tmp_path, [lambda record: json.dumps(without(record, name))])
    assert store.read(path.stem) is None
    for value in (True, 7, 7.5, "seven", [7], {"7": None}, None):
        spoil(whole, tmp_path, [lambda record, value=value: json.dumps(record | {name: value})])
        assert store.read(path.stem) is None or type(value) in FIELDS[name]


def test_all_fields_of_a_record_are_known(plan):
    run = Plan.read(plan).select(["KMeans"])[0]
    record = Worker().measure(run)
    assert record.keys() == FIELDS.keys() | {"took"}  # which records of before may lack
    assert record["took"] > record["spent"]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(name=st.sampled_from([*sorted(FIELDS), "took"]), value=anything)
def test_what_counts_as_a_record_can_be_used_and_nothing_else_ends_in_an_error(whole, plan, name, value):
    runs = Plan.read(plan).select(GOOD)
    store = Store(whole)
    path = store.results / f"{runs[0].key}.json"
    content = path.read_bytes()
    try:
        path.write_text(json.dumps(json.loads(content) | {name: value}))
        session = Session.open(runs[:1], store)
        for record in session.records():
            clock(busy_seconds([record]))
            Forecast([record], {})(runs[0])
            assert record["status"] == "failed" or clock(record["spent"])
    finally:
        path.write_bytes(content)
