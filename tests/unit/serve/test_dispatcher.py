"""The dispatcher loses no task and evaluates no task needlessly."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time

import pytest

from tests import sample_reports as reports
from tests.unit.serve.store.test_store import given_of, store
from tilewright.errors import InfrastructureError, ProblemError
from tilewright.serve import dispatcher as dispatchers
from tilewright.serve.dispatcher import ATTEMPTS, Dispatcher
from tilewright.serve.store import tables
from tilewright.serve.store.store import Store

__all__ = ["store"]
"""The fixture."""


class Script:
    """Answers from a list; the last answer repeats."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.calls = 0
        self.go = threading.Event()
        self.go.set()

    def __call__(self, request, seen):
        self.calls += 1
        seen("stage", {})
        assert self.go.wait(10)
        seen("stage", {})
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer.model_copy(update={"request": request})


class BehindOthers:
    """Answers after the executor has run other tasks first."""

    def __init__(self):
        self.over = threading.Event()

    def __call__(self, request, seen):
        limit = time.monotonic() + 10
        while not self.over.is_set():
            assert time.monotonic() < limit
            seen(dispatchers.HEARTBEAT, {})
            time.sleep(0.01)
        # Once it has begun, its deadline is over.
        seen("stage", {})
        seen(dispatchers.HEARTBEAT, {})
        return reports.correct().model_copy(update={"request": request})


def until(done):
    limit = time.monotonic() + 10
    while not done():
        assert time.monotonic() < limit
        time.sleep(0.005)


def ended(store, key):
    limit = time.monotonic() + 10
    while store.task(key).state in ("queued", "running"):
        assert time.monotonic() < limit
        time.sleep(0.005)
    return store.task(key)


def dispatcher_of(store, script, **more):
    return Dispatcher(store, script, max_concurrency=2, retry_delay_s=0.001, **more)


def test_queued_tasks_are_judged_and_their_reports_stored(store):
    made = dispatcher_of(store, Script(reports.correct()))
    made.add(store.submit(given_of("k")).result())
    assert ended(store, "k").verdict == "correct"
    made.close()
    assert b'"verdict":"correct"' in store.result("k")


def test_tasks_of_a_killed_server_are_judged_by_the_next(store):
    for number in range(5):
        store.submit(given_of(f"k{number}")).result()
    store.begin("k3").result()
    made = dispatcher_of(store, Script(reports.correct()))
    assert all(ended(store, f"k{number}").state == "done" for number in range(5))
    made.close()


def test_infrastructure_failures_are_retried_and_then_reported(store):
    script = Script(InfrastructureError("x"), OSError("y"), reports.correct())
    made = dispatcher_of(store, script)
    made.add(store.submit(given_of("k")).result())
    assert ended(store, "k").verdict == "correct"
    script.answers = [InfrastructureError("gone")]
    script.calls = 0
    made.add(store.submit(given_of("bad")).result())
    task = ended(store, "bad")
    made.close()
    assert (task.state, task.verdict, script.calls) == ("failed", None, ATTEMPTS)
    assert "unjudged after 3 attempts" in task.error
    assert task.error_kind is None


def test_an_unusable_problem_fails_without_a_retry(store):
    script = Script(ProblemError("no reference"))
    made = dispatcher_of(store, script)
    made.add(store.submit(given_of("k")).result())
    task = ended(store, "k")
    assert (task.error, task.error_kind) == ("ProblemError: no reference", "ProblemError")
    made.close()
    assert script.calls == 1


def test_a_running_task_is_cancelled_at_its_next_event(store):
    script = Script(reports.correct())
    script.go.clear()
    made = dispatcher_of(store, script)
    made.add(store.submit(given_of("k")).result())
    limit = time.monotonic() + 10
    while script.calls == 0:
        assert time.monotonic() < limit
        time.sleep(0.005)
    assert store.cancel("a", "k").result()
    made.forget("k")
    script.go.set()
    made.close()
    assert store.task("k").state == "cancelled"
    assert store.result("k") == b""


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """Yield a store that another connection locks while its only task is evaluated."""
    monkeypatch.setattr(tables, "BUSY_MS", 10)
    store, script = Store(tmp_path / "tasks.db"), Script(reports.correct())
    script.go.clear()
    made = dispatcher_of(store, script)
    made.add(store.submit(given_of("k")).result())
    with contextlib.closing(sqlite3.connect(tmp_path / "tasks.db")) as other:
        until(lambda: script.calls == 1)
        other.execute("begin exclusive")
        yield store, script, made, other
    made.close()
    store.close()


