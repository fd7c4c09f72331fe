"""The task store: durability, ordering, and names that belong to one client."""

from __future__ import annotations

import contextlib
import sqlite3
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import sample_reports as reports
from tilewright.errors import InfrastructureError
from tilewright.executors.scheduling import MAX_SKIPS
from tilewright.serve.dispatcher import ATTEMPTS
from tilewright.serve.store.store import Conflict, Store
from tilewright.serve.store.tables import Submitted, Task
from tilewright.serve.task_states import choose

REQUEST = reports.request().to_json().encode()


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "tasks.db")
    yield made
    made.close()


def given_of(key, client="a", **more):
    fields = {"problem": "p", "priority": 1, "submitted_at": time.time(), "request": REQUEST}
    return Submitted(key=key, client=client, **{**fields, **more})


def waits(key, client="a", problem="p", priority=1, sequence=0):
    return Task(key, client, problem, priority, 0.0, sequence=sequence)


def test_identical_work_of_two_clients_is_one_task(store):
    first = store.submit(given_of("k", "a")).result()
    again = store.submit(given_of("k", "b")).result()
    assert first == again
    assert store.owns("a", "k")
    assert store.owns("b", "k")
    assert not store.owns("c", "k")


def test_a_name_identifies_one_task_of_one_client(store):
    store.submit(given_of("k", "a", name="mine")).result()
    store.submit(given_of("k", "a", name="mine")).result()
    with pytest.raises(Conflict):
        store.submit(given_of("other", "a", name="mine")).result()
    store.submit(given_of("other", "b", name="mine")).result()
    assert store.named("a", "mine") == "k"
    assert store.named("b", "mine") == "other"
    assert store.task("other").client == "b"


def test_a_conflict_does_not_refuse_other_tasks_of_its_transaction(store):
    store.submit(given_of("k", "a", name="mine")).result()
    futures = [store.submit(given_of(f"n{n}")) for n in range(50)]
    wrong = store.submit(given_of("other", "a", name="mine"))
    futures += [store.submit(given_of(f"m{n}")) for n in range(50)]
    with pytest.raises(Conflict):
        wrong.result()
    assert len({future.result().key for future in futures}) == 100


def test_accepted_tasks_survive_a_restart_and_running_ones_are_queued_again(tmp_path):
    first = Store(tmp_path / "tasks.db")
    for number in range(3):
        first.submit(given_of(f"k{number}")).result()
    assert first.begin("k1").result()
    assert not first.begin("k1").result()
    first.begin("k2").result()
    first.finish("k2", "correct", b"report").result()
    # Killed: nothing is closed.
    second = Store(tmp_path / "tasks.db")
    assert [item.key for item in second.recover_interrupted().result()] == ["k0", "k1"]
    assert second.result("k2") == b"report"
    assert second.counts() == {"queued": 2, "done": 1}


def test_a_task_of_two_clients_ends_when_both_cancel(store):
    store.submit(given_of("k", "a")).result()
    store.submit(given_of("k", "b")).result()
    assert not store.cancel("a", "k").result()
    assert not store.owns("a", "k")
    assert store.cancel("b", "k").result()
    assert store.task("k").state == "cancelled"
    store.finish("k", "correct", b"late").result()
    assert store.task("k").state == "cancelled"
    assert store.submit(given_of("k", "a")).result().state == "queued"


def test_task_pages_are_in_order_and_per_client(store):
    for number in range(10):
        store.submit(given_of(f"k{number}", "ab"[number % 2])).result()
    first = store.page("a", None, 0, 3)
    assert [task.key for task in first] == ["k0", "k2", "k4"]
    assert [task.key for task in store.page("a", None, first[-1].sequence, 3)] == ["k6", "k8"]
    assert len(store.page(None, "queued", 0, 100)) == 10


def test_old_tasks_are_pruned_with_their_names(store):
    store.submit(given_of("k", name="mine")).result()
    store.submit(given_of("open")).result()
    store.finish("k", "correct", b"r").result()
    assert store.prune(time.time() + 1).result() == 1
    assert store.task("k") is None
    assert store.named("a", "mine") is None
    assert store.task("open") is not None


