"""Idle runners: which is used, which is kept, and that all are closed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tilewright.evaluator.runners.idle import MAX_CACHED_RUNNERS, IdleJudge, RunnerCache


def a_runner(log: list[str], name: str, *, alive: bool = True) -> Any:
    child = SimpleNamespace(alive=lambda: alive, kill_async=lambda: log.append(f"doom {name}"))
    return SimpleNamespace(name=name, child=child, close=lambda: log.append(f"close {name}"))


def test_a_cached_runner_serves_once_per_evaluation():
    cached, log = RunnerCache(), list[str]()
    one, two = a_runner(log, "one"), a_runner(log, "two")
    cached.add("eager", one)
    assert cached.take("eager") is None
    cached.add("eager", two)
    assert cached.rest() == []
    assert cached.take("eager") is one
    cached.add("eager", one)
    assert cached.take("eager") is two
    assert cached.take("eager") is None
    assert cached.take("compile") is None


def test_with_enough_cached_runners_the_least_recent_serves_next():
    cached, log = RunnerCache(), list[str]()
    one, two = a_runner(log, "one"), a_runner(log, "two")
    cached.add("eager", one)
    cached.add("eager", two)
    assert cached.take("eager") is one
    cached.add("eager", one)
    assert cached.take("eager") is two


def test_a_dead_cached_runner_is_not_taken_and_is_returned_for_closing():
    cached, log = RunnerCache(), list[str]()
    dead, living = a_runner(log, "dead", alive=False), a_runner(log, "living")
    cached.add("eager", dead)
    cached.add("eager", living)
    cached.rest()
    assert cached.take("eager") is living
    assert cached.rest() == [dead]


def test_after_a_failure_no_runner_is_cached():
    cached, log = RunnerCache(), list[str]()
    runners = [a_runner(log, "ready"), a_runner(log, "served")]
    cached.add("eager", runners[0])
    cached.rest()
    cached.add("eager", runners[1])
    assert sorted(runner.name for runner in cached.drain()) == ["ready", "served"]
    assert cached.take("eager") is None


def test_the_cache_keeps_a_limited_number_of_runners():
    cached, log = RunnerCache(), list[str]()
    runners = [a_runner(log, str(number)) for number in range(MAX_CACHED_RUNNERS + 2)]
    for runner in runners:
        cached.add("eager", runner)
    assert cached.rest() == runners[MAX_CACHED_RUNNERS:]
    assert [cached.take("eager") for _ in runners] == [*runners[:MAX_CACHED_RUNNERS], None, None]


def test_runners_that_map_the_judges_memory_end_before_the_judge():
    cached, log = RunnerCache(), list[str]()
    cached.add("eager", a_runner(log, "served"))
    cached.rest()
    cached.add("compile", a_runner(log, "other"))
    judge: Any = SimpleNamespace(kill=lambda: log.append("kill judge"))
    IdleJudge(judge, cached).kill()
    assert log[-1] == "kill judge"
    assert sorted(log[:-1]) == ["close other", "close served", "doom other", "doom served"]
    assert cached.take("eager") is None