def test_a_temporarily_locked_store_loses_no_task(locked):
    store, script, made, other = locked
    with pytest.raises(InfrastructureError, match="locked"):
        store.submit(given_of("refused")).result()
    script.go.set()
    until(lambda: made.store_errors > 2)
    assert store.task("k").state == "running"
    other.rollback()
    assert ended(store, "k").verdict == "correct"
    assert script.calls == 1


def test_a_server_that_ends_with_a_locked_store_leaves_the_task_to_the_next(locked):
    store, script, made, other = locked
    script.go.set()
    until(lambda: made.store_errors > 0)
    made.close()
    other.rollback()
    assert [item.key for item in store.recover_interrupted().result()] == ["k"]


def test_a_task_past_its_deadline_is_not_started(store):
    made = dispatcher_of(store, Script(reports.correct()))
    made.add(store.submit(given_of("k", deadline=time.time() - 1)).result())
    assert "deadline" in ended(store, "k").error
    made.close()


def test_a_task_resubmitted_while_its_evaluation_ends_is_judged(store):
    script = Script(reports.correct())
    script.go.clear()
    made = dispatcher_of(store, script)
    made.add(store.submit(given_of("k")).result())
    until(lambda: script.calls == 1)
    assert store.cancel("a", "k").result()
    made.forget("k")
    made.add(store.submit(given_of("k")).result())
    script.go.set()
    assert ended(store, "k").verdict == "correct"
    made.close()
    assert script.calls == 2


def test_a_deadline_passes_while_no_worker_is_free(store, monkeypatch):
    monkeypatch.setattr(dispatchers, "POLL_INTERVAL_S", 0.02)
    script = Script(reports.correct())
    script.go.clear()
    made = dispatcher_of(store, script)
    for name in ("one", "two"):
        made.add(store.submit(given_of(name)).result())
    until(lambda: script.calls == 2)
    made.add(store.submit(given_of("late", deadline=time.time() + 0.05)).result())
    made.add(store.submit(given_of("later")).result())
    assert "its deadline passed" in ended(store, "late").error
    assert made.state()["waiting"] == 1
    script.go.set()
    assert ended(store, "later").verdict == "correct"
    made.close()


def test_a_second_client_extends_the_deadline_and_raises_the_priority(store):
    script = Script(reports.correct())
    script.go.clear()
    made = dispatcher_of(store, script)
    for name in ("one", "two"):
        made.add(store.submit(given_of(name)).result())
    until(lambda: script.calls == 2)
    made.add(store.submit(given_of("k", deadline=time.time() + 0.05, priority=0)).result())
    both = store.submit(given_of("k", "b", priority=2)).result()
    assert (both.deadline, both.priority) == (None, 2)
    made.add(both)
    assert made.state()["waiting"] == 1
    time.sleep(0.1)
    script.go.set()
    assert ended(store, "k").verdict == "correct"
    made.close()
    earlier = store.submit(given_of("x", deadline=5e9)).result()
    assert store.submit(given_of("x", deadline=4e9)).result() == earlier


def test_a_finished_task_has_no_error_of_an_earlier_attempt(store):
    made = dispatcher_of(store, Script(InfrastructureError("x"), reports.correct()))
    made.add(store.submit(given_of("k")).result())
    assert ended(store, "k").error is None
    made.close()


def test_a_higher_concurrency_limit_takes_effect(store):
    script = Script(reports.correct())
    script.go.clear()
    limit = [1]
    made = Dispatcher(store, script, max_concurrency=lambda: limit[0], retry_delay_s=0.001)
    for number in range(3):
        made.add(store.submit(given_of(f"k{number}")).result())
    until(lambda: script.calls == 1)
    assert made.state()["max_running"] == 1
    limit[0] = 3
    until(lambda: script.calls == 3)
    script.go.set()
    made.close()


