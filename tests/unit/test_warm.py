"""What idles beside a judge: who is taken, who is kept, and that nobody is left behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tilewright.evaluator.warm import MOST_PARKED, Parked, Warm


def a_side(log: list[str], name: str, *, alive: bool = True) -> Any:
    child = SimpleNamespace(alive=lambda: alive, doom=lambda: log.append(f"doom {name}"))
    return SimpleNamespace(name=name, child=child, close=lambda: log.append(f"close {name}"))


def test_a_side_serves_once_an_evaluation():
    parked, log = Parked(), list[str]()
    one, two = a_side(log, "one"), a_side(log, "two")
    parked.add("eager", one)
    assert parked.take("eager") is None
    parked.add("eager", two)
    assert parked.rest() == []
    assert parked.take("eager") is one
    parked.add("eager", one)
    assert parked.take("eager") is two
    assert parked.take("eager") is None
    assert parked.take("compile") is None


def test_once_there_are_enough_who_served_longest_ago_serves_again():
    parked, log = Parked(), list[str]()
    one, two = a_side(log, "one"), a_side(log, "two")
    parked.add("eager", one)
    parked.add("eager", two)
    assert parked.take("eager") is one
    parked.add("eager", one)
    assert parked.take("eager") is two


def test_who_has_died_is_not_taken_and_is_to_be_forgotten():
    parked, log = Parked(), list[str]()
    dead, living = a_side(log, "dead", alive=False), a_side(log, "living")
    parked.add("eager", dead)
    parked.add("eager", living)
    parked.rest()
    assert parked.take("eager") is living
    assert parked.rest() == [dead]


def test_after_a_failure_nobody_is_kept():
    parked, log = Parked(), list[str]()
    sides = [a_side(log, "ready"), a_side(log, "served")]
    parked.add("eager", sides[0])
    parked.rest()
    parked.add("eager", sides[1])
    assert sorted(side.name for side in parked.drain()) == ["ready", "served"]
    assert parked.take("eager") is None


def test_no_more_are_kept_than_are_of_use():
    parked, log = Parked(), list[str]()
    sides = [a_side(log, str(number)) for number in range(MOST_PARKED + 2)]
    for side in sides:
        parked.add("eager", side)
    assert parked.rest() == sides[MOST_PARKED:]
    assert [parked.take("eager") for _ in sides] == [*sides[:MOST_PARKED], None, None]


def test_what_has_mapped_the_judges_memory_ends_before_it():
    parked, log = Parked(), list[str]()
    parked.add("eager", a_side(log, "served"))
    parked.rest()
    parked.add("compile", a_side(log, "other"))
    judge: Any = SimpleNamespace(kill=lambda: log.append("kill judge"))
    Warm(judge, parked).kill()
    assert log[-1] == "kill judge"
    assert sorted(log[:-1]) == ["close other", "close served", "doom other", "doom served"]
    assert parked.take("eager") is None
