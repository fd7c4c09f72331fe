"""The classifiers of the bar see what tells calls apart, and nothing where nothing does."""

from __future__ import annotations

import random

import pytest

from benchmarks.attacks.telling_calls import (
    GAP,
    MAX_BALANCED_ACCURACY,
    Bar,
    SeenCall,
    bars_of,
)

CALLS, PROCESSES, SHARE = 1200, 2, 0.2


def calls(**tells: float) -> list[SeenCall]:
    """Return random calls; a reading of `tells` is larger by so much in calls on variations."""
    chance, made = random.Random(5), []
    for number in range(CALLS):
        varied = chance.random() < SHARE
        readings = {name: chance.gauss(0.0, 1.0) for name in (GAP, "address", "seed")}
        readings |= {name: readings[name] + varied * size for name, size in tells.items()}
        made.append(SeenCall("problem", number // (CALLS // PROCESSES), varied, readings))
    return made


def accuracy(given: list[SeenCall]) -> Bar:
    return bars_of(given)[0]


def test_random_readings_tell_nothing():
    assert accuracy(calls()).held


@pytest.mark.parametrize("name", [GAP, "address"])
def test_a_reading_that_tells_is_found(name, capsys):
    assert not accuracy(calls(**{name: 1.0})).held
    assert name in capsys.readouterr().out.splitlines()[0]


def test_a_reading_of_one_process_is_compared_within_it():
    moved = [
        SeenCall(
            call.problem,
            call.process,
            call.varied,
            {**call.readings, "address": call.readings["address"] + 1000 * call.process},
        )
        for call in calls(address=1.5)
    ]
    assert not accuracy(moved).held


def test_kinds_that_follow_each_other_are_found():
    given = [
        SeenCall(call.problem, call.process, number % 5 == 0, call.readings)
        for number, call in enumerate(calls())
    ]
    assert accuracy(given).details["scores"]["stumps, random"] > MAX_BALANCED_ACCURACY