def test_a_store_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InfrastructureError, match="file"):
        Store(tmp_path / "file" / "tasks.db")


def test_the_next_task_has_the_highest_priority_then_the_longest_wait():
    waiting = {
        "a": [waits("a1", "a", sequence=1), waits("a2", "a", sequence=2)],
        "b": [waits("b1", "b", sequence=3)],
        "c": [waits("c1", "c", priority=0, sequence=0)],
    }
    assert choose(waiting, [], set()).key == "a1"
    assert choose(waiting, ["a"], set()).key == "b1"
    assert choose(waiting, ["b", "a"], set()).key == "b1"
    assert choose({**waiting, "b": []}, ["a"], set()).key == "a1"
    assert choose({}, [], set()) is None


def test_among_a_clients_tasks_a_cached_problem_is_next():
    own = [waits("a1", problem="x", sequence=1), waits("a2", problem="y", sequence=2)]
    assert choose({"a": own}, [], {"y"}).key == "a2"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.sampled_from("xyz"))))
def test_every_queued_task_is_chosen_once_in_priority_order(rows):
    waiting: dict[str, list[Task]] = {}
    for number, (client, priority, problem) in enumerate(rows):
        item = waits(str(number), client, problem, priority, number)
        waiting.setdefault(client, []).append(item)
    for own in waiting.values():
        own.sort(key=lambda item: (-item.priority, item.sequence))
    turns: list[str] = []
    served = []
    while (item := choose(waiting, turns, {"x"})) is not None:
        waiting[item.client].remove(item)
        turns = [*(name for name in turns if name != item.client), item.client]
        served.append(item)
    assert sorted(item.key for item in served) == sorted(str(n) for n in range(len(rows)))
    assert [item.priority for item in served] == sorted((i.priority for i in served), reverse=True)


def test_writes_of_one_batch_are_one_transaction(store):
    """And a bug in one piece of work ends neither the others nor the thread that writes."""
    futures = [store.submit(given_of(f"k{n}")) for n in range(20)]
    wrong = store.submit(given_of("wrong", problem="\ud800"))
    futures += [store.submit(given_of(f"m{n}")) for n in range(20)]
    with pytest.raises(InfrastructureError, match="UnicodeEncodeError"):
        wrong.result()
    assert {future.result().state for future in futures} == {"queued"}
    assert store.task("wrong") is None


def test_a_repeated_named_request_is_no_conflict_after_a_server_change(store):
    store.submit(given_of("k", name="mine", given="as sent")).result()
    store.submit(given_of("k2", name="mine", given="as sent")).result()
    assert store.named("a", "mine") == "k2"
    with pytest.raises(Conflict):
        store.submit(given_of("k3", name="mine", given="something else")).result()


def test_a_store_of_an_earlier_version_is_migrated(tmp_path):
    first = Store(tmp_path / "tasks.db")
    first.submit(given_of("k", name="mine")).result()
    first.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "tasks.db")) as old:
        old.execute("ALTER TABLE names DROP COLUMN given")
        old.execute("ALTER TABLE tasks DROP COLUMN error_kind")
        old.commit()
    second = Store(tmp_path / "tasks.db")
    assert second.named("a", "mine") == "k"
    second.begin("k").result()
    second.fail("k", "RecordError: torn", "RecordError").result()
    assert second.task("k").error_kind == "RecordError"
    with pytest.raises(Conflict):
        second.submit(given_of("other", name="mine", given="x")).result()
    second.close()


def test_no_task_is_accepted_once_the_store_file_is_deleted(tmp_path, store):
    store.submit(given_of("k")).result()
    (tmp_path / "tasks.db").unlink()
    assert not store.is_there()
    with pytest.raises(InfrastructureError, match="deleted or replaced"):
        store.submit(given_of("lost")).result()