def test_a_deadline_passes_while_other_tasks_run_first(store):
    others = BehindOthers()
    made = dispatcher_of(store, others)
    made.add(store.submit(given_of("late", deadline=time.time() + 0.05)).result())
    assert "its deadline passed" in ended(store, "late").error
    made.add(store.submit(given_of("k", deadline=time.time() + 0.5)).result())
    until(lambda: store.task("k").state == "running")
    others.over.set()
    assert ended(store, "k").verdict == "correct"
    made.close()


def test_a_client_without_a_deadline_lifts_that_of_another_client(store):
    others = BehindOthers()
    made = dispatcher_of(store, others)
    deadline = time.time() + 0.3
    made.add(store.submit(given_of("k", deadline=deadline)).result())
    until(lambda: store.task("k").state == "running")
    made.add(store.submit(given_of("k")).result())
    until(lambda: time.time() > deadline + 0.1)
    others.over.set()
    assert ended(store, "k").verdict == "correct"
    made.close()


def test_a_task_resubmitted_while_its_result_is_stored_is_judged_again(store):
    noted = threading.Event()

    def on_event(key, event, _fields):
        if event == "judged" and not noted.is_set():
            # The store has the result, and the dispatcher has not finished the task.
            again = store.submit(given_of(key)).result()
            assert again.state == "queued"
            made.add(again)
            noted.set()

    script = Script(reports.unjudged(), reports.correct())
    made = dispatcher_of(store, script, on_event=on_event)
    made.add(store.submit(given_of("k")).result())
    until(lambda: store.task("k").verdict == "correct")
    assert script.calls == 2
    made.close()


def test_the_oldest_task_is_skipped_a_limited_number_of_times(store):
    order = []

    def evaluate(request, _seen):
        order.append(request.candidate.files[0].path)
        if len(order) < 60:
            # A client always has one more task of the problem whose judge is cached.
            made.add(store.submit(given_of(f"w{len(order)}", problem="cached")).result())
        return reports.correct().model_copy(update={"request": request})

    made = Dispatcher(store, evaluate, max_concurrency=2, retry_delay_s=0.001)
    for key, problem in (("w-1", "cached"), ("w-2", "cached"), ("old", "other"), ("w-3", "cached")):
        made.add(store.submit(given_of(key, problem=problem)).result())
    ended(store, "old")
    began = store.task("old").started_at
    until(lambda: len(order) >= 60)
    made.close()
    before = [n for n in range(1, 60) if (task := store.task(f"w{n}")) and task.started_at
              and task.started_at < began]  # fmt: skip
    assert len(before) <= 16


def test_a_task_that_waits_for_a_device_has_not_started(store):
    def evaluate(_, seen):
        limit = time.monotonic() + 10
        while time.monotonic() < limit:
            seen("waiting", {"message": "for a free device"})
            time.sleep(0.01)
        raise AssertionError("its deadline is long over")

    made = dispatcher_of(store, evaluate)
    made.add(store.submit(given_of("k", deadline=time.time() + 0.2)).result())
    assert ended(store, "k").error == "its deadline passed before its turn"
    made.close()


def test_a_closing_dispatcher_no_longer_waits_for_tasks_of_the_next_server(store):
    script = Script(InfrastructureError("ended with the server"))
    script.go.clear()
    made = dispatcher_of(store, script)
    made.add(store.submit(given_of("k")).result())
    until(lambda: made.judges("k"))
    closing = threading.Thread(target=made.close)
    closing.start()
    until(lambda: made.state()["draining"])
    script.go.set()
    closing.join(10)
    assert (store.task("k").state, made.judges("k")) == ("running", False)


def test_a_task_of_two_clients_waits_in_both_queues(store):
    script = Script(reports.correct())
    script.go.clear()
    made = Dispatcher(store, script, max_concurrency=1, retry_delay_s=0.001)
    made.add(store.submit(given_of("first", "c")).result(), "c")
    until(lambda: made.judges("first"))
    for number in range(50):
        made.add(store.submit(given_of(f"a{number}", "a")).result(), "a")
    made.add(store.submit(given_of("a49", "b")).result(), "b")
    assert (made.state()["waiting"], made.state()["clients"]) == (50, {"a": 50, "b": 1})
    script.go.set()
    assert all(ended(store, f"a{number}").state == "done" for number in range(50))
    began = [task.key for task in sorted(store.page(None, None, 0, 99), key=lambda t: t.started_at)]
    assert began.index("a49") <= 2
    assert script.calls == 51
    made.close()
    assert made.state()["waiting"] == 0
