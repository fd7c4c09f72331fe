"""Idle judges and runners: which one is reused, which one is kept, and that none is left behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tilewright.evaluator.processes.idle import MAX_CACHED_RUNNERS, IdleJudge, RunnerCache


def a_side(log: list[str], name: str, *, alive: bool = True) -> Any:
    child = SimpleNamespace(alive=lambda: alive, kill_async=lambda: log.append(f"doom {name}"))
    return SimpleNamespace(name=name, child=child, close=lambda: log.append(f"close {name}"))


def test_a_cached_runner_serves_once_per_evaluation():
    cached, log = RunnerCache(), list[str]()
    one, two = a_side(log, "one"), a_side(log, "two")
    cached.release("eager", one)
    assert cached.acquire("eager") is None
    cached.release("eager", two)
    assert cached.trim() == []
    assert cached.acquire("eager") is one
    cached.release("eager", one)
    assert cached.acquire("eager") is two
    assert cached.acquire("eager") is None
    assert cached.acquire("compile") is None


def test_with_enough_cached_runners_the_least_recent_serves_next():
    cached, log = RunnerCache(), list[str]()
    one, two = a_side(log, "one"), a_side(log, "two")
    cached.release("eager", one)
    cached.release("eager", two)
    assert cached.acquire("eager") is one
    cached.release("eager", one)
    assert cached.acquire("eager") is two


def test_a_dead_cached_runner_is_not_taken_and_is_returned_for_closing():
    cached, log = RunnerCache(), list[str]()
    dead, living = a_side(log, "dead", alive=False), a_side(log, "living")
    cached.release("eager", dead)
    cached.release("eager", living)
    cached.trim()
    assert cached.acquire("eager") is living
    assert cached.trim() == [dead]


def test_after_a_failure_no_runner_is_cached():
    cached, log = RunnerCache(), list[str]()
    runners = [a_side(log, "ready"), a_side(log, "served")]
    cached.release("eager", runners[0])
    cached.trim()
    cached.release("eager", runners[1])
    assert sorted(runner.name for runner in cached.clear()) == ["ready", "served"]
    assert cached.acquire("eager") is None


def test_the_cache_keeps_a_limited_number_of_runners():
    cached, log = RunnerCache(), list[str]()
    runners = [a_side(log, str(number)) for number in range(MAX_CACHED_RUNNERS + 2)]
    for runner in runners:
        cached.release("eager", runner)
    assert cached.trim() == runners[MAX_CACHED_RUNNERS:]
    assert [cached.acquire("eager") for _ in runners] == [*runners[:MAX_CACHED_RUNNERS], None, None]


def test_runners_that_map_the_judges_memory_end_before_the_judge():
    cached, log = RunnerCache(), list[str]()
    cached.release("eager", a_side(log, "served"))
    cached.trim()
    cached.release("compile", a_side(log, "other"))
    judge: Any = SimpleNamespace(kill=lambda: log.append("kill judge"))
    IdleJudge(judge, cached).kill()
    assert log[-1] == "kill judge"
    assert sorted(log[:-1]) == ["close other", "close served", "doom other", "doom served"]
    assert cached.acquire("eager") is None
