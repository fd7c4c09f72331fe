"""Overwritten inputs are named, and the guards around them are watched."""

from __future__ import annotations

import pytest

from tests.unit.evaluator.judge.test_inputs import RAND, arena, load, sampled
from tilewright.evaluator.judge.overwritten_inputs import overwritten
from tilewright.wire.tensors import GUARD_BYTES


def test_an_unchanged_arena_has_no_overwritten_input():
    sample = sampled(load(f"({RAND}, {RAND})", "x + y", "x, y"))

    assert overwritten(sample, arena(sample), 0, set()) == []
    assert overwritten(sample, arena(sample, 8192), 8192, set()) == []


@pytest.mark.parametrize("base", [0, 8192])
def test_every_overwritten_input_is_named(base):
    sample = sampled(load(f"({RAND}, {RAND})", "x + y", "x, y"))
    first, second = (start for start, _, _ in sample.names)
    there = arena(sample, base)
    there[base + second] ^= 1
    assert overwritten(sample, there, base, set()) == ["input 1"]
    there[base + first + 3] ^= 1
    assert overwritten(sample, there, base, set()) == ["input 0", "input 1"]
    assert overwritten(sample, there, base, {1}) == ["input 0"]
    assert overwritten(sample, there, base, {0, 1}) == []


@pytest.mark.parametrize("distance", [-1, -GUARD_BYTES])
def test_guards_before_an_input_are_watched(distance):
    sample = sampled(load(f"({RAND}, {RAND})", "x + y", "x, y"))
    there = arena(sample)
    there[sample.names[0][0] + distance] ^= 1

    assert overwritten(sample, there, 0, {0, 1}) == ["memory around the inputs"]


def test_guards_behind_an_input_are_watched():
    sample = sampled(load(f"({RAND}, {RAND})", "x + y", "x, y"))
    for _, stop, _ in sample.names:
        there = arena(sample)
        there[stop] ^= 1

        assert overwritten(sample, there, 0, {0, 1}) == ["memory around the inputs"]


def test_a_view_of_a_larger_storage_has_its_own_guards():
    sample = sampled(load(f"({RAND}[:1], {RAND})", "x + y", "x, y"))
    there = arena(sample)
    there[sample.names[1][0]] ^= 1
    assert overwritten(sample, there, 0, set()) == ["input 1"]

    behind = arena(sample)
    behind[sample.names[0][0] + 8 * 4] ^= 1
    assert overwritten(sample, behind, 0, {0}) == ["memory around the inputs"]


def test_inputs_are_named_by_their_argument_position():
    inputs = f"(2.0, [{RAND}, {RAND}], {RAND})"
    reference = load(inputs, "pair[0] + pair[1] + y * f", "f, pair, y", grads=["y"])
    sample = sampled(reference)

    assert [index for _, _, index in sample.names][:3] == [1, 1, 2]
    there = arena(sample)
    there[sample.names[2][0]] ^= 1
    assert overwritten(sample, there, 0, {1}) == ["input 2"]
    assert overwritten(sample, there, 0, {2}) == []
    upstream = arena(sample)
    upstream[sample.names[3][0]] ^= 1
    assert overwritten(sample, upstream, 0, {0, 1, 2}) == ["input 3"]