def test_a_cancelled_caller_does_not_end_the_writer_thread(tmp_path, store):
    with contextlib.closing(sqlite3.connect(tmp_path / "tasks.db")) as other:
        # The writer waits for the lock of the first change, so the second one is not begun.
        other.execute("begin exclusive")
        first = store.submit(given_of("first"))
        limit = time.monotonic() + 10
        while not first.running():
            assert time.monotonic() < limit
            time.sleep(0.005)
        gone = store.submit(given_of("gone"))
        assert gone.cancel()
        other.rollback()
    assert store.submit(given_of("k")).result().key == "k"
    assert store.task("gone") is None


def test_a_server_shutdown_is_no_failed_attempt_of_a_task(tmp_path):
    for _ in range(2 * ATTEMPTS):
        died = Store(tmp_path / "tasks.db")
        died.submit(given_of("k")).result()
        died.recover_interrupted().result()
        assert died.begin("k").result()[0].attempts == 1
        died.close()


def test_an_error_that_names_a_file_of_no_encoding_is_stored(store):
    store.submit(given_of("k")).result()
    store.begin("k").result()
    assert store.fail("k", "FileNotFoundError: half\udcff").result()
    assert store.task("k").error == "FileNotFoundError: half?"


def test_an_administrator_cancels_tasks_of_other_clients(store):
    store.submit(given_of("k", "a")).result()
    assert store.cancel("root", "k", for_all=True).result()
    assert store.task("k").state == "cancelled"


def test_a_name_is_free_again_after_its_client_cancels(store):
    store.submit(given_of("k", "a", name="mine")).result()
    store.submit(given_of("k", "b")).result()
    assert not store.cancel("a", "k").result()
    store.submit(given_of("other", "a", name="mine")).result()
    assert store.named("a", "mine") == "other"


def test_an_unjudged_task_is_judged_again_when_resubmitted(store):
    store.submit(given_of("k")).result()
    store.begin("k").result()
    store.finish("k", "unjudged", b"{}").result()
    assert store.task("k").begins_anew
    again = store.submit(given_of("k")).result()
    assert (again.state, again.verdict, again.attempts) == ("queued", None, 0)
    store.begin("k").result()
    store.finish("k", "failed", b"{}").result()
    assert store.submit(given_of("k")).result().verdict == "failed"


def test_a_second_client_extends_the_deadline_of_a_running_task(store):
    store.submit(given_of("k", deadline=time.time() + 1)).result()
    store.begin("k").result()
    assert store.submit(given_of("k", "b")).result().deadline is None
    assert store.task("k").deadline is None


def test_a_task_that_was_skipped_too_often_is_next():
    own = [waits("old", problem="x"), waits("new", problem="y", sequence=1)]
    assert choose({"a": own}, [], {"y"}, {"old": MAX_SKIPS - 1}).key == "new"
    assert choose({"a": own}, [], {"y"}, {"old": MAX_SKIPS}).key == "old"


def test_an_extended_deadline_does_not_expire_the_task(store):
    late = time.time() - 1
    store.submit(given_of("k", deadline=late)).result()
    store.submit(given_of("gone", deadline=late)).result()
    store.submit(given_of("k", "b")).result()
    assert not store.expire("k", "late").result()
    assert store.expire("gone", "late").result()
    assert (store.task("k").state, store.task("gone").state) == ("queued", "failed")


def test_a_result_of_another_device_model_is_not_reused(tmp_path):
    def opened(by):
        made = Store(tmp_path / "tasks.db", by)
        made.recover_interrupted().result()
        return made

    first = opened("A")
    for key in ("done", "waits"):
        first.submit(given_of(key)).result()
    first.finish("done", "correct", b"of A").result()
    first.close()
    other = opened("B")
    other.finish("waits", "correct", b"of B").result()
    # The client that waits for it gets it; its report names the device model.
    assert other.result("waits") == b"of B"
    other.close()
    back = opened("A")
    assert back.submit(given_of("done")).result().state == "done"
    assert back.submit(given_of("waits")).result().state == "queued"
    back.finish("waits", "correct", b"of A").result()
    assert back.submit(given_of("waits")).result().state == "done"
    assert back.prune(time.time() + 1).result() == 2
    back.close()
