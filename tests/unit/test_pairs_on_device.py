"""When a difference on a GPU is looked at in more processes, and how far these differ."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from tilewright.evaluator.calibration import GPU_DEFAULT, pairs_needed
from tilewright.evaluator.times import CaseTimes, compare, doubtful
from tilewright.evaluator.timing import DEVICE_MORE, _has_a_past, _wants_another_pair

NAMES = ["eager", "candidate"]


@pytest.mark.parametrize(
    ("pairs", "judged", "profiled", "past"),
    [
        (1, True, False, False),
        (2, True, False, True),
        (2, False, False, False),
        (1, False, True, True),
    ],
)
def test_short_calls_are_not_timed_in_a_process_with_a_past(pairs, judged, profiled, past):
    side: Any = SimpleNamespace(judged=judged, profiled=profiled)
    assert _has_a_past(side, pairs) is past


@pytest.mark.parametrize(
    ("ratio", "again"),
    [(1.0, False), (1.13, True), (0.88, True), (1.3, False), (0.5, False), (1.02, True)],
)
@pytest.mark.parametrize("pairs", [1, 2])
def test_on_a_device_a_difference_that_may_be_luck_is_looked_at_again(pairs, ratio, again):
    evaluation: Any = SimpleNamespace(deadline=math.inf, calibration=GPU_DEFAULT)
    times = CaseTimes("one", on_device=True, blocks=8, pair_starts=[0, 4][:pairs])
    times.totals = {"eager": [ratio * 1e-3] * 16, "candidate": [1e-3] * 16}
    assert _wants_another_pair(evaluation, times, NAMES, pairs, 0.1) is again

    times.pair_starts = [0, 2, 4][: pairs + 1]
    assert _wants_another_pair(evaluation, times, NAMES, pairs, 0.1) is again

    times.pair_starts = [0, 1, 2, 3, 4, 5][: DEVICE_MORE * pairs]
    assert not _wants_another_pair(evaluation, times, NAMES, pairs, 0.1)


@pytest.mark.parametrize(("starts", "again"), [([0], True), ([0, 4], False), ([0, 2, 4], False)])
def test_what_several_pairs_say_is_luck_up_to_less(starts, again):
    times = CaseTimes("one", on_device=True, blocks=8, pair_starts=starts)
    times.totals = {"eager": [1.2e-3] * 16, "candidate": [1e-3] * 16}
    assert doubtful(times, "eager", 0.05) is again


@pytest.mark.parametrize(("shift", "again"), [(0.0, False), (0.02, False), (0.03, True)])
def test_a_difference_within_its_interval_is_looked_at_again_unless_it_is_little(shift, again):
    times = CaseTimes("one", on_device=True, blocks=8, pair_starts=[0])
    # So scattered that no interval excludes 1.
    swing = [1.3, 1.3, 1 / 1.3, 1 / 1.3] * 4
    times.totals = {
        "eager": [math.exp(shift) * each * 1e-3 for each in swing],
        "candidate": [1e-3] * 16,
    }
    assert doubtful(times, "eager", 0.05) is again


@pytest.mark.parametrize(("shift", "again"), [(0.029, False), (0.031, True)])
def test_no_difference_is_little_however_much_short_calls_differ(shift, again):
    times = CaseTimes("one", on_device=True, blocks=8, pair_starts=[0, 4])
    times.totals = {"eager": [math.exp(shift) * 6e-6] * 16, "candidate": [6e-6] * 16}
    assert doubtful(times, "eager", 0.08) is again


def test_two_processes_on_a_gpu_differ_by_a_time_and_a_share():
    assert GPU_DEFAULT.sigma(10.0, 0) == pytest.approx(math.hypot(0.05, 0.01))
    assert GPU_DEFAULT.sigma(5.0, 1 << 30) == pytest.approx(math.hypot(0.1, 0.01))
    assert GPU_DEFAULT.sigma(1e6, 0) == pytest.approx(0.01, rel=1e-3)


@pytest.mark.parametrize(("call_us", "pairs"), [(5.0, 2), (20.0, 2), (20.1, 1), (1e5, 1)])
def test_short_calls_take_two_pairs_of_processes_on_a_gpu(call_us, pairs):
    assert pairs_needed(call_us, 1 << 30, on_gpu=True) == pairs


def test_agreeing_pairs_say_less_on_a_device_where_sigma_is_what_a_pair_scatters_by():
    def half(*, on_device: bool) -> float:
        times = CaseTimes("one", on_device=on_device, blocks=8, pair_starts=[0, 2, 4, 6])
        times.totals = {"eager": [1e-3] * 16, "candidate": [1e-3] * 16}
        times.outside = {"eager": [0.0] * 16, "candidate": [0.0] * 16}
        found = compare(times, "eager", 0.02, (), official=False)
        return math.log((found.speedup_high or 0) / (found.speedup_low or 0)) / 2

    # 2.201 is Student's t of 11 degrees of freedom, of which the pairs' agreement brings 3.
    wanted = 2.201 * 0.02 * math.sqrt(8 / 11) / 2
    assert half(on_device=True) == pytest.approx(wanted, rel=1e-3)
    assert half(on_device=False) == pytest.approx(wanted / 2, rel=0.05)
