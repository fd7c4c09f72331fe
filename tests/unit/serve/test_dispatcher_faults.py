"""The dispatcher goes on after unexpected errors of the store, threads, listeners, evaluations."""

from __future__ import annotations

import sqlite3
import threading
import time

from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from tests import sample_reports as reports
from tests.unit.serve.store.test_store import given_of, store
from tests.unit.serve.test_dispatcher import Script, dispatcher_of, ended
from tilewright.serve import dispatcher as dispatchers

__all__ = ["store"]
"""The fixture."""


def test_a_late_task_ends_although_the_store_cannot_be_read_once(store):
    made = dispatcher_of(store, Script(reports.correct()))
    task = store.submit(given_of("k", deadline=time.time() - 1)).result()
    failed = []

    @event.listens_for(store._engine, "before_cursor_execute")
    def fail_once(_connection, _cursor, statement, *_):
        # The dispatcher's own threads read the task, and the store's thread writes it.
        own = threading.current_thread().name.startswith("ThreadPoolExecutor")
        if own and not failed:
            failed.append(statement)
            raise OperationalError(statement, None, sqlite3.OperationalError("cannot open"))

    made.add(task)
    assert "deadline" in ended(store, "k").error
    made.close()
    assert (len(failed), made.store_errors) == (1, 1)


def test_an_evaluation_without_a_report_is_an_internal_error(store):
    events = []
    made = dispatcher_of(
        store, lambda _, __: None, on_event=lambda _, event, __: events.append(event)
    )
    made.add(store.submit(given_of("k")).result())
    task = ended(store, "k")
    made.close()
    assert (task.state, task.error_kind, events.count("internal_error")) == ("failed", None, 3)
    assert "unjudged after 3 attempts: AttributeError" in task.error


def test_a_listener_that_fails_costs_no_task_its_verdict(store):
    def on_event(key, *_):
        raise OSError(key)

    script = Script(reports.correct())
    made = dispatcher_of(store, script, on_event=on_event)
    made.add(store.submit(given_of("k")).result())
    assert ended(store, "k").verdict == "correct"
    made.close()
    assert script.calls == 1


def test_tasks_are_judged_once_each_although_a_thread_cannot_start_at_first(store, monkeypatch):
    monkeypatch.setattr(dispatchers, "POLL_INTERVAL_S", 0.02)
    start, refused, events = threading.Thread.start, [], []

    def start_later(thread):
        if thread.name.startswith("ThreadPoolExecutor") and len(refused) < 2:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_later)
    script = Script(reports.correct())
    made = dispatcher_of(store, script, on_event=lambda *told: events.append(told))
    for key in ("one", "two"):
        made.add(store.submit(given_of(key)).result())
    assert [ended(store, key).verdict for key in ("one", "two")] == ["correct", "correct"]
    made.close()
    said = [fields["message"] for _, name, fields in events if name == dispatchers.START_FAILED]
    assert said == ["no task can be started: RuntimeError: can't start new thread"] * 2
    assert (script.calls, made.verdicts) == (2, {"correct": 2})
