"""Timed calls that are compared by the rules of checked calls too."""

from __future__ import annotations

import itertools

from tests.unit.evaluator.timing.test_blocks import Scripted, plan, steady
from tilewright.evaluator.timing.call_plan import (
    AS_CHECKED_S,
    CERTAIN_HALVES,
    MAX_AS_CHECKED_BYTES,
)


def test_some_timed_calls_at_random_places_are_compared_as_checked_ones():
    session = Scripted.of(plan(100), steady(2e-3), steady(1e-3))
    session.time()

    timed = [fields for fields in session.logged("finish_timed") if fields["compare"]]
    places = [place for place, fields in enumerate(timed) if fields["as_checked"]]
    assert places[0] < CERTAIN_HALVES
    assert 0.1 < len(places) / len(timed) < 0.3
    assert len({later - place for place, later in itertools.pairwise(places)}) > 3


def test_none_is_compared_so_whose_float64_fits_into_no_device():
    session = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    session.moved = MAX_AS_CHECKED_BYTES
    session.time()
    assert not any(fields["as_checked"] for fields in session.logged("finish_timed"))


def test_after_many_seconds_fewer_are_compared_so_and_never_none():
    session = Scripted.of(plan(100), steady(2e-3), steady(1e-3))
    session.answers(as_checked_s=AS_CHECKED_S / 10)
    session.time()
    timed = [fields["as_checked"] for fields in session.logged("finish_timed")]
    # Each call adds a second here: from the tenth one on, the n-th has a chance of 2 / n, not 0.2.
    assert 0.01 < sum(timed) / len(timed) < 0.1
    assert any(timed[20:])


def test_the_time_of_these_comparisons_is_in_no_limit():
    session = Scripted.of(plan(), steady(2e-3), steady(1e-3))
    session.answers(as_checked_s=0.5)
    times = session.time()
    assert times.harness.as_checked_s == 8 * 0.5
