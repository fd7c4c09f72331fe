"""The recent activity of a server: by minute, by task, and limited."""

from __future__ import annotations

import pytest

pytest.importorskip("prometheus_client")
from tilewright.serve.activity import MAX_FAILURES, MAX_NAMES, MINUTES, Activity, Speedup, Waits


class Clock:
    """A clock that a test moves."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


JUDGED = {
    "verdict": "correct",
    "stages": [("load", 0.5), ("build", 9.0)],
    "device": "cuda:0",
    "speedup": 2.0,
    "low": 1.9,
    "high": 2.1,
}


def test_a_task_is_running_from_its_beginning_to_its_end():
    clock = Clock()
    activity = Activity(clock)
    activity.name("a", "softmax", "Softmax over rows")
    activity.tell("a", "running", {"waited_s": 3.0})
    clock.now += 2
    activity.tell("a", "stage", {"stage": "timing"})
    activity.tell("b", "stage", {"stage": "timing"})
    assert activity.speedup("a") == Speedup()
    activity.tell("a", "judged", JUDGED)
    assert activity.speedup("a") == Speedup(2.0, 1.9, 2.1)
    (running,) = activity.running()
    assert (running.key, running.stage, running.stage_at - running.started_at) == ("a", "timing", 2)
    assert activity.problem("a") == ("softmax", "Softmax over rows")
    assert activity.waits() == Waits(1, 3.0, 3.0)
    # A second attempt counts once, with its own wait.
    activity.tell("a", "running", {"waited_s": 5.0})
    assert activity.waits() == Waits(1, 5.0, 5.0)
    activity.finished("a")
    assert activity.running() == []


def test_verdicts_errors_and_device_seconds_are_summed_by_minute():
    clock = Clock()
    activity = Activity(clock)
    for _ in range(3):
        activity.tell("a", "judged", JUDGED)
    activity.tell("a", "internal_error", {"message": "lost"})
    clock.now += 60
    activity.tell("a", "judged", {**JUDGED, "verdict": "failed"})
    first, second = activity.minutes()
    assert (dict(first.verdicts), first.internal_errors) == ({"correct": 3}, 1)
    assert dict(first.busy_s) == {"cuda:0": 1.5}
    assert dict(second.verdicts) == {"failed": 1}
    assert second.at - first.at == 60
    assert [item.message for item in activity.failures()] == ["lost"]


def test_old_minutes_failures_and_names_are_dropped():
    clock = Clock()
    activity = Activity(clock)
    for number in range(2 * MINUTES):
        activity.tell("a", "judged", JUDGED)
        activity.tell("a", "internal_error", {"message": str(number)})
        clock.now += 60
    assert len(activity.minutes()) <= MINUTES
    assert len(activity.failures()) == MAX_FAILURES
    assert activity.failures()[0].message == str(2 * MINUTES - 1)
    clock.now += 3600
    assert activity.minutes() == []
    for number in range(MAX_NAMES + 5):
        activity.name(str(number), "p")
    assert (activity.problem("0")[0], activity.problem(str(MAX_NAMES))[0]) == ("", "p")


def test_only_what_changes_the_overview_changes_the_version():
    activity = Activity()
    before = activity.version
    activity.tell("a", "heartbeat", {})
    activity.tell("a", "sample", {"case": "x"})
    assert activity.version == before
    activity.tell("a", "judged", JUDGED)
    assert activity.version > before
