"""Outputs that lay ready before the first timed call are outlasted, or no gain rests on them."""

from __future__ import annotations

import mmap
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.evaluator.timing.test_blocks import NAMES, Scripted, noisy
from tests.unit.evaluator.timing.test_case_timings import BESIDE_S, compared, times
from tilewright.evaluator.processes.memory_use import anonymous_bytes
from tilewright.evaluator.timing.calibration import CLASSES, Calibration
from tilewright.evaluator.timing.call_plan import HEAP_OUTPUTS
from tilewright.evaluator.timing.case_timings import CallSize, CaseTimes
from tilewright.evaluator.timing.rounds import time_cases
from tilewright.evaluator.timing.work_ahead import (
    CALLS_FOR_EACH,
    DEVICE_BYTES_PER_S,
    DEVICE_FILL_S,
    FILL_BYTES_PER_S,
    MIN_OUTPUT_BYTES,
    SLOW_FILL_BYTES_PER_S,
    blocks_to_outlast,
    uncounted_fill_s,
)
from tilewright.records import Case, TimingPlan
from tilewright.records.codes import LabelName

UNKNOWN = Calibration((0.0,) * len(CLASSES), measured=False)
OUTPUT_BYTES = 1 << 20
OF_HEAP = CALLS_FOR_EACH * HEAP_OUTPUTS // 2
"""Blocks that outlast the outputs for which every runner has memory."""


def with_ready(outputs: int, calls: int = 40, ratio: float = 2.0) -> CaseTimes:
    made = times([ratio * 1e-3] * calls, [1e-3] * calls)
    made.size, made.replicate_starts = CallSize(output_bytes=OUTPUT_BYTES), [0]
    made.memory.ready_bytes = [outputs * OUTPUT_BYTES]
    return made


def scripted(size: int, ratio: float, **limits: float) -> CaseTimes:
    plan = TimingPlan(min_blocks=8, max_blocks=16, target_ci_half_width=0.1, **limits)
    session = Scripted.of(plan, noisy(ratio, 1), noisy(1.0, 2))
    session.outputs_size = size
    return time_cases(session, UNKNOWN, [Case(name="one")], NAMES)[0]


def test_memory_without_a_file_is_seen():
    before = anonymous_bytes([os.getpid()])
    # New pages: the allocator might take some that it already has.
    with mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as held:
        held.write(b"x" * (32 << 20))
        assert 30 << 20 < anonymous_bytes([os.getpid()]) - before < 100 << 20


def test_a_gain_outlasts_the_outputs_that_may_lie_ready():
    assert scripted(MIN_OUTPUT_BYTES, 1.5).blocks == OF_HEAP
    assert scripted(MIN_OUTPUT_BYTES - 1, 1.5).blocks < OF_HEAP
    assert scripted(MIN_OUTPUT_BYTES, 0.7).blocks < OF_HEAP


def test_a_gain_that_did_not_outlast_them_is_lower():
    plain, enough, short = (compared(with_ready(count)) for count in (0, 10, 11))
    assert blocks_to_outlast(with_ready(10)) == 20
    assert (enough.speedup, enough.speedup_low) == (plain.speedup, plain.speedup_low)
    fill_s = 11 * OUTPUT_BYTES / FILL_BYTES_PER_S
    assert uncounted_fill_s(with_ready(11)) == pytest.approx(fill_s)
    assert short.speedup == plain.speedup
    assert (enough.labels, short.labels) == ((), (LabelName.WORK_OF_OTHER_CALLS,))
    assert short.speedup_low == pytest.approx(plain.speedup_low * 0.04 / (0.04 + fill_s))


@given(st.floats(0.1, 10.0), st.integers(0, 10_000))
def test_they_deny_a_gain_and_show_no_loss(ratio, outputs):
    plain, item = (compared(with_ready(count, ratio=ratio)) for count in (0, outputs))
    assert min(plain.speedup_low, 1.0) <= item.speedup_low <= plain.speedup_low
    assert item.conclusion in (plain.conclusion, "no measurable difference")


def before_calls(unchanged: int, *, is_random: bool = False) -> CaseTimes:
    made = times([2e-3] * 40, [1e-3] * 40, outside=[BESIDE_S] * 40)
    made.memory.unchanged, made.size = [unchanged] * 20, CallSize(is_random=is_random)
    return made


def test_what_no_input_changes_may_be_made_before_each_call():
    assert uncounted_fill_s(before_calls(0)) == 0.0
    little = uncounted_fill_s(before_calls(10_000))
    assert little == pytest.approx(40 * 10_000 / SLOW_FILL_BYTES_PER_S)
    # No more than what the runner did there.
    assert uncounted_fill_s(before_calls(1 << 30)) == pytest.approx(40 * BESIDE_S)
    assert uncounted_fill_s(before_calls(0, is_random=True)) == pytest.approx(40 * BESIDE_S)

    plain, item = compared(before_calls(0)), compared(before_calls(1 << 30))
    share = 1e-3 / (1e-3 + BESIDE_S)
    assert item.speedup_low == pytest.approx(plain.speedup_low * share)
    assert item.labels == (LabelName.WORK_OF_OTHER_CALLS,)
    assert item.speedup == plain.speedup


def test_memory_that_nobody_wrote_counts_as_if_it_were_filled():
    made = times([2e-3] * 40, [1e-3] * 40)
    made.memory.found_ready = [OUTPUT_BYTES] * 40
    assert uncounted_fill_s(made) == pytest.approx(40 * OUTPUT_BYTES / FILL_BYTES_PER_S)


def on_device(found: list[int], calls: int = 40, ratio: float = 2.0) -> CaseTimes:
    made = times([ratio * 1e-5] * calls, [1e-5] * calls)
    made.on_device, made.memory.found_ready = True, found
    return made


def test_on_a_gpu_a_gain_allows_for_what_lay_ready_in_compared_calls():
    # A quarter of the calls was compared, and half of these had a ready megabyte.
    found = [OUTPUT_BYTES] * 5 + [0] * 5
    fill_s = 20 * (DEVICE_FILL_S + OUTPUT_BYTES / DEVICE_BYTES_PER_S)
    assert uncounted_fill_s(on_device(found)) == pytest.approx(fill_s)
    assert uncounted_fill_s(on_device([])) == uncounted_fill_s(on_device([0] * 40)) == 0

    plain, item = compared(on_device([0] * 40)), compared(on_device(found))
    assert item.speedup_low == pytest.approx(plain.speedup_low * 4e-4 / (4e-4 + fill_s))
    assert (plain.labels, item.labels) == ((), (LabelName.WORK_OF_OTHER_CALLS,))
    assert item.speedup == plain.speedup


@given(st.floats(0.1, 10.0), st.lists(st.integers(0, 1 << 30), max_size=40))
def test_on_a_gpu_it_denies_a_gain_and_shows_no_loss(ratio, found):
    plain, item = (compared(on_device(ready, ratio=ratio)) for ready in ([], found))
    assert min(plain.speedup_low, 1.0) <= item.speedup_low <= plain.speedup_low
    assert item.conclusion in (plain.conclusion, "no measurable difference")
