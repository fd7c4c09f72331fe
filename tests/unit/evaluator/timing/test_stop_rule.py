"""When a process replicate has enough blocks; `test_blocks` has the rest of the rule."""

from __future__ import annotations

import random
import time

import pytest

from tests.unit.evaluator.timing.test_blocks import NAMES, Scripted, noisy
from tilewright.evaluator.timing.calibration import CLASSES, Calibration
from tilewright.evaluator.timing.rounds import time_cases
from tilewright.evaluator.timing.speedup import half_width
from tilewright.evaluator.timing.stop_rule import (
    BETWEEN_SHARE,
    MIN_BLOCKS_AT_LIMIT,
    MIN_BLOCKS_IF_SLOW,
    StopRule,
)
from tilewright.records import Case, TimingPlan
from tilewright.scoring.process_replicates import NORMAL_95


@pytest.mark.parametrize(("sigma", "narrow"), [(0.0, True), (0.04, False)])
def test_an_interval_need_not_be_narrower_than_the_variation_between_processes(sigma, narrow):
    known = Calibration((sigma,) * len(CLASSES), measured=True)
    wide = TimingPlan(min_blocks=8, max_blocks=400, max_s=1e6, target_ci_half_width=0.004)
    session = Scripted.of(wide, noisy(1.0, 1), noisy(1.0, 2))
    times = time_cases(session, known, [Case(name="one")], NAMES)[0]
    width = half_width(times, "eager")
    assert (width <= 0.004) is narrow
    assert width <= max(0.004, BETWEEN_SHARE * NORMAL_95 * sigma)


@pytest.mark.reads_settings
def test_a_case_of_several_takes_no_longer_than_its_part():
    def each(_: int) -> tuple[float, float]:
        time.sleep(1e-3)
        return 1.0 + 0.1 * random.random(), 0.0

    session = Scripted.of(TimingPlan(max_blocks=400, max_problem_s=0.4), each, each)
    unknown = Calibration((0.0,) * len(CLASSES), measured=False)
    begun = time.monotonic()
    found = time_cases(session, unknown, [Case(name="one"), Case(name="two")], NAMES)
    assert time.monotonic() - begun < 2.0
    assert all(MIN_BLOCKS_AT_LIMIT <= times.blocks < 400 for times in found)


def test_a_replicate_ends_at_the_limit_of_time_and_of_blocks():
    session = Scripted.of(TimingPlan(min_blocks=20, max_blocks=30), noisy(1.0, 1), noisy(1.0, 2))
    unknown = Calibration((0.0,) * len(CLASSES), measured=False)
    times = time_cases(session, unknown, [Case(name="one")], NAMES)[0]
    rule = StopRule(TimingPlan(max_blocks=30, max_s=3.0), 1, unknown, NAMES[:1])
    assert rule.is_over(times, 30, 0.1)
    assert not rule.is_over(times, MIN_BLOCKS_AT_LIMIT - 1, 4.0)
    assert rule.is_over(times, MIN_BLOCKS_AT_LIMIT, 4.0)
    assert not rule.is_over(times, MIN_BLOCKS_IF_SLOW - 1, 40.0)
    assert rule.is_over(times, MIN_BLOCKS_IF_SLOW, 40.0)
