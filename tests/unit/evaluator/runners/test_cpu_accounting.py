"""The time of a call, from readings of two clocks.

`python -m benchmarks --only planted_bugs` plants bugs that these tests must find.
"""

from __future__ import annotations

from typing import Any

import pytest

from tilewright.evaluator.runners.cpu_accounting import (
    ASLEEP_S,
    MAX_EMPTY_CALL_S,
    MIN_CALL_S,
    CallReadings,
    call_s,
)

MILLISECOND: dict[str, float] = {
    "cpu_s": 1e-3, "late_cpu_s": 0.0, "waited_s": 0.0, "done_s": 1e-3, "stopped_s": 1.1e-3,
}  # fmt: skip


def readings(**changes: float) -> CallReadings:
    return CallReadings(**{**MILLISECOND, **changes})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 1e-3),
        # The supervisor is late: the runner uses no CPU time meanwhile.
        ({"stopped_s": 9e-3}, 1e-3),
        # Other programs have its core.
        ({"done_s": 5e-3, "waited_s": 4e-3}, 1e-3),
        # It sleeps, and something else works for it.
        ({"done_s": 5e-3}, 1e-3 + 4e-3 - ASLEEP_S),
        ({"done_s": 5e-3, "waited_s": 1e-3}, 1e-3 + 3e-3 - ASLEEP_S),
        ({"done_s": 1e-3 + ASLEEP_S}, 1e-3),
        # Threads of its own, or work after completion, or after it was stopped.
        ({"cpu_s": 7e-3}, 7e-3),
        ({"cpu_s": 7e-3, "late_cpu_s": 6e-3}, 7e-3),
        ({"cpu_s": 2e-3, "done_s": 1e-6}, 2e-3),
    ],
)
def test_one_thread_is_charged_for_cpu_time_and_for_sleep(changes, expected):
    assert call_s(readings(**changes), 0.0, 1) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 1.1e-3),
        ({"cpu_s": 2.2e-3}, 1.1e-3),
        ({"cpu_s": 0.0}, 1.1e-3),
        ({"done_s": 1e-6}, 1.1e-3),
        ({"late_cpu_s": 3e-3}, 4.1e-3),
    ],
)
def test_several_threads_are_charged_until_all_are_stopped(changes, expected):
    for threads in (2, 16):
        assert call_s(readings(**changes), 0.0, threads) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("threads", [1, 4])
def test_the_credit_of_an_empty_call_is_limited(threads):
    def credit(empty_s: float) -> Any:
        return call_s(readings(), 0.0, threads) - call_s(readings(), empty_s, threads)

    assert credit(2e-6) == pytest.approx(2e-6)
    assert credit(1e-3) == pytest.approx(MAX_EMPTY_CALL_S)
    assert MAX_EMPTY_CALL_S <= 5e-6


@pytest.mark.parametrize("threads", [1, 4])
def test_no_call_takes_less_than_the_clocks_can_tell(threads):
    none = readings(cpu_s=0.0, done_s=0.0, stopped_s=0.0)

    assert call_s(none, 1.0, threads) == MIN_CALL_S > 0
