"""Timed calls that enter the ratio look like those on input variations, from inside a runner."""

from __future__ import annotations

import pytest

from benchmarks.attacks.telling_calls import MIN_FEATURES, SeenCall, seen_calls
from tests.processes.evaluations import Bench, bench
from tilewright.evaluator.timing.stop_rule import MIN_BLOCKS_AT_LIMIT

__all__ = ["bench"]
pytestmark = pytest.mark.timed

BLOCKS = 128
"""At least half of them are made. None of their calls is on a variation once in 40,000 runs."""
SAME = (
    *("gc on", "stack depth", "stack names", "threads", "fields", "wait_s", "bytes"),
    *("flag ready", "flag go", "precision", "gradients", "descriptors", "tasks"),
    *("page offset", "strides", "launches", "version", "references", "alignment"),
)
"""Readings that take few values; calls of either kind show the same ones."""


@pytest.fixture(scope="module")
def calls(bench: Bench) -> list[SeenCall]:
    return seen_calls(bench.host, "elements", BLOCKS)


def test_a_spy_reads_enough_figures_in_calls_of_either_kind(calls):
    assert len(calls[0].readings) >= MIN_FEATURES
    # A busy machine makes fewer blocks within the time of the plan.
    assert 2 * MIN_BLOCKS_AT_LIMIT <= sum(not call.varied for call in calls) <= 2 * BLOCKS
    assert any(call.varied for call in calls)


@pytest.mark.parametrize("name", SAME)
def test_a_reading_is_the_same_in_calls_of_either_kind(calls, name):
    timed, varied = (
        {call.readings[name] for call in calls if call.varied is kind} for kind in (False, True)
    )
    assert varied <= timed
